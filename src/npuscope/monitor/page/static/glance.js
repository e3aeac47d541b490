// The first look: is all well, how many are there, who is traced, how busy is the node.
import { el, keyed, setClass, setText, show } from "./dom.js";
import { bytes, many, percent, rate, span } from "./format.js";
import { newest } from "./metrics.js";
import { summaryWords } from "./words.js";

const find = (id) => document.getElementById(id);
const SEEN = { all: "everybody's processes", own: "own processes only", none: "counts only" };

export function header(state) {
  setText(find("host"), state.host);
  const bad = state.problems.filter((one) => one.severity === "error").length;
  const warnings = state.problems.filter((one) => one.severity === "warning").length;
  const words = bad ? many(bad, "problem") : warnings ? many(warnings, "warning") : "all is well";
  setClass(find("health"), `pill ${bad ? "bad" : warnings ? "warn" : "good"}`);
  setText(find("health"), words);
  const viewer = state.viewer.name === null ? "an unknown user" : state.viewer.name;
  const about = [
    `npuscope monitor ${state.version}`,
    `up ${span(state.now - state.daemon.started)} as ${state.daemon.userName}`,
    `shown to ${viewer}: ${SEEN[state.viewer.sees]}`,
  ];
  setText(find("about"), about.join(" · "));
  const tracing = state.summary.tracing ? `${state.summary.tracing} tracing · ` : "";
  document.title = `${bad ? "⚠ " : ""}${tracing}${state.host} · npuscope`;
}

export function problems(state) {
  const section = find("problems");
  show(section, state.problems.length > 0);
  setClass(section, state.problems.some((one) => one.severity === "error") ? "error" : "");
  keyed(section.firstElementChild, state.problems.map((one, at) => ({ ...one, at })), (one) => one.at,
    () => el("li", {}, el("b"), el("span")),
    (item, one) => {
      setClass(item, one.severity);
      setText(item.firstChild, { error: "Problem", warning: "Warning", note: "Note" }[one.severity]);
      setText(item.lastChild, one.text);
    });
}

export function lost(since) {
  show(find("lost"), since !== null);
  document.body.classList.toggle("lost", since !== null);
  if (since === null) return;
  setText(find("lost"), since);
  setClass(find("health"), "pill bad");
  setText(find("health"), "no answer");
}

export function tiles(state, metrics) {
  const { summary } = state;
  const under = summary.tracing + summary.waiting;
  const cpu = newest(metrics.host("cpu_util"));
  const speeds = ["rx_bytes.", "tx_bytes."].map((name) => newest(metrics.network(name)));
  const shown = [
    ranks(summary),
    { name: "Tracing now", figure: String(under), of: ` of ${summary.processes}`, sub: tracingWords(state), tone: under ? "live" : "" },
    { name: "CPU of the node", figure: cpu === null ? "–" : percent(cpu), sub: plugin(state) || peak(metrics) },
    memory(state, metrics),
    {
      name: "Network of the node",
      figure: speeds[0] === null ? "–" : rate(speeds[0]),
      of: speeds[0] === null ? "" : " in",
      sub: speeds[1] === null ? "" : `${rate(speeds[1])} out`,
    },
  ];
  keyed(find("glance"), shown.map((tile, at) => ({ ...tile, at })), (tile) => tile.at,
    () => el("div", { class: "tile" }, el("div", { class: "name" }), el("div", { class: "figure" }, el("span"), el("small")), el("div", { class: "sub" })),
    (item, tile) => {
      setClass(item, `tile ${tile.tone ?? ""}`);
      setText(item.children[0], tile.name);
      setText(item.children[1].firstChild, tile.figure);
      setText(item.children[1].lastChild, tile.of ?? "");
      setText(item.children[2], tile.sub);
    });
}

// Processes outside of any launcher have no ranks; then they themselves are counted.
function ranks(summary) {
  const tone = summary.silent ? "bad" : "";
  if (summary.ranks) return { name: "Ranks", figure: String(summary.ranks), sub: summaryWords(summary), tone };
  const rest = [summary.launchers && many(summary.launchers, "launcher"), summary.exited && `${summary.exited} exited`];
  return { name: "Processes", figure: String(summary.processes), sub: rest.filter(Boolean).join(", "), tone };
}

function memory(state, metrics) {
  const used = newest(metrics.host("mem_used_bytes"));
  const total = newest(metrics.host("mem_total_bytes"));
  if (used !== null) {
    return { name: "Memory of the node", figure: bytes(used), sub: total === null ? "" : `of ${bytes(total)}` };
  }
  const all = metrics.find("process", "rss_bytes").map(newest).filter((value) => value !== null);
  if (!all.length) return { name: "Memory", figure: "–", sub: "no figures yet" };
  return { name: "Memory of training", figure: bytes(all.reduce((a, b) => a + b, 0)), sub: `in ${many(all.length, "process", "processes")}` };
}

function tracingWords(state) {
  const { summary } = state;
  if (summary.waiting) return `${summary.waiting} ${summary.waiting > 1 ? "wait" : "waits"} for the next poll`;
  if (summary.tracing) {
    const ends = state.processes.map((process) => process.work?.ends).filter((end) => end);
    const last = ends.length ? Math.max(...ends) - state.now : 0;
    return last > 0 ? `the last one ends in ${span(last)}` : ends.length ? "files are being written" : "until the steps are done";
  }
  return summary.busy ? `${summary.busy} busy with a profiler of their own` : "nobody is traced";
}

function peak(metrics) {
  const cpu = metrics.host("cpu_util");
  if (!cpu) return "no figures yet";
  const high = cpu.values.reduce((a, b) => Math.max(a, b));
  return `at most ${percent(high)} in ${span(cpu.times[cpu.times.length - 1] - cpu.times[0])}`;
}

function plugin(state) {
  const { nputrace, npumonitor, current_step: step, stop_step: stop } = state.plugin;
  if (nputrace === "Running") return `plug-in traces, step ${step}${stop > 0 ? ` to ${stop}` : ""}`;
  if (nputrace === "Ready") return `plug-in waits for step ${state.plugin.start_step}`;
  return npumonitor === "Running" ? "plug-in's monitor runs" : "";
}
