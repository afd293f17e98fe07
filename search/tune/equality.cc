#include "search/tune/equality.h"

#include "ir/equal.h"
#include "schedule/twin/twin.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

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

ir::FpvVerdict joined(const ir::FpvVerdict& first, const ir::FpvVerdict& second) {
  if (!first.ok()) return is_refuted(second) && !is_refuted(first) ? second : first;
  if (!second.ok()) return second;
  const double most = std::max(first.log2_error, second.log2_error);
  const double least = std::min(first.log2_error, second.log2_error);
  ir::FpvVerdict out = second;
  out.log2_error = most + std::log2(1 + std::exp2(least - most));
  out.tests += first.tests;
  out.assumes.add(first.assumes);
  return out;
}

ir::FpvVerdict check_in_pieces(const ir::Program& base, std::span<const ir::Program> around,
                               const ir::Program& scheduled, double log2_error,
                               const Comparison& compare) {
  // Sums of 2^n bounds, each smaller by 2^n, are within what is wanted.
  const double wanted = log2_error - std::ceil(std::log2(around.size() + 1));
  std::optional<ir::FpvVerdict> out;
  const ir::Program* from = &base;
  for (std::size_t i = 0; i <= around.size(); ++i) {
    const bool is_last = i == around.size();
    const ir::Program& to = is_last ? scheduled : around[i];
    const bool is_step = i % 2 == 1;  // of which around[i - 1] is before
    // Nothing stands before such a step, or between two.
    if (!is_last && !is_step && structural_equal(*from, to)) continue;
    ir::FpvVerdict piece = compare(*from, to, ir::Roundings::kOpaque, wanted);
    const bool may_round =
        piece.kind == ir::VerdictKind::kNotEqual || piece.kind == ir::VerdictKind::kUnsupported;
    if (is_step && may_round) piece = compare(*from, to, ir::Roundings::kIgnored, wanted);
    out = out ? joined(*out, piece) : piece;
    if (is_refuted(*out)) break;
    from = &to;
  }
  return *out;
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
    options.seed = seed;
    options.max_steps = log2_error < kDraftLog2Error ? kStoredSteps : kDraftSteps;
    out.verdict = check_in_pieces(twin->base, twin->around, twin->scheduled, log2_error,
                                  [&](const ir::Program& from, const ir::Program& to,
                                      ir::Roundings roundings, double wanted) {
                                    options.roundings = roundings;
                                    options.log2_error = wanted;
                                    return ir::check_equivalent(from, to, options);
                                  });
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
