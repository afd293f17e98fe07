#include "tests/property/fpv_runs.h"

#include "ir/analysis/ownership.h"
#include "ir/fpv/fpv.h"
#include "ir/interp/interpreter.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/mutants.h"
#include "tests/support/operators.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;        // NOLINT: a source file of tests
using namespace prunerc::schedule;  // NOLINT: a source file of tests

constexpr std::size_t kShown = 12;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t extent_of(const Program& program, LoopId id) {
  int64_t found = -1;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        const IntImm* extent = loop != nullptr ? loop->extent.as<IntImm>() : nullptr;
        if (loop != nullptr && loop->id == id && extent != nullptr) found = extent->value;
        return true;
      },
      [](Expr) {});
  return found;
}

bool leaves_tail(const Program& before, const Instruction& step) {
  if (step.primitive != PrimitiveKind::kSplit) return false;
  const int64_t extent = extent_of(before, std::get<LoopId>(step.operands[0]));
  int64_t product = 1;
  for (const Int& factor : std::get<std::vector<Int>>(step.operands[1])) {
    if (factor.value > 0) product *= factor.value;
  }
  return extent > 0 && product > 0 && extent % product != 0;
}

struct RandomTrace {
  Schedule schedule;
  std::set<std::string> primitives;
  int mutating = 0;
  bool has_tail = false;
};

void apply(const RandomStep& step, RandomTrace* out) {
  const Program before = out->schedule.program();
  if (!out->schedule.apply(step.instruction, step.decision).ok()) return;
  out->primitives.insert(std::string(to_string(step.instruction.primitive)));
  if (step.instruction.is_sample()) return;
  out->has_tail |= leaves_tail(before, step.instruction);
  ++out->mutating;
}

// Draws steps until one of the named primitive is applied, or many were drawn in vain.
void seek(std::string_view name, RandomTrace* out, Rng& rng) {
  constexpr int kDraws = 1000;
  for (int d = 0; d < kDraws && out->primitives.count(std::string(name)) == 0; ++d) {
    const RandomStep step = random_step(out->schedule, rng);
    if (to_string(step.instruction.primitive) == name) apply(step, out);
  }
}

// Random steps until `wanted` of them have changed something. `aim`: a primitive that comes first,
// if it can; many fit only a program that is still simple.
RandomTrace random_trace(const Program& base, int wanted, std::string_view aim, Rng& rng) {
  RandomTrace out{Schedule(base), {}, 0, false};
  if (aim == "cache_inplace") seek("decompose_reduction", &out, rng);
  if (aim == "unannotate_loop") seek("annotate_loop", &out, rng);
  if (aim == "unannotate_block") seek("annotate_block", &out, rng);
  if (!aim.empty()) seek(aim, &out, rng);
  constexpr int kAttempts = 150;
  for (int i = 0; i < kAttempts && out.mutating < wanted; ++i) {
    apply(random_step(out.schedule, rng), &out);
  }
  return out;
}

// One of those that the fewest traces have so far.
std::string_view rare_primitive(const TraceTally& tally, Rng& rng) {
  constexpr std::string_view kNames[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) text,
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
  };
  constexpr std::size_t kRarest = 4;
  std::vector<std::pair<int, std::string_view>> counts;
  for (std::string_view name : kNames) {
    const auto at = tally.primitives.find(std::string(name));
    counts.emplace_back(at != tally.primitives.end() ? at->second : 0, name);
  }
  std::sort(counts.begin(), counts.end());
  return counts[rng.below(std::min(kRarest, counts.size()))].second;
}

// Whether outputs differ by more than rounding.
bool differs(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (int64_t i = 0; i < a[t].num_elements(); ++i) {
      const double x = a[t].get(i);
      const double y = b[t].get(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!(std::fabs(x - y) <= 1e-3 * (std::fabs(x) + std::fabs(y)) + 1e-6)) return true;
    }
  }
  return false;
}

// Whether the interpreter tells the mutant from its original.
bool is_counted(const Program& spec, const Program& mutant, Rng& rng) {
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> inputs = random_inputs(spec, rng);
    const Result<std::vector<Tensor>> expected = interpret(spec, inputs);
    const Result<std::vector<Tensor>> found = interpret(mutant, inputs);
    if (!expected.ok()) return false;
    if (!found.ok() || differs(*expected, *found)) return true;
  }
  return false;
}

}  // namespace

TraceTally run_traces(int num_traces, uint64_t seed) {
  const std::vector<NamedProgram> gallery = operator_gallery();
  TraceTally tally;
  // How often a primitive that was aimed at was had, by operator.
  std::map<std::string, std::map<std::size_t, int>> hits;
  for (uint64_t i = 0; tally.traces < num_traces; ++i) {
    Rng rng(seed, i);
    std::size_t which = i % gallery.size();
    const std::string aim(rng.chance(0.5) ? rare_primitive(tally, rng) : "");
    std::map<std::size_t, int>& found = hits[aim];
    const auto best =
        std::max_element(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best != found.end() && best->second > 0 && rng.chance(0.7)) which = best->first;
    const NamedProgram& base = gallery[which];
    const RandomTrace trace = random_trace(base.program, kTraceSteps, aim, rng);
    found[which] += trace.primitives.count(aim) != 0 ? 1 : -2;
    if (trace.mutating < kTraceSteps) continue;
    FpvOptions options;
    options.seed = rng.next();
    if (schedule::rounds_elsewhere(trace.schedule.trace())) options.roundings = Roundings::kIgnored;
    const auto describe = [&](const FpvVerdict& verdict) {
      return base.name + " (seed " + std::to_string(seed) + ", " + std::to_string(i) +
             "): " + to_string(verdict) + "\n" + print(trace.schedule.trace()) +
             print(trace.schedule.program());
    };
    const Proof owned = check_ownership(trace.schedule.program()).proof;
    if (owned != Proof::kYes) {
      ++(owned == Proof::kNo ? tally.strays : tally.strays_unknown);
      const FpvVerdict verdict = check_equivalent(base.program, trace.schedule.program(), options);
      if (owned == Proof::kUnknown || verdict.kind == VerdictKind::kInvalid) continue;
      ++tally.strays_missed;
      if (tally.alarms.size() < kShown) tally.alarms.push_back("STRAY " + describe(verdict));
      continue;
    }
    ++tally.traces;
    ++tally.operators[base.name];
    for (const std::string& name : trace.primitives) ++tally.primitives[name];
    tally.non_dividing += trace.has_tail ? 1 : 0;
    if (i % 4 == 0) options.width = WorldWidth::kTwo;
    const auto start = std::chrono::steady_clock::now();
    const FpvVerdict verdict = check_equivalent(base.program, trace.schedule.program(), options);
    tally.check_s += seconds_since(start);
    if (verdict.ok()) continue;
    ++(verdict.kind == VerdictKind::kUnsupported ? tally.unsupported : tally.false_alarms);
    if (tally.alarms.size() < kShown) tally.alarms.push_back(describe(verdict));
  }
  return tally;
}

MutantTally run_mutants(int num_counted, uint64_t seed) {
  const std::vector<NamedProgram> gallery = operator_gallery();
  MutantTally tally;
  for (uint64_t i = 0; tally.counted < num_counted; ++i) {
    Rng rng(seed, i, 1);
    const NamedProgram& base = gallery[rng.below(gallery.size())];
    const int steps = rng.chance(0.5) ? 0 : 5;
    const Program original = random_trace(base.program, steps, "", rng).schedule.program();
    if (check_ownership(original).proof == Proof::kNo) continue;
    // Kinds in turn, so that rare places are mutated as often as common ones.
    const auto kind = static_cast<MutantKind>(i % kNumMutantKinds);
    const std::optional<Program> mutant = mutate(original, kind, rng);
    if (!mutant) continue;
    const bool counts = is_counted(base.program, *mutant, rng);
    FpvOptions options;
    options.seed = rng.next();
    const auto start = std::chrono::steady_clock::now();
    const FpvVerdict verdict = check_equivalent(base.program, *mutant, options);
    tally.check_s += seconds_since(start);
    const std::string name = std::string(to_string(kind)) + " in " + base.name + " (seed " +
                             std::to_string(seed) + ", " + std::to_string(i) + ")";
    if (!counts) {
      ++tally.same;
      tally.same_caught += verdict.ok() ? 0 : 1;
      if (verdict.ok()) {
        tally.same_texts.push_back(name);
        if (std::getenv("PRUNERC_TRACE"))
          tally.same_texts.back() += "\n" + print(original) + print(*mutant);
      }
      continue;
    }
    ++tally.counted;
    ++tally.kinds[std::string(to_string(kind))];
    tally.unsupported += verdict.kind == VerdictKind::kUnsupported ? 1 : 0;
    if (!verdict.ok()) continue;
    ++tally.accepted;
    if (tally.accepted_texts.size() < kShown) {
      tally.accepted_texts.push_back(name + "\n" + to_string(verdict) + "\n" + print(original) +
                                     "mutant:\n" + print(*mutant));
    }
  }
  return tally;
}

}  // namespace prunerc::testing
