// Occupancy: whether the cores share the work evenly.

function occupancyChart(launch) {
  const { cores, advice } = launch.charts.occupancy;
  if (!cores.length) return null;
  const most = Math.max(...cores.map((core) => core.cycles), 1);
  const mostBytes = Math.max(...cores.map((core) => core.throughput ?? 0), 1);
  const name = (core) => `${core.type}${core.type === "vector" ? core.number : ""}`;
  const level = (core, what) => (core.levels[what] === undefined ? null : `level ${core.levels[what].toFixed(1)} of 10 for ${what.replace("_", " ")}`);
  const bar = (core, share, text, colour) => {
    const made = el("span", { class: "cellbar", style: `--w: ${100 * share}%; --c: ${colour}` }, text);
    hover(made, () => [`block ${core.block} ${name(core)}`, text, level(core, "cycles"), level(core, "throughput"), level(core, "hit_rate"), core.balanced ? "like the others of its kind" : "not like the others of its kind", `(${launch.provenance})`]);
    return made;
  };
  const columns = [
    { title: "block", num: true, value: (core) => core.block }, { title: "core", value: name },
    { title: "cycles", kind: "bars", value: (core) => core.cycles, cell: (core) => bar(core, core.cycles / most, whole(core.cycles), core.balanced ? "var(--accent)" : "var(--bad)") },
    { title: "GM bytes", kind: "bars", value: (core) => core.throughput, cell: (core) => bar(core, (core.throughput ?? 0) / mostBytes, bytesText(core.throughput), "var(--pipe-mte2)") },
    { title: "L2 hits", num: true, value: (core) => core.hitRate, text: (core) => (core.hitRate === null ? "NA" : `${core.hitRate.toFixed(1)} %`) },
    { title: "balanced", value: (core) => (core.balanced ? "yes" : "no") },
  ];
  const said = advice.length ? el("ul", { class: "said" }, ...advice.map((text) => el("li", {}, text))) : el("p", { class: "quiet" }, "No core stands out.");
  return chartCard("Occupancy", launch, "what each core did, against the others of its kind", said, sortableTable("Occupancy", columns, cores));
}
