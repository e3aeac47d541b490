// Which charts there are, and what each draws.
import { Chart, colour } from "./chart.js";
import { show } from "./dom.js";
import { bytes, percent, plain, rate } from "./format.js";
import { here } from "./metrics.js";

// A colour for each process, kept while it lives, in the order of ranks at first sight.
export class Colours {
  constructor() {
    this.known = new Map();
  }

  learn(processes) {
    const there = new Set(processes.map(here));
    for (const pid of this.known.keys()) if (!there.has(pid)) this.known.delete(pid);
    for (const process of processes) {
      const pid = here(process);
      if (process.launcher || this.known.has(pid)) continue;
      const taken = new Set(this.known.values());
      let index = 0;
      while (taken.has(index)) index += 1;
      this.known.set(pid, index);
    }
  }

  of(process) {
    const index = this.known.get(here(process));
    return index === undefined ? "" : colour(index);
  }
}

const node = (id) => document.querySelector(`#${id} .charts`);

export class Charts {
  constructor(colours) {
    this.colours = colours;
    const host = node("node-charts");
    const ranks = node("process-charts");
    this.cpu = new Chart(host, "CPU of the node", { format: percent, least: 100, area: true });
    this.memory = new Chart(host, "Memory of the node", { format: bytes, binary: true, area: true });
    this.network = new Chart(host, "Network of the node", { format: rate, binary: true });
    this.ofRanks = [
      [new Chart(ranks, "CPU", { format: percent }), (metrics, process) => metrics.of(process, "cpu_percent")],
      [new Chart(ranks, "Memory (resident)", { format: bytes, binary: true }), (metrics, process) => metrics.of(process, "rss_bytes")],
      [new Chart(ranks, "Threads", { format: plain }), (metrics, process) => metrics.of(process, "threads")],
      [new Chart(ranks, "Disk, read and written", { format: rate, binary: true }), (metrics, process) => metrics.traffic(process)],
    ];
  }

  choose(pid) {
    for (const [chart] of this.ofRanks) chart.choose(pid);
  }

  show(state, metrics) {
    const range = metrics.range(state.now);
    const one = (key, label, tone, series) => (series ? [{ key, label, colour: colour(tone), ...series }] : []);
    this.cpu.show(one("cpu", "CPU", 0, metrics.host("cpu_util")), range);
    const memory = metrics.host("mem_used_bytes");
    show(this.memory.figure, Boolean(memory)); // not every daemon measures it
    this.memory.show(one("memory", "Memory", 2, memory), range);
    this.network.show([
      ...one("in", "in", 0, metrics.network("rx_bytes.")),
      ...one("out", "out", 1, metrics.network("tx_bytes.")),
    ], range);
    const shown = state.processes.filter((process) => !process.launcher);
    // Tracing costs time: where it happened is shaded, so that a dent in a line explains itself.
    const marks = united(state.traces.filter((trace) => trace.outcome === "active" || trace.written)
      .map((trace) => [trace.asked, trace.written ?? state.now]));
    for (const [chart, take] of this.ofRanks) {
      chart.show(shown.flatMap((process) => this.line(process, take, metrics)), range, marks);
    }
  }

  line(process, take, metrics) {
    const series = take(metrics, process);
    if (!series) return [];
    const label = process.rank === null ? `process ${process.pid}` : `rank ${process.rank}`;
    return [{ key: here(process), label, colour: this.colours.of(process), ...series }];
  }
}

// Times that overlap, as one.
function united(marks) {
  const found = [];
  for (const [from, to] of marks.sort((a, b) => a[0] - b[0])) {
    const last = found[found.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}
