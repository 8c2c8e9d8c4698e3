"use strict";
// Draws the curves of each run and sorts its table. The numbers stand in the page, as JSON.
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 190, LEFT = 52, RIGHT = 10, TOP = 8, BOTTOM = 22;
const COLOURS = ["var(--one)", "var(--two)", "var(--three)"];
const CHARTS = [
  ["Bytes sent", "per step", { sent: "sent_bytes", positions: "index_bytes", values: "value_bytes" }],
  ["Time", "ms per step", { encode: "encode_ms", decode: "decode_ms", wait: "wait_ms" }],
  ["Relative volume", "sent / dense bytes", { "": "relative_volume" }],
  ["Bits per kept element", "", { "": "bits_per_kept" }],
  ["Relative error", "not sent / gradient, L2", { "": "relative_error" }],
];

function make(name, attributes, parent, text) {
  const svg = ["svg", "g", "line", "path", "text", "circle"].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  for (const [unit, factor] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (size >= factor) return String(Number((value / factor).toPrecision(3))) + unit;
  return size < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

// Round values from zero to what is shown, or from below it where zero is far away.
function ticks(low, high, count) {
  const raw = (high - low) / count || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / size - 1e-9) * size; at <= high + size * 1e-9; at += size) found.push(at);
  return found;
}

function path(points) {
  let text = "", broken = true;
  for (const [x, y] of points) {
    if (y === null) { broken = true; continue; }
    text += (broken ? "M" : "L") + x.toFixed(1) + " " + y.toFixed(1);
    broken = false;
  }
  return text;
}

function chart(parent, title, unit, steps, curves) {
  const named = Object.entries(curves).filter(([, values]) => values.some((value) => value !== null));
  if (!named.length) return;
  const figure = make("figure", { class: "chart" }, parent);
  const caption = make("figcaption", {}, figure, title + " ");
  make("span", { class: "unit" }, caption, unit);
  const legend = make("div", { class: "legend" }, figure);
  const all = named.flatMap(([, values]) => values).filter((value) => value !== null);
  let low = Math.min(0, ...all), high = Math.max(...all);
  if (high === low) high = low + 1;
  const first = steps[0], last = steps[steps.length - 1];
  const x = (step) => LEFT + (WIDTH - LEFT - RIGHT) * (last === first ? 0.5 : (step - first) / (last - first));
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} over steps` }, figure);
  for (const at of ticks(low, high, 4)) {
    make("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(at), y2: y(at) }, svg);
    make("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, svg, short(at));
  }
  for (const at of ticks(first, last, 4).filter(Number.isInteger))
    make("text", { x: x(at), y: HEIGHT - 6, "text-anchor": "middle" }, svg, short(at));
  named.forEach(([name, values], place) => {
    const points = values.map((value, index) => [x(steps[index]), value === null ? null : y(value)]);
    make("path", { class: "curve", d: path(points), stroke: COLOURS[place] }, svg);
    const told = points.filter(([, height]) => height !== null);
    if (told.length === 1) make("circle", { cx: told[0][0], cy: told[0][1], r: 3, fill: COLOURS[place] }, svg);
    if (!name) return;
    const entry = make("span", {}, legend);
    make("i", { style: `background: ${COLOURS[place]}` }, entry);
    entry.append(name);
  });
  point(figure, svg, steps, named, x);
}

function point(figure, svg, steps, named, x) {
  const hair = make("line", { class: "hair", y1: TOP, y2: HEIGHT - BOTTOM }, svg);
  const tip = make("div", { class: "tip" }, figure);
  const hide = () => { hair.style.visibility = tip.style.visibility = "hidden"; };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    let nearest = 0;
    steps.forEach((step, index) => { if (Math.abs(x(step) - at) < Math.abs(x(steps[nearest]) - at)) nearest = index; });
    const place = x(steps[nearest]);
    hair.setAttribute("x1", place);
    hair.setAttribute("x2", place);
    const lines = named.map(([name, values]) => `${name ? name + " " : ""}${values[nearest] === null ? "–" : short(values[nearest])}`);
    tip.textContent = [`step ${steps[nearest]}`, ...lines].join("\n");
    const left = place > WIDTH / 2;
    const edge = (place / WIDTH) * box.width + svg.offsetLeft + 12;
    tip.style.left = left ? "auto" : `${edge + 8}px`;
    tip.style.right = left ? `${figure.clientWidth - edge + 24}px` : "auto";
    hair.style.visibility = tip.style.visibility = "visible";
  });
  svg.addEventListener("pointerleave", hide);
}

function sortable(section) {
  const body = section.querySelector("tbody");
  section.querySelectorAll("thead button").forEach((button, column) => {
    let rising = column === 0;
    button.addEventListener("click", () => {
      const key = (row) => (column ? Number(row.cells[column].dataset.value || -1) : row.cells[0].textContent);
      const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
      body.append(...[...body.rows].sort((a, b) => (rising ? order(a, b) : order(b, a))));
      rising = !rising;
    });
  });
}

function show(section, run) {
  const select = section.querySelector("select.tensor");
  const charts = section.querySelector(".charts");
  if (!select) return;
  run.rows.forEach((row, place) => make("option", { value: place }, select, row.name));
  const rows = [...section.querySelectorAll("tbody tr")];
  const draw = () => {
    const row = run.rows[select.value];
    charts.replaceChildren();
    for (const [title, unit, curves] of CHARTS)
      chart(charts, title, unit, run.steps, Object.fromEntries(Object.entries(curves).map(([name, key]) => [name, row.curve[key]])));
    for (const [name, values] of Object.entries(run.extra)) chart(charts, name, "", run.steps, { "": values });
    rows.forEach((element, place) => element.classList.toggle("chosen", place + 1 === Number(select.value)));
  };
  select.addEventListener("change", draw);
  rows.forEach((element, place) => element.cells[0].addEventListener("click", () => { select.value = place + 1; draw(); }));
  sortable(section);
  draw();
}

const runs = JSON.parse(document.getElementById("runs").textContent);
document.querySelectorAll("section[data-run]").forEach((section) => show(section, runs[section.dataset.run]));
