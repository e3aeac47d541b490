// What one slice is, in words.

function sliceFacts(rows, slice) {
  const { launch } = rows;
  const step = rows.stepOf(slice);
  const row = rows.rowOf(slice);
  const start = rows.start[slice];
  const length = rows.length[slice];
  const issue = rows.issue[slice] - 1;
  const bytes = rows.bytes[slice] - 1;
  const path = sum((rows.onPath.get(slice) ?? []).map((piece) => rows.pathEnd[piece] - rows.pathStart[piece]));
  return { launch, step, row, start, length, issue, bytes, path, operands: rows.detail ? launch.timeline.details[rows.detail[slice]] : step.detail, own: Boolean(rows.detail) };
}

function sliceWords(rows, slice) {
  const { launch, step, row, start, length, issue, bytes, path, operands } = sliceFacts(rows, slice);
  const place = step.file === null ? null : placeText(launch, step);
  return [
    el("b", {}, `${step.text}${step.wait ? " (waiting)" : ""}`),
    `${launch.cores[row.core].name}, ${row.name}`,
    `${whole(length)} cycles, ${timeText(length / launch.mhz)}, from ${timeText(start / launch.mhz)} (${launch.provenance})`,
    issue >= 0 && start > issue ? `${whole(start - issue)} cycles in the queue` : null,
    bytes > 0 ? `${bytesText(bytes)} to or from GM` : null,
    path ? `${whole(path)} cycles on the critical path` : null,
    place ? el("code", {}, `${place}  ${lineText(launch, step) ?? ""}`) : null,
    operands ? el("code", { class: "quiet" }, operands) : null,
  ];
}

function showSlice(panel, timeline, slice) {
  if (slice < 0) {
    panel.replaceChildren(el("p", { class: "quiet" }, "Choose a slice to see what it is, what it waited for and what waited for it."));
    return;
  }
  const { rows, go } = timeline;
  const { launch, step, row, start, length, issue, bytes, path, operands, own } = sliceFacts(rows, slice);
  const facts = [
    ["core", `${launch.cores[row.core].name} (${launch.cores[row.core].vendor})`], ["pipe", row.name],
    ["start", `${whole(start)} cycles, ${timeText(start / launch.mhz)}`], ["length", `${whole(length)} cycles, ${timeText(length / launch.mhz)}`],
    ["queued", issue >= 0 ? `${whole(Math.max(start - issue, 0))} cycles before it started` : "NA"], ["GM", bytes > 0 ? bytesText(bytes) : "–"],
    ["critical path", path ? `${whole(path)} cycles` : "not on it"], ["pc", step.pc], ["operation", `${step.operation} (${step.origin})`],
    [own ? "operands" : "operands of its first run", operands || "–"],
  ];
  const links = rows.edgesOf(slice).map((edge) => {
    const outward = rows.edgeSource[edge] === slice;
    const other = outward ? rows.edgeTarget[edge] : rows.edgeSource[edge];
    const place = rows.stepOf(other);
    const button = el("button", { type: "button", class: "place" }, `${launch.cores[rows.rowOf(other).core].name} ${rows.rowOf(other).name} ${place.text} ${place.file === null ? "" : placeText(launch, place)}`);
    button.addEventListener("click", () => timeline.reveal(other));
    return el("li", {}, outward ? "lets go " : "let go by ", button, rows.edgeNumber[edge] ? ` flag ${rows.edgeNumber[edge] - 1}` : "");
  });
  const source = step.file === null ? null : el("button", { type: "button", class: "place" }, placeText(launch, step));
  source?.addEventListener("click", () => go.line(step.file, step.line));
  panel.replaceChildren(
    el("h3", {}, el("span", { class: "pipe", style: `--c: var(--pipe-${row.name.toLowerCase()}, var(--pipe-other))` }, step.text), " ", source, " ", el("code", {}, step.file === null ? "" : lineText(launch, step) ?? ""), " ", el("span", { class: "note" }, launch.provenance)),
    el("dl", {}, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    links.length ? el("ul", { class: "links" }, ...links.slice(0, 20)) : null);
}
