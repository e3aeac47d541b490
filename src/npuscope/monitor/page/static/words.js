// What states are called, and how they look: never by colour alone.
import { many, span } from "./format.js";

const STATES = {
  idle: ["", "idle"],
  busy: ["warn", "busy: a profiler of its own"],
  waiting: ["live", "asked, until it polls"],
  delivered: ["live", "told, warming up"],
  tracing: ["live", "tracing"],
};
const HEALTH = {
  exited: ["", "exited"],
  stopped: ["bad", "stopped by a signal"],
  silent: ["bad", "silent"],
};
const OUTCOMES = {
  active: ["live", "under way"],
  written: ["good", "written"],
  writing: ["live", "being written"],
  "handed over": ["", "handed to the plug-in"],
  empty: ["bad", "refused by the process"],
  exited: ["bad", "lost: process exited"],
  missing: ["bad", "no file"],
  unseen: ["warn", "inside the container"],
};

export const state = (process) => HEALTH[process.health] ?? STATES[process.state] ?? ["", process.state];
export const outcome = (trace) => OUTCOMES[trace.outcome] ?? ["", trace.outcome];
export const rank = (process) => (process.rank === null || process.rank === undefined ? null : process.rank);
export const who = (process) => (rank(process) === null ? `process ${process.pid}` : `rank ${process.rank}`);

// How far a trace is: a share of 1, null where nobody can know, and the words for it.
export function progress(process, now) {
  const { asked, ends } = process.work;
  if (process.state === "waiting") {
    return { share: null, words: `asked ${span(now - asked)} ago` };
  }
  if (ends === null) return { share: null, words: `for ${span(now - asked)}` };
  if (now >= ends) return { share: 1, words: "writing the file" };
  return { share: (now - asked) / (ends - asked), words: `${span(ends - now)} left` };
}

export function summaryWords(summary) {
  const parts = [many(summary.processes, "process", "processes")];
  if (summary.launchers) parts.push(many(summary.launchers, "launcher"));
  if (summary.exited) parts.push(`${summary.exited} exited`);
  return parts.join(", ");
}
