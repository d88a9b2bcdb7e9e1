// The controls of a network as the server describes them: sliders, text boxes and choices.

import { shown, withUnit } from "./theme.js";

const STEPS = 400;

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function toStep(span, value) {
  const share = span.log
    ? Math.log(value / span.low) / Math.log(span.high / span.low)
    : (value - span.low) / (span.high - span.low);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

function fromStep(control, step) {
  const { low, high, log } = control.span;
  if (step === 0) return low;
  if (step === STEPS) return high;
  const share = step / STEPS;
  const value = log ? low * (high / low) ** share : low + share * (high - low);
  return control.whole ? Math.round(value) : Number(value.toPrecision(4));
}

function symbol(mathml) {
  if (!mathml) return "";
  const parsed = new DOMParser().parseFromString(mathml, "text/html").body.firstElementChild;
  return parsed ?? "";
}

export class Controls {
  // `changed(path, text, choice)` is called after each change; text is null for a reset.
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.rows = new Map();
  }

  show(groups, changes) {
    const focused = document.activeElement?.id;
    const open = new Map([...this.root.querySelectorAll("details")].map((d) => [d.dataset.title, d.open]));
    this.rows.clear();
    let unfolded = 0;
    this.root.replaceChildren(
      ...groups.filter((group) => group.controls.length).map((group) => {
        const details = element("details", {}, element("summary", { textContent: group.title }));
        details.dataset.title = group.title;
        details.open = open.get(group.title) ?? (!group.folded && unfolded < 6);
        unfolded += details.open;
        details.append(...group.controls.map((control) => this.row(control)));
        return details;
      }),
    );
    for (const [path, row] of this.rows) this.mark(path, row, changes.has(path));
    if (focused) document.getElementById(focused)?.focus();
  }

  row(control) {
    const id = `c-${control.path}`;
    const label = element("label", { htmlFor: id, className: "name", title: control.path });
    label.append(control.name, " ", symbol(control.symbol), control.unit ? ` [${control.unit}]` : "");
    const meaning = element("span", { className: "meaning", textContent: control.meaning });
    const undo = element("button", {
      type: "button", className: "undo", textContent: "\u21ba", title: `Reset ${control.name}`,
      ariaLabel: `Reset ${control.path}`, onclick: () => this.changed(control.path, null, isChoice),
    });
    const isChoice = Object.keys(control.options).length > 0;
    const fault = element("p", { className: "fault", hidden: true });
    fault.setAttribute("role", "alert");
    const parts = isChoice ? [this.choice(control, id)] : this.number(control, id);
    const row = element(
      "div", { className: "control" }, element("div", { className: "what" }, label, meaning),
      element("div", { className: "set" }, ...parts, undo), fault,
    );
    row.dataset.path = control.path;
    this.rows.set(control.path, { control, row, fault, parts, isChoice });
    return row;
  }

  choice(control, id) {
    const select = element("select", { id });
    for (const [name, reason] of Object.entries(control.options)) {
      const option = element("option", { value: name, textContent: name, disabled: Boolean(reason), title: reason });
      if (reason) option.textContent += " (not here)";
      select.append(option);
    }
    select.value = control.value;
    select.onchange = () => this.changed(control.path, select.value, true);
    return select;
  }

  number(control, id) {
    const box = element("input", {
      type: "text", inputMode: "decimal", id, placeholder: "not set", spellcheck: false,
      value: control.value === null ? "" : shown(control.value), title: `in ${control.within}`,
    });
    box.onchange = () => this.changed(control.path, box.value.trim() || null, false);
    if (!control.span) return [box];
    const slider = element("input", {
      type: "range", min: 0, max: STEPS, step: 1, value: toStep(control.span, control.value),
      ariaLabel: withUnit(control.path, control.unit),
    });
    const announce = (value) => slider.setAttribute("aria-valuetext", `${shown(value)} ${control.unit}`);
    announce(control.value);
    slider.oninput = () => {
      const value = fromStep(control, Number(slider.value));
      box.value = shown(value);
      announce(value);
      this.changed(control.path, String(value), false);
    };
    return [slider, box];
  }

  // Move sliders to the values typed into text boxes: the server returns them in SI with packets.
  setSliders(numbers) {
    for (const [path, value] of Object.entries(numbers)) {
      const row = this.rows.get(path);
      if (!row?.control.span) continue;
      const [slider] = row.parts;
      const { span } = row.control;
      if (value < span.low) span.low = value;
      if (value > span.high) span.high = value;
      if (document.activeElement !== slider) slider.value = toStep(span, value);
    }
  }

  mark(path, row, changed) {
    row.row.classList.toggle("changed", changed);
  }

  // Paths of the numbers that belong to the law at `path`.
  owned(path) {
    return [...this.rows.values()].map((r) => r.control).filter((c) => c.owner === path).map((c) => c.path);
  }

  // Show each fault next to its control; return those without a control.
  showFaults(list) {
    for (const { fault, parts } of this.rows.values()) {
      fault.hidden = true;
      parts.at(-1).removeAttribute("aria-invalid");
    }
    return list.filter(({ path, text }) => {
      const row = this.rows.get(path);
      if (!row) return true;
      row.fault.textContent = text;
      row.fault.hidden = false;
      row.parts.at(-1).setAttribute("aria-invalid", "true");
      row.row.closest("details").open = true;
      return false;
    });
  }
}
