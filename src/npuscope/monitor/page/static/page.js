// Asks the daemon again and again, and brings the page up to date.
import { Charts, Colours } from "./charts.js";
import { clock, span } from "./format.js";
import { header, lost, problems, tiles } from "./glance.js";
import { Metrics } from "./metrics.js";
import { Nodes, Processes, Traces, tracing } from "./sections.js";

const STATE_MS = 1000;
const METRICS_MS = 5000;
const HIDDEN_MS = 10000;
const PATIENCE_MS = 8000;

const metrics = new Metrics();
const colours = new Colours();
const charts = new Charts(colours);
const processes = new Processes(colours, (pid) => charts.choose(pid));
const traces = new Traces();
const nodes = new Nodes();
let state = null;
let heard = null;

async function get(address) {
  const answer = await fetch(address, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

function render() {
  if (!state) return;
  colours.learn(state.processes);
  header(state);
  problems(state);
  tiles(state, metrics);
  tracing(state);
  nodes.show(state);
  processes.show(state, metrics);
  charts.show(state, metrics);
  traces.show(state);
}

async function refresh() {
  try {
    state = await get("state.json");
    heard = Date.now();
    lost(null);
    render();
  } catch (error) {
    silent(error);
  }
}

function silent(error) {
  const reason = error instanceof TypeError || error.name === "TimeoutError" ? "The daemon does not answer" : error.message;
  if (heard === null) lost(`${reason}.`);
  else lost(`${reason}, for ${span((Date.now() - heard) / 1000)}. What you see is from ${clock(heard / 1000)}.`);
}

async function measure() {
  try {
    metrics.take(await get(metrics.address));
    render();
  } catch {
    // The state, asked for more often, says what is wrong.
  }
}

// One after the other, never two at a time; a page that nobody looks at asks less often.
const sleepers = new Set();

async function keep(action, period) {
  for (;;) {
    await action();
    await new Promise((wake) => {
      const rise = () => {
        clearTimeout(timer);
        sleepers.delete(rise);
        wake();
      };
      const timer = setTimeout(rise, document.hidden ? HIDDEN_MS : period);
      sleepers.add(rise);
    });
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const rise of [...sleepers]) rise();
});

keep(refresh, STATE_MS);
keep(measure, METRICS_MS);
