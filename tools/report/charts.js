// The charts of one operator. Each draws into a box, and again when its width changes.

const isOk = (trial) => trial.ns > 0;

function trialWords(op, trial) {
  const what = isOk(trial) ? time(trial.ns) : trial.status.replace(/_/g, " ");
  const predicted = trial.predicted_ns > 0 ? `, predicted ${time(trial.predicted_ns)}` : "";
  const again = (trial.imported ? ", imported: a claim" : "") + (trial.repeated ? ", measured again later" : "");
  return `record ${trial.record}: ${what}${predicted}, sketch ${op.sketches[trial.sketch] || "none"}${again}`;
}

function trialClasses(op, trial) {
  const winner = op.best && op.best.record === trial.record ? " winner" : "";
  return `trial k${trial.sketch}${trial.repeated || trial.imported ? " repeated" : ""}${winner}`;
}

// More marks than this are drawn smaller.
const MANY = 300;

// A mark for each [trial, x, y].
function putTrials(chart, op, places) {
  const radius = places.length > MANY ? 2.2 : 3.6;
  for (const [trial, x, y] of places) {
    chart.root.append(isOk(trial) ? mark(x, y, sketchMark(trial.sketch, radius), trialClasses(op, trial), trialWords(op, trial))
      : mark(x, y, CROSS, "trial failed", trialWords(op, trial)));
  }
}

function raiseWinner(chart) {
  const winner = chart.root.querySelector(".winner");
  if (winner) chart.root.append(winner);
}

// --- tuning curve

// Best so far: [place along x, ns] at each gain. A time that was measured again counts where it was measured last,
// one that was never measured here does not.
function gains(trials, along) {
  const points = [];
  for (const [i, trial] of trials.entries()) {
    const best = points.length ? points[points.length - 1][1] : Infinity;
    if (isOk(trial) && !trial.repeated && !trial.imported && trial.ns < best) points.push([along(trial, i), trial.ns]);
  }
  return points;
}

function levels(op) {
  const lines = [];
  if (op.limit) lines.push(["limit", op.limit.ns, `limit, ${op.limit.unit}: ${time(op.limit.ns)}`]);
  if (op.heuristic && op.heuristic.measured) lines.push(["heuristic", op.heuristic.ns, `heuristic: ${time(op.heuristic.ns)}`]);
  return lines;
}

function drawCurve(box, op, over) {
  const along = over === "seconds" ? (trial) => trial.seconds : (_, i) => i + 1;
  const trials = op.trials;
  const times = trials.filter(isOk).map((t) => t.ns);
  // A limit that is far away would press all dots into a corner; its share is said in words.
  const near = levels(op).filter(([, ns]) => times.length && ns > Math.min(...times) / 12);
  const last = Math.max(...trials.map(along), over === "seconds" ? 0.1 : 2);
  const y = { ...logRange(times.length ? times.concat(near.map(([, ns]) => ns)) : [1e3, 1e6]), label: "median time of a run, log scale", format: timeTick };
  const whole = (ticks) => (over === "seconds" ? ticks : ticks.filter(Number.isInteger));
  const x = { lo: 0, hi: last * 1.02, format: trimmed, ticks: (count) => whole(linearTicks(0, last, count)),
    label: over === "seconds" ? "seconds spent on building, measuring and verifying" : "trials" };
  const fails = trials.length - times.length;
  const chart = frame(box, { x, y, title: "Tuning curve", top: fails ? 44 : 26,
    words: `${trials.length} trials, ${fails} without a time` + (op.best ? `, best ${time(op.best.ns)}` : "") });
  for (const [kind, ns] of near) {
    chart.root.append(svg("line", { class: "level " + kind, x1: chart.left, x2: chart.right, y1: chart.py(ns), y2: chart.py(ns) }));
  }
  // Texts give way to marks.
  let above = -Infinity;
  for (const [, ns, text] of near.sort((a, b) => b[1] - a[1])) {
    let at = chart.py(ns) - 5;
    if (at - above < 14) at = chart.py(ns) + 14;
    say(chart, chart.right - 4, at, text, "end");
    above = at;
  }
  const at = trials.map((trial, i) => chart.px(along(trial, i)));
  putTrials(chart, op, trials.map((trial, i) => [trial, at[i], isOk(trial) ? chart.py(trial.ns) : 30]));
  const steps = gains(trials, along);
  if (!steps.length) return;
  let path = `M${chart.px(steps[0][0])},${chart.py(steps[0][1])}`;
  for (const [along_, ns] of steps.slice(1)) path += `H${chart.px(along_).toFixed(1)}V${chart.py(ns).toFixed(1)}`;
  chart.root.append(svg("path", { class: "gains", d: path + `H${chart.px(last).toFixed(1)}` }));
  raiseWinner(chart);
}

// --- predicted against measured

function drawPredictions(box, op) {
  const both = op.trials.filter((t) => isOk(t) && t.predicted_ns > 0 && !t.imported);
  const range = logRange(both.flatMap((t) => [t.ns, t.predicted_ns]));
  const chart = frame(box, {
    x: { ...range, label: "measured, log scale", format: timeTick }, y: { ...range, label: "predicted by the analyzer, log scale", format: timeTick },
    title: "Predicted against measured", words: `${both.length} trials, rank correlation ${op.rank_correlation.toFixed(2)}` });
  chart.root.append(svg("line", { class: "equal", x1: chart.px(range.lo), y1: chart.py(range.lo), x2: chart.px(range.hi), y2: chart.py(range.hi) }));
  say(chart, chart.px(range.hi) - 6, chart.py(range.hi) + 26, "equal", "end");
  putTrials(chart, op, both.map((t) => [t, chart.px(t.ns), chart.py(t.predicted_ns)]));
  raiseWinner(chart);
}

// --- roofline

function drawRoofline(box, op) {
  const intensity = op.ops / op.bytes;
  const peak = op.roofs.find((r) => r.gflops > 0);
  const slopes = op.roofs.filter((r) => r.gbps > 0).sort((a, b) => b.gbps - a.gbps);
  const points = [];
  if (op.best && op.best.ns > 0) points.push(["best", op.best.ns, STAR, "k0 winner", "best"]);
  if (op.heuristic) {
    points.push(["heuristic", op.heuristic.ns, SHAPES[3](5), "open", op.heuristic.measured ? "heuristic" : "heuristic, predicted"]);
  }
  const ridges = peak ? slopes.map((r) => peak.gflops / r.gbps) : [];
  const lo = Math.min(intensity, ...ridges) / 4, hi = Math.max(intensity, ...ridges) * 6;
  const rates = points.map(([, ns]) => op.ops / ns);
  const most = peak ? peak.gflops : Math.max(...slopes.map((r) => r.gbps)) * intensity;
  const y = { lo: Math.min(...rates, ...slopes.map((r) => r.gbps * lo * 1.5), most / 30) / 1.6, hi: most * 1.9, log: true, label: `${op.rate_unit}, log scale`, format: trimmed };
  const chart = frame(box, { x: { lo, hi, log: true, label: "operations per byte of compulsory traffic, log scale", format: trimmed }, y,
    title: "Roofline", words: `intensity ${digits(intensity)} operations per byte; ` + op.roofs.map((r) => `${r.unit} ${digits(r.gflops || r.gbps)} ${r.gflops ? op.rate_unit : "GB/s"}`).join(", ") });
  const near = (roof) => (op.limit && op.limit.unit === roof.unit ? "roof near" : "roof");
  chart.root.append(svg("line", { class: "equal", x1: chart.px(intensity), x2: chart.px(intensity), y1: chart.top, y2: chart.bottom }));
  if (peak) chart.root.append(svg("line", { class: near(peak), x1: chart.px(Math.min(...ridges, lo * 4)), x2: chart.right, y1: chart.py(peak.gflops), y2: chart.py(peak.gflops) }));
  for (const roof of slopes) {
    const from = Math.max(lo, y.lo / roof.gbps), to = Math.min(hi, y.hi / roof.gbps, peak ? peak.gflops / roof.gbps : hi);
    if (to > from) chart.root.append(svg("line", { class: near(roof), x1: chart.px(from), y1: chart.py(from * roof.gbps), x2: chart.px(to), y2: chart.py(to * roof.gbps) }));
  }
  let below = -Infinity;
  for (const roof of slopes) {
    const at = Math.max(lo, y.lo / roof.gbps * 1.2);
    below = Math.max(chart.py(at * roof.gbps) + 8, below + 14);
    say(chart, chart.px(at) + 12, below, `${roof.unit.replace(" bandwidth", "")} ${trimmed(roof.gbps)} GB/s`);
  }
  // Texts beside the marks on the side with more room and below, where no roof is; that of the peak on the other side.
  const isLeft = chart.px(intensity) > (chart.left + chart.right) / 2;
  if (peak) {
    const at = isLeft ? chart.px(Math.min(...ridges, intensity)) : chart.right - 4;
    say(chart, at, chart.py(peak.gflops) - 7, `${peak.unit} ${trimmed(peak.gflops)} ${op.rate_unit}`, isLeft ? "start" : "end");
  }
  let before = -Infinity;
  for (const [name, ns, shape, classes, words] of points.sort((a, b) => a[1] - b[1])) {
    const rate = op.ops / ns, at = chart.py(rate);
    chart.root.append(mark(chart.px(intensity), at, shape, `point at-${name} ${classes}`, `${words}: ${digits(rate)} ${op.rate_unit}, ${time(ns)}`));
    const line = Math.max(at + 16, before + 15);
    say(chart, chart.px(intensity) + (isLeft ? -12 : 12), line, `${words} ${digits(rate)}`, isLeft ? "end" : "start");
    before = line;
  }
}
