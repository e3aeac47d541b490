// The memory graph: boxes for memories and units, arrows for what moved; the redder, the nearer to the peak of the way.

const BOXES = {
  GM: [20, 150, 74, 92], L2: [150, 128, 92, 136], L1: [320, 40, 74, 70], L0A: [470, 16, 74, 42], L0B: [470, 80, 74, 42], CUBE: [620, 48, 84, 44],
  L0C: [620, 132, 84, 42], FIXP: [470, 142, 74, 42], UB: [320, 236, 74, 70], VEC: [470, 248, 84, 46], DCACHE: [470, 322, 84, 36],
};
const BOX_NAMES = { VEC: "Vector", CUBE: "Cube" };

function memoryChart(launch) {
  const { blocks } = launch.charts.memory;
  if (!blocks.some((block) => block.flows.some((flow) => flow.bytes || flow.requests))) return null;
  const body = el("div", {});
  const show = (at) => body.replaceChildren(memoryGraph(at < 0 ? meanBlock(blocks) : blocks[at], launch));
  const choices = blocks.map((block, at) => [at, `block ${block.block} (${block.kind})`]);
  const select = el("select", { "aria-label": "Block" }, el("option", { value: -1 }, "all blocks: sums, mean rates"), ...choices.map(([at, text]) => el("option", { value: at }, text)));
  select.addEventListener("change", () => show(Number(select.value)));
  show(-1);
  return chartCard("Memory graph", launch, "bytes, GB/s and share of the peak on every way", el("label", { class: "choose" }, "Block ", select), body);
}

function meanBlock(blocks) {
  const ways = new Map();
  for (const block of blocks) for (const flow of block.flows) ways.set(`${flow.from}>${flow.to}`, [...(ways.get(`${flow.from}>${flow.to}`) ?? []), flow]);
  const known = (values) => values.filter((value) => value !== null);
  const total = (values) => (known(values).length ? sum(known(values)) : null);
  const mean = (values) => (known(values).length ? sum(known(values)) / known(values).length : null);
  const flows = [...ways.values()].map((group) => ({ ...group[0], bytes: total(group.map((one) => one.bytes)), requests: total(group.map((one) => one.requests)), bandwidth: mean(group.map((one) => one.bandwidth)), share: mean(group.map((one) => one.share)) }));
  const boxes = blocks.map((block) => block.l2).filter(Boolean);
  const hits = sum(boxes.map((box) => box.hits));
  const misses = sum(boxes.map((box) => box.misses));
  const units = new Map();
  for (const unit of blocks.flatMap((block) => block.units)) units.set(unit.name, [...(units.get(unit.name) ?? []), unit]);
  return { flows, l2: boxes.length ? { hits, misses, rate: hits + misses ? (100 * hits) / (hits + misses) : null } : null,
    units: [...units].map(([name, group]) => ({ name, ratio: mean(group.map((one) => one.ratio)), cycles: mean(group.map((one) => one.cycles)) })) };
}

function memoryGraph(block, launch) {
  const flows = mergedFlows(block.flows);
  const used = new Set([...flows.flatMap((flow) => [flow.from, flow.to]), ...block.units.map((unit) => (unit.name.startsWith("Cube") ? "CUBE" : "VEC"))]);
  const picture = svg("svg", { viewBox: graphBox([...used]), class: "chart memory", role: "img", "aria-label": flows.map((flow) => `${flow.from} to ${flow.to} ${bytesText(flow.bytes)}`).join(", ") });
  for (const flow of flows) picture.append(flowArrow(flow, flows.some((other) => other.from === flow.to && other.to === flow.from), launch));
  for (const [name, [x, y, wide, tall]] of Object.entries(BOXES)) {
    if (!used.has(name)) continue;
    const box = svg("g", { class: "box" }, svg("rect", { x, y, width: wide, height: tall, rx: 7 }), svg("text", { x: x + wide / 2, y: y + tall / 2 + (name === "L2" && block.l2 ? -22 : -2), class: "boxname" }, BOX_NAMES[name] ?? name));
    if (name === "L2" && block.l2) {
      [`${whole(block.l2.hits)} hits`, `${whole(block.l2.misses)} misses`, block.l2.rate === null ? "NA" : `${block.l2.rate.toFixed(1)} %`].forEach((text, at) => box.append(svg("text", { x: x + wide / 2, y: y + tall / 2 + 2 + 16 * at }, text)));
    }
    const unit = block.units.find((one) => one.name.toUpperCase().startsWith(name) && (name === "CUBE" || name === "VEC"));
    if (unit && unit.ratio !== null) box.append(svg("text", { x: x + wide / 2, y: y + tall / 2 + 14 }, `${unit.ratio.toFixed(1)} % busy`));
    picture.append(box);
  }
  return el("div", {}, picture, el("ul", { class: "legend" }, ...[0, 25, 50, 75, 100].map((share) => el("li", {}, el("span", { class: "swatch", style: `background: ${heat(share)}` }), `${share} % of the peak`)), el("li", {}, el("span", { class: "swatch", style: "background: var(--quiet)" }), "peak not known")));
}

// As tall as the boxes that are used.
function graphBox(used) {
  const boxes = used.map((name) => BOXES[name]).filter(Boolean);
  const top = Math.min(...boxes.map(([, y]) => y)) - 18;
  return `0 ${top} 730 ${Math.max(...boxes.map(([, y, , tall]) => y + tall)) + 14 - top}`;
}

// Ways of both vector cores as one, and ways with two ends (GM/L1) from the nearer one.
function mergedFlows(flows) {
  const found = new Map();
  for (const flow of flows) {
    if (!flow.bytes && !flow.requests && !flow.bandwidth) continue;
    const from = nearest(flow.from);
    const to = nearest(flow.to);
    if (!BOXES[from] || !BOXES[to] || from === to) continue;
    const old = found.get(`${from}>${to}`);
    if (!old) found.set(`${from}>${to}`, { ...flow, from, to });
    else {
      old.bytes = old.bytes === null && flow.bytes === null ? null : (old.bytes ?? 0) + (flow.bytes ?? 0);
      old.requests = old.requests === null && flow.requests === null ? null : (old.requests ?? 0) + (flow.requests ?? 0);
      old.share = Math.max(old.share ?? -1, flow.share ?? -1);
      old.share = old.share < 0 ? null : old.share;
      old.bandwidth = Math.max(old.bandwidth ?? 0, flow.bandwidth ?? 0);
    }
  }
  return [...found.values()];
}

const nearest = (name) => (name.includes("/") ? name.split("/").at(-1) : name);

function heat(share) {
  if (share === null || share === undefined || share < 0) return "var(--quiet)";
  const at = Math.min(Math.max(share, 0), 100) / 100;
  return `color-mix(in oklab, var(--hot) ${Math.round(100 * at)}%, var(--cold))`;
}

function flowArrow(flow, both, launch) {
  const [ax, ay, aw, ah] = BOXES[flow.from];
  const [bx, by, bw, bh] = BOXES[flow.to];
  let [x1, y1, x2, y2] = [ax + aw / 2, ay + ah / 2, bx + bw / 2, by + bh / 2];
  const steep = Math.abs(x2 - x1) < 60;
  const shift = both ? 9 : 0;
  if (steep) {
    [y1, y2] = y2 > y1 ? [ay + ah, by] : [ay, by + bh];
    const side = y2 > y1 ? -shift : shift;
    [x1, x2] = [x1 + side, x2 + side];
  } else {
    [x1, x2] = x2 > x1 ? [ax + aw, bx] : [ax, bx + bw];
    const side = x2 > x1 ? -shift : shift;
    y1 = Math.min(Math.max(y2, ay + 12), ay + ah - 12) + side;
    y2 = Math.min(Math.max(y1 - side, by + 12), by + bh - 12) + side;
  }
  const wide = 1.5 + 4.5 * Math.min(Math.max((flow.share ?? 0) / 100, 0), 1);
  const colour = heat(flow.share);
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const [tx, ty] = [x2 - 8 * Math.cos(angle), y2 - 8 * Math.sin(angle)];
  const head = [[x2, y2], [tx - 5 * Math.sin(angle), ty + 5 * Math.cos(angle)], [tx + 5 * Math.sin(angle), ty - 5 * Math.cos(angle)]];
  const label = flow.bandwidth === null ? bytesText(flow.bytes) : `${short(Number(flow.bandwidth.toPrecision(3)))} GB/s`;
  const group = svg("g", { class: "flow", tabindex: 0 },
    svg("line", { x1, y1, x2, y2, class: "reach" }), svg("line", { x1, y1, x2: tx, y2: ty, style: `stroke: ${colour}; stroke-width: ${wide}` }), svg("polygon", { points: head.map((point) => point.join(",")).join(" "), style: `fill: ${colour}` }),
    svg("text", { x: (x1 + x2) / 2 + (steep ? (x1 > ax + aw / 2 ? 5 : -5) : 0), y: (y1 + y2) / 2 + (steep ? 4 : both && x2 < x1 ? 14 : -6), "text-anchor": steep ? (x1 > ax + aw / 2 ? "start" : "end") : "middle" }, label));
  hover(group, () => [`${flow.from} to ${flow.to}`, `${bytesText(flow.bytes)} in ${whole(flow.requests)} requests`, flow.bandwidth === null ? null : `${short(flow.bandwidth)} GB/s`, flow.share === null ? "peak not known" : `${flow.share.toFixed(1)} % of the peak`, `(${launch.provenance})`]);
  return group;
}
