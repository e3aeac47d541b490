// The source with its hot spots: a bar for each line, a selector for the core, and the instructions of a line.

const SOURCE_FIGURES = [
  ["critical", "critical path"], ["cycles", "cycles"], ["covered", "cycles, each once"], ["executed", "executions"], ["bytes", "bytes to and from GM"],
];

class SourceView {
  constructor(place, note, launch, go) {
    Object.assign(this, { place, note, launch, go, core: -1, figure: "critical", file: 0, chosen: null, rows: new Map() });
    this.note.textContent = `cycles by line, ${launch.provenance}; choose a line to see its instructions`;
    const withText = launch.files.findIndex((file, at) => file.parts && launch.lines.some((line) => line.file === at));
    this.hottest = [...launch.lines].sort((a, b) => b.critical - a.critical || sum(b.cycles) - sum(a.cycles))[0];
    this.file = this.hottest?.file ?? Math.max(withText, 0);
    this.build();
  }

  build() {
    if (!this.launch.lines.length) {
      this.place.replaceChildren(el("p", { class: "quiet" }, "No instruction of this launch names a source line."),
        sortableTable("Instructions", this.columns(), [...this.launch.steps].sort((a, b) => b.critical - a.critical)));
      return;
    }
    const used = [...new Set(this.launch.lines.map((line) => line.file))];
    this.fileSelect = this.select("File", used.map((file) => [file, this.launch.files[file].name]), this.file, (value) => this.openFile(Number(value)));
    const cores = [[-1, "all cores"], ...this.launch.cores.map((core, at) => [at, core.name])];
    this.coreSelect = this.select("Core", cores, -1, (value) => { this.core = Number(value); this.fill(); });
    const figures = radioGroup("Figure", SOURCE_FIGURES, this.figure, (value) => { this.figure = value; this.fill(); });
    this.code = el("div", { class: "code", role: "listbox", tabindex: "0", "aria-label": "Source lines; arrow keys go from one line with figures to the next" });
    this.code.addEventListener("keydown", (event) => this.key(event));
    this.side = el("div", { class: "side", "aria-live": "polite" });
    this.place.replaceChildren(el("div", { class: "tools" }, this.fileSelect, this.coreSelect, figures), el("div", { class: "split" }, this.code, this.side));
    this.openFile(this.file);
  }

  select(name, choices, chosen, choose) {
    const box = el("select", { "aria-label": name }, ...choices.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
    box.addEventListener("change", () => choose(box.value));
    return el("label", { class: "choose" }, `${name} `, box);
  }

  lines() {
    return this.launch.lines.filter((line) => line.file === this.file);
  }

  value(line) {
    if (this.figure === "critical") return line.critical;
    return this.core < 0 ? knownSum(line[this.figure]) : line[this.figure][this.core];
  }

  openFile(file) {
    this.file = file;
    this.fileSelect.querySelector("select").value = String(file);
    const known = new Map(this.lines().map((line) => [line.line, line]));
    const parts = this.launch.files[file].parts;
    this.rows = new Map();
    const rows = [];
    if (!parts) {
      rows.push(el("p", { class: "quiet pad" }, `The text of ${this.launch.files[file].path} could not be read; its lines are shown by number.`));
      for (const number of [...known.keys()].sort((a, b) => a - b)) rows.push(this.row(number, "", known.get(number)));
    }
    for (const part of parts ?? []) {
      if (rows.length) rows.push(el("div", { class: "gap" }, "⋮"));
      part.text.forEach((text, at) => rows.push(this.row(part.first + at, text, known.get(part.first + at))));
    }
    this.code.replaceChildren(...rows);
    this.fill();
    const first = [...known.values()].sort((a, b) => b.critical - a.critical || sum(b.cycles) - sum(a.cycles))[0];
    this.choose(first?.line ?? null, true);
  }

  row(number, text, line) {
    const bar = el("span", { class: "lbar" });
    const figure = el("span", { class: "lfig num" });
    const row = el("div", { class: line ? "ln hot" : "ln", role: "option", "data-line": number, "aria-selected": "false" },
      el("span", { class: "lno" }, String(number)), figure, bar, el("code", {}, coloured(text)));
    if (line) {
      row.addEventListener("click", () => this.choose(number));
      hover(row, () => this.words(line));
      this.rows.set(number, { row, bar, figure, line });
    }
    return row;
  }

  words(line) {
    const hits = knownSum(line.hits);
    const misses = knownSum(line.misses);
    return [placeText(this.launch, line), `${whole(line.critical)} cycles on the critical path`, `${whole(sum(line.cycles))} cycles of all cores, ${whole(sum(line.covered))} counted once`,
      `${whole(sum(line.executed))} executions`, `${bytesText(knownSum(line.bytes))} to and from GM`, hits === null ? null : `L2: ${percent(hits / Math.max(hits + misses, 1))} hits`, `(${this.launch.provenance})`];
  }

  fill() {
    const values = [...this.rows.values()].map(({ line }) => this.value(line) ?? 0);
    const top = Math.max(...values, 1);
    const total = Math.max(sum(values), 1);
    for (const { bar, figure, line } of this.rows.values()) {
      const value = this.value(line);
      figure.textContent = value === null || value < 0 ? "NA" : value === 0 ? "" : this.figure === "executed" ? whole(value) : this.figure === "bytes" ? bytesText(value) : percent(value / total);
      bar.replaceChildren(...this.shares(line, Math.max(value ?? 0, 0) / top));
    }
    if (this.chosen !== null) this.showSide();
  }

  // The bar of a line in the colours of the pipes that its instructions run on.
  shares(line, length) {
    const of = (step) => (this.figure === "critical" ? step.critical : this.core < 0 ? knownSum(step.cycles) ?? 0 : Math.max(step.cycles[this.core], 0));
    const steps = line.steps.map((number) => this.launch.steps[number]);
    const whole_ = sum(steps.map(of)) || 1;
    const byLane = new Map();
    for (const step of steps) byLane.set(step.lane, (byLane.get(step.lane) ?? 0) + of(step) / whole_);
    return [...byLane].sort((a, b) => b[1] - a[1]).map(([lane, share]) => el("span", { style: `width: ${100 * share * length}%; background: var(--pipe-${this.launch.lanes[lane].toLowerCase()}, var(--pipe-other))` }));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const numbers = [...this.rows.keys()];
    const at = numbers.indexOf(this.chosen);
    const next = numbers[Math.min(Math.max(at + step, 0), numbers.length - 1)];
    if (next !== undefined) this.choose(next, true);
  }

  // Go to a line from elsewhere on the page.
  goTo(file, line) {
    if (file !== this.file) this.openFile(file);
    this.choose(line, true);
    document.getElementById("source").scrollIntoView({ block: "start" });
    this.code.focus({ preventScroll: true });
  }

  choose(number, scroll = false) {
    this.rows.get(this.chosen)?.row.setAttribute("aria-selected", "false");
    this.chosen = this.rows.has(number) ? number : null;
    const entry = this.rows.get(this.chosen);
    if (!entry) {
      this.side.replaceChildren(el("p", { class: "quiet" }, "Choose a line that has figures."));
      return;
    }
    entry.row.setAttribute("aria-selected", "true");
    if (scroll) this.code.scrollTop = entry.row.offsetTop - this.code.clientHeight / 3;
    this.showSide();
  }

  // Of a table of instructions.
  columns() {
    const cycles = (step) => (this.core < 0 ? knownSum(step.cycles) : step.cycles[this.core]);
    return [
      { title: "pc", value: (step) => step.pc, kind: "mono" },
      { title: "pipe", value: (step) => this.launch.lanes[step.lane], cell: (step) => el("span", { class: "pipe", style: `--c: var(--pipe-${this.launch.lanes[step.lane].toLowerCase()}, var(--pipe-other))` }, this.launch.lanes[step.lane]) },
      { title: "instruction", value: (step) => step.text, kind: "mono", cell: (step) => { const text = el("span", { class: step.wait ? "quiet" : null }, step.text); hover(text, () => [step.text, step.detail, step.dtype, `${step.operation} (${step.origin})`, step.stack.join(" < ")]); return text; } },
      { title: "runs", num: true, value: (step) => (this.core < 0 ? sum(step.executed) : step.executed[this.core]) },
      { title: "cycles", num: true, value: cycles, text: (step) => whole(cycles(step)) },
      { title: "critical", num: true, value: (step) => step.critical, text: (step) => whole(step.critical) },
      { title: "GM bytes", num: true, value: (step) => (this.core < 0 ? knownSum(step.bytes) : step.bytes[this.core]), text: (step) => bytesText(this.core < 0 ? knownSum(step.bytes) : step.bytes[this.core]) },
      { title: "conflict", about: "most cycles that one run lost to UB bank conflicts", num: true, value: (step) => (step.conflict < 0 ? null : step.conflict) },
      { title: "filled", about: "how much of the vector unit its instructions use at least", num: true, value: (step) => step.utilisation, text: (step) => (step.utilisation === null ? "NA" : `${step.utilisation.toFixed(1)} %`) },
    ];
  }

  showSide() {
    const { line } = this.rows.get(this.chosen);
    const find = el("button", { type: "button" }, "Show in the timeline");
    find.addEventListener("click", () => this.go.search(placeText(this.launch, line)));
    const where = this.core < 0 ? "all cores" : this.launch.cores[this.core].name;
    this.side.replaceChildren(
      el("h3", {}, placeText(this.launch, line), " ", el("span", { class: "note" }, `${where}, ${this.launch.provenance}`), find),
      sortableTable(`Instructions of ${placeText(this.launch, line)}`, this.columns(), line.steps.map((number) => this.launch.steps[number]).filter((step) => this.core < 0 || step.executed[this.core] > 0)));
  }
}
