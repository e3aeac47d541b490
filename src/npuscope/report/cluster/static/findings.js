// The slow ranks: what is said of each, its figures, and what to run next.

function showFindings(data) {
  const body = document.querySelector("#findings .body");
  document.querySelector("#findings .note").textContent = data.slow.length ? `${whole(data.slow.length)}, the costliest first` : "";
  if (!data.found) body.append(el("p", { class: "quiet" }, "Nobody is named. The maps below show who waited when."));
  const list = el("ol", { class: "slow" });
  for (const one of data.slow.slice(0, 50)) {
    const [first, ...rest] = one.text;
    list.append(el("li", {}, el("b", {}, first), el("ul", {}, ...rest.map((line) => el("li", {}, line)))));
  }
  for (const one of data.links) list.append(el("li", {}, el("b", {}, one.text)));
  body.append(list);
  if (data.slow.length) body.append(el("div", { class: "figures" }, slowTable(data.slow)));
  if (data.commands.length) body.append(el("h3", {}, "To trace just these ranks"));
  for (const command of data.commands) body.append(commandLine(command));
}

function slowTable(slow) {
  const time = (name) => ({ num: true, value: (row) => row[name], text: (row) => nanoseconds(row[name]) });
  return sortableTable("Slow ranks", [
    { title: "rank", num: true, value: (row) => row.rank },
    { title: "host", value: (row) => row.host },
    { title: "pattern", value: (row) => row.pattern },
    { title: "slower", num: true, value: (row) => row.slower, text: (row) => percent(row.slower), about: "own time above the peers'" },
    { title: "costs", num: true, value: (row) => row.cost, text: (row) => percent(row.cost), about: "share of each step" },
    { title: "confidence", num: true, value: (row) => row.confidence, text: (row) => (row.confidence > 0.9999 ? "above 99.99 %" : `${(100 * row.confidence).toFixed(2)} %`) },
    { title: "slow steps", num: true, value: (row) => row.slow_steps, text: (row) => `${whole(row.slow_steps)} of ${whole(row.steps)}` },
    { title: "waiting", ...time("waiting") },
    { title: "peers' waiting", ...time("peers_waiting") },
    { title: "waits least in", num: true, value: (row) => row.last, text: (row) => percent(row.last) },
    { title: "cause", value: (row) => row.cause },
  ], slow);
}

function nanoseconds(value) {
  return value === null || value === undefined ? "NA" : timeText(value / 1000);
}

function commandLine(command) {
  const button = el("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command).then(() => (button.textContent = "Copied"), () => (button.textContent = "Select and copy"));
  });
  return el("div", { class: "command" }, el("code", { tabindex: "0" }, command), button);
}
