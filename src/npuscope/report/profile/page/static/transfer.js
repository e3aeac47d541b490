// Transfer bandwidth over time, to and from GM.

const TRANSFER = { width: 560, height: 210, left: 62, right: 8, top: 10, bottom: 26 };

function transferChart(launch) {
  const chart = launch.charts.transfer;
  if (!chart) return null;
  const used = chart.names.map((name, at) => ({ name, rates: chart.rates[at] })).filter((one) => !one.name.includes("TOTAL") && one.rates.some((rate) => rate > 0));
  if (!used.length) return null;
  const { width, height, left, right, top, bottom } = TRANSFER;
  const bins = used[0].rates.length;
  const peak = Math.max(...used.flatMap((one) => one.rates));
  const across = (bin) => left + (bin / bins) * (width - left - right);
  const along = (rate) => height - bottom - (rate / peak) * (height - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", tabindex: 0, "aria-label": `Transfer bandwidth: ${used.map((one) => `${one.name} at most ${rateText(Math.max(...one.rates))}`).join(", ")}` });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) picture.append(svg("line", { x1: left, x2: width - right, y1: along(part * peak), y2: along(part * peak), class: "grid" }), svg("text", { x: left - 5, y: along(part * peak) + 4, "text-anchor": "end" }, rateText(part * peak)));
  const { step, steps } = axisSteps(0, bins * chart.width, 6);
  for (const time of steps) picture.append(svg("text", { x: across(time / chart.width), y: height - 8, "text-anchor": "middle" }, axisText(time, step)));
  used.forEach((one, at) => {
    const colour = `var(--s${at})`;
    let line = `M${across(0)},${along(0)}`;
    one.rates.forEach((rate, bin) => { line += `L${across(bin).toFixed(1)},${along(rate).toFixed(1)}L${across(bin + 1).toFixed(1)},${along(rate).toFixed(1)}`; });
    picture.append(svg("path", { d: `${line}L${across(bins)},${along(0)}Z`, style: `fill: ${colour}; stroke: ${colour}`, class: "areapath" }));
  });
  const cross = svg("line", { y1: top, y2: height - bottom, class: "cross" });
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const bin = Math.floor(((((event.clientX - box.left) / box.width) * width - left) / (width - left - right)) * bins);
    if (bin < 0 || bin >= bins) return tip.hide();
    for (const name of ["x1", "x2"]) cross.setAttribute(name, across(bin + 0.5));
    picture.append(cross);
    return tip.show(event.clientX, event.clientY, `${timeText(bin * chart.width)} to ${timeText((bin + 1) * chart.width)}`, ...used.map((one) => `${one.name}: ${rateText(one.rates[bin])}`), `(${launch.provenance})`);
  });
  picture.addEventListener("pointerleave", () => { cross.remove(); tip.hide(); });
  const legend = el("ul", { class: "legend" }, ...used.map((one, at) => el("li", {}, el("span", { class: "swatch", style: `background: var(--s${at})` }), `${one.name}, at most ${rateText(Math.max(...one.rates))}`)));
  return chartCard("Transfer bandwidth", launch, `all cores together, bins of ${timeText(chart.width)}`, picture, legend);
}

const rateText = (rate) => (rate >= 1000 ? `${short(Number((rate / 1000).toPrecision(3)))} GB/s` : `${short(Number(rate.toPrecision(3)))} MB/s`);
