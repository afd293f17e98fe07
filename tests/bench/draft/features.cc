#include "costmodel/feature/batch.h"
#include "schedule/parametric/parametric.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/bench/draft/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

constexpr std::size_t kBatch = 512;
constexpr int kPrograms = 64;

/// Candidates of one sketch that its domain allows, as columns by parameter.
struct Candidates {
  std::vector<std::vector<int64_t>> points;
  std::vector<std::vector<double>> columns;
};

Candidates draw(const SearchSpace& space, int sketch, const schedule::Parametric& made,
                uint64_t seed) {
  Candidates out;
  Rng rng(seed, static_cast<uint64_t>(sketch));
  for (std::size_t tries = 0; tries < 20 * kBatch && out.points.size() < kBatch; ++tries) {
    const Genome genome = random_genome(space, sketch, rng);
    Result<std::vector<int64_t>> values = param_values(made, genome.decisions);
    if (!values.ok() || !schedule::check_values(made, *values).ok()) continue;
    out.columns.resize(values->size());
    for (std::size_t p = 0; p < values->size(); ++p) {
      out.columns[p].push_back(static_cast<double>((*values)[p]));
    }
    out.points.push_back(*std::move(values));
  }
  return out;
}

// The slowest sketch of a task: one that is quick for all others proves nothing.
struct Slowest {
  double batch_ms = 0, derive_ms = 0, program_us = 0;
  std::string name;
  std::size_t num_ops = 0, num_statements = 0;
};

void measure(const Task& task, const SearchSpace& space, int sketch,
             const DraftBenchOptions& options, Slowest* slowest) {
  const Sketch& from = space.sketches[static_cast<std::size_t>(sketch)];
  const Result<schedule::Parametric> made = schedule::parametrize(task.base, from.trace);
  if (!made.ok()) return;
  costmodel::FeatureProgram program;
  double derive_ms = 1e9;
  for (int round = 0; round < 3; ++round) {
    program = costmodel::derive_features(made->program, task.target, &task.base);
    derive_ms = std::min(derive_ms, program.derive_ms);
  }
  slowest->derive_ms = std::max(slowest->derive_ms, derive_ms);
  const Candidates candidates = draw(space, sketch, *made, options.seed);
  if (candidates.points.size() < kBatch) return;
  std::vector<const double*> columns;
  for (const std::vector<double>& column : candidates.columns) columns.push_back(column.data());
  costmodel::FeatureScratch scratch;
  costmodel::FeatureBatch batch;
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    const double start = thread_seconds();
    costmodel::evaluate(program, columns, kBatch, &scratch, &batch);
    best = std::min(best, 1e3 * (thread_seconds() - start));
  }
  if (best < slowest->batch_ms) return;
  const double start = thread_seconds();
  for (int i = 0; i < kPrograms; ++i) {
    const Result<ir::Program> instance =
        schedule::instantiate(*made, candidates.points[static_cast<std::size_t>(i)]);
    if (instance.ok()) static_cast<void>(costmodel::extract(*instance, task.target));
  }
  slowest->program_us = 1e6 * (thread_seconds() - start) / kPrograms;
  slowest->batch_ms = best;
  slowest->name = from.name;
  slowest->num_ops = program.code.num_ops();
  slowest->num_statements = program.num_statements();
}

}  // namespace

std::vector<Row> feature_rows(const DraftBenchOptions& options) {
  std::vector<Row> rows;
  for (const RateCase& c : rate_cases()) {
    const SearchSpace space = make_space(c.task).value();
    Slowest slowest;
    for (std::size_t s = 0; s < space.sketches.size(); ++s) {
      measure(c.task, space, static_cast<int>(s), options, &slowest);
    }
    rows.push_back(
        {"features_512_ms/" + c.name, slowest.batch_ms, "ms", 5.0,
         fmt::format("sketch {}, {} statements, {} operations; {:.2f} us a candidate", slowest.name,
                     slowest.num_statements, slowest.num_ops, 1e3 * slowest.batch_ms / kBatch),
         true});
    rows.push_back({"features_program_us/" + c.name,
                    slowest.program_us,
                    "us",
                    {},
                    "the same sketch: a program built for each candidate, then read"});
    rows.push_back({"features_derive_ms/" + c.name, slowest.derive_ms, "ms", 10.0,
                    "the slowest sketch", true});
  }
  return rows;
}

}  // namespace prunerc::bench
