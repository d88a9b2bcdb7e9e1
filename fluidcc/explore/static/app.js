// The page: an address is a state, a state is a scenario with changes, and the server answers it.

import { Controls } from "./controls.js";
import * as plots from "./plots.js";
import { shown, withUnit } from "./theme.js";

const PAUSE = 350; // ms without a change before longer work begins
const byId = (id) => document.getElementById(id);
const page = { scenario: "", changes: new Map(), view: new Map(), until: 0, axes: [], present: null };
const panels = Object.fromEntries(
  ["equilibrium", "stability", "roots", "nyquist", "map", "trajectory"].map((name) => {
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
      const answer = await ask("present", query());
      if (wanted) continue; // newer values are there already
      faults(answer.error ? answer : null);
      stale(Boolean(answer.error), Object.keys(panels));
      if (!answer.error) {
        page.present = answer;
        controls.place(answer.numbers);
        showPresent();
      }
    }
  } catch (error) {
    say(`The server does not answer (${error.message}). Is it still running?`);
  } finally {
    busy = false;
    clearTimeout(slow);
  }
}

function row(name, value, unit = "") {
  const tr = document.createElement("tr");
  const th = Object.assign(document.createElement("th"), { textContent: name, scope: "row" });
  const td = Object.assign(document.createElement("td"), { textContent: value === null ? "none" : `${value}${unit ? ` ${unit}` : ""}` });
  tr.append(th, td);
  return tr;
}

function table(caption, rows) {
  const made = document.createElement("table");
  made.append(Object.assign(document.createElement("caption"), { textContent: caption }), ...rows);
  return made;
}

function spread(values) {
  const known = values.filter((v) => v !== null);
  if (!known.length) return "unknown";
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return shown(low) === shown(high) ? shown(low) : `${shown(low)} to ${shown(high)}`;
}

const LINK = [["queue", "queue", "packet"], ["average", "average queue", "packet"], ["signal", "mark or drop probability", ""],
  ["utilization", "utilisation", ""], ["load", "load factor", ""]];
const FLOWS = [["window", "window", "packet"], ["rtt", "round trip", "s"], ["rate", "rate of a flow", "packet/s"],
  ["signal", "mark or drop probability", ""]];

function showEquilibrium(rest) {
  const panel = panels.equilibrium;
  const known = Object.values(rest.links).some((link) => link.queue !== null);
  if (!known) {
    panel.body.replaceChildren();
    instead(panel, rest.message || rest.status);
    return;
  }
  beside(panel, [rest.status === "interior" ? "" : rest.status, rest.message].filter(Boolean).join(": "));
  const names = [];
  const values = [];
  const units = [];
  const note = (name, value, unit) => { names.push(name); values.push(value); units.push(unit || "1"); };
  const tables = [];
  for (const [name, link] of Object.entries(rest.links)) {
    const kept = LINK.filter(([key]) => link[key] !== null);
    tables.push(table(`Link ${name}`, kept.map(([key, words, unit]) => {
      note(`links.${name}.${key}`, link[key], unit);
      const made = row(words, shown(link[key]), unit);
      made.dataset.value = `links.${name}.${key}`;
      return made;
    })));
  }
  for (const [name, flows] of Object.entries(rest.flows)) {
    tables.push(table(`Flows ${name}`, FLOWS.map(([key, words, unit]) => {
      flows[key].forEach((v, k) => note(`flows.${name}.${key}[${k}]`, v, unit));
      const made = row(words, spread(flows[key]), unit);
      made.dataset.value = `flows.${name}.${key}`;
      return made;
    })));
  }
  panel.body.replaceChildren(...tables);
  panel.table = [{ name: "quantity", values: names }, { name: "value", values }, { name: "unit", values: units }];
  tools(panel);
}

function showStability(found) {
  const panel = panels.stability;
  const stable = found.stable ?? null;
  const verdict = document.createElement("p");
  verdict.className = `verdict ${stable === null ? "unknown" : stable ? "stable" : "unstable"}`;
  verdict.textContent = stable === null ? "No verdict" : stable ? "Stable" : "Unstable";
  const rows = [];
  if ((found.unstable ?? null) !== null) {
    rows.push(row("unstable roots", `${found.unstable} (${found.certified ? `certified in ${found.proof}` : "not certified"})`));
    const [re, im] = found.rightmost ?? [null, null];
    rows.push(row("rightmost root", re === null ? "none" : `${shown(re)}${im ? ` \u00b1 ${shown(Math.abs(im))} i` : ""} 1/s`));
    const gain = found.gain_margin;
    rows.push(row("gain margin", gain === null ? null : `${shown(gain)} (${shown(20 * Math.log10(gain))} dB)`));
    rows.push(row("phase margin", found.phase_margin === null ? null : shown(found.phase_margin), "deg"));
    rows.push(row("delay margin", found.delay_margin === null ? null : shown(found.delay_margin), "s"));
    rows.push(row("gain crossover", found.gain_crossover === null ? null : shown(found.gain_crossover), "rad/s"));
    rows.push(row("phase crossover", found.phase_crossover === null ? null : shown(found.phase_crossover), "rad/s"));
  }
  const made = document.createElement("table");
  made.append(...rows);
  panel.body.replaceChildren(verdict, made);
  beside(panel, found.message);
  const keys = ["stable", "unstable", "certified", "gain_margin", "phase_margin", "delay_margin", "gain_crossover", "phase_crossover"];
  const units = { phase_margin: "deg", delay_margin: "s", gain_crossover: "rad/s", phase_crossover: "rad/s" };
  panel.table = [{ name: "quantity", values: keys }, { name: "value", values: keys.map((k) => found[k] ?? "") },
    { name: "unit", values: keys.map((k) => units[k] ?? "1") }];
  tools(panel);
}

function showPresent() {
  const { equilibrium, stability, loops, crossovers } = page.present;
  showEquilibrium(equilibrium);
  showStability(stability);
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
  showMap();
  showRuns();
  document.body.dataset.shown = query().toString();
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

class Longer {
  constructor(name, panel, working, done, failed) {
    Object.assign(this, { name, panel, working, done, failed, key: null, result: null, stop: null });
  }

  drop() {
    this.stop?.abort();
    this.stop = null;
    this.key = null;
    this.working.hidden = true;
  }

  async run(parameters, key = parameters.toString()) {
    if (key === this.key) return;
    this.drop();
    const stop = (this.stop = new AbortController());
    this.key = key;
    const [bar, words] = this.working.children;
    bar.removeAttribute("value");
    words.textContent = "waiting \u2026";
    const begun = performance.now();
    const show = setTimeout(() => { this.working.hidden = false; }, 250);
    try {
      const answer = await fetch(`api/${this.name}?${parameters}`, { signal: stop.signal });
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await lines.read(); !part.done; part = await lines.read()) {
        rest += part.value;
        const whole = rest.split("\n");
        rest = whole.pop();
        for (const text of whole) this.take(JSON.parse(text), bar, words, begun);
      }
      if (rest) this.take(JSON.parse(rest), bar, words, begun);
    } catch (error) {
      if (!stop.signal.aborted) this.failed({ error: `The server does not answer (${error.message}).` });
    } finally {
      clearTimeout(show);
      if (this.stop === stop) {
        this.working.hidden = true;
        this.stop = null;
      }
    }
  }

  take(line, bar, words, begun) {
    const seconds = Math.round((performance.now() - begun) / 1000);
    if (line.result) {
      this.result = line.result;
      this.done(line.result);
    } else if (line.error) this.failed(line);
    else {
      if (line.share) bar.value = line.share;
      words.textContent = `${line.share ? `${Math.round(100 * line.share)} %` : "computing, at first compiling"}, ${seconds} s`;
    }
  }
}

const longer = {
  map: new Longer("map", panels.map, panels.map.root.querySelector(".working"),
    () => { stale(false, ["map"]); showMap(); }, (fault) => { longer.map.result = null; stale(false, ["map"]); instead(panels.map, fault.error); }),
  trajectory: new Longer("trajectory", panels.trajectory, panels.trajectory.root.querySelector(".working"),
    () => { longer.trajectory.fault = ""; stale(false, ["trajectory"]); showRuns(); },
    (fault) => { longer.trajectory.result = null; longer.trajectory.fault = fault.error; stale(false, ["trajectory"]); showRuns(); }),
  packets: new Longer("packets", panels.trajectory, byId("packets-working"),
    () => { longer.packets.fault = ""; showRuns(); },
    (fault) => { longer.packets.result = null; longer.packets.fault = `Packets: ${fault.error}`; showRuns(); }),
};

function here(path, fallback) {
  const row = controls.rows.get(path);
  return page.present?.numbers[path] ?? row?.control.value ?? fallback;
}

function showMap() {
  const found = longer.map.result;
  if (!found || !page.present) return;
  const unsure = found.messages.filter(Boolean);
  const grid = found.stable.flat();
  const undecided = grid.filter((s) => s === -1).length;
  beside(panels.map, undecided ? `${undecided} of ${grid.length} points have no verdict, such as: ${unsure[0] ?? "unknown"}` : "");
  panels.map.table = plots.map(panels.map.plot, found, { x: here(found.x.path), y: here(found.y.path) });
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
  panel.table = plots.runs(panel.plot, fluid, packets, page.present?.equilibrium);
  tools(panel);
}

let pause = 0;
function later() {
  clearTimeout(pause);
  pause = setTimeout(() => {
    if (busy) return later();
    summary();
    if (!byId("fault").hidden || document.querySelector(".control .fault:not([hidden])")) return;
    const axes = [byId("map-x").value, byId("map-y").value];
    const mapped = query(["map.x", "map.y"]);
    longer.map.run(mapped, `${query(["map.x", "map.y"], axes)}`);
    longer.trajectory.run(query(["until"]));
  }, PAUSE);
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
  const axes = [byId("map-x").value, byId("map-y").value];
  if (longer.map.key !== `${query(["map.x", "map.y"], axes)}`) {
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
async function rebuild() {
  try {
    let answer = await ask("controls", query());
    if (answer.error) {
      const gone = answer.faults.map((f) => f.path).filter((p) => page.changes.has(p) && !controls.rows.has(p));
      gone.forEach((path) => page.changes.delete(path)); // of a law that was exchanged
      if (gone.length) answer = await ask("controls", query());
    }
    if (answer.error) {
      faults(answer);
      stale(true, Object.keys(panels));
      return;
    }
    Object.assign(page, { axes: answer.axes, until: answer.until });
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

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.present && showPresent());

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
