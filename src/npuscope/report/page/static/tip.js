// The one tooltip of the page.

const tip = {
  box: null,
  show(x, y, ...lines) {
    this.box ??= document.getElementById("tip");
    this.box.replaceChildren(...lines.filter(Boolean).map((line) => (typeof line === "string" ? el("div", {}, line) : line)));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = Math.min(x + 14, innerWidth - width - 8);
    const top = y + 18 + height > innerHeight ? y - height - 10 : y + 18;
    this.box.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  },
  hide() {
    if (this.box) this.box.hidden = true;
  },
};

// Shows lines(event) while the pointer or the focus is on an element.
function hover(element, lines) {
  element.addEventListener("pointermove", (event) => tip.show(event.clientX, event.clientY, ...[].concat(lines(event))));
  element.addEventListener("pointerleave", () => tip.hide());
  element.addEventListener("focus", () => {
    const box = element.getBoundingClientRect();
    tip.show(box.left, box.bottom - 14, ...[].concat(lines()));
  });
  element.addEventListener("blur", () => tip.hide());
}
