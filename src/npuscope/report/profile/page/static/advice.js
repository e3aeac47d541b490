// Advice, the greatest gain first; each opens to its evidence.

const MOST_ADVICE = 5;

function showAdvice(place, note, launch, go) {
  note.textContent = launch.advice.length ? `${many(launch.advice.length, "rule")} fired; gains are estimates from ${launch.provenance} figures and do not add up` : "";
  if (!launch.advice.length) {
    place.replaceChildren(el("p", { class: "quiet" }, "No rule fires."));
    return;
  }
  const list = (some) => el("ol", { class: "advice" }, ...some.map((one) => adviceItem(one, launch, go)));
  const rest = launch.advice.slice(MOST_ADVICE);
  place.replaceChildren(list(launch.advice.slice(0, MOST_ADVICE)), rest.length ? el("details", { class: "rest" }, el("summary", {}, `${whole(rest.length)} more, of less gain or without an estimate`), list(rest)) : "");
}

function adviceItem(one, launch, go) {
  const gain = el("span", { class: "gain", title: one.estimate ? `Estimated: ${one.estimate}` : "No estimate" },
    one.gain === null ? "–" : percent(one.gain), el("span", { class: "track" }, el("span", { class: "fill", style: `width: ${100 * (one.gain ?? 0)}%` })));
  const evidence = Object.entries(one.evidence).map(([name, value]) => el("li", {}, `${name}: `, el("b", {}, typeof value === "number" ? short(value) : value)));
  const lines = one.lines.map((line) => {
    const button = el("button", { type: "button", class: "place" }, placeText(launch, line));
    button.addEventListener("click", () => go.line(line.file, line.line));
    return button;
  });
  return el("li", {}, el("details", {},
    el("summary", {}, gain, el("span", { class: "said" }, el("b", {}, one.text), el("span", { class: "quiet" }, one.remedy)), el("span", { class: "tag" }, one.rule)),
    el("div", { class: "evidence" },
      el("ul", {}, ...evidence, one.threshold ? el("li", {}, "threshold: ", el("b", {}, one.threshold)) : null,
        el("li", {}, one.gain === null ? "gain: not told" : `gain: ${percent(one.gain)} of the task's time, estimated as ${one.estimate}`)),
      lines.length ? el("p", { class: "where" }, "Lines: ", ...lines) : null)));
}
