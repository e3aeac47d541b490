// Ranks by steps as a picture: one pixel a cell, drawn once and stretched.

const HEAT_HEIGHT = { least: 120, most: 620, cell: 22 };

async function showMaps(data) {
  const body = document.querySelector("#maps .body");
  const frame = el("div", {});
  const cells = new Map();
  let current = 0;
  async function draw(at) {
    current = at;
    const one = data.maps[at];
    if (!cells.has(at)) cells.set(at, await column(one.cells));
    frame.replaceChildren(heat(one, cells.get(at)));
  }
  body.append(
    el("div", { class: "tools" }, radioGroup("What is shown", data.maps.map((one, at) => [at, one.title]), 0, draw)),
    frame,
  );
  document.addEventListener("themechange", () => draw(current));
  await draw(0);
}

function heat(one, cells) {
  const canvas = el("canvas", { role: "img", "aria-label": `${one.title}, ${one.rows} ranks by ${one.columns} steps`, tabindex: "0" });
  canvas.width = one.columns;
  canvas.height = one.rows;
  const height = Math.min(HEAT_HEIGHT.most, Math.max(HEAT_HEIGHT.least, one.rows * HEAT_HEIGHT.cell));
  canvas.style.height = `${height}px`;
  paint(canvas, one, cells);
  hover(canvas, (event) => (event ? cellLines(event, canvas, one, cells) : `${one.title}: ranks down, steps across`));
  const edges = (values) => [values[0], values[values.length - 1]];
  const [firstRank, lastRank] = edges(one.ranks);
  const [firstStep, lastStep] = edges(one.steps);
  const block = one.ranks_a_row > 1 || one.steps_a_column > 1
    ? `; a cell is the mean of ${many(one.ranks_a_row, "rank")} and ${many(one.steps_a_column, "step")}` : "";
  return el("div", { class: "heat" },
    el("div", { class: "heatframe" },
      el("div", { class: "ranks" }, el("span", {}, `rank ${firstRank}`), el("span", {}, `rank ${lastRank}`)),
      canvas,
      el("div", { class: "steps" }, el("span", {}, `step ${firstStep}`), el("span", {}, `step ${lastStep}`))),
    el("p", { class: "hint quiet" }, nanoseconds(one.low), el("span", { class: "scale" }), nanoseconds(one.high),
      `; beyond that the colour stays${block}`));
}

function paint(canvas, one, cells) {
  const context = canvas.getContext("2d");
  const picture = context.createImageData(one.columns, one.rows);
  const cold = colourOf("--idle-ground");
  const hot = colourOf("--hot");
  const lacking = colourOf("--card");
  const shades = Array.from({ length: 256 }, (_, shade) =>
    shade === 255 ? lacking : cold.map((from, part) => Math.round(from + ((hot[part] - from) * shade) / 254)));
  for (let at = 0; at < cells.length; at += 1) {
    const colour = shades[cells[at]];
    picture.data[4 * at] = colour[0];
    picture.data[4 * at + 1] = colour[1];
    picture.data[4 * at + 2] = colour[2];
    picture.data[4 * at + 3] = 255;
  }
  context.putImageData(picture, 0, 0);
}

// A colour of the style sheet, which has six hexadecimal digits, as three numbers.
function colourOf(name) {
  const text = styleColour(name);
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

function cellLines(event, canvas, one, cells) {
  const box = canvas.getBoundingClientRect();
  const across = Math.min(one.columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * one.columns)));
  const down = Math.min(one.rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * one.rows)));
  const shade = cells[down * one.columns + across];
  const value = one.low + ((one.high - one.low) * shade) / 254;
  const beyond = shade === 254 ? "at least " : shade === 0 ? "at most " : "about ";
  return [
    `rank ${one.ranks[down]}, step ${one.steps[across]}`,
    shade === 255 ? "not recorded" : `${one.title.toLowerCase()}: ${beyond}${nanoseconds(value)}`,
  ];
}
