// Time and bound first: the tiles, the critical path, the speed of light, the lines to fix.

function showGlance(place, launch, go) {
  const path = Object.entries(launch.critical_path);
  const onPath = Math.max(sum(path.map(([, cycles]) => cycles)), 1);
  const [first, cycles] = path[0] ?? ["nothing", 0];
  place.replaceChildren(
    el("div", { class: "tiles" },
      tile("Time", timeText(launch.time_us), `${whole(launch.cycles)} cycles at ${short(launch.mhz)} MHz`, launch.provenance),
      tile("Bound by", first === "start" ? "launch" : first, `${launch.words[first] ?? first}: ${percent(cycles / onPath)} of the critical path`, launch.provenance, first),
      tile("Launch overhead", percent(launch.overhead / Math.max(launch.cycles, 1)), `${whole(launch.overhead)} cycles before the first core starts`, launch.provenance),
      tile("Cores", `${launch.coresUsed} of ${launch.coresThere}`, `${many(launch.blocks, "block")} on ${launch.chip}`, null),
      tile("To and from GM", bytesText(launch.traffic.gm_read + launch.traffic.gm_written), `${bytesText(launch.traffic.gm_read)} read, ${bytesText(launch.traffic.gm_written)} written`, null),
    ),
    el("div", { class: "two" },
      el("div", { class: "card" }, heading("Speed of light", `how near each unit came to its limit, ${launch.provenance}`), lightBars(launch)),
      el("div", { class: "card" }, heading("Critical path", `what the task's time went to, ${launch.provenance}`), pathBar(launch, path, onPath),
        heading("Lines to fix first", `cycles on the critical path, ${launch.provenance}`), topLines(launch, onPath, go)),
    ),
  );
}

function heading(text, note) {
  return el("h3", {}, text, " ", el("span", { class: "note" }, note));
}

function tile(name, figure, sub, provenance, lane) {
  const style = lane ? `--c: var(--pipe-${lane.toLowerCase()}, var(--pipe-other))` : null;
  return el("div", { class: lane ? "tile lane" : "tile", style },
    el("div", { class: "name" }, name, provenance ? el("span", { class: "tag" }, provenance) : null),
    el("div", { class: "figure" }, figure), el("div", { class: "sub" }, sub));
}

function lightBars(launch) {
  const rows = launch.speed_of_light.map((bar) => {
    const share = bar.share === null ? 0 : Math.min(bar.share, 1);
    const row = el("div", { class: "light", tabindex: "0", style: `--c: var(--pipe-${bar.name.toLowerCase()}, var(--accent))` },
      el("span", { class: "lname" }, bar.name), el("span", { class: "track" }, el("span", { class: "fill", style: `width: ${100 * share}%` })),
      el("span", { class: "num" }, percent(bar.share)), el("span", { class: "quiet reached" }, bar.reached));
    hover(row, () => [bar.name, bar.reached, `of ${bar.limit}`, `(${launch.provenance}; ${bar.kind === "busy" ? "share of the task's time at work" : "share of the most that the chip can do"})`]);
    return row;
  });
  return el("div", { class: "lights" }, ...rows);
}

function pathBar(launch, path, onPath) {
  const bar = el("div", { class: "stack", role: "img", "aria-label": path.map(([name, cycles]) => `${name} ${percent(cycles / onPath)}`).join(", ") });
  const legend = el("ul", { class: "legend" });
  for (const [name, cycles] of path) {
    const colour = `var(--pipe-${name.toLowerCase()}, var(--pipe-other))`;
    const part = el("span", { style: `width: ${(100 * cycles) / onPath}%; background: ${colour}` });
    const words = [`${launch.words[name] ?? name}`, `${whole(cycles)} cycles, ${percent(cycles / onPath)} (${launch.provenance})`];
    hover(part, () => words);
    bar.append(part);
    legend.append(el("li", {}, el("span", { class: "swatch", style: `background: ${colour}` }), `${name} ${percent(cycles / onPath)}`));
  }
  return el("div", {}, bar, legend);
}

function topLines(launch, onPath, go) {
  const lines = [...launch.lines].sort((a, b) => b.critical - a.critical).filter((line) => line.critical > 0).slice(0, 3);
  if (!lines.length) return el("p", { class: "quiet" }, "No source lines are known.");
  return el("ol", { class: "fix" }, ...lines.map((line) => {
    const button = el("button", { type: "button", class: "place" }, placeText(launch, line));
    button.addEventListener("click", () => go.line(line.file, line.line));
    return el("li", {}, button, el("span", { class: "num" }, percent(line.critical / onPath)), el("code", {}, lineText(launch, line) ?? ""));
  }));
}

function placeText(launch, line) {
  return line.file === null ? "no source" : `${launch.files[line.file].name}:${line.line}`;
}

function lineText(launch, line) {
  for (const part of launch.files[line.file]?.parts ?? []) {
    const text = part.text[line.line - part.first];
    if (text !== undefined) return text.trim();
  }
  return null;
}
