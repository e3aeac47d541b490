// Searching the timeline: by instruction, operation, pipe, or place in the source.

class Search {
  constructor(timeline) {
    this.timeline = timeline;
    this.box = el("input", { type: "search", placeholder: "Search: VADD, MTE2, add.py:33", "aria-label": "Search the timeline; Enter goes to the next match", spellcheck: "false" });
    this.said = el("span", { class: "quiet found", role: "status" });
    this.element = el("span", { class: "search" }, this.box, this.said);
    this.box.addEventListener("input", () => this.look());
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") this.set("");
    });
  }

  focus() {
    this.box.focus();
  }

  set(text) {
    this.box.value = text;
    this.look();
  }

  look() {
    const { timeline } = this;
    const { rows, launch } = timeline;
    const wanted = this.box.value.trim().toLowerCase();
    this.at = -1;
    if (!wanted) {
      timeline.found = null;
      this.matches = [];
      this.said.textContent = "";
    } else {
      const names = launch.steps.map((step) => [step.text, step.operation, launch.lanes[step.lane], step.dtype, ...(step.file === null ? [] : [placeText(launch, step), lineText(launch, step) ?? ""]), ...step.stack].join("\n").toLowerCase());
      // A place is one line: add.py:3 must not find add.py:33.
      const hit = (name) => (/:\d+$/.test(wanted) ? name.split("\n").includes(wanted) : name.includes(wanted));
      timeline.found = Uint8Array.from(names, (name) => (hit(name) ? 1 : 0));
      this.matches = [];
      for (let at = 0; at < rows.count; at += 1) if (timeline.found[rows.step[at]]) this.matches.push(at);
      this.matches.sort((a, b) => rows.start[a] - rows.start[b] || a - b);
      this.said.textContent = many(this.matches.length, "match", "matches");
    }
    timeline.draw();
  }

  go(by) {
    if (!this.matches?.length) return;
    this.at = (this.at + by + this.matches.length) % this.matches.length;
    this.said.textContent = `${this.at + 1} of ${whole(this.matches.length)}`;
    this.timeline.reveal(this.matches[this.at]);
  }
}
