// The timeline on a canvas: every core and pipe, drawn for the pixels there are. A core is open (its pipes one below the
// other, slices to be told apart) or closed (thin strips). Only what is visible is looked at.

const GUTTER = 132;
const AXIS = 24;
const HEAD = 20;
const OPEN = 18;
const DEEPER = 7;
const CLOSED = 4;
const MOST_ARROWS = 400;
const TALLEST = 560;

class Timeline {
  constructor(place, note, launch, rows, go) {
    Object.assign(this, { place, note, launch, rows, go, from: 0, to: rows.end, selected: -1, hovered: -1, found: null, path: true });
    this.mhz = launch.mhz;
    this.cores = [...new Set(rows.rows.map((row) => row.core))];
    const slowest = rows.pathSlice.length ? rows.rowOf(rows.pathSlice[rows.pathSlice.length - 1]).core : this.cores[0];
    this.open = new Set(this.cores.length <= 3 ? this.cores : [slowest]);
    this.build();
  }

  build() {
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": "Timeline: arrow keys pan and zoom, brackets go from slice to slice, Home shows all" });
    this.spacer = el("div", { class: "spacer" });
    this.scroller = el("div", { class: "scroller" }, this.canvas, this.spacer);
    this.panel = el("div", { class: "panel", "aria-live": "polite" }, el("p", { class: "quiet" }, "Choose a slice to see what it is, what it waited for and what waited for it."));
    this.search = new Search(this);
    const button = (text, title, act) => {
      const made = el("button", { type: "button", title }, text);
      made.addEventListener("click", act);
      return made;
    };
    const path = el("input", { type: "checkbox", checked: true });
    path.addEventListener("change", () => { this.path = path.checked; this.draw(); });
    this.place.replaceChildren(
      el("div", { class: "tools" }, this.search.element,
        button("+", "Zoom in (W or arrow up)", () => this.zoom(0.5)), button("−", "Zoom out (S or arrow down)", () => this.zoom(2)), button("All", "Show everything (Home)", () => this.show(0, this.rows.end)),
        button("Open all", "Show the pipes of every core", () => this.fold(this.cores)), button("Close all", "Show every core as strips", () => this.fold([])),
        el("label", { class: "choose" }, path, " critical path"), el("span", { class: "quiet hint" }, "Ctrl + wheel zooms, drag pans, Shift + drag zooms to a range, double click on a slice zooms to it")),
      this.scroller, this.legend(), this.panel);
    const left = this.launch.timeline.all - this.launch.timeline.slices;
    this.note.textContent = `${many(this.launch.timeline.slices, "slice")} on ${many(this.cores.length, "core")}, ${this.launch.provenance}` + (left > 0 ? `; ${whole(left)} slices of ${this.launch.cores.length - this.launch.timeline.cores} more cores are not on this page, the figures elsewhere count them` : "");
    this.listen();
    this.layout();
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  legend() {
    const lanes = [...new Map(this.rows.rows.map((row) => [row.lane, row.name])).values()];
    return el("ul", { class: "legend" }, ...lanes.map((name) => el("li", {}, el("span", { class: "swatch", style: `background: var(--pipe-${name.toLowerCase()}, var(--pipe-other))` }), name)),
      el("li", {}, el("span", { class: "swatch wait" }), "waiting"), el("li", {}, el("span", { class: "swatch path" }), "on the critical path"));
  }

  fold(open) {
    this.open = new Set(open);
    this.layout();
    this.draw();
  }

  // Where each core and row stands, from the top.
  layout() {
    this.places = [];
    let y = 4;
    for (const core of this.cores) {
      const rows = this.rows.rows.filter((row) => row.core === core);
      const open = this.open.has(core);
      this.places.push({ core, y, height: HEAD, head: true, open });
      if (open) y += HEAD;
      for (const row of rows) {
        const height = open ? OPEN + DEEPER * (row.levels - 1) : CLOSED;
        this.places.push({ core, row, y, height, open });
        y += height + (open ? 3 : 1);
      }
      if (!open) y = Math.max(y, this.places.find((one) => one.head && one.core === core).y + HEAD);
      y += 4;
    }
    this.tall = y;
    const height = Math.min(this.tall + AXIS, TALLEST);
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${Math.max(this.tall + AXIS - height, 0)}px`;
  }

  show(from, to) {
    const least = 4;
    const length = Math.min(Math.max(to - from, least), this.rows.end);
    this.from = Math.min(Math.max(from, 0), this.rows.end - length);
    this.to = this.from + length;
    this.draw();
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  x(time) {
    return GUTTER + ((time - this.from) / (this.to - this.from)) * (this.width - GUTTER);
  }

  time(x) {
    return this.from + ((x - GUTTER) / (this.width - GUTTER)) * (this.to - this.from);
  }

  draw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  paint() {
    const began = performance.now();
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    const dense = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(this.width * dense) || this.canvas.height !== Math.round(this.height * dense)) {
      this.canvas.width = Math.round(this.width * dense);
      this.canvas.height = Math.round(this.height * dense);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    this.colours = { card: styleColour("--card"), text: styleColour("--text"), quiet: styleColour("--quiet"), line: styleColour("--line"), accent: styleColour("--accent"), path: styleColour("--path"), pipes: {} };
    pen.fillStyle = this.colours.card;
    pen.fillRect(0, 0, this.width, this.height);
    this.scroll = this.scroller.scrollTop;
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    for (const place of this.places) {
      const y = place.y - this.scroll + AXIS;
      if (y + place.height < AXIS || y > this.height) continue;
      if (place.head) this.paintHead(pen, place, y);
      else this.paintRow(pen, place, y);
    }
    this.paintArrows(pen);
    pen.restore();
    this.paintAxis(pen);
    this.took = performance.now() - began;
  }

  paintHead(pen, place, y) {
    pen.fillStyle = this.colours.text;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillText(`${place.open ? "▾" : "▸"} ${this.launch.cores[place.core].name}`, 6, y + HEAD / 2, GUTTER - 12);
    pen.fillStyle = this.colours.line;
    pen.fillRect(0, y - 3, this.width, 1);
  }

  paintRow(pen, place, y) {
    const { row } = place;
    this.colours.pipes[row.name] ??= pipeColour(row.name);
    if (place.open) {
      pen.fillStyle = this.colours.quiet;
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillText(row.name, 20, y + place.height / 2, GUTTER - 24);
    }
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, y - 1, this.width - GUTTER, place.height + 2);
    pen.clip();
    const first = this.rows.firstAfter(row, this.from);
    const last = this.rows.firstFrom(row, this.to);
    const pixels = this.width - GUTTER;
    if (last - first > 2 * pixels && !this.found) this.paintFull(pen, place, y);
    else this.paintSlices(pen, place, y, first, last);
    pen.restore();
  }

  // How full each pixel is, where there are more slices than pixels.
  paintFull(pen, place, y) {
    const { row } = place;
    pen.fillStyle = this.colours.pipes[row.name];
    const pixels = this.width - GUTTER;
    const each = (this.to - this.from) / pixels;
    let before = this.rows.workBefore(row, this.from);
    let run = 0;
    let shade = -1;
    const flush = (x) => {
      if (shade > 0) {
        pen.globalAlpha = 0.15 + 0.85 * (shade / 16);
        pen.fillRect(GUTTER + run, y, x - run, place.height);
      }
      run = x;
    };
    for (let x = 0; x < pixels; x += 1) {
      const after = this.rows.workBefore(row, this.from + (x + 1) * each);
      const now = Math.ceil(16 * Math.min(1, (after - before) / each));
      before = after;
      if (now !== shade) {
        flush(x);
        shade = now;
      }
    }
    flush(pixels);
    pen.globalAlpha = 1;
  }

  paintSlices(pen, place, y, first, last) {
    const { rows } = this;
    const colour = this.colours.pipes[place.row.name];
    const levels = place.open ? place.row.levels : 1;
    const tall = place.height / levels;
    let drawn = -1;
    pen.font = "10.5px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let at = first; at < last; at += 1) {
      const start = rows.start[at];
      const left = Math.max(this.x(start), GUTTER - 2);
      const right = Math.min(this.x(start + rows.length[at]), this.width + 2);
      const wide = Math.max(right - left, 1);
      const step = rows.step[at];
      const wait = rows.waits[step];
      const lit = !this.found || this.found[step];
      if (right < drawn && wide <= 1 && !this.found) continue;
      drawn = left + 1;
      const top = y + (place.open ? rows.level[at] * tall : 0);
      const box = levels > 1 ? tall - 1 : tall;
      pen.globalAlpha = lit ? (wait ? 0.28 : 1) : 0.12;
      pen.fillStyle = colour;
      if (wait && place.open) pen.fillRect(left, top + box * 0.3, wide, box * 0.4);
      else pen.fillRect(left, top, wide > 3 ? wide - 0.5 : wide, box);
      if (place.open && wide > 34 && !wait && box > 9) {
        pen.fillStyle = this.colours.card;
        pen.fillText(fitted(pen, this.launch.steps[step].text, wide - 8), left + 4, top + box / 2 + 0.5);
      }
      if (at === this.selected || at === this.hovered) {
        pen.globalAlpha = 1;
        pen.strokeStyle = this.colours.text;
        pen.lineWidth = at === this.selected ? 2 : 1;
        pen.strokeRect(left + 0.5, top + 0.5, Math.max(wide - 1, 1), box - 1);
      }
      if (this.path && place.open && rows.onPath.has(at)) this.paintPath(pen, at, top + box);
    }
    pen.globalAlpha = 1;
  }

  paintPath(pen, slice, bottom) {
    pen.globalAlpha = 1;
    pen.fillStyle = this.colours.path;
    for (const piece of this.rows.onPath.get(slice)) {
      if (this.rows.pathPiece[piece] !== 0) continue;
      const left = this.x(this.rows.pathStart[piece]);
      pen.fillRect(left, bottom - 2, Math.max(this.x(this.rows.pathEnd[piece]) - left, 1), 2.5);
    }
  }

  // From set to wait: of the chosen slice always, of all where they are few enough to be told apart.
  paintArrows(pen) {
    const { edgeSource, edgeTarget, start, length } = this.rows;
    const spot = new Map(this.places.filter((place) => place.row && place.open).map((place) => [place.row, place]));
    const visible = [];
    for (let at = 0; at < edgeSource.length; at += 1) {
      const [source, target] = [edgeSource[at], edgeTarget[at]];
      const strong = source === this.selected || target === this.selected;
      const leaves = start[source] + length[source];
      const arrives = start[target] + length[target];
      if (!strong && (Math.max(leaves, arrives) < this.from || Math.min(leaves, arrives) > this.to)) continue;
      visible.push([source, target, leaves, arrives, strong]);
    }
    const all = visible.length <= MOST_ARROWS;
    for (const [source, target, leaves, arrives, strong] of visible) {
      if (!all && !strong) continue;
      const [one, other] = [spot.get(this.rows.rowOf(source)), spot.get(this.rows.rowOf(target))];
      if (!one || !other) continue;
      const y = (place) => place.y - this.scroll + AXIS + place.height / 2;
      this.paintArrow(pen, this.x(leaves), y(one), this.x(arrives), y(other), strong);
    }
    pen.globalAlpha = 1;
  }

  paintArrow(pen, x, y, toX, toY, strong) {
    if (Math.max(x, toX) < GUTTER) return;
    pen.globalAlpha = strong ? 1 : 0.45;
    pen.strokeStyle = strong ? this.colours.accent : this.colours.quiet;
    pen.fillStyle = pen.strokeStyle;
    pen.lineWidth = strong ? 1.8 : 1;
    const bend = Math.max(12, Math.abs(toX - x) / 2);
    pen.beginPath();
    pen.moveTo(Math.max(x, GUTTER), y);
    pen.bezierCurveTo(x + bend, y, toX - bend, toY, toX, toY);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(toX, toY);
    pen.lineTo(toX - 6, toY - 3.5);
    pen.lineTo(toX - 6, toY + 3.5);
    pen.fill();
  }

  paintAxis(pen) {
    pen.fillStyle = this.colours.card;
    pen.fillRect(0, 0, this.width, AXIS);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = this.colours.quiet;
    pen.fillText(`${timeText((this.to - this.from) / this.mhz)} shown`, 6, AXIS / 2, GUTTER - 12);
    const { step, steps } = axisSteps(this.from / this.mhz, this.to / this.mhz, Math.max((this.width - GUTTER) / 110, 2));
    for (const time of steps) {
      const x = this.x(time * this.mhz);
      pen.fillStyle = this.colours.line;
      pen.fillRect(x, AXIS - 6, 1, this.height);
      pen.fillStyle = this.colours.quiet;
      pen.fillText(axisText(time, step), x + 4, AXIS / 2);
    }
    pen.fillStyle = this.colours.line;
    pen.fillRect(0, AXIS - 1, this.width, 1);
    if (this.range) {
      const [a, b] = this.range.map((time) => this.x(time));
      pen.globalAlpha = 0.18;
      pen.fillStyle = this.colours.accent;
      pen.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), this.height);
      pen.globalAlpha = 1;
    }
  }

  placeAt(y) {
    const at = y - AXIS + this.scroll;
    const inside = this.places.filter((place) => at >= place.y && at < place.y + place.height + 2);
    return inside.find((place) => place.row) && (this.open.has(inside[0].core) || this.pointerX > GUTTER) ? inside.find((place) => place.row) : inside[0];
  }

  sliceAt(x, y) {
    this.pointerX = x;
    const place = this.placeAt(y);
    if (!place?.row || x < GUTTER) return -1;
    const slack = (3 * (this.to - this.from)) / (this.width - GUTTER);
    return this.rows.at(place.row, this.time(x), slack);
  }

  listen() {
    const { canvas } = this;
    this.scroller.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.altKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 120)) * 0.4), this.time(Math.max(event.offsetX, GUTTER)));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan(((event.deltaX || event.deltaY) / (this.width - GUTTER)) * (this.to - this.from));
      }
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => { this.hovered = -1; tip.hide(); this.draw(); });
    canvas.addEventListener("dblclick", (event) => {
      const slice = this.sliceAt(event.offsetX, event.offsetY);
      if (slice >= 0) this.reveal(slice);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  pan(cycles) {
    this.show(this.from + cycles, this.to + cycles);
  }

  press(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pressed = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, scroll: this.scroller.scrollTop, range: event.shiftKey, moved: false };
  }

  move(event) {
    const { pressed } = this;
    if (!pressed) return this.point(event);
    const right = event.offsetX - pressed.x;
    const down = event.offsetY - pressed.y;
    if (Math.abs(right) + Math.abs(down) > 4) pressed.moved = true;
    if (!pressed.moved) return undefined;
    if (pressed.range) {
      this.range = [this.time(pressed.x), this.time(event.offsetX)];
      this.draw();
    } else {
      const cycles = (-right / (this.width - GUTTER)) * (pressed.to - pressed.from);
      this.show(pressed.from + cycles, pressed.to + cycles);
      this.scroller.scrollTop = pressed.scroll - down;
    }
    return undefined;
  }

  release(event) {
    const { pressed } = this;
    this.pressed = null;
    if (!pressed) return;
    if (pressed.moved) {
      if (this.range) {
        const [a, b] = this.range;
        this.range = null;
        this.show(Math.min(a, b), Math.max(a, b));
      }
      return;
    }
    this.pointerX = event.offsetX;
    const place = this.placeAt(event.offsetY);
    if (place && (place.head || event.offsetX < GUTTER)) {
      if (this.open.has(place.core)) this.open.delete(place.core);
      else this.open.add(place.core);
      this.layout();
      this.draw();
      return;
    }
    this.select(this.sliceAt(event.offsetX, event.offsetY));
  }

  point(event) {
    const slice = this.sliceAt(event.offsetX, event.offsetY);
    if (slice !== this.hovered) {
      this.hovered = slice;
      this.draw();
    }
    this.canvas.style.cursor = slice >= 0 || event.offsetX < GUTTER ? "pointer" : "grab";
    if (slice >= 0) tip.show(event.clientX, event.clientY, ...sliceWords(this.rows, slice));
    else tip.hide();
  }

  key(event) {
    const span = this.to - this.from;
    const acts = {
      ArrowLeft: () => this.pan(-span / 8), ArrowRight: () => this.pan(span / 8), a: () => this.pan(-span / 8), d: () => this.pan(span / 8),
      ArrowUp: () => this.zoom(0.7), ArrowDown: () => this.zoom(1.4), w: () => this.zoom(0.7), s: () => this.zoom(1.4), "+": () => this.zoom(0.5), "-": () => this.zoom(2),
      Home: () => this.show(0, this.rows.end), "[": () => this.step(-1), "]": () => this.step(1), Escape: () => this.select(-1),
      Enter: () => this.selected >= 0 && this.reveal(this.selected), "/": () => this.search.focus(),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  // To the next slice of the row, or the first one that is visible.
  step(by) {
    if (this.selected < 0) {
      const place = this.places.find((one) => one.row && one.open && this.rows.firstAfter(one.row, this.from) < one.row.to);
      if (place) this.reveal(this.rows.firstAfter(place.row, this.from), false);
      return;
    }
    const row = this.rows.rowOf(this.selected);
    this.reveal(Math.min(Math.max(this.selected + by, row.from), row.to - 1), false);
  }

  select(slice) {
    this.selected = slice;
    showSlice(this.panel, this, slice);
    this.draw();
  }

  // Choose a slice and bring it into view.
  reveal(slice, zoomed = true) {
    const row = this.rows.rowOf(slice);
    if (!this.open.has(row.core)) {
      this.open.add(row.core);
      this.layout();
    }
    const start = this.rows.start[slice];
    const length = Math.max(this.rows.length[slice], 1);
    if (zoomed) this.show(start - 2 * length, start + 3 * length);
    else if (start < this.from || start + length > this.to) this.show(start - (this.to - this.from) / 2, start + (this.to - this.from) / 2);
    const place = this.places.find((one) => one.row === row);
    if (place.y < this.scroller.scrollTop || place.y + AXIS + OPEN > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = Math.max(place.y - 80, 0);
    this.select(slice);
  }
}

// As much of a text as is `wide`.
function fitted(pen, text, wide) {
  if (pen.measureText(text).width <= wide) return text;
  const keep = Math.max(0, Math.floor(wide / 6.2) - 1);
  return keep > 1 ? `${text.slice(0, keep)}…` : "";
}
