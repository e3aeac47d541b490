// Making elements, and reading the columns that the page carries.

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const ARRAYS = { Uint8Array, Uint16Array, Uint32Array, Float64Array };

// A column: base64 of zlib of little-endian numbers.
async function column(about) {
  const text = document.getElementById(`blob${about.blob}`).textContent;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new ARRAYS[about.type](await new Response(stream).arrayBuffer());
}

function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

// Sum of the known ones; null where none is known.
function knownSum(values) {
  const known = values.filter((value) => value !== null && value >= 0);
  return known.length ? sum(known) : null;
}

// A colour of the style sheet, as the canvas wants it.
function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function pipeColour(lane) {
  return styleColour(`--pipe-${lane.toLowerCase()}`) || styleColour("--pipe-other");
}

function radioGroup(label, choices, chosen, choose) {
  const group = el("div", { class: "tabs", role: "radiogroup", "aria-label": label });
  const buttons = choices.map(([value, text]) => {
    const button = el("button", { type: "button", role: "radio" }, text);
    const on = () => {
      for (const one of buttons) mark(one, one === button);
      choose(value);
    };
    button.addEventListener("click", on);
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = buttons[(buttons.indexOf(button) + step + buttons.length) % buttons.length];
      next.focus();
      next.click();
    });
    return button;
  });
  function mark(button, on) {
    button.setAttribute("aria-checked", String(on));
    button.tabIndex = on ? 0 : -1;
  }
  buttons.forEach((button, at) => mark(button, choices[at][0] === chosen));
  group.append(...buttons);
  return group;
}
