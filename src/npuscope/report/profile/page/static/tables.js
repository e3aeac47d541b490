// The metric tables, those that the chip has.

function showTables(place, note, launch) {
  const names = Object.keys(launch.tables);
  if (!names.length) {
    place.replaceChildren(el("p", { class: "quiet" }, "There are no metric tables for this launch."));
    return;
  }
  note.textContent = `as in the CSV files, ${launch.provenance}; NA does not apply or is not known`;
  const body = el("div", {});
  const show = (name) => {
    const { columns, rows } = launch.tables[name];
    const filled = columns.map((title, at) => ({ title, at })).filter(({ at }) => rows.some((row) => row[at] !== null));
    body.replaceChildren(sortableTable(name, filled.map(({ title, at }) => ({ title, value: (row) => row[at], num: rows.every((row) => row[at] === null || typeof row[at] === "number") })), rows));
  };
  show(names[0]);
  place.replaceChildren(radioGroup("Table", names.map((name) => [name, name]), names[0], show), body);
}
