// The page: its address holds the state (a scenario with changes), and the server computes results.

import { Controls } from "./controls.js";
import { SlowTask } from "./longer.js";
import * as plots from "./plots.js";
import * as tables from "./tables.js";
import { shown } from "./theme.js";

const PAUSE = 350; // ms without a change before slow work begins
const byId = (id) => document.getElementById(id);
const page = { scenario: "", changes: new Map(), view: new Map(), heavy: false, present: null };
const QUICK = ["equilibrium", "stability", "roots", "nyquist"]; // panels that one answer fills
const panels = Object.fromEntries(
  [...QUICK, "map", "trajectory"].map((name) => {
    const root = byId(name);
    return [name, { root, note: root.querySelector(".note"), plot: root.querySelector(".plot"),
      body: root.querySelector(".body"), table: null }];
  }),
);
const controls = new Controls(byId("groups"), changed);

function query(view = [], without = []) {
  const out = new URLSearchParams({ scenario: page.scenario });
  for (const [path, text] of page.changes) if (!without.includes(path)) out.set(path, text);
  for (const key of view) if (page.view.has(key)) out.set(key, page.view.get(key));
  return out;
}

function read() {
  const address = new URLSearchParams(location.search);
  page.changes.clear();
  page.view.clear();
  page.scenario = "";
  for (const [key, value] of address) {
    if (key === "scenario") page.scenario = value;
    else if (/^(links?|flows?|model)\./.test(key)) page.changes.set(key, value);
    else page.view.set(key, value);
  }
}

let written = 0;
function write() {
  clearTimeout(written);
  written = setTimeout(flush, 150);
  byId("toml").href = `api/scenario.toml?${query()}`;
}
function flush() {
  clearTimeout(written);
  history.replaceState(null, "", `?${query(["map.x", "map.y", "until", "seed"])}`);
}

async function ask(name, parameters) {
  const answer = await fetch(`api/${name}?${parameters}`);
  if (!(answer.headers.get("content-type") ?? "").includes("json")) throw new Error(await answer.text());
  return answer.json();
}

function showStatus(text) {
  byId("status").textContent = text;
}

// Show a message in place of the panel's plot.
function replacePlot(panel, message) {
  panel.note.textContent = message;
  panel.note.hidden = false;
  panel.note.classList.add("instead");
  if (panel.plot) panel.plot.hidden = true;
  panel.table = null;
  enableExports(panel);
}

// Show the plot with a note, or without one.
function showPlot(panel, message = "") {
  panel.note.textContent = message;
  panel.note.hidden = !message;
  panel.note.classList.remove("instead");
  if (panel.plot) panel.plot.hidden = false;
}

function enableExports(panel) {
  for (const button of panel.root.querySelectorAll("[data-export]")) button.disabled = !panel.table;
}

function markStale(on, names) {
  for (const name of names) panels[name].root.classList.toggle("stale", on);
}

// Show faults next to their controls, others at the top of the form.
function showFaults(answer) {
  const left = controls.showFaults(answer?.faults ?? []);
  const messages = left.map((f) => f.text);
  if (answer && !answer.faults?.length) messages.push(answer.error);
  byId("fault").textContent = messages.join("\n");
  byId("fault").hidden = !messages.length;
  if (answer) showStatus(`Not possible: ${answer.error}`);
}

// ---- quick results

let wanted = false;
let busy = false;
async function refresh() {
  wanted = true;
  if (busy) return;
  busy = true;
  const timer = setTimeout(() => showStatus("Computing; a new structure takes some seconds to compile \u2026"), 400);
  try {
    while (wanted) {
      wanted = false;
      const parameters = query();
      const answer = await ask("present", parameters);
      showFaults(answer.error ? answer : null);
      markStale(Boolean(answer.error), QUICK);
      if (answer.error) continue;
      page.present = answer;
      controls.setSliders(answer.numbers);
      showPresent();
      document.body.dataset.shown = parameters;
    }
  } catch (error) {
    showStatus(`The server does not answer (${error.message}). Is it still running?`);
  } finally {
    busy = false;
    clearTimeout(timer);
  }
}

function showTables({ equilibrium, stability }) {
  const point = tables.equilibrium(equilibrium);
  panels.equilibrium.body.replaceChildren(...point.nodes);
  if (point.nodes.length) showPlot(panels.equilibrium, point.note);
  else replacePlot(panels.equilibrium, point.note);
  panels.equilibrium.table = point.table;
  const verdict = tables.stability(stability);
  panels.stability.body.replaceChildren(...verdict.nodes);
  showPlot(panels.stability, verdict.note);
  panels.stability.table = verdict.table;
  enableExports(panels.equilibrium);
  enableExports(panels.stability);
}

function showPresent() {
  const { stability, loops, crossovers } = page.present;
  showTables(page.present);
  if (stability.roots?.length) {
    showPlot(panels.roots);
    panels.roots.table = plots.roots(panels.roots.plot, stability);
    enableExports(panels.roots);
  } else replacePlot(panels.roots, stability.message || "No roots are known.");
  if (loops.length) {
    const { note, table } = plots.nyquist(panels.nyquist.plot, loops, crossovers, page.scenario);
    showPlot(panels.nyquist, note);
    panels.nyquist.table = table;
    enableExports(panels.nyquist);
  } else replacePlot(panels.nyquist, stability.message || "No signal closes a loop.");
  if (slow.map.result && `${mapPoint()}` !== panels.map.point) showMap();
}

function summary() {
  const { stability, equilibrium } = page.present ?? {};
  if (!stability) return;
  const verdict = stability.stable === true ? "Stable" : stability.stable === false ? "Unstable" : "Stability undetermined";
  const margin = stability.phase_margin === null || stability.phase_margin === undefined ? "" : `, phase margin ${shown(stability.phase_margin)} deg`;
  const queues = Object.entries(equilibrium.links).map(([n, l]) => (l.queue === null ? "" : `queue of ${n} ${shown(l.queue)} packets`));
  showStatus([`${verdict}${margin}`, ...queues.filter(Boolean)].join("; ") + ".");
}

// ---- slow results, with progress

const slow = {
  map: new SlowTask("map", panels.map.root.querySelector(".working"),
    () => { markStale(false, ["map"]); showMap(); }, (fault) => { slow.map.result = null; markStale(false, ["map"]); replacePlot(panels.map, fault.error); }),
  trajectory: new SlowTask("trajectory", panels.trajectory.root.querySelector(".working"),
    () => { slow.trajectory.fault = ""; markStale(false, ["trajectory"]); showRuns(); },
    (fault) => { slow.trajectory.result = null; slow.trajectory.fault = fault.error; markStale(false, ["trajectory"]); showRuns(); }),
  packets: new SlowTask("packets", byId("packets-working"),
    () => { slow.packets.fault = ""; showRuns(); },
    (fault) => { slow.packets.result = null; slow.packets.fault = `Packets: ${fault.error}`; showRuns(); }),
};

// Present value of a number.
function valueAt(path) {
  const row = controls.rows.get(path);
  return page.present?.numbers[path] ?? row?.control.value;
}

// The present state as a point of the map.
function mapPoint() {
  const { x, y } = slow.map.result;
  return [valueAt(x.path), valueAt(y.path)];
}

function showMap() {
  const grid = slow.map.result;
  if (!grid || !page.present) return;
  const [x, y] = mapPoint();
  panels.map.point = `${[x, y]}`;
  const messages = grid.message.flat();
  const undetermined = grid.stable.flat().map((s, k) => (s === -1 ? messages[k] || "unknown" : "")).filter(Boolean);
  showPlot(panels.map, undetermined.length ? `stability is undetermined at ${undetermined.length} of ${messages.length} points; at the first: ${undetermined[0]}` : "");
  panels.map.table = plots.map(panels.map.plot, grid, { x, y });
  enableExports(panels.map);
}

function showRuns() {
  const panel = panels.trajectory;
  const [fluid, packets] = [slow.trajectory.result, slow.packets.result];
  const notes = [slow.trajectory.fault, fluid?.message, slow.packets.fault, packets?.noise.message].filter(Boolean).join("\n");
  if (!fluid && !packets) {
    if (notes) replacePlot(panel, notes);
    return;
  }
  showPlot(panel, notes);
  panel.table = plots.runs(panel.plot, fluid, packets, page.present);
  enableExports(panel);
}

let pause = 0;
function runSlow() {
  clearTimeout(pause);
  pause = setTimeout(() => {
    if (busy) return runSlow();
    summary();
    if (!byId("fault").hidden || document.querySelector(".control .fault:not([hidden])")) return;
    const run = () => slow.trajectory.run(query(["until"]));
    if (!slow.map.result) run(); // the map compiles longer, so it comes last
    if (!page.heavy) slow.map.run(query(["map.x", "map.y"]), mapKey());
    else if (slow.map.key !== mapKey() && !slow.map.result) {
      replacePlot(panels.map, "With so many distinct round trips a map takes minutes: it is computed when you ask for it.");
    }
    run();
  }, PAUSE);
}

// A map depends on everything but the two numbers on its axes.
function mapKey() {
  return `${query(["map.x", "map.y"], [byId("map-x").value, byId("map-y").value])}`;
}

// ---- events

function changed(path, text, choice) {
  if (text === null) page.changes.delete(path);
  else page.changes.set(path, text);
  if (choice) for (const other of controls.owned(path)) page.changes.delete(other);
  dropSlow();
  if (choice || text === null) return rebuild();
  controls.mark(path, controls.rows.get(path), true);
  refresh();
  runSlow();
}

// Drop slow work and results of the former state.
function dropSlow() {
  write();
  if (slow.map.key !== mapKey()) {
    slow.map.drop();
    markStale(true, ["map"]);
  }
  slow.trajectory.drop();
  markStale(true, ["trajectory"]);
  slow.packets.drop();
  slow.packets.result = null;
  slow.packets.fault = "";
}

// Load the controls again: for another scenario, another law, or after a reset.
let rebuilt = 0;
async function rebuild() {
  const number = ++rebuilt;
  try {
    let answer = await ask("controls", query());
    if (number !== rebuilt) return; // a later choice supersedes this one
    if (answer.error) {
      const gone = answer.faults.map((f) => f.path).filter((p) => page.changes.has(p) && !controls.rows.has(p));
      gone.forEach((path) => page.changes.delete(path)); // they belong to a law that was replaced
      if (gone.length) answer = await ask("controls", query());
      if (number !== rebuilt) return;
    }
    if (answer.error) {
      showFaults(answer);
      markStale(true, QUICK);
      return;
    }
    page.heavy = answer.heavy;
    byId("map-run").hidden = !answer.heavy;
    byId("title").textContent = answer.title || "Parameters";
    controls.show(answer.groups, page.changes);
    setOptions(answer);
  } catch (error) {
    showStatus(`The server does not answer (${error.message}). Is it still running?`);
    return;
  }
  write();
  refresh();
  runSlow();
}

function setOptions(answer) {
  const paths = answer.axes.map((a) => a.path);
  ["map.x", "map.y"].forEach((key, index) => {
    const select = byId(key.replace(".", "-"));
    if (!paths.includes(page.view.get(key))) page.view.delete(key);
    select.replaceChildren(...paths.map((path) => new Option(path.replace(/^(links|flows)\./, ""), path)));
    select.value = page.view.get(key) ?? paths[index] ?? "";
  });
  byId("until").value = page.view.get("until") ?? String(answer.until);
  byId("seed").value = page.view.get("seed") ?? "1";
}

function setView(key, value) {
  if (value) page.view.set(key, value);
  else page.view.delete(key);
  write();
  runSlow();
}

byId("map-x").onchange = (event) => setView("map.x", event.target.value);
byId("map-y").onchange = (event) => setView("map.y", event.target.value);
byId("until").onchange = (event) => setView("until", event.target.value.trim());
byId("seed").onchange = (event) => setView("seed", event.target.value.trim());
byId("map-run").onclick = () => { showPlot(panels.map); slow.map.run(query(["map.x", "map.y"]), mapKey()); };
byId("packets").onclick = () => slow.packets.run(query(["until", "seed"]));
byId("reset").onclick = () => { page.changes.clear(); dropSlow(); rebuild(); };
byId("controls").onsubmit = (event) => event.preventDefault();
byId("scenario").onchange = (event) => {
  page.scenario = event.target.value;
  page.changes.clear();
  page.view.clear();
  slow.map.result = slow.trajectory.result = null;
  dropSlow();
  rebuild();
};
byId("link").onclick = async () => {
  flush();
  try {
    await navigator.clipboard.writeText(location.href);
    showStatus("The link to this state is in the clipboard.");
  } catch {
    showStatus(`The link to this state: ${location.href}`);
  }
};

function save(name, href) {
  const link = Object.assign(document.createElement("a"), { href, download: name });
  link.click();
}

function csv(panel) {
  flush();
  const cell = (v) => {
    const text = v === null || v === undefined ? "" : String(v);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [`# fluidcc explorer: ${panel.root.querySelector("h2").textContent}`, `# address: ${location.href}`];
  lines.push(panel.table.map((c) => cell(c.name)).join(","));
  const length = Math.max(...panel.table.map((c) => c.values.length));
  for (let k = 0; k < length; k++) lines.push(panel.table.map((c) => cell(c.values[k])).join(","));
  return `${lines.join("\n")}\n`;
}

for (const [name, panel] of Object.entries(panels)) {
  enableExports({ ...panel, table: null });
  panel.root.addEventListener("click", async (event) => {
    const kind = event.target.dataset?.export;
    const file = `${page.scenario.replace(/\W+/g, "_")}_${name}.${kind}`;
    if (kind === "csv") {
      const href = URL.createObjectURL(new Blob([csv(panel)], { type: "text/csv" }));
      save(file, href);
      setTimeout(() => URL.revokeObjectURL(href), 10_000);
    } else if (kind === "png") {
      const { width, height } = panel.plot.getBoundingClientRect();
      save(file, await globalThis.Plotly.toImage(panel.plot, { format: "png", width, height, scale: 2 }));
    }
  });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!page.present) return;
  showPresent();
  showMap();
  showRuns();
});

async function begin() {
  read();
  const { start, scenarios } = await ask("scenarios", "");
  page.scenario ||= start;
  byId("scenario").replaceChildren(...scenarios.map(({ name, title }) => new Option(title ? `${name}: ${title}` : name, name)));
  byId("scenario").value = page.scenario;
  await rebuild();
}

addEventListener("popstate", begin);
begin();
