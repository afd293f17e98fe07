#include "tests/bench/draft/scored.h"

#include "ir/support/rng.h"
#include "search/model/calibrator.h"
#include "search/strategy/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

// What an analyzer says of the rows, with coefficients fitted to the rows `known` (by index into
// rows) if there are any.
Predicted predict(const Pool& pool, const Task& task, const std::vector<int>& rows,
                  Analyzer analyzer, const costmodel::PrunerOptions& penalties = {},
                  std::span<const std::size_t> known = {}) {
  const SearchSpace space = pool.space();
  const auto made =
      std::make_shared<DraftSpace>(make_draft_space(task, space, analyzer, 1, penalties));
  DraftSpace& draft = *made;
  const auto of_sketch = [&](DraftSketch& sketch, const std::vector<std::size_t>& which,
                             std::vector<std::size_t>* mine) {
    std::vector<std::vector<int32_t>> genes;
    for (const std::size_t i : which) {
      const PoolRow& row = pool.rows[static_cast<std::size_t>(rows[i])];
      if (row.sketch != sketch.sketch) continue;
      genes.push_back(genes_of(sketch, row.decisions));
      mine->push_back(i);
    }
    return genes;
  };
  Calibrator calibrator(task.target.kind, 1);
  for (DraftSketch& sketch : draft.sketches) {
    std::vector<std::size_t> mine;
    const auto genes = of_sketch(sketch, {known.begin(), known.end()}, &mine);
    std::vector<double> ns;
    for (const std::size_t i : mine) {
      ns.push_back(pool.rows[static_cast<std::size_t>(rows[i])].median_ns);
    }
    calibrator.add(sketch, genes, ns, 0);
  }
  calibrator.refit();
  Predicted out{std::vector<double>(rows.size(), std::numeric_limits<double>::infinity()),
                std::vector<std::size_t>(rows.size()),
                std::vector<std::vector<int32_t>>(rows.size()), made};
  std::vector<std::size_t> all(rows.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  costmodel::SymbolScratch scratch;
  for (std::size_t s = 0; s < draft.sketches.size(); ++s) {
    DraftSketch& sketch = draft.sketches[s];
    std::vector<std::size_t> mine;
    const auto genes = of_sketch(sketch, all, &mine);
    if (mine.empty()) continue;
    const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
    std::vector<const double*> inputs;
    for (const std::vector<double>& column : columns) inputs.push_back(column.data());
    std::vector<double> ns(mine.size()), fits(mine.size());
    double* const outputs[] = {ns.data(), fits.data()};
    sketch.symbols.score.evaluate(inputs, mine.size(), outputs, scratch, calibrator.values());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      out.ns[mine[i]] = ns[i];
      out.sketch[mine[i]] = s;
      out.genes[mine[i]] = genes[i];
    }
  }
  return out;
}

/// The published analyzers with one thing left out.
struct Ablation {
  const char* name;
  bool costmodel::PrunerOptions::*part;
  bool is_released = true;  // the release has it too
};
constexpr Ablation kAblations[] = {
    {"registers", &costmodel::PrunerOptions::registers},
    {"reuse", &costmodel::PrunerOptions::reuse},
    {"shared", &costmodel::PrunerOptions::shared, false},
    {"warps", &costmodel::PrunerOptions::warps},
    {"waves", &costmodel::PrunerOptions::waves},
    {"transactions", &costmodel::PrunerOptions::transactions, false},
    {"memory", &costmodel::PrunerOptions::memory},
};

/// So many measured candidates, drawn at random, calibrate the analyzer of the row `calibrated`.
constexpr std::size_t kCalibrating = 128;

std::vector<double> sorted_times(const Scored& pool, std::span<const std::size_t> chosen) {
  std::vector<double> out;
  for (const std::size_t i : chosen) out.push_back(pool.measured_ns[i]);
  std::sort(out.begin(), out.end());
  return out;
}

// Measured times of those that a search would select: quotas of the sketches, clusters, a uniform share.
std::vector<double> selected_of(const Scored& pool, const Predicted& predicted,
                                const std::vector<std::size_t>& chosen, std::size_t size) {
  std::vector<SketchOffer> offers(predicted.space->sketches.size());
  for (const std::size_t i : chosen) {
    SketchOffer& offer = offers[predicted.sketch[i]];
    const Drafted candidate{predicted.ns[i], i, predicted.genes[i]};
    offer.best.push_back(candidate);
    if (pool.is_uniform[i]) offer.sample.push_back(candidate);
  }
  for (std::size_t s = 0; s < offers.size(); ++s) {
    std::sort(offers[s].best.begin(), offers[s].best.end(), [](const auto& a, const auto& b) {
      return a.ns != b.ns ? a.ns < b.ns : a.key < b.key;
    });
    Rng rng(1, s);
    std::vector<Drafted>& sample = offers[s].sample;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      std::swap(sample[i], sample[i + rng.below(sample.size() - i)]);
    }
  }
  SelectionOptions options;
  options.size = std::min(size, chosen.size());
  std::vector<std::size_t> picked;
  for (const DraftPick& pick : select_draft(offers, *predicted.space, options)) {
    picked.push_back(pick.drafted.key);
  }
  return sorted_times(pool, picked);
}

}  // namespace

Scored score(const NamedPool& named, uint64_t seed) {
  const Pool& pool = named.pool;
  const Task task = pool.task().value();
  Scored out;
  out.name = named.name;
  out.op_class = named.op_class;
  std::vector<int> rows;
  for (std::size_t i = 0; i < pool.rows.size(); ++i) {
    if (!pool.rows[i].ok()) continue;
    rows.push_back(static_cast<int>(i));
    out.measured_ns.push_back(pool.rows[i].median_ns);
    out.is_uniform.push_back(pool.rows[i].origin == PoolOrigin::kUniform);
  }
  if (rows.empty()) return out;
  out.predicted["prunerc"] = predict(pool, task, rows, Analyzer::kPrunerc);
  out.predicted["order"] = out.predicted["prunerc"];
  out.predicted["paper"] = predict(pool, task, rows, Analyzer::kPruner);
  out.predicted["release"] = predict(pool, task, rows, Analyzer::kPrunerRelease);
  std::vector<std::size_t> known;
  Rng rng(seed, rows.size());
  for (std::size_t i = 0; i < kCalibrating; ++i) known.push_back(rng.below(rows.size()));
  out.predicted["calibrated"] = predict(pool, task, rows, Analyzer::kPrunerc, {}, known);
  for (const Ablation& ablation : kAblations) {
    costmodel::PrunerOptions without;
    without.*ablation.part = false;
    out.ablated[fmt::format("paper/{}", ablation.name)] =
        predict(pool, task, rows, Analyzer::kPruner, without).ns;
    if (!ablation.is_released) continue;
    out.ablated[fmt::format("release/{}", ablation.name)] =
        predict(pool, task, rows, Analyzer::kPrunerRelease, without).ns;
  }
  return out;
}

std::vector<double> first_of(const Scored& pool, const std::vector<double>& predicted,
                             std::vector<std::size_t> chosen, std::size_t size) {
  size = std::min(size, chosen.size());
  std::partial_sort(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(size),
                    chosen.end(), [&](std::size_t a, std::size_t b) {
                      return predicted[a] != predicted[b] ? predicted[a] < predicted[b] : a < b;
                    });
  return sorted_times(pool, std::span(chosen).first(size));
}

std::vector<double> drafted(const Scored& pool, const std::string& analyzer,
                            const std::vector<std::size_t>& chosen, std::size_t size) {
  const Predicted& predicted = pool.predicted.at(analyzer);
  return analyzer == "prunerc" ? selected_of(pool, predicted, chosen, size)
                               : first_of(pool, predicted.ns, chosen, size);
}

}  // namespace prunerc::bench
