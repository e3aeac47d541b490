// The L2 map: a cell for each line (or a few neighbours), from all hits to all misses.

function cacheChart(launch, go) {
  const map = launch.charts.cache;
  if (!map || !map.lines) return null;
  const canvas = el("canvas", { class: "cells", tabindex: "0", role: "img", "aria-label": `L2 map: ${whole(map.lines)} lines, ${whole(map.hits)} hits, ${whole(map.misses)} misses; arrow keys read single cells` });
  const said = el("p", { class: "quiet", "aria-live": "polite" }, "Choose a cell to see whose instructions touched it.");
  const count = map.address.length;
  let across = 64;
  let cell = 8;
  let chosen = -1;
  function draw() {
    const wide = canvas.clientWidth || 520;
    across = Math.max(16, Math.min(128, Math.floor(wide / (count > 2048 ? 6 : count > 512 ? 8 : 12))));
    cell = wide / across;
    const tall = Math.ceil(count / across) * cell;
    const dense = window.devicePixelRatio || 1;
    canvas.style.height = `${tall}px`;
    canvas.width = Math.round(wide * dense);
    canvas.height = Math.round(tall * dense);
    const pen = canvas.getContext("2d");
    pen.scale(dense, dense);
    const [cold, hot] = [parseColour(styleColour("--cold")), parseColour(styleColour("--hot"))];
    for (let at = 0; at < count; at += 1) {
      const total = map.cellHits[at] + map.cellMisses[at];
      const share = total ? map.cellMisses[at] / total : 0;
      pen.fillStyle = `rgb(${cold.map((one, part) => Math.round(one + (hot[part] - one) * share)).join(" ")})`;
      pen.fillRect((at % across) * cell, Math.floor(at / across) * cell, cell - 1, cell - 1);
    }
    if (chosen >= 0) {
      pen.strokeStyle = styleColour("--text");
      pen.lineWidth = 2;
      pen.strokeRect((chosen % across) * cell, Math.floor(chosen / across) * cell, cell, cell);
    }
  }
  const cellAt = (event) => {
    const at = Math.floor(event.offsetY / cell) * across + Math.floor(event.offsetX / cell);
    return at >= 0 && at < count ? at : -1;
  };
  const words = (at) => [map.address[at] + (map.group > 1 ? ` and ${map.group - 1} more lines` : ""), `${whole(map.cellHits[at])} hits, ${whole(map.cellMisses[at])} misses: ${percent(map.cellHits[at] / Math.max(map.cellHits[at] + map.cellMisses[at], 1))}`, `(${launch.provenance})`];
  function choose(at) {
    chosen = at;
    draw();
    if (at < 0) return;
    const places = new Map(map.steps[at].map((number) => launch.steps[number]).filter((step) => step.file !== null).map((step) => [placeText(launch, step), step]));
    const buttons = [...places].map(([text, step]) => {
      const button = el("button", { type: "button", class: "place" }, text);
      button.addEventListener("click", () => go.line(step.file, step.line));
      return button;
    });
    said.replaceChildren(`${words(at).join("; ")}. Touched by `, ...(buttons.length ? buttons : ["instructions without a source line"]));
  }
  canvas.addEventListener("pointermove", (event) => (cellAt(event) < 0 ? tip.hide() : tip.show(event.clientX, event.clientY, ...words(cellAt(event)))));
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("click", (event) => choose(cellAt(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(Math.min(Math.max(chosen + step, 0), count - 1));
  });
  new ResizeObserver(draw).observe(canvas);
  const note = `${whole(map.lines)} lines of ${map.size} B${map.group > 1 ? `, ${map.group} to a cell` : ""}; ${percent(map.hits / Math.max(map.hits + map.misses, 1))} hits`;
  return chartCard("L2 cache map", launch, note, canvas, el("ul", { class: "legend" }, el("li", {}, el("span", { class: "swatch", style: "background: var(--cold)" }), "all hits"), el("li", {}, el("span", { class: "swatch", style: "background: var(--hot)" }), "all misses")), said);
}

function parseColour(text) {
  const number = Number.parseInt(text.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}
