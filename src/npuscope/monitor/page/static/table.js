// A table whose rows are kept by key, sorted by the column that was clicked last, and folded into cards where narrow.
import { el, keyed, setClass, setText } from "./dom.js";

export class Table {
  // columns: {title, text(row), sort?(row), kind?: "num" | "wide", paint?(cell, row)}
  constructor(parent, caption, columns, options = {}) {
    this.columns = columns;
    this.options = options;
    this.sorted = null;
    this.rows = [];
    this.heads = columns.map((column, index) => this.head(column, index));
    this.body = el("tbody", { role: "rowgroup" });
    const head = el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...this.heads));
    this.table = el("table", { role: "table", "aria-label": caption }, head, this.body);
    parent.append(this.table);
  }

  head(column, index) {
    const button = el("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      const down = this.sorted?.index === index && !this.sorted.down;
      this.sorted = { index, down };
      this.heads.forEach((head, place) => {
        if (place === index) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      this.show(this.rows);
    });
    return el("th", { scope: "col", role: "columnheader", class: column.kind === "num" ? "num" : null }, button);
  }

  show(rows) {
    this.rows = rows;
    keyed(this.body, this.inOrder(rows), this.options.key, (row) => this.make(row), (line, row) => this.update(line, row));
  }

  inOrder(rows) {
    if (!this.sorted) return rows;
    const column = this.columns[this.sorted.index];
    const value = column.sort ?? column.text;
    const sign = this.sorted.down ? -1 : 1;
    return [...rows].sort((a, b) => sign * compare(value(a), value(b)));
  }

  make(row) {
    const cells = this.columns.map((column) => el("td", { role: "cell", "data-label": column.title, class: column.kind }));
    const line = el("tr", { role: "row", tabindex: this.options.choose ? "0" : null }, ...cells);
    if (this.options.choose) {
      const choose = () => this.options.choose(line.dataset.key);
      line.addEventListener("click", choose);
      line.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose();
        }
      });
    }
    return line;
  }

  update(line, row) {
    setClass(line, this.options.rowClass?.(row) ?? "");
    this.columns.forEach((column, index) => {
      const cell = line.children[index];
      if (column.paint) column.paint(cell, row);
      else setText(cell, column.text(row));
    });
  }
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return a < b ? -1 : 1;
}
