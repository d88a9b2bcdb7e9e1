// Plots of results. Each function draws one panel and returns its table for CSV.

import { axis, colour, config, layout, legend, series, shown, withUnit } from "./theme.js";

function draw(target, traces, more) {
  return globalThis.Plotly.react(target, traces, layout(more), config);
}

const column = (name, unit, values) => ({ name: unit && unit !== "1" ? `${name} (${unit})` : name, values });

export function roots(target, stability) {
  const points = stability.roots;
  const real = points.map((p) => p[0]);
  const imag = points.map((p) => p[1]);
  const markers = { x: real, y: imag, mode: "markers", type: "scatter", name: "roots",
    marker: { symbol: "x", size: 9, color: real.map((r) => colour(r > 0 ? "two" : "one")) },
    hovertemplate: "%{x:.5g} %{y:+.5g} i 1/s<extra></extra>" };
  const least = Math.min(...real, 0);
  const most = Math.max(...real, 0);
  const pad = 0.08 * (most - least || 1);
  const range = [least - pad, Math.max(most + pad, 0.12 * (most - least || 1))];
  draw(target, [markers], {
    xaxis: axis("real part [1/s]", { range, zeroline: true, zerolinecolor: colour("soft") }),
    yaxis: axis("imaginary part [rad/s]"),
    shapes: [{ type: "rect", xref: "x", yref: "paper", x0: 0, x1: range[1] + 1e3 * pad, y0: 0, y1: 1,
      fillcolor: colour("half"), line: { width: 0 }, layer: "below" }],
    annotations: [{ x: 1, y: 1, xref: "paper", yref: "paper", xanchor: "right", yanchor: "top", showarrow: false,
      text: "unstable", font: { color: colour("bad"), size: 11 } }],
  });
  return [column("real", "1/s", real), column("imag", "rad/s", imag)];
}

export function nyquist(target, loops, crossovers, revision) {
  const circle = [...Array(181).keys()].map((k) => (k * Math.PI) / 90);
  const traces = [
    { x: circle.map(Math.cos), y: circle.map(Math.sin), mode: "lines", name: "unit circle", hoverinfo: "skip", showlegend: false,
      line: { color: colour("soft"), width: 1, dash: "dot" } },
  ];
  loops.forEach((loop, k) => {
    const hover = "L = %{x:.4g} %{y:+.4g} i<br>at %{customdata:.4g} rad/s<extra>%{fullData.name}</extra>";
    const line = { color: series(k), width: 2 };
    traces.push(
      { x: loop.real, y: loop.imag, customdata: loop.frequency, mode: "lines", name: loop.link, line, hovertemplate: hover,
        showlegend: loops.length > 1 },
      { x: loop.real, y: loop.imag.map((v) => -v), mode: "lines", hoverinfo: "skip", showlegend: false,
        line: { ...line, width: 1 }, opacity: 0.5 },
    );
  });
  const { gain, phase } = crossovers;
  traces.push(
    { x: gain.map((c) => c.real), y: gain.map((c) => c.imag), mode: "markers", name: "phase margin",
      customdata: gain.map((c) => [c.phase_margin, c.frequency]), marker: { color: colour("three"), size: 9 },
      hovertemplate: "phase margin %{customdata[0]:.4g} deg<br>at %{customdata[1]:.4g} rad/s<extra></extra>" },
    { x: phase.map((c) => c.real), y: phase.map(() => 0), mode: "markers", name: "gain margin",
      customdata: phase.map((c) => [c.gain_margin, c.frequency]),
      marker: { color: colour("four"), size: 9, symbol: "diamond" },
      hovertemplate: "gain margin %{customdata[0]:.4g}<br>at %{customdata[1]:.4g} rad/s<extra></extra>" },
    { x: [-1], y: [0], mode: "markers+text", name: "critical point", showlegend: false, text: ["-1"], textposition: "bottom left",
      marker: { color: colour("bad"), size: 11, symbol: "cross" }, hovertemplate: "-1<extra></extra>" },
  );
  const largest = Math.max(...loops.flatMap((l) => l.real.map((v, k) => Math.hypot(v, l.imag[k]))));
  const reach = Math.min(3, Math.max(1.4, 1.1 * largest));
  draw(target, traces, {
    xaxis: axis("real part of L", { range: [-reach, reach], constrain: "domain" }),
    yaxis: axis("imaginary part of L", { range: [-reach, reach], scaleanchor: "x", constrain: "domain" }),
    uirevision: revision, showlegend: true,
    legend,
  });
  const note = largest > reach ? `Part of the curve: |L| reaches ${shown(largest)}.` : "";
  const all = (key) => loops.flatMap((l) => l[key]);
  const table = [column("link", "", loops.flatMap((l) => l.real.map(() => l.link))),
    column("frequency", "rad/s", all("frequency")), column("real", "1", all("real")), column("imag", "1", all("imag"))];
  return { note, table };
}

const VERDICTS = ["undetermined", "stable", "unstable"];

export function map(target, grid, point) {
  const verdict = grid.stable.map((row) => row.map((s) => (s === 1 ? 1 : s === 0 ? 2 : 0)));
  const text = grid.stable.map((row, j) => row.map((_, i) => {
    const lines = [VERDICTS[verdict[j][i]]];
    if (grid.unstable[j][i] >= 0) lines.push(`${grid.unstable[j][i]} unstable roots`);
    if (grid.real[j][i] !== null) lines.push(`rightmost ${shown(grid.real[j][i])} \u00b1 ${shown(Math.abs(grid.imag[j][i]))} i 1/s`);
    if (verdict[j][i] === 0) lines.push(grid.status[j][i]);
    return lines.join("<br>");
  }));
  const colours = ["unknown", "stable", "unstable"].map(colour);
  const scale = colours.flatMap((c, k) => [[k / 3, c], [(k + 1) / 3, c]]);
  const [x, y] = [grid.x, grid.y];
  const traces = [{ type: "heatmap", x: x.values, y: y.values, z: verdict, text, zmin: -0.5, zmax: 2.5, colorscale: scale,
    showscale: false, hovertemplate: `${x.name} %{x:.4g}<br>${y.name} %{y:.4g}<br>%{text}<extra></extra>` }];
  VERDICTS.forEach((name, k) => {
    if (verdict.some((row) => row.includes(k))) traces.push({ x: [null], y: [null], mode: "markers", name,
      marker: { symbol: "square", size: 11, color: colours[k] } });
  });
  traces.push({ x: [point.x], y: [point.y], mode: "markers", name: "present state",
    marker: { symbol: "x", size: 12, color: colour("ink"), line: { width: 1, color: colour("card") } },
    hovertemplate: "present state: %{x:.4g}, %{y:.4g}<extra></extra>" });
  const scaled = (a) => axis(withUnit(a.name, a.unit), { type: a.log ? "log" : "linear", dtick: a.log ? "D2" : undefined, showgrid: false });
  draw(target, traces, { xaxis: scaled(x), yaxis: scaled(y), showlegend: true,
    legend });
  return [
    column(x.path, x.unit, y.values.flatMap(() => x.values)), column(y.path, y.unit, y.values.flatMap((v) => x.values.map(() => v))),
    column("stable", "", grid.stable.flat()), column("unstable", "", grid.unstable.flat()),
    column("root_real", "1/s", grid.real.flat()), column("root_imag", "rad/s", grid.imag.flat()),
    column("status", "", grid.status.flat()), column("message", "", grid.message.flat()),
  ];
}

export function runs(target, fluid, packets, present) {
  const traces = [];
  const table = [];
  let k = 0;
  const rows = [["links", "queue", "y"], ["flows", "window", "y2"]];
  for (const [kind, key, yaxis] of rows) {
    for (const [name, item] of Object.entries(fluid?.[kind] ?? packets?.[kind] ?? {})) {
      const color = series(k++);
      const common = { mode: "lines", yaxis, hovertemplate: `%{y:.4g} packet at %{x:.4g} s<extra>%{fullData.name}</extra>` };
      const packetRun = packets?.[kind][name];
      const noise = kind === "links" ? packets?.noise.links[name] : undefined;
      if (noise) {
        const ends = [Math.max(noise.mean - 2 * noise.std, 0), noise.mean + 2 * noise.std];
        traces.push({ x: [0, packets.until, packets.until, 0], y: [ends[0], ends[0], ends[1], ends[1]], yaxis, mode: "lines",
          fill: "toself", fillcolor: color, opacity: 0.15, line: { width: 0 }, hoverinfo: "skip",
          name: `${key} ${name}, population \u00b1 2 \u03c3` });
      }
      if (packetRun) traces.push({ ...common, x: packets.time, y: packetRun[key], name: `${key} ${name}, packets`,
        line: { color, width: 1 }, opacity: 0.5 });
      if (fluid) traces.push({ ...common, x: fluid.time, y: item[key], name: `${key} ${name}, fluid`, line: { color, width: 2 } });
      const level = kind === "links" ? present?.equilibrium.links[name]?.queue : present?.window_mean[name];
      if (level !== null && level !== undefined) {
        const end = (fluid ?? packets).until;
        traces.push({ ...common, x: [0, end], y: [level, level], name: `${key} ${name}, equilibrium`, showlegend: false,
          line: { color, width: 1, dash: "dash" } });
      }
    }
  }
  draw(target, traces, {
    grid: { rows: 2, columns: 1, pattern: "independent" }, showlegend: true,
    xaxis: axis("time [s]", { anchor: "y2", range: [0, (fluid ?? packets).until] }),
    yaxis: axis("queue [packet]", { domain: [0.54, 1], rangemode: "tozero" }),
    yaxis2: axis("window [packet]", { domain: [0, 0.46], rangemode: "tozero", anchor: "x" }),
    legend,
  });
  for (const [model, run] of [["fluid", fluid], ["packets", packets]]) {
    if (!run) continue;
    table.push(column(`${model}.time`, "s", run.time));
    for (const kind of ["links", "flows"]) for (const [name, item] of Object.entries(run[kind])) {
      for (const [key, values] of Object.entries(item)) {
        table.push(column(`${model}.${kind}.${name}.${key}`, ["queue", "window"].includes(key) ? "packet" : "", values));
      }
    }
  }
  return table;
}
