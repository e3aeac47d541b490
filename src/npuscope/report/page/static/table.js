// A table whose rows are sorted by the column that was clicked last.

// columns: {title, value(row), text?(row), num?, cell?(row) -> element}
function sortableTable(caption, columns, rows, options = {}) {
  const body = el("tbody");
  let sorted = null;
  const heads = columns.map((one, index) => {
    const button = el("button", { type: "button", title: one.about }, one.title);
    button.addEventListener("click", () => {
      const down = sorted?.index === index ? !sorted.down : Boolean(one.num);
      sorted = { index, down };
      heads.forEach((head, place) => {
        if (place === index) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      fill();
    });
    return el("th", { scope: "col", class: one.num ? "num" : null }, button);
  });
  const made = new Map();
  function line(row) {
    if (made.has(row)) return made.get(row);
    const cells = columns.map((one) => {
      const cell = el("td", { class: one.num ? "num" : one.kind });
      cell.append(one.cell ? one.cell(row) : one.text ? one.text(row) : cellText(one.value(row)));
      return cell;
    });
    const element = el("tr", { tabindex: options.choose ? "0" : null }, ...cells);
    if (options.choose) {
      element.addEventListener("click", () => options.choose(row));
      element.addEventListener("keydown", (event) => event.key === "Enter" && options.choose(row));
    }
    made.set(row, element);
    return element;
  }
  function fill() {
    const order = [...rows];
    if (sorted) {
      const { value } = columns[sorted.index];
      const sign = sorted.down ? -1 : 1;
      order.sort((a, b) => compareCells(value(a), value(b), sign));
    }
    body.replaceChildren(...order.map(line));
  }
  fill();
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { "aria-label": caption }, el("thead", {}, el("tr", {}, ...heads)), body));
}

function cellText(value) {
  if (value === null || value === undefined) return "NA";
  return typeof value === "number" ? short(value) : String(value);
}

// What is not known comes last either way.
function compareCells(a, b, sign) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return (a < b ? -1 : 1) * sign;
}
