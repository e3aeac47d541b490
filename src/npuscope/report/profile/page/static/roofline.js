// Rooflines: both axes logarithmic; the slope of each memory, the flat part of the unit, the kernel's point.

const ROOF = { width: 520, height: 300, left: 54, right: 12, top: 12, bottom: 36 };

function rooflineCharts(launch) {
  const { charts, advice } = launch.charts.rooflines;
  if (!charts.length) return null;
  const body = el("div", {});
  const show = (title) => body.replaceChildren(rooflineChart(charts.find((chart) => chart.title === title), launch));
  show(charts[0].title);
  return chartCard("Roofline", launch, advice ? `${advice}` : "", radioGroup("Roofline", charts.map((chart) => [chart.title, chart.title]), charts[0].title, show), body);
}

function rooflineChart(chart, launch) {
  const lines = chart.lines.filter((line) => line.x > 0 && line.y > 0 && line.peak > 0);
  if (!lines.length) return el("p", { class: "quiet" }, "No operations or no bytes: nothing to draw.");
  const xs = lines.flatMap((line) => [line.x, line.bandwidth ? line.peak / line.bandwidth : line.x]);
  const low = 10 ** Math.floor(Math.log10(Math.min(...xs)) - 0.3);
  const high = 10 ** Math.ceil(Math.log10(Math.max(...xs)) + 0.3);
  const top = 10 ** Math.ceil(Math.log10(Math.max(...lines.map((line) => line.peak)) * 1.2));
  const least = Math.min(...lines.map((line) => Math.min(line.y, line.bandwidth ? line.bandwidth * low : line.y)));
  const bottom = 10 ** Math.max(Math.floor(Math.log10(least)), Math.log10(top) - 9);
  const { width, height, left, right, top: up, bottom: down } = ROOF;
  const across = (x) => left + ((Math.log10(x) - Math.log10(low)) / (Math.log10(high) - Math.log10(low))) * (width - left - right);
  const along = (y) => height - down - ((Math.log10(Math.max(y, bottom)) - Math.log10(bottom)) / (Math.log10(top) - Math.log10(bottom))) * (height - up - down);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `${chart.title}: ${lines.map((line) => `${line.path} ${percent(line.ratio)}`).join(", ")}` });
  decades(picture, low, high, (x) => [across(x), up, across(x), height - down], (x, label) => svg("text", { x: across(x), y: height - down + 14, "text-anchor": "middle" }, label));
  decades(picture, bottom, top, (y) => [left, along(y), width - right, along(y)], (y, label) => svg("text", { x: left - 5, y: along(y) + 4, "text-anchor": "end" }, label));
  picture.append(svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "operations a byte"), svg("text", { x: 12, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${height / 2})` }, "Tops/s"));
  const units = new Set(lines.map((line) => line.unit)).size > 1;
  const legend = el("ul", { class: "legend column" });
  lines.forEach((line, at) => {
    const colour = `var(--s${at % 8})`;
    const words = [`${line.path} (${line.unit})`, `${short(line.y)} Tops/s at ${short(line.x)} operations a byte`, `roof ${short(Math.min(line.peak, line.bandwidth * line.x || line.peak))} Tops/s: ${percent(line.ratio)} of it`,
      `peak ${short(line.peak)} Tops/s, ${short(line.bandwidth)} TB/s; ${line.bound} part`, `(${launch.provenance})`];
    const ridge = line.bandwidth ? line.peak / line.bandwidth : low;
    const points = [[low, line.bandwidth * low], [Math.min(ridge, high), Math.min(line.peak, line.bandwidth * high)], [high, Math.min(line.peak, line.bandwidth * high)]].filter(([, y]) => y > 0);
    const roof = svg("polyline", { points: points.map(([x, y]) => `${across(x)},${along(y)}`).join(" "), class: "roof", style: `stroke: ${colour}` });
    const gap = svg("line", { x1: across(line.x), x2: across(line.x), y1: along(line.y), y2: along(Math.min(line.peak, line.bandwidth * line.x || line.peak)), class: "gapline", style: `stroke: ${colour}` });
    const point = svg("circle", { cx: across(line.x), cy: along(line.y), r: 5, style: `fill: ${colour}`, tabindex: 0 });
    hover(point, () => words);
    const item = el("li", { tabindex: "0" }, el("span", { class: "swatch", style: `background: ${colour}` }), `${line.path}${units ? `, ${line.unit}` : ""}: ${percent(line.ratio)}`);
    const strong = (on) => [roof, gap, point].forEach((part) => part.classList.toggle("strong", on));
    item.addEventListener("pointerenter", () => strong(true));
    item.addEventListener("pointerleave", () => strong(false));
    hover(item, () => words);
    picture.append(gap, roof, point);
    legend.append(item);
  });
  return el("div", { class: "beside" }, picture, legend);
}

function decades(picture, from, to, line, label) {
  for (let power = Math.round(Math.log10(from)); power <= Math.round(Math.log10(to)); power += 1) {
    const value = 10 ** power;
    const [x1, y1, x2, y2] = line(value);
    picture.append(svg("line", { x1, y1, x2, y2, class: "grid" }), label(value, power >= -2 && power <= 4 ? String(Number(value.toPrecision(1))) : `1e${power}`));
  }
}
