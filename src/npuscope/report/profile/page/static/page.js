// The page: one launch at a time, chosen at the top.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const body = (id) => at(id).querySelector(".body");
const note = (id) => at(id).querySelector("h2 .note");
let views = {};

const go = {
  line: (file, line) => views.source.goTo(file, line),
  search: (text) => {
    views.timeline?.search.set(text);
    views.timeline?.search.go(1);
    at("timeline").scrollIntoView({ block: "start" });
  },
};

function chartCard(title, launch, about, ...parts) {
  return el("figure", { class: "card", "aria-label": title }, el("figcaption", {}, el("h3", {}, title), el("span", { class: "note" }, about), el("span", { class: "tag" }, launch.provenance)), ...parts);
}

async function show(number) {
  const launch = data.launches[number];
  document.documentElement.dataset.ready = "";
  at("kernel").textContent = launch.kernel;
  at("about").textContent = `launch ${launch.index + 1} on ${launch.chip}${Object.entries(launch.notes).map(([name, value]) => `, ${name}: ${value}`).join("")}`;
  at("provenance").textContent = launch.provenance;
  at("provenance").title = launch.provenance === "modelled" ? "Every figure on this page comes from a timing model, not from a card." : `Every figure on this page comes from a ${launch.provenance}.`;
  at("loss").hidden = !launch.losses.length;
  at("loss").replaceChildren(el("b", {}, "Partial: "), ...launch.losses.map((loss) => el("div", {}, loss.text)));
  showGlance(at("glance"), launch, go);
  showAdvice(body("advice"), note("advice"), launch, go);
  views = { source: new SourceView(body("source"), note("source"), launch, go) };
  note("charts").textContent = launch.provenance;
  const charts = [rooflineCharts(launch), memoryChart(launch), loadChart(launch), occupancyChart(launch), cacheChart(launch, go), transferChart(launch)].filter(Boolean);
  body("charts").replaceChildren(...(charts.length ? charts : [el("p", { class: "quiet" }, "There is nothing to draw.")]));
  showTables(body("tables"), note("tables"), launch);
  if (launch.timeline.slices) {
    const rows = await Rows.load(launch);
    if (data.launches[number] !== launch || at("chooser").querySelector("select").value !== String(number)) return;
    views.timeline = new Timeline(body("timeline"), note("timeline"), launch, rows, go);
    views.timeline.paint();
  } else {
    note("timeline").textContent = "";
    body("timeline").replaceChildren(el("p", { class: "quiet" }, launch.timeline.all ? `The ${whole(launch.timeline.all)} slices of this launch are not on this page; the trace files have them.` : "Nothing ran."));
  }
  document.documentElement.dataset.ready = String(number);
  document.documentElement.dataset.milliseconds = String(Math.round(performance.now()));
}

function start() {
  const select = at("chooser").querySelector("select");
  data.launches.forEach((launch, number) => select.append(el("option", { value: number }, `${number + 1}: ${launch.kernel}, ${timeText(launch.time_us)}`)));
  at("chooser").hidden = data.launches.length < 2;
  select.addEventListener("change", () => show(Number(select.value)));
  at("made").textContent = `Made by npuscope ${data.npuscope}. Nothing on this page was fetched from anywhere.`;
  at("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    views.timeline?.draw();
    dispatchEvent(new Event("resize"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => views.timeline?.draw());
  if (!data.launches.length) {
    at("about").textContent = "No launch was profiled.";
    document.documentElement.dataset.ready = "none";
    return;
  }
  select.value = "0";
  show(0);
}

start();
