// All ranks and communicators; a click on a title sorts.

const MOST_ROWS = 1000;

function showTables(data) {
  const time = (title, name, about) => ({ title, num: true, about, value: (row) => row[name], text: (row) => nanoseconds(row[name]) });
  place("ranks", "Ranks", data.ranks.toSorted((a, b) => b.slow - a.slow || b.own - a.own), [
    { title: "rank", num: true, value: (row) => row.rank, text: (row) => rankText(row) },
    { title: "host", value: (row) => row.host },
    time("step", "step"),
    time("own", "own", "the step without collectives that run alone"),
    time("compute", "compute"),
    time("idle", "idle"),
    time("communication", "communication"),
    time("waiting", "waiting"),
    { title: "waits least in", num: true, value: (row) => row.waits_least, text: (row) => percent(row.waits_least) },
    { title: "steps", num: true, value: (row) => row.steps },
  ]);
  place("communicators", "Communicators", data.communicators, [
    { title: "communicator", value: (row) => (row.title ? `${row.title} (${row.name})` : row.name) },
    { title: "ranks", num: true, value: (row) => row.ranks.length },
    { title: "collectives", num: true, value: (row) => row.collectives },
    { title: "bytes", num: true, value: (row) => row.bytes, text: (row) => (row.bytes ? bytesText(row.bytes) : "NA") },
    time("transfer", "transfer", "the shortest among the ranks"),
    time("waiting a rank", "waiting"),
    time("longest wait", "longest_wait"),
    { title: "last", value: (row) => row.last, text: (row) => (row.last === null ? "NA" : `rank ${row.last} in ${percent(row.last_share)}`) },
  ]);
}

function rankText(row) {
  return row.slow ? el("b", { class: "tag" }, `${row.rank} slow`) : String(row.rank);
}

function place(id, title, rows, columns) {
  const body = document.querySelector(`#${id} .body`);
  const shown = rows.slice(0, MOST_ROWS);
  body.append(sortableTable(title, columns, shown));
  if (shown.length < rows.length) body.append(el("p", { class: "hint quiet" }, `${whole(shown.length)} of ${whole(rows.length)}; cluster.json has all`));
}
