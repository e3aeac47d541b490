// Compute load: a row for each core, a bar for each pipe.

function loadChart(launch) {
  const { bars, table } = launch.charts.load;
  if (!bars.length) return null;
  const pipes = [...new Set(bars.map((bar) => bar.name))];
  const cores = [...new Map(bars.map((bar) => [`${bar.block} ${bar.core}`, bar])).values()];
  const rows = cores.map((core) => ({ block: core.block, core: core.core, ...Object.fromEntries(bars.filter((bar) => bar.block === core.block && bar.core === core.core).map((bar) => [bar.name, bar])) }));
  const cell = (row, pipe) => {
    const bar = row[pipe];
    if (!bar) return el("span", { class: "quiet" }, "–");
    const text = el("span", { class: "cellbar", style: `--w: ${bar.value ?? 0}%; --c: var(--pipe-${pipeKey(pipe)}, var(--accent))` }, bar.value === null ? "NA" : `${bar.value.toFixed(1)} %`);
    hover(text, () => [`block ${row.block} ${row.core}: ${pipe}`, `${bar.value === null ? "not known" : `${bar.value.toFixed(2)} % of its cycles`}`, bar.origin === null ? null : `${whole(bar.origin)} cycles`, `(${launch.provenance})`]);
    return text;
  };
  const columns = [{ title: "block", num: true, value: (row) => row.block }, { title: "core", value: (row) => row.core }, ...pipes.map((pipe) => ({ title: pipe, value: (row) => row[pipe]?.value ?? null, cell: (row) => cell(row, pipe), kind: "bars" }))];
  const figures = sortableTable("Figures behind the load", [
    { title: "block", num: true, value: (row) => row.block }, { title: "core", value: (row) => row.core }, { title: "figure", value: (row) => row.name },
    { title: "value", num: true, value: (row) => row.value }, { title: "unit", value: (row) => row.unit },
  ], table);
  return chartCard("Compute load", launch, "share of each core's cycles in which a pipe worked", sortableTable("Compute load", columns, rows), el("details", {}, el("summary", {}, "Times, instructions and bytes"), figures));
}

const pipeKey = (name) => ({ fixpipe: "fixp", vec: "vector" })[name.toLowerCase()] ?? name.toLowerCase().split(" ")[0];
