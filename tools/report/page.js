// The page: an overview, and one operator at a time.

const data = JSON.parse(document.getElementById("data").textContent);
const operators = data.operators;
const main = document.getElementById("main");
let shown = 0;
let over = "trials";
let redraw = () => {};

const sizesOf = (op) => op.bindings.replace(/,/g, ", ");
const titleOf = (op) => op.op + (op.bindings ? " " + sizesOf(op) : "");
const targetOf = (op) => op.target + (op.threads > 0 ? `, ${plural(op.threads, "thread")}` : "");
const rateOf = (op) => (op.ops > 0 ? `${digits(op.best.gops)} ${op.rate_unit}` : `${digits(op.best.gbps)} GB/s`);
const cost = (op) => (op.best ? op.weight * op.best.ns : 0);
const numFailed = (op) => op.failures.reduce((sum, f) => sum + f.count, 0);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function bar(fraction, classes) {
  const width = (100 * Math.max(0, Math.min(1, fraction || 0))).toFixed(2);
  return svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "fill " + classes, width, height: 10 }));
}

// Rows of [text or node, class] cells below headings; the first cell of a row is its heading.
function table(caption, headings, rows) {
  const cell = (tag, [content, classes]) => el(tag, { class: classes, scope: tag === "th" ? "row" : null }, content);
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, headings.map(([text, classes]) => el("th", { scope: "col", class: classes }, text)))),
    el("tbody", {}, rows.map(({ cells, ...attributes }) => el("tr", attributes, cells.map((c, i) => cell(i === 0 ? "th" : "td", c)))))));
}

// --- overview

function verdict(op) {
  if (!op.best) return el("span", { class: "bad" }, op.trials.some(isOk) ? "nothing" : "nothing ran right");
  if (op.best.imported) return el("span", { class: "bad" }, "a claim");
  return op.best.verified ? el("span", { class: "good" }, "yes") : el("span", { class: "bad" }, "no");
}

// Of each machine: times of different machines or thread counts add up to nothing.
const totals = new Map();
for (const op of operators) totals.set(op.machine, (totals.get(op.machine) || 0) + cost(op));
const share = (op) => (cost(op) > 0 ? cost(op) / totals.get(op.machine) : 0);
const order = operators.map((_, i) => i).sort((a, b) => share(operators[b]) - share(operators[a]));

function overview() {
  const largest = Math.max(...operators.map(share));
  const weighted = operators.some((op) => op.weight !== 1);
  const targets = new Set(operators.map(targetOf));
  const rows = order.map((i) => {
    const op = operators[i];
    const link = el("span", {}, el("a", { href: "#op-" + i }, op.op), el("small", {}, sizesOf(op)));
    return { "aria-current": i === shown ? "true" : null, cells: [
      [link], ...(targets.size > 1 ? [[targetOf(op)]] : []), ...(weighted ? [[trimmed(op.weight), "n"]] : []),
      [time(op.best && op.best.ns), "n"], [bar(share(op) / largest, ""), "bar"], [percent(share(op)), "n"],
      [percent(op.best && op.best.limit_fraction), "n"], [op.limit ? op.limit.unit : "–"],
      [String(op.trials.length), "n"], [String(numFailed(op)), "n"], [verdict(op)]] };
  });
  const sums = [...totals.values()];
  const sum = sums.length === 1 && sums[0] > 0 ? `; together ${time(sums[0])}` : "";
  const where = targets.size === 1 ? ` on ${[...targets][0]}` : "";
  const caption = `${plural(operators.length, "operator")}${where}${sum}. Share: of the time of all operators${where ? "" : " of the same machine"}${weighted ? ", each as often as its net runs it" : ""}.`;
  return table(caption, [["operator"], ...(targets.size > 1 ? [["target"]] : []), ...(weighted ? [["runs", "n"]] : []), ["best", "n"], ["share"], ["", "n"],
    ["of limit", "n"], ["limit"], ["trials", "n"], ["failed", "n"], ["verified"]], rows);
}

// --- one operator

function facts(op) {
  const list = el("dl");
  const add = (name, value, wide) => {
    if (value) list.append(el("div", { class: wide ? "wide" : null }, el("dt", {}, name), el("dd", {}, value)));
  };
  const best = op.best;
  if (best) {
    add("rate", (op.ops > 0 ? `${digits(best.gops)} ${op.rate_unit}, ` : "") + `${digits(best.gbps)} GB/s`);
    add("part of the limit", op.limit && `${percent(best.limit_fraction)} of ${op.limit.unit}${op.limit.note ? ", " + op.limit.note : ""}`);
    if (op.heuristic && op.heuristic.measured) add("heuristic schedule", `${time(op.heuristic.ns)}, ${digits(op.heuristic.ns / best.ns)} times the ${best.asked_for ? "chosen" : "best"}`);
    add("sketch", best.sketch);
    add("record", `${best.record}, ${best.created}, prunerc ${best.version}, seed ${best.seed}`);
    add("samples", best.samples && `${best.samples}, spread ${digits(100 * best.spread, 2)} %`);
  }
  add("trials", `${op.trials.length}, ${numFailed(op)} failed or refused`);
  add("work", op.bytes > 0 && `${digits(op.ops / 1e6)} M operations, ${digits(op.bytes / 1e6)} MB, ${digits(op.ops / op.bytes)} operations per byte`);
  add("machine", op.machine, true);
  if (best) add("timer", best.timer, true);
  if (best) add("verified", best.imported ? "a claim: imported, not measured here" : best.verified || "not verified: its result was not compared with the operator", true);
  return list;
}

function legend(op) {
  const count = (k) => op.trials.filter((t) => t.sketch === k).length;
  return el("ul", { class: "legend", "aria-label": "Sketches" }, op.sketches.map((name, k) => el("li", {},
    svg("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, svg("path", { class: `mark k${k}`, d: sketchMark(k, 4.4) })),
    `${name || "no sketch"} (${count(k)})`)));
}

function figure(title, draw, caption, controls) {
  const box = el("div", { class: "chart" });
  return { draw: () => draw(box), node: el("figure", { class: "panel" },
    el("div", { class: "head" }, el("h3", {}, title), controls), box, el("figcaption", {}, caption)) };
}

// Radio buttons in one group; `choose` gets the value.
function choices(name, title, values, chosen, choose) {
  const group = el("fieldset", {}, el("legend", {}, title));
  for (const [value, text] of values) {
    const input = el("input", { type: "radio", name, value, checked: value === chosen });
    input.addEventListener("change", () => choose(value));
    group.append(el("label", {}, input, " " + text));
  }
  return group;
}

// Candidates below which a correlation says nothing.
const FEW = 5;

function figures(op) {
  const out = [];
  if (op.trials.length) {
    const controls = choices("over", "over", [["trials", "trials"], ["seconds", "seconds"]], over, (value) => { over = value; redraw(); });
    out.push(figure("Tuning curve", (box) => drawCurve(box, op, over),
      "Each mark is a trial; × has no time: it failed or was refused. The line is the best so far." +
      (op.trials.some((t) => t.repeated) ? " Hollow marks were measured again later." : "") +
      (op.trials.some((t) => t.imported) ? " Hollow marks of imported records are claims." : "") +
      (op.limit && op.best && op.best.ns > 12 * op.limit.ns ? ` The limit, ${time(op.limit.ns)}, is below the chart.` : ""), controls));
  }
  if (op.ranked > 0) {
    out.push(figure("Predicted against measured", (box) => drawPredictions(box, op),
      (op.ranked < FEW ? `Too few candidates (${op.ranked}) for a rank correlation; `
        : `Spearman's rank correlation ${op.rank_correlation.toFixed(2)} over ${op.ranked} candidates; `) +
      "predicted by the analyzer of this version of prunerc."));
  }
  if (op.ops > 0 && op.bytes > 0 && op.roofs.length) {
    out.push(figure("Roofline", (box) => drawRoofline(box, op),
      `The limits of its machine${op.threads > 1 ? ", all threads together" : ""}, as the record keeps them` + (op.limit ? "; bold: the one that bounds this operator." : ".")));
  }
  return out;
}

// Parts of the cost below this share are not listed.
const LEAST = 0.005;

function costSplit(op) {
  const estimate = op.schedule.estimate;
  const most = Math.max(op.best.ns, estimate.ns, ...estimate.nests.map((n) => n.ns), ...estimate.nests.flatMap((n) => n.parts.map((p) => p.ns)));
  const row = (name, ns, classes, kind) => ({ class: kind, cells: [[name], [bar(ns / most, classes), "bar"], [time(ns), "n"], [percent(ns / op.best.ns), "n"]] });
  const rows = [row("measured", op.best.ns, "measured")];
  if (op.limit) rows.push(row("limit: " + op.limit.unit, op.limit.ns, "limit"));
  rows.push(row("predicted", estimate.ns, ""));
  for (const [i, nest] of estimate.nests.entries()) {
    rows.push(row(`nest ${i + 1}: ${nest.name}`, nest.ns, ""));
    for (const part of nest.parts.filter((p) => p.ns >= LEAST * most)) rows.push(row(part.part, part.ns, "part", "part"));
  }
  if (estimate.launch_ns > 0) rows.push(row(op.threads > 0 ? "starting threads" : "launches", estimate.launch_ns, ""));
  return el("section", { class: "panel" }, el("h3", {}, "Where the time goes, by the analyzer"),
    table("Parts are what each unit would take alone; they overlap, so a nest takes less than their sum. Those below 0.5 % are left out.",
      [["part"], [""], ["time", "n"], ["of measured", "n"]], rows));
}

function failures(op) {
  if (!op.failures.length) return el("section", { class: "panel last" }, el("h3", {}, "Failures"), el("p", { class: "soft" }, "No trial failed."));
  const rows = op.failures.map((f) => ({ cells: [[f.words], [String(f.count), "n"], [percent(f.count / op.trials.length), "n"],
    [f.messages.map((m) => el("div", {}, m.count > 1 ? `${m.count} × ${m.text}` : m.text)), "words"]] }));
  return el("section", { class: "panel last" }, el("h3", {}, "Failures"),
    table("Trials without a time or with a wrong result.", [["status"], ["trials", "n"], ["", "n"], ["messages"]], rows));
}

// --- schedule and code

function listing(text, label, loop) {
  const pre = el("pre", { tabindex: "0", "aria-label": label });
  const inLoop = (i) => loop && text.first + i >= loop.first && text.first + i <= loop.last;
  const note = (count) => (count > 0 ? pre.append(`… ${plural(count, "line")} …\n`) : undefined);
  note(text.first);
  text.lines.forEach((line, i) => pre.append(inLoop(i) ? el("span", { class: "hot" }, line || " ") : line + "\n"));
  note(text.of - text.first - text.lines.length);
  return pre;
}

function mixWords(loop) {
  const count = (m) => `${m.count} ${m.kind}`;
  const what = loop.mix.some((m) => m.kind === "multiply-add") ? "multiply-adds" : "vector instructions";
  return `Marked: the inner loop with the most ${what}, ${plural(loop.instructions, "instruction")}: ${loop.mix.map(count).join(", ")}; ${plural(loop.memory_operands, "operand")} in memory.`;
}

function schedule(op) {
  const s = op.schedule;
  const source = { first: 0, of: 0, lines: op.text.split("\n") };
  source.of = source.lines.length;
  const texts = { program: ["scheduled program", s.program], trace: ["trace", s.trace], text: ["operator", source] };
  const place = el("div");
  const choose = (key) => place.replaceChildren(listing(texts[key][1], texts[key][0], null));
  choose("program");
  const left = el("div", {}, choices("text", "show", Object.entries(texts).map(([key, [name]]) => [key, name]), "program", choose), place);
  const right = el("div", {}, s.code
    ? [el("p", { class: "soft" }, s.loop ? mixWords(s.loop) : s.code_kind), listing(s.code, s.code_kind, s.loop)]
    : el("p", { class: "bad" }, "No code: " + s.note));
  const title = op.best.asked_for ? `Schedule of record ${op.best.record}` : "Winning schedule";
  const node = el("section", { class: "panel wide" }, el("h3", {}, `${title}, and its ${s.code_kind || "code"}`), el("div", { class: "code" }, left, right));
  return { node, shown: () => node.querySelectorAll(".hot").forEach(toHot) };
}

// The code starts at its loop.
function toHot(line, i) {
  if (i === 0) line.parentNode.scrollTop = line.offsetTop - line.parentNode.offsetTop - 24;
}

function trialsTable(op) {
  const details = el("details", {}, el("summary", {}, `All ${plural(op.trials.length, "trial")} as a table`));
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    details.append(table("In the order they were stored.",
      [["record"], ["seconds", "n"], ["outcome"], ["measured", "n"], ["predicted", "n"], ["sketch"], ["verified"]],
      op.trials.map((t) => ({ cells: [[String(t.record)], [digits(t.seconds), "n"], [t.status.replace(/_/g, " ")], [time(t.ns), "n"],
        [time(t.predicted_ns), "n"], [op.sketches[t.sketch] || "–"], [t.verified ? "yes" : ""]] }))));
  });
  return details;
}

function headline(op) {
  if (!op.best) {
    const isOpen = op.trials.some(isOk);
    return el("p", { class: "headline bad" }, isOpen ? "No candidate is verified here" : "No candidate ran and gave the right result");
  }
  const limit = op.best.limit_fraction > 0 ? `${percent(op.best.limit_fraction)} of the limit` : "";
  return el("p", { class: "headline" }, time(op.best.ns), el("small", {}, [rateOf(op), limit].filter(Boolean).join(", ")));
}

function section(op) {
  const drawn = figures(op);
  const parts = [...drawn.map((f) => f.node)];
  if (op.schedule && op.best.ns > 0) parts.push(costSplit(op));
  parts.push(failures(op));
  let code = null;
  if (op.schedule) parts.push((code = schedule(op)).node);
  const node = el("section", { id: "operator", "aria-labelledby": "name" },
    el("h2", { id: "name", tabindex: "-1" }, titleOf(op)), el("p", { class: "soft" }, targetOf(op)),
    headline(op), op.note ? el("p", { class: "bad" }, op.note) : null, facts(op), legend(op),
    el("div", { class: "panels" }, parts), trialsTable(op));
  return { node, draw: () => drawn.forEach((f) => f.draw()), shown: () => code && code.shown() };
}

// --- putting it together

function show(index) {
  shown = index;
  const made = section(operators[index]);
  main.replaceChildren(...(operators.length > 1 ? [overview()] : []), made.node);
  document.getElementById("operators").value = String(index);
  document.title = `${titleOf(operators[index])} – prunerc report`;
  redraw = made.draw;
  made.draw();
  made.shown();
}

function indexOfHash() {
  const found = /^#op-(\d+)$/.exec(location.hash);
  const index = found ? Number(found[1]) : order[0];
  return index < operators.length ? index : order[0];
}

function start() {
  const missing = data.missing.length ? ` Without a record: ${data.missing.join(", ")}.` : "";
  document.getElementById("about").append(`Made by prunerc ${data.version} from its database of measurements.${missing}`);
  const select = document.getElementById("operators");
  for (const i of order) select.append(el("option", { value: i }, `${titleOf(operators[i])}, ${targetOf(operators[i])}`));
  document.getElementById("choice").hidden = operators.length < 2;
  select.addEventListener("change", () => { location.hash = "op-" + select.value; });
  addEventListener("hashchange", () => {
    const isLink = document.activeElement && document.activeElement.tagName === "A";
    show(indexOfHash());
    document.getElementById("operator").scrollIntoView();
    // Who followed a link goes on reading at what it leads to.
    if (isLink) document.getElementById("name").focus();
  });
  show(indexOfHash());
  let width = main.clientWidth;
  addEventListener("resize", () => {
    if (main.clientWidth !== width) redraw();
    width = main.clientWidth;
  });
  addEventListener("beforeprint", () => redraw());
}

start();
