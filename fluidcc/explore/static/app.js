// The page: an address is a state, a state is a scenario with changes, and the server answers it.

import { Controls } from "./controls.js";
import { Longer } from "./longer.js";
import * as plots from "./plots.js";
import * as tables from "./tables.js";
import { shown } from "./theme.js";

const PAUSE = 350; // ms without a change before longer work begins
const byId = (id) => document.getElementById(id);
const page = { scenario: "", changes: new Map(), view: new Map(), heavy: false, present: null };
const AT_ONCE = ["equilibrium", "stability", "roots", "nyquist"]; // panels that each answer fills
const panels = Object.fromEntries(
  [...AT_ONCE, "map", "trajectory"].map((name) => {
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
  const told = new URLSearchParams(location.search);
  page.changes.clear();
  page.view.clear();
  page.scenario = "";
  for (const [key, value] of told) {
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

function say(text) {
  byId("status").textContent = text;
}

// What a panel shows in place of its plot.
function instead(panel, message) {
  panel.note.textContent = message;
  panel.note.hidden = false;
  panel.note.classList.add("instead");
  if (panel.plot) panel.plot.hidden = true;
  panel.table = null;
  tools(panel);
}

function beside(panel, message = "") {
  panel.note.textContent = message;
  panel.note.hidden = !message;
  panel.note.classList.remove("instead");
  if (panel.plot) panel.plot.hidden = false;
}

function tools(panel) {
  for (const button of panel.root.querySelectorAll("[data-export]")) button.disabled = !panel.table;
}

function stale(on, names) {
  for (const name of names) panels[name].root.classList.toggle("stale", on);
}

// Faults go beside their controls, others to the top of the form.
function faults(answer) {
  const left = controls.faults(answer?.faults ?? []);
  const words = left.map((f) => f.text);
  if (answer && !answer.faults?.length) words.push(answer.error);
  byId("fault").textContent = words.join("\n");
  byId("fault").hidden = !words.length;
  if (answer) say(`Not possible: ${answer.error}`);
}

// ---- what is computed at once

let wanted = false;
let busy = false;
async function refresh() {
  wanted = true;
  if (busy) return;
  busy = true;
  const slow = setTimeout(() => say("Computing; the first time a structure is compiled for some seconds \u2026"), 400);
  try {
    while (wanted) {
      wanted = false;
      const asked = query();
      const answer = await ask("present", asked);
      faults(answer.error ? answer : null);
      stale(Boolean(answer.error), AT_ONCE);
      if (answer.error) continue;
      page.present = answer;
      controls.place(answer.numbers);
      showPresent();
      document.body.dataset.shown = asked;
    }
  } catch (error) {
    say(`The server does not answer (${error.message}). Is it still running?`);
  } finally {
    busy = false;
    clearTimeout(slow);
  }
}

function showTables({ equilibrium, stability }) {
  const rest = tables.equilibrium(equilibrium);
  panels.equilibrium.body.replaceChildren(...rest.nodes);
  if (rest.nodes.length) beside(panels.equilibrium, rest.note);
  else instead(panels.equilibrium, rest.note);
  panels.equilibrium.table = rest.table;
  const found = tables.stability(stability);
  panels.stability.body.replaceChildren(...found.nodes);
  beside(panels.stability, found.note);
  panels.stability.table = found.table;
  tools(panels.equilibrium);
  tools(panels.stability);
}

function showPresent() {
  const { stability, loops, crossovers } = page.present;
  showTables(page.present);
  if (stability.roots?.length) {
    beside(panels.roots);
    panels.roots.table = plots.roots(panels.roots.plot, stability);
    tools(panels.roots);
  } else instead(panels.roots, stability.message || "No roots are known.");
  if (loops.length) {
    const { note, table } = plots.nyquist(panels.nyquist.plot, loops, crossovers, page.scenario);
    beside(panels.nyquist, note);
    panels.nyquist.table = table;
    tools(panels.nyquist);
  } else instead(panels.nyquist, stability.message || "There is no loop that a signal closes.");
  if (longer.map.result && `${point()}` !== panels.map.point) showMap();
}

function summary() {
  const { stability, equilibrium } = page.present ?? {};
  if (!stability) return;
  const verdict = stability.stable === true ? "Stable" : stability.stable === false ? "Unstable" : "No verdict on stability";
  const margin = stability.phase_margin === null || stability.phase_margin === undefined ? "" : `, phase margin ${shown(stability.phase_margin)} deg`;
  const queues = Object.entries(equilibrium.links).map(([n, l]) => (l.queue === null ? "" : `queue of ${n} ${shown(l.queue)} packets`));
  say([`${verdict}${margin}`, ...queues.filter(Boolean)].join("; ") + ".");
}

// ---- what takes longer, each in lines as it goes

const longer = {
  map: new Longer("map", panels.map.root.querySelector(".working"),
    () => { stale(false, ["map"]); showMap(); }, (fault) => { longer.map.result = null; stale(false, ["map"]); instead(panels.map, fault.error); }),
  trajectory: new Longer("trajectory", panels.trajectory.root.querySelector(".working"),
    () => { longer.trajectory.fault = ""; stale(false, ["trajectory"]); showRuns(); },
    (fault) => { longer.trajectory.result = null; longer.trajectory.fault = fault.error; stale(false, ["trajectory"]); showRuns(); }),
  packets: new Longer("packets", byId("packets-working"),
    () => { longer.packets.fault = ""; showRuns(); },
    (fault) => { longer.packets.result = null; longer.packets.fault = `Packets: ${fault.error}`; showRuns(); }),
};

function here(path) {
  const row = controls.rows.get(path);
  return page.present?.numbers[path] ?? row?.control.value;
}

// Where the present state is in the map.
function point() {
  const { x, y } = longer.map.result;
  return [here(x.path), here(y.path)];
}

function showMap() {
  const found = longer.map.result;
  if (!found || !page.present) return;
  const [x, y] = point();
  panels.map.point = `${[x, y]}`;
  const why = found.message.flat();
  const unsure = found.stable.flat().map((s, k) => (s === -1 ? why[k] || "unknown" : "")).filter(Boolean);
  beside(panels.map, unsure.length ? `${unsure.length} of ${why.length} points have undetermined, the first as: ${unsure[0]}` : "");
  panels.map.table = plots.map(panels.map.plot, found, { x, y });
  tools(panels.map);
}

function showRuns() {
  const panel = panels.trajectory;
  const [fluid, packets] = [longer.trajectory.result, longer.packets.result];
  const notes = [longer.trajectory.fault, fluid?.message, longer.packets.fault].filter(Boolean).join("\n");
  if (!fluid && !packets) {
    if (notes) instead(panel, notes);
    return;
  }
  beside(panel, notes);
  panel.table = plots.runs(panel.plot, fluid, packets, page.present);
  tools(panel);
}

let pause = 0;
function later() {
  clearTimeout(pause);
  pause = setTimeout(() => {
    if (busy) return later();
    summary();
    if (!byId("fault").hidden || document.querySelector(".control .fault:not([hidden])")) return;
    const run = () => longer.trajectory.run(query(["until"]));
    if (!longer.map.result) run(); // what compiles longer comes last
    if (!page.heavy) longer.map.run(query(["map.x", "map.y"]), mapKey());
    else if (longer.map.key !== mapKey() && !longer.map.result) {
      instead(panels.map, "With so many distinct round trips a map takes minutes: it is computed when you ask for it.");
    }
    run();
  }, PAUSE);
}

// A map is of everything but the two numbers that it runs over.
function mapKey() {
  return `${query(["map.x", "map.y"], [byId("map-x").value, byId("map-y").value])}`;
}

// ---- what people do

function changed(path, text, choice) {
  if (text === null) page.changes.delete(path);
  else page.changes.set(path, text);
  if (choice) for (const other of controls.owned(path)) page.changes.delete(other);
  moved();
  if (choice || text === null) return rebuild();
  controls.mark(path, controls.rows.get(path), true);
  refresh();
  later();
}

// What longer work was about is no longer so.
function moved() {
  write();
  if (longer.map.key !== mapKey()) {
    longer.map.drop();
    stale(true, ["map"]);
  }
  longer.trajectory.drop();
  stale(true, ["trajectory"]);
  longer.packets.drop();
  longer.packets.result = null;
  longer.packets.fault = "";
}

// Controls anew: for another scenario, another law, or after a reset.
let rebuilt = 0;
async function rebuild() {
  const own = ++rebuilt;
  try {
    let answer = await ask("controls", query());
    if (own !== rebuilt) return; // a later choice is on its way
    if (answer.error) {
      const gone = answer.faults.map((f) => f.path).filter((p) => page.changes.has(p) && !controls.rows.has(p));
      gone.forEach((path) => page.changes.delete(path)); // of a law that was exchanged
      if (gone.length) answer = await ask("controls", query());
      if (own !== rebuilt) return;
    }
    if (answer.error) {
      faults(answer);
      stale(true, AT_ONCE);
      return;
    }
    page.heavy = answer.heavy;
    byId("map-run").hidden = !answer.heavy;
    byId("title").textContent = answer.title || "Parameters";
    controls.show(answer.groups, page.changes);
    options(answer);
  } catch (error) {
    say(`The server does not answer (${error.message}). Is it still running?`);
    return;
  }
  write();
  refresh();
  later();
}

function options(answer) {
  const paths = answer.axes.map((a) => a.path);
  ["map.x", "map.y"].forEach((key, place) => {
    const select = byId(key.replace(".", "-"));
    if (!paths.includes(page.view.get(key))) page.view.delete(key);
    select.replaceChildren(...paths.map((path) => new Option(path.replace(/^(links|flows)\./, ""), path)));
    select.value = page.view.get(key) ?? paths[place] ?? "";
  });
  byId("until").value = page.view.get("until") ?? String(answer.until);
  byId("seed").value = page.view.get("seed") ?? "1";
}

function view(key, value) {
  if (value) page.view.set(key, value);
  else page.view.delete(key);
  write();
  later();
}

byId("map-x").onchange = (event) => view("map.x", event.target.value);
byId("map-y").onchange = (event) => view("map.y", event.target.value);
byId("until").onchange = (event) => view("until", event.target.value.trim());
byId("seed").onchange = (event) => view("seed", event.target.value.trim());
byId("map-run").onclick = () => { beside(panels.map); longer.map.run(query(["map.x", "map.y"]), mapKey()); };
byId("packets").onclick = () => longer.packets.run(query(["until", "seed"]));
byId("reset").onclick = () => { page.changes.clear(); moved(); rebuild(); };
byId("controls").onsubmit = (event) => event.preventDefault();
byId("scenario").onchange = (event) => {
  page.scenario = event.target.value;
  page.changes.clear();
  page.view.clear();
  longer.map.result = longer.trajectory.result = null;
  moved();
  rebuild();
};
byId("link").onclick = async () => {
  flush();
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link to this state is in the clipboard.");
  } catch {
    say(`The link to this state: ${location.href}`);
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
  tools({ ...panel, table: null });
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
