// Colours and layout of plots, taken from the style sheet so that they follow light and dark.

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function series(index) {
  return colour(["one", "two", "three", "four", "five"][index % 5]);
}

export function axis(title, more = {}) {
  return {
    title: { text: title, standoff: 6 }, gridcolor: colour("grid"), linecolor: colour("line"),
    zerolinecolor: colour("line"), automargin: true, exponentformat: "power", ...more,
  };
}

export function layout(more) {
  return {
    paper_bgcolor: colour("card"), plot_bgcolor: colour("card"), font: { color: colour("ink"), size: 12 },
    margin: { l: 56, r: 12, t: 8, b: 44 }, showlegend: false,
    hoverlabel: { bgcolor: colour("card"), font: { color: colour("ink") } }, ...more,
  };
}

export const legend = { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: 11 } };

export const config = {
  responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false,
};

// Format a number: four digits, without trailing zeros.
export function shown(value) {
  if (value === null || value === undefined) return "none";
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

export function withUnit(name, unit) {
  return unit && unit !== "1" ? `${name} [${unit}]` : name;
}
