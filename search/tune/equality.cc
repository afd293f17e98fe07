#include "search/tune/equality.h"

#include "schedule/twin/twin.h"

#include <chrono>

namespace prunerc::search {
namespace {

using Clock = std::chrono::steady_clock;

// Lanes of one run of one program; about 0.1 s. What is stored may take longer.
constexpr int64_t kDraftSteps = 6'000'000;
constexpr int64_t kStoredSteps = 60'000'000;
/// Of all inputs of a twin together, which each test fills anew: a table of which little is read can be
/// large where steps are few. About 3 s.
constexpr double kMostElements = 6e6;

double num_input_elements(const ir::Program& program) {
  double sum = 0;
  for (const ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    double elements = 1;
    for (const ir::Expr extent : buffer.shape) {
      const auto* number = extent.as<ir::IntImm>();
      elements *= number != nullptr ? static_cast<double>(number->value) : 1;
    }
    sum += elements;
  }
  return sum;
}

}  // namespace

ir::Roundings roundings_of(const schedule::Trace& trace) {
  return schedule::rounds_elsewhere(trace) ? ir::Roundings::kIgnored : ir::Roundings::kOpaque;
}

EqualityResult check_on_twin(const Task& task, const schedule::Trace& trace, double log2_error,
                             uint64_t seed) {
  const auto start = Clock::now();
  EqualityResult out;
  const Result<schedule::Twin> twin = schedule::make_twin(task.base, trace);
  if (twin.ok() && num_input_elements(twin->base) > kMostElements) {
    out.verdict.text = "no twin: its inputs are too large";
  } else if (twin.ok()) {
    ir::FpvOptions options;
    options.log2_error = log2_error;
    options.seed = seed;
    options.roundings = roundings_of(trace);
    options.max_steps = log2_error < kDraftLog2Error ? kStoredSteps : kDraftSteps;
    out.verdict = ir::check_equivalent(twin->base, twin->scheduled, options);
    // Shrinking may have broken a base that is valid at its own size.
    if (out.verdict.kind == ir::VerdictKind::kSpecInvalid && !twin->is_true_shape) {
      out.verdict.kind = ir::VerdictKind::kUnsupported;
      out.verdict.text = "no valid twin: " + out.verdict.text;
    }
  } else {
    out.verdict.text = twin.error().message();
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return out;
}

std::vector<EqualityResult> check_candidates(const EqualityCheck& check, const Task& task,
                                             std::span<const Candidate> candidates,
                                             std::span<const EqualityQuestion> questions,
                                             uint64_t round, uint64_t seed, ThreadPool& pool) {
  return pool.map<EqualityResult>(questions.size(), [&](std::size_t i) {
    const Candidate& candidate = candidates[questions[i].candidate];
    const uint64_t own = hash_combine(hash_combine(seed, candidate.fingerprint.low), round);
    return check(task, candidate.trace, questions[i].log2_error, own);
  });
}

}  // namespace prunerc::search
