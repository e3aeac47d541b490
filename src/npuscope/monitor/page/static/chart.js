// Line charts over time, as SVG. A pointer or the arrow keys read single values.
import { el, keyed, setText, show, svg } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 132;
const EDGE = { left: 60, right: 6, top: 8, bottom: 18 };
const COLOURS = 8;
const MOST_IN_TIP = 10;
const MOST_IN_LEGEND = 24;

export const colour = (index) => `c${index % COLOURS}${index >= COLOURS ? " again" : ""}`;

export class Chart {
  // options: {format(value), least?: a top of the scale that is never undercut, area?: whether to fill}
  constructor(parent, title, options) {
    this.title = title;
    this.options = options;
    this.series = [];
    this.range = [0, 1];
    this.marks = [];
    this.chosen = null;
    this.cursor = null;
    this.now = el("span", { class: "now" });
    this.picture = svg("svg", { role: "img", tabindex: "0" });
    this.legend = el("ul", { class: "legend" });
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.figure = el("figure", {}, el("figcaption", {}, el("span", {}, title), this.now), this.picture, this.legend, this.tip);
    parent.append(this.figure);
    this.listen();
  }

  listen() {
    new ResizeObserver(() => this.draw()).observe(this.picture);
    this.picture.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.picture.addEventListener("pointerleave", () => this.point(null));
    this.picture.addEventListener("blur", () => this.point(null));
    this.picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") this.point(null);
      if (!step) return;
      event.preventDefault();
      const times = this.series[0]?.times ?? [];
      const at = this.cursor === null ? times.length : nearest(times, this.cursor);
      this.read(times[Math.min(Math.max(at + step, 0), times.length - 1)] ?? null);
    });
  }

  // series: [{key, label, colour, times, values}], all times within `range`
  // marks: [from, to] times that are shaded
  show(series, range, marks = []) {
    this.marks = marks;
    this.series = series.filter((one) => one.values.length);
    this.range = range;
    this.draw();
  }

  choose(key) {
    this.chosen = key;
    this.draw();
  }

  draw() {
    const width = this.picture.clientWidth;
    if (!width) return;
    this.width = width;
    const peak = this.series.reduce((most, one) => one.values.reduce((a, b) => Math.max(a, b), most), 0);
    this.top = niceTop(Math.max(peak, this.options.least ?? 0), this.options.binary);
    this.picture.replaceChildren(...this.bands(), ...this.grid(), ...this.series.flatMap((one) => this.line(one)), ...this.cross());
    this.picture.setAttribute("data-points", this.series.reduce((sum, one) => sum + one.values.length, 0));
    this.picture.setAttribute("aria-label", this.words());
    this.caption();
  }

  x(time) {
    const [from, to] = this.range;
    return EDGE.left + ((time - from) / (to - from)) * (this.width - EDGE.left - EDGE.right);
  }

  y(value) {
    return HEIGHT - EDGE.bottom - (value / this.top) * (HEIGHT - EDGE.top - EDGE.bottom);
  }

  bands() {
    const [first, last] = this.range;
    return this.marks.filter(([from, to]) => to > first && from < last).map(([from, to]) => {
      const x = this.x(Math.max(from, first));
      const width = Math.max(2, this.x(Math.min(to, last)) - x);
      return svg("rect", { class: "band", x, width, y: EDGE.top, height: HEIGHT - EDGE.top - EDGE.bottom });
    });
  }

  grid() {
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.y(this.top * share)) + 0.5;
      parts.push(svg("line", { class: "grid", x1: EDGE.left, x2: this.width - EDGE.right, y1: y, y2: y }));
      if (!this.series.length) continue;
      const text = share ? this.options.format(this.top * share) : "0";
      parts.push(svg("text", { class: "axis", x: EDGE.left - 8, y: y + 3.5, "text-anchor": "end" }, text));
    }
    const [from, to] = this.range;
    const step = timeStep((to - from) / Math.max(2, Math.floor(this.width / 90)));
    for (let time = Math.ceil(from / step) * step; time < to; time += step) {
      const x = this.x(time);
      if (x < EDGE.left + 10 || x > this.width - 20) continue;
      parts.push(svg("text", { class: "axis", x, y: HEIGHT - 4, "text-anchor": "middle" }, clock(time, step < 60)));
    }
    return parts;
  }

  line(one) {
    const runs = split(one.times);
    const path = runs.map(([a, b]) => this.path(one, a, b)).join("");
    const dim = this.chosen && one.key !== this.chosen && this.series.some((other) => other.key === this.chosen);
    const tone = `${one.colour}${dim ? " dim" : ""}`;
    const parts = [];
    if (this.options.area) {
      const base = this.y(0);
      const area = runs.map(([a, b]) => `${this.path(one, a, b)}L${this.x(one.times[b])} ${base}L${this.x(one.times[a])} ${base}Z`);
      parts.push(svg("path", { class: `area ${one.colour}`, d: area.join("") }));
    }
    parts.push(svg("path", { class: `stroke ${tone}`, d: path }));
    const last = one.times.length - 1;
    parts.push(svg("circle", { class: `dot ${tone}`, r: 2.4, cx: this.x(one.times[last]), cy: this.y(one.values[last]) }));
    return parts;
  }

  path(one, first, last) {
    let text = "";
    for (let at = first; at <= last; at += 1) {
      text += `${at === first ? "M" : "L"}${this.x(one.times[at]).toFixed(1)} ${this.y(one.values[at]).toFixed(1)}`;
    }
    return text;
  }

  cross() {
    if (this.cursor === null) return [];
    const x = this.x(this.cursor);
    return [svg("line", { class: "cross", x1: x, x2: x, y1: EDGE.top, y2: HEIGHT - EDGE.bottom })];
  }

  point(x) {
    const [from, to] = this.range;
    this.read(x === null ? null : from + ((x - EDGE.left) / (this.width - EDGE.left - EDGE.right)) * (to - from));
  }

  // Shows the values nearest to a time, the largest first.
  read(time) {
    const all = time === null ? [] : this.series.map((one) => ({ one, at: nearest(one.times, time) }));
    this.cursor = all.length ? all[0].one.times[all[0].at] : null;
    this.draw();
    show(this.tip, this.cursor !== null);
    if (this.cursor === null) return;
    all.sort((a, b) => b.one.values[b.at] - a.one.values[a.at]);
    const lines = all.slice(0, MOST_IN_TIP).map(({ one, at }) =>
      el("li", {}, el("span", { class: `swatch ${one.colour}` }), `${one.label} ${this.options.format(one.values[at])}`));
    if (all.length > MOST_IN_TIP) lines.push(el("li", {}, `and ${all.length - MOST_IN_TIP} more`));
    this.tip.replaceChildren(clock(this.cursor), el("ul", {}, ...lines));
    const x = this.x(this.cursor) + 12;
    const room = this.figure.clientWidth - this.tip.offsetWidth - 8;
    this.tip.style.left = `${Math.max(4, x + 14 < room ? x + 14 : x - this.tip.offsetWidth - 10)}px`;
  }

  caption() {
    const newest = this.series.map((one) => one.values[one.values.length - 1]);
    const alone = this.series.length === 1;
    setText(this.now, alone ? this.options.format(newest[0]) : this.series.length ? "" : "no figures yet");
    show(this.legend, !alone);
    keyed(this.legend, alone ? [] : this.series.slice(0, MOST_IN_LEGEND), (one) => one.key,
      () => el("li", {}, el("span", {}), el("span", {})),
      (item, one) => {
        item.firstChild.setAttribute("class", `swatch ${one.colour}`);
        setText(item.lastChild, `${one.label} ${this.options.format(one.values[one.values.length - 1])}`);
      });
  }

  words() {
    if (!this.series.length) return `${this.title}: no figures yet`;
    const parts = this.series.slice(0, 8).map((one) => {
      const format = this.options.format;
      const low = one.values.reduce((a, b) => Math.min(a, b));
      const high = one.values.reduce((a, b) => Math.max(a, b));
      return `${one.label} now ${format(one.values[one.values.length - 1])}, between ${format(low)} and ${format(high)}`;
    });
    return `${this.title}: ${parts.join("; ")}. Arrow keys read single values.`;
  }
}

// The next round number above a peak; for bytes, round in powers of two.
function niceTop(peak, binary) {
  if (peak <= 0) return 1;
  const base = binary ? 1024 ** Math.floor(Math.log(peak) / Math.log(1024)) : 10 ** Math.floor(Math.log10(peak));
  const steps = binary ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 4, 6, 8, 10];
  return base * (steps.find((step) => base * step >= peak) ?? 10);
}

function timeStep(least) {
  return [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600].find((step) => step >= least) ?? 86400;
}

// Runs without a hole: a process that was not measured for a while has no line there.
function split(times) {
  const gaps = times.slice(1).map((time, at) => time - times[at]).sort((a, b) => a - b);
  const usual = gaps[Math.floor(gaps.length / 2)] ?? 0;
  const runs = [];
  let first = 0;
  for (let at = 1; at <= times.length; at += 1) {
    if (at === times.length || times[at] - times[at - 1] > 4 * usual + 1) {
      runs.push([first, at - 1]);
      first = at;
    }
  }
  return runs;
}

function nearest(times, time) {
  let best = 0;
  for (let at = 1; at < times.length; at += 1) {
    if (Math.abs(times[at] - time) < Math.abs(times[best] - time)) best = at;
  }
  return best;
}
