// Elements, numbers as texts, scales and axes.

// An element that the parser made tells the namespace.
const SVG = document.getElementById("marks").namespaceURI;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  // Strings become text nodes, never markup.
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

function digits(value, count = 3) {
  if (value === 0) return "0";
  const places = Math.max(0, Math.min(6, count - 1 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toFixed(places);
}

function trimmed(value) {
  return String(Number(digits(value)));
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
function inUnit(ns, number) {
  if (!(ns > 0)) return "–";
  // "999.6 ns" would be printed as 1000.
  const [scale, unit] = UNITS.find(([s]) => ns >= s * 0.9995) || UNITS[3];
  return number(ns / scale) + "\u00a0" + unit;
}
const time = (ns) => inUnit(ns, digits);
const timeTick = (ns) => inUnit(ns, trimmed);

function percent(fraction) {
  if (!(fraction > 0)) return "–";
  if (fraction < 0.001) return "<\u00a00.1\u00a0%";
  return (fraction < 0.0995 ? (100 * fraction).toFixed(1) : Math.round(100 * fraction)) + "\u00a0%";
}

// --- scales

function niceStep(raw) {
  const base = 10 ** Math.floor(Math.log10(raw));
  return base * ([1, 2, 5, 10].find((m) => m * base >= raw * 0.999) || 10);
}

function linearTicks(lo, hi, count) {
  const step = niceStep((hi - lo) / Math.max(1, count));
  const ticks = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-12); ++i) ticks.push(i * step);
  return ticks;
}

// 1, 2 and 5 of each decade where they fit, else powers of ten; a narrow range is divided evenly.
function logTicks(lo, hi, count) {
  if (hi / lo < 6) return linearTicks(lo, hi, count);
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); ++e) {
      for (const step of steps) {
        const tick = step * 10 ** e;
        if (tick >= lo * 0.999 && tick <= hi * 1.001) ticks.push(tick);
      }
    }
    if (ticks.length <= count + 1) return ticks;
    if (steps.length === 1) return ticks.filter((_, i) => i % Math.ceil(ticks.length / count) === 0);
  }
  return [];
}

// {lo, hi, log} to pixels from a to b.
function scale(axis, a, b) {
  const f = axis.log ? Math.log : (v) => v;
  const lo = f(axis.lo), span = f(axis.hi) - lo || 1;
  return (v) => a + ((f(v) - lo) / span) * (b - a);
}

// The range of the values with room on both sides.
function logRange(values, room = 0.06) {
  const lo = Math.min(...values), hi = Math.max(...values);
  const factor = Math.max((hi / lo) ** room, 1.05);
  return { lo: lo / factor, hi: hi * factor, log: true };
}

// --- marks: each sketch has a colour and a shape, so that colour alone says nothing

const SHAPES = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
  (r) => `M${-r * 0.9},${-r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
  (r) => `M0,${-1.2 * r}L${1.15 * r},${0.85 * r}H${-1.15 * r}z`,
  (r) => `M0,${-1.25 * r}L${1.25 * r},0L0,${1.25 * r}L${-1.25 * r},0z`,
  (r) => `M0,${1.2 * r}L${1.15 * r},${-0.85 * r}H${-1.15 * r}z`,
  (r) => `M${-0.4 * r},${-1.2 * r}h${0.8 * r}v${0.8 * r}h${0.8 * r}v${0.8 * r}h${-0.8 * r}v${0.8 * r}h${-0.8 * r}v${-0.8 * r}h${-0.8 * r}v${-0.8 * r}h${0.8 * r}z`,
];
const CROSS = "M-3.2,-3.2L3.2,3.2M-3.2,3.2L3.2,-3.2";
const STAR = "M0,-8L2,-2.6L7.6,-2.5L3.1,1L4.7,6.5L0,3.2L-4.7,6.5L-3.1,1L-7.6,-2.5L-2,-2.6z";

function sketchMark(sketch, radius) {
  return SHAPES[sketch % SHAPES.length](radius);
}

function mark(x, y, path, classes, title) {
  return svg("path", { class: "mark " + classes, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, d: path },
    svg("title", {}, title));
}

// --- a chart: frame(box, options) draws axes into a box as wide as it is

// Roughly what a text of the charts is wide.
const textWidth = (text) => 6.6 * text.length;

function frame(box, { x, y, title, words, height = 300, top = 26 }) {
  const width = Math.max(260, box.clientWidth || 560);
  const numTicks = Math.round(width / 95);
  const xTicks = x.ticks ? x.ticks(numTicks) : (x.log ? logTicks : linearTicks)(x.lo, x.hi, numTicks);
  const yTicks = (y.log ? logTicks : linearTicks)(y.lo, y.hi, 6);
  const left = Math.max(...yTicks.map((t) => textWidth(y.format(t))), 20) + 12, right = 14, bottom = 42;
  const px = scale(x, left, width - right), py = scale(y, height - bottom, top);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title + ". " + words });
  for (const tick of yTicks) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: py(tick), y2: py(tick) }),
      svg("text", { x: left - 6, y: py(tick) + 4, "text-anchor": "end" }, y.format(tick)));
  }
  for (const tick of xTicks) {
    root.append(svg("line", { class: "grid", x1: px(tick), x2: px(tick), y1: top, y2: height - bottom }),
      svg("text", { x: px(tick), y: height - bottom + 16, "text-anchor": "middle" }, x.format(tick)));
  }
  root.append(svg("path", { class: "axis", fill: "none", d: `M${left},${top}V${height - bottom}H${width - right}` }),
    svg("text", { x: 0, y: 11 }, y.label),
    svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, x.label));
  box.replaceChildren(root);
  return { root, px, py, left, right: width - right, top, bottom: height - bottom, width };
}

// A text in a chart that stays readable over lines.
function say(chart, x, y, text, anchor = "start") {
  chart.root.append(svg("text", { class: "say", x, y, "text-anchor": anchor }, text));
}
