// Numbers of the equilibrium and of stability as tables, on the page and for CSV.

import { shown } from "./theme.js";

function row(name, value, unit, key) {
  const tr = document.createElement("tr");
  tr.dataset.value = key;
  const th = Object.assign(document.createElement("th"), { textContent: name, scope: "row" });
  const td = Object.assign(document.createElement("td"), { textContent: value === null ? "none" : `${value}${unit ? ` ${unit}` : ""}` });
  tr.append(th, td);
  return tr;
}

function table(caption, rows) {
  const element = document.createElement("table");
  if (caption) element.append(Object.assign(document.createElement("caption"), { textContent: caption }));
  element.append(...rows);
  return element;
}

function range(values) {
  const known = values.filter((v) => v !== null);
  if (!known.length) return "unknown";
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return shown(low) === shown(high) ? shown(low) : `${shown(low)} to ${shown(high)}`;
}

const LINK = [["queue", "queue", "packet"], ["average", "average queue", "packet"], ["mark_probability", "mark or drop probability", ""],
  ["utilization", "utilisation", ""], ["load", "load factor", ""]];
const FLOWS = [["window", "window", "packet"], ["rtt", "round trip", "s"], ["rate", "rate of a flow", "packet/s"],
  ["mark_probability", "mark or drop probability", ""]];

function toTable(values) {
  return [{ name: "quantity", values: values.map((v) => v[0]) }, { name: "value", values: values.map((v) => v[1]) },
    { name: "unit", values: values.map((v) => v[2] || "1") }];
}

export function equilibrium(point) {
  if (!Object.values(point.links).some((link) => link.queue !== null)) {
    return { nodes: [], note: point.message || point.status, table: null };
  }
  const note = [point.status === "regular" ? "" : point.status, point.message].filter(Boolean).join(": ");
  const values = [];
  const nodes = [];
  for (const [name, link] of Object.entries(point.links)) {
    nodes.push(table(`Link ${name}`, LINK.filter(([key]) => link[key] !== null).map(([key, label, unit]) => {
      values.push([`links.${name}.${key}`, link[key], unit]);
      return row(label, shown(link[key]), unit, `links.${name}.${key}`);
    })));
  }
  for (const [name, flows] of Object.entries(point.flows)) {
    nodes.push(table(`Flows ${name}`, FLOWS.map(([key, label, unit]) => {
      flows[key].forEach((v, k) => values.push([`flows.${name}.${key}[${k}]`, v, unit]));
      return row(label, range(flows[key]), unit, `flows.${name}.${key}`);
    })));
  }
  return { nodes, note, table: toTable(values) };
}

const MARGINS = [["gain_margin", "gain margin", ""], ["phase_margin", "phase margin", "deg"], ["delay_margin", "delay margin", "s"],
  ["gain_crossover", "gain crossover", "rad/s"], ["phase_crossover", "phase crossover", "rad/s"]];

function margin(key, value) {
  if (value === null) return null;
  return key === "gain_margin" ? `${shown(value)} (${shown(20 * Math.log10(value))} dB)` : shown(value);
}

export function stability(result) {
  const stable = result.stable ?? null;
  const verdict = document.createElement("p");
  verdict.className = `verdict ${stable === null ? "unknown" : stable ? "stable" : "unstable"}`;
  verdict.textContent = stable === null ? "Undetermined" : stable ? "Stable" : "Unstable";
  if ((result.unstable ?? null) === null) return { nodes: [verdict], note: result.message, table: null };
  const proof = result.certified ? `certified in ${result.proof}` : "not certified";
  const [re, im] = result.rightmost ?? [null, null];
  const root = re === null ? null : `${shown(re)}${im ? ` \u00b1 ${shown(Math.abs(im))} i` : ""}`;
  const rows = [row("unstable roots", `${result.unstable} (${proof})`, "", "unstable"), row("rightmost root", root, "1/s", "rightmost")];
  const values = [["stable", stable === null ? "" : Number(stable), ""], ["unstable", result.unstable, ""],
    ["certified", Number(result.certified), ""], ["rightmost_real", re, "1/s"], ["rightmost_imag", im, "rad/s"]];
  for (const [key, label, unit] of MARGINS) {
    rows.push(row(label, margin(key, result[key]), unit, key));
    values.push([key, result[key], unit]);
  }
  return { nodes: [verdict, table("", rows)], note: result.message, table: toTable(values) };
}
