#include "costmodel/latency/coefficients.h"
#include "ir/lang/lang.h"
#include "ir/support/check.h"
#include "search/space/draft_space.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/strategy/drafter.h"
#include "tests/bench/draft/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

constexpr const char* kGemm =
    "op gemm(A: f32[1024,1024], B: f32[1024,1024]) -> (C: f32[1024,1024]) {\n"
    "  C[i,j] = sum[k] A[i,k] * B[k,j];\n}\n";
constexpr const char* kConv =
    "op conv2d(X: f32[1,64,56,56], F: f32[64,64,3,3]) -> (Y: f32[1,64,56,56]) {\n"
    "  Y[n,co,oh,ow] = sum[ci,kh,kw] (X[n, ci, oh + kh - 1, ow + kw - 1] or 0) * F[co,ci,kh,kw];\n"
    "}\n";

double size_of(const DraftSketch& sketch) {
  double size = 1;
  for (const GeneTable& table : sketch.tables) size *= static_cast<double>(table.num_drawn());
  return size;
}

// Rounds as a search makes them: half drawn, half bred, until the time is over.
Row draft_rate(const std::string& name, ir::TargetKind kind, DraftSketch& sketch,
               const std::string& sketch_name, const DraftBenchOptions& options) {
  constexpr int64_t kRound = 100'000;
  constexpr std::size_t kKeep = 512;
  const auto coefficients = costmodel::hand_coefficients(kind);
  Drafter drafter(sketch, kKeep, coefficients, options.seed);
  const double start = thread_seconds();
  double spent = 0;
  int64_t before = -1;
  while (spent < options.seconds && drafter.counts().scored > before) {
    before = drafter.counts().scored;
    drafter.draw(kRound / 2);
    drafter.breed(kRound / 2);
    spent = thread_seconds() - start;
  }
  const DraftCounts& counts = drafter.counts();
  const auto scored = static_cast<double>(counts.scored);
  // The end of a space is mostly repetitions.
  const bool exhausted = scored > 0.5 * size_of(sketch);
  const std::optional<double> goal = exhausted ? std::nullopt : std::optional(1e6);
  return {fmt::format("draft_per_s/{}/{}{}", name, sketch_name, exhausted ? " (exhausted)" : ""),
          scored / spent, "1/s", goal,
          fmt::format("{} distinct of {} in {:.2f} CPU s, {:.0f} % feasible, {} operations each",
                      counts.scored, counts.proposed, spent,
                      100 * static_cast<double>(counts.feasible) / scored,
                      sketch.symbols.score.num_ops())};
}

// The same by a program for each candidate.
Row replay_rate(const RateCase& c, const SearchSpace& space, const DraftBenchOptions& options) {
  Rng rng(options.seed);
  const double start = thread_seconds();
  int64_t made = 0;
  while (thread_seconds() - start < options.seconds / 2) {
    const auto sketch = static_cast<int>(rng.below(space.sketches.size()));
    const Genome genome = random_genome(space, sketch, rng);
    made += instantiate(c.task, space, sketch, genome.decisions).ok() ? 1 : 0;
  }
  return {"programs_per_s/" + c.name,
          static_cast<double>(made) / (thread_seconds() - start),
          "1/s",
          {},
          "replayed with all checks, then analyzed"};
}

// Derivation and 50,000 candidates of all sketches in one go.
Row whole_draft(const RateCase& c, const SearchSpace& space, const DraftBenchOptions& options) {
  constexpr int64_t kCandidates = 50'000;
  const double start = thread_seconds();
  DraftSpace draft = make_draft_space(c.task, space, Analyzer::kPrunerc, options.seed);
  const auto coefficients = costmodel::hand_coefficients(c.task.target.kind);
  int64_t scored = 0;
  // Small sketches first: what they lack, the others make up for.
  std::sort(draft.sketches.begin(), draft.sketches.end(),
            [](const DraftSketch& a, const DraftSketch& b) { return size_of(a) < size_of(b); });
  const auto parts = static_cast<int64_t>(draft.sketches.size());
  for (int64_t s = 0; s < parts; ++s) {
    Drafter drafter(draft.sketches[static_cast<std::size_t>(s)], 512, coefficients, options.seed);
    const int64_t share = (kCandidates - scored + parts - s - 1) / (parts - s);
    int64_t before = -1;
    while (drafter.counts().scored < share && drafter.counts().scored > before) {
      before = drafter.counts().scored;
      drafter.draw(share - before);
    }
    scored += drafter.counts().scored;
  }
  return {
      "draft_50000_s/" + c.name,
      thread_seconds() - start,
      "s",
      0.2,
      fmt::format("{} distinct, {} sketches, derivation {:.1f} ms", scored, parts, draft.derive_ms),
      true};
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<RateCase> rate_cases() {
  const char* cpu = "cpu:znver4 num_threads=1";
  const char* gpu = "cuda-host:sm_80";
  return {{"cpu/gemm", make_bench_task(kGemm, cpu)},
          {"cpu/conv2d", make_bench_task(kConv, cpu)},
          {"gpu/gemm", make_bench_task(kGemm, gpu)},
          {"gpu/conv2d", make_bench_task(kConv, gpu)}};
}

Task make_bench_task(const std::string& text, const std::string& target) {
  lang::CompileInput input;
  input.file_name = "bench.prn";
  input.text = text;
  lang::LangResult compiled = lang::compile(input);
  PRUNERC_CHECK(compiled.program.has_value(), "a benchmark's operator compiles");
  const std::string name(compiled.program->name());
  return make_task(name, *std::move(compiled.program), ir::target_from_string(target).value());
}

std::vector<Row> rate_rows(const DraftBenchOptions& options) {
  std::vector<Row> rows;
  for (const RateCase& c : rate_cases()) {
    const SearchSpace space = make_space(c.task).value();
    DraftSpace draft = make_draft_space(c.task, space, Analyzer::kPrunerc, options.seed);
    for (DraftSketch& sketch : draft.sketches) {
      const std::string& name = space.sketches[static_cast<std::size_t>(sketch.sketch)].name;
      rows.push_back(draft_rate(c.name, c.task.target.kind, sketch, name, options));
    }
    rows.push_back({"derive_ms/" + c.name,
                    draft.derive_ms,
                    "ms",
                    {},
                    fmt::format("{} sketches, {} without a parametric form", space.sketches.size(),
                                draft.not_parametric.size())});
    for (const DraftSpace::NotParametric& one : draft.not_parametric) {
      fmt::print("  {}: {}\n", space.sketches[static_cast<std::size_t>(one.sketch)].name, one.why);
    }
    rows.push_back(replay_rate(c, space, options));
    rows.push_back(whole_draft(c, space, options));
  }
  return rows;
}

}  // namespace prunerc::bench
