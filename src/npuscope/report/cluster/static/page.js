// Puts the page together.

const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("about").textContent = data.about;
const verdict = document.getElementById("verdict");
verdict.textContent = data.verdict;
verdict.classList.toggle("bad", data.found);
const problems = document.getElementById("problems");
problems.replaceChildren(...data.problems.map((line) => el("p", {}, line)));
problems.hidden = !data.problems.length;
document.getElementById("made").textContent = `npuscope ${data.npuscope}. Times are those of each rank's own clock.`;
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.dispatchEvent(new Event("themechange"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
showFindings(data);
showTables(data);
showMaps(data).then(() => (document.documentElement.dataset.ready = "yes"));
