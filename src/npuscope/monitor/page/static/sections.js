// The parts of the page below the first look: who is traced, the nodes, the processes, the traces.
import { el, keyed, setClass, setText, show } from "./dom.js";
import { bytes, clock, many, percent, plain, span } from "./format.js";
import { here } from "./metrics.js";
import { Table } from "./table.js";
import { outcome, progress, rank, state as stateOf, who } from "./words.js";

const body = (id) => document.querySelector(`#${id} .body`);
const MOST_NODES = 200;

function empty(parent, words) {
  let note = parent.querySelector(":scope > .empty");
  if (!note) parent.prepend((note = el("p", { class: "empty" })));
  show(note, words !== "");
  setText(note, words);
}

function pill(cell, [tone, words]) {
  if (!cell.firstChild) cell.append(el("span"));
  setClass(cell.firstChild, `pill ${tone || "plain"}`);
  setText(cell.firstChild, words);
}

export function tracing(state) {
  const parent = body("tracing");
  const active = state.processes.filter((process) => process.work && process.health !== "exited");
  const { summary } = state;
  const hidden = summary.tracing + summary.waiting - active.length;
  const others = hidden > 0 ? `${many(hidden, "process", "processes")} of other users ${hidden > 1 ? "are" : "is"} being traced.` : "";
  empty(parent, active.length ? others : others || "Nobody is being traced.");
  if (!parent.querySelector(".jobs")) parent.append(el("div", { class: "jobs" }));
  keyed(parent.querySelector(".jobs"), active, here,
    () => el("div", { class: "job" }, el("strong"), el("span"), el("progress", { max: 1 }), el("span", { class: "left" }), el("span", { class: "mono" })),
    (item, process) => {
      const [name, chip, bar, left, file] = item.children;
      const far = progress(process, state.now);
      setText(name, `${who(process)}${rank(process) === null ? "" : `, process ${process.pid}`}`);
      const [tone, words] = stateOf(process);
      setClass(chip, `pill ${tone}`);
      setText(chip, words);
      bar.setAttribute("aria-label", `progress of the trace of ${who(process)}`);
      if (far.share === null) bar.removeAttribute("value");
      else bar.value = far.share;
      setText(left, far.words);
      setText(file, process.work.file);
    });
}

export class Processes {
  constructor(colours, choose) {
    this.metrics = null;
    this.now = 0;
    this.chosen = null;
    this.colours = colours;
    const last = (name) => (process) => this.metrics?.last(process, name) ?? null;
    const text = (name, format) => (process) => (last(name)(process) === null ? "" : format(last(name)(process)));
    this.table = new Table(body("processes"), "Registered processes", [
      { title: "Rank", sort: rank, paint: (cell, process) => this.rank(cell, process) },
      { title: "Process", sort: (process) => process.pid, text: (process) => (process.hostPid ? `${process.pid} (here ${process.hostPid})` : String(process.pid)) },
      { title: "State", sort: (process) => stateOf(process)[1], paint: (cell, process) => pill(cell, stateOf(process)) },
      { title: "CPU", kind: "num", sort: last("cpu_percent"), text: text("cpu_percent", percent) },
      { title: "Memory", kind: "num", sort: last("rss_bytes"), text: text("rss_bytes", bytes) },
      { title: "Threads", kind: "num", sort: last("threads"), text: text("threads", plain) },
      { title: "Job", kind: "num", sort: (process) => process.job, text: (process) => String(process.job) },
      { title: "Last poll", kind: "num", sort: (process) => -process.last, text: (process) => span(this.now - process.last) },
      { title: "Age", kind: "num", sort: (process) => -(process.started ?? process.first), text: (process) => span(this.now - (process.started ?? process.first)) },
      { title: "Command", kind: "wide", text: (process) => process.command },
    ], {
      key: (process) => `${process.client}-${here(process)}`,
      choose: (key) => {
        this.chosen = this.chosen === key ? null : key;
        choose(this.chosen?.split("-")[1] ?? null);
        this.table.show(this.table.rows);
      },
      rowClass: (process) => (process.health === "exited" ? "gone" : this.chosen?.endsWith(`-${here(process)}`) ? "chosen" : ""),
    });
  }

  rank(cell, process) {
    if (!cell.firstChild) cell.append(el("span"));
    const line = cell.firstChild;
    const tags = [process.launcher && "launcher", process.container && "container", process.client === "msmonitor" && "plug-in"].filter(Boolean);
    const text = rank(process) === null ? "–" : String(process.rank);
    const colour = this.colours.of(process);
    const wanted = `${text} ${tags.join(" ")} ${colour}`;
    if (line.dataset.wanted === wanted) return;
    line.dataset.wanted = wanted;
    const swatch = colour ? [el("span", { class: `swatch ${colour}` })] : [];
    line.replaceChildren(...swatch, text, ...tags.map((tag) => el("span", { class: "tag" }, tag)));
  }

  show(state, metrics) {
    this.metrics = metrics;
    this.now = state.now;
    empty(body("processes"), this.words(state));
    show(this.table.table, state.processes.length > 0);
    this.table.show(state.processes);
  }

  words(state) {
    const { others, leftOut } = state.hidden;
    const hidden = others ? `${many(others, "process", "processes")} of other users ${others > 1 ? "are" : "is"} counted above and not listed.` : "";
    if (leftOut) return `The first ${state.processes.length} are listed, ${leftOut} are not. ${hidden}`;
    if (state.processes.length || others) return hidden;
    return "No process is registered. Start training with KINETO_USE_DAEMON=1 in its environment (the vendor's plug-in: MSMONITOR_USE_DAEMON=1); it appears here by itself within seconds.";
  }
}

export class Traces {
  constructor() {
    this.now = 0;
    this.table = new Table(body("traces"), "Traces that were asked for", [
      { title: "Asked at", sort: (trace) => -trace.asked, text: (trace) => clock(trace.asked) },
      { title: "Rank", sort: rank, text: (trace) => (rank(trace) === null ? "–" : String(trace.rank)) },
      { title: "Process", sort: (trace) => trace.pid, text: (trace) => String(trace.pid) },
      { title: "Length", text: (trace) => trace.measure },
      { title: "Outcome", sort: (trace) => outcome(trace)[1], paint: (cell, trace) => pill(cell, outcome(trace)) },
      { title: "Size", kind: "num", sort: (trace) => trace.size ?? null, text: (trace) => (trace.size ? bytes(trace.size) : "") },
      { title: "Took", kind: "num", sort: (trace) => trace.written - trace.asked, text: (trace) => (trace.written ? span(trace.written - trace.asked) : "") },
      { title: "File", kind: "wide", text: (trace) => trace.file },
    ], { key: (trace) => `${trace.traceId}-${trace.asked}` });
  }

  show(state) {
    empty(body("traces"), state.traces.length ? "" : "None since the daemon started.");
    show(this.table.table, state.traces.length > 0);
    this.table.show(state.traces);
  }
}

export class Nodes {
  constructor() {
    this.now = 0;
    const count = (name) => (node) => node.summary?.[name] ?? null;
    const number = (title, name) => ({ title, kind: "num", sort: count(name), text: (node) => (count(name)(node) === null ? "" : String(count(name)(node))) });
    this.table = new Table(body("nodes"), "Nodes", [
      { title: "Node", sort: (node) => node.node, text: (node) => node.node },
      { title: "State", sort: (node) => String(node.reachable), paint: (cell, node) => pill(cell, this.words(node)) },
      { title: "Since", kind: "num", sort: (node) => -(node.since ?? 0), text: (node) => (node.since ? span(this.now - node.since) : "") },
      number("Processes", "processes"),
      number("Ranks", "ranks"),
      number("Tracing", "tracing"),
      { title: "CPU", kind: "num", sort: (node) => node.metrics?.cpu_util ?? null, text: (node) => (node.metrics?.cpu_util === undefined ? "" : percent(node.metrics.cpu_util)) },
      { title: "Version", text: (node) => node.version },
      { title: "Reason", text: (node) => node.error },
    ], { key: (node) => node.node });
  }

  words(node) {
    if (node.reachable === null) return ["", "not asked yet"];
    return node.reachable ? ["good", "answers"] : ["bad", "no answer"];
  }

  show(state) {
    this.now = state.now;
    show(document.getElementById("nodes"), state.nodes.length > 0);
    const urgent = [...state.nodes].sort((a, b) => Number(a.reachable !== false) - Number(b.reachable !== false));
    const well = state.nodes.filter((node) => node.reachable).length;
    const left = Math.max(0, urgent.length - MOST_NODES);
    empty(body("nodes"), `${well} of ${state.nodes.length} answer.${left ? ` ${left} are not listed.` : ""}`);
    this.table.show(urgent.slice(0, MOST_NODES));
  }
}
