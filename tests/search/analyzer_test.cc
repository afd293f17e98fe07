// The analyzer over the sketches that search makes: what a draft sees of a candidate is what its
// program has.
#include "costmodel/latency/calibrate.h"
#include "costmodel/latency/program.h"
#include "costmodel/latency/roofline.h"
#include "costmodel/latency/symbols.h"
#include "schedule/legality/gpu_limits.h"
#include "schedule/parametric/parametric.h"
#include "schedule/schedule.h"
#include "search/space/draft_space.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace search;     // NOLINT: a test
using namespace testing;    // NOLINT: a test

struct Count {
  int sketches = 0, candidates = 0;
  int equal = 0;  // to 1e-9
  int near = 0;   // to 10 %
  int refused = 0, illegal = 0, wrongly_refused = 0;
  double derive_ms = 0, most_derive_ms = 0;
  double rank = 0;  // Spearman's, summed over sketches
  int ranked = 0;
};

void compare(const Task& task, const SearchSpace& space, int sketch, int num_cases, Count* count) {
  const Sketch& from = space.sketches[static_cast<std::size_t>(sketch)];
  const Result<schedule::Parametric> made = schedule::parametrize(task.base, from.trace);
  if (!made.ok()) return;
  ++count->sketches;
  const SymbolProgram program = derive(made->program, task.target, {.attrs = open_attrs(*made)});
  count->derive_ms += program.derive_ms;
  count->most_derive_ms = std::max(count->most_derive_ms, program.derive_ms);
  const LatencySymbols symbols =
      latency_symbols(made->program, task.target, Coefficients::kConstant, open_attrs(*made));
  std::vector<double> drafted, replayed_ns;
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
    schedule::Trace candidate = from.trace;
    candidate.decisions = random_genome(space, sketch, rng).decisions;
    const Result<std::vector<int64_t>> values = param_values(*made, candidate.decisions);
    const Result<schedule::Schedule> replayed = schedule::replay(task.base, candidate);
    if (!values.ok() || !replayed.ok()) continue;
    const std::vector<double> params(values->begin(), values->end());
    const Sym wanted[] = {symbols.total_ns, symbols.is_feasible};
    const std::vector<double> got = evaluate(wanted, params);
    const bool is_legal = schedule::check_gpu_limits(replayed->program(), task.target).ok();
    INFO(task.name << " " << from.name << " case " << i);
    count->refused += got[1] == 0 ? 1 : 0;
    count->illegal += is_legal ? 0 : 1;
    const bool constraints = ir::satisfies_constraints(made->program.domain(), *values);
    if (got[1] == 0 && is_legal && constraints) ++count->wrongly_refused;
    if (got[1] == 0 || !is_legal) continue;
    const double ns = estimate_latency(replayed->program(), task.target).total_ns;
    ++count->candidates;
    count->equal += std::abs(got[0] / ns - 1) < 1e-9 ? 1 : 0;
    count->near += std::abs(got[0] / ns - 1) < 0.1 ? 1 : 0;
    drafted.push_back(got[0]);
    replayed_ns.push_back(ns);
  }
  const auto [least, most] = std::minmax_element(replayed_ns.begin(), replayed_ns.end());
  if (drafted.size() < 5 || *least == *most) return;
  count->rank += rank_correlation(drafted, replayed_ns);
  ++count->ranked;
}

void print(const char* what, const Count& c) {
  std::cout << what << ": " << c.sketches << " sketches derived in " << c.derive_ms / c.sketches
            << " ms (at most " << c.most_derive_ms << "); of " << c.candidates << " candidates "
            << c.equal << " equal, " << c.near << " within 10 %; rank correlation "
            << c.rank / std::max(1, c.ranked) << "; " << c.refused << " refused, " << c.illegal
            << " illegal\n";
}

Count compare_all(const char* target_name, bool is_gpu) {
  Count count;
  for (const NamedProgram& op : operator_programs()) {
    if (is_gpu && !op.has_gpu_form) continue;
    // To a GPU const operators are those without, once more.
    if (is_gpu && std::string(op.name).ends_with("_const")) continue;
    const Task task =
        is_gpu ? make_task(op.name, operator_program(op.name), *ir::target_from_string(target_name))
               : make_test_task(op.name);
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      compare(task, *space, static_cast<int>(s), num_cases(200) / 10, &count);
    }
  }
  print(target_name, count);
  return count;
}

TEST_CASE("what a draft sees of a candidate for a processor is what its program has") {
  const Count c = compare_all("cpu", false);
  CHECK(c.wrongly_refused == 0);
  // Guards that the simplifier proves for a program leave its sketch some percent above it.
  CHECK(c.equal > 0.985 * c.candidates);
  CHECK(c.near == c.candidates);
  CHECK(c.rank > 0.999 * c.ranked);
}

TEST_CASE("what a draft sees of a candidate for a GPU is what its program has") {
  const Count c = compare_all("cuda-host:sm_80", true);
  CHECK(c.wrongly_refused == 0);
  // Guards of fetches by more threads than elements simplify subscripts of the program: of most
  // candidates where extents are small and odd.
  CHECK(c.equal > 0.35 * c.candidates);
  CHECK(c.near > 0.99 * c.candidates);
  CHECK(c.rank > 0.995 * c.ranked);
  CHECK(c.refused >= 0.9 * c.illegal);
}

// A product of f16 of 4096 rows takes an H100 0.19 ms by hand.
const char* const kHalfProduct =
    R"(program p(A: f16[4096, 4096], B: f16[4096, 4096]) -> (C: f32[4096, 4096]) {
  for i in 4096 @L0 { for j in 4096 @L1 { for k in 4096 @L2 {
    block "C" @B0 [vi: S(4096) = i, vj: S(4096) = j, vk: R(4096) = k] {
      reads A[vi, vk], B[vk, vj] writes C[vi, vj] init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[vk, vj]) } } } } })";

TEST_CASE(
    "no way to run tensor instructions of four warps on an H100 is taken for slow, and the best "
    "beats mma.sync") {
  const Task task =
      make_task("p", parse_or_die(kHalfProduct), *ir::target_from_string("cuda:h100"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  double best_bulk = 1e12, best_warp = 1e12;
  int num_bulk = 0, num_warp = 0;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const std::string& name = space->sketches[s].name;
    if (name.find("tensor") == name.npos && name.find("wgmma") == name.npos) continue;
    for (int i = 0; i < num_cases(200) / 10; ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(s), static_cast<uint64_t>(i));
      schedule::Trace candidate = space->sketches[s].trace;
      candidate.decisions = random_genome(*space, static_cast<int>(s), rng).decisions;
      const Result<schedule::Schedule> replayed = schedule::replay(task.base, candidate);
      if (!replayed.ok() || !schedule::check_gpu_limits(replayed->program(), task.target).ok()) {
        continue;
      }
      const double ns = estimate_latency(replayed->program(), task.target).total_ns;
      if (name.find("wgmma") == name.npos) {
        ++num_warp;
        best_warp = std::min(best_warp, ns);
        continue;
      }
      if (name.find("threads") != name.npos) continue;  // no bulk copies
      INFO(name << " case " << i);
      ++num_bulk;
      CHECK(ns < 1e6);
      best_bulk = std::min(best_bulk, ns);
    }
  }
  CHECK(num_bulk > 20);
  CHECK(num_warp > 20);
  CHECK(best_bulk < 0.75 * best_warp);
  CHECK(best_bulk > 0.13e6);
  CHECK(best_bulk < 0.3e6);
}

TEST_CASE("tensor instructions are chosen for bytes whose rows run across K, too") {
  const Task task = make_task("p", parse_or_die(R"(
program p(A: i8[2048, 2048], B: i8[2048, 2048]) -> (C: i32[2048, 2048]) {
  for i in 2048 { for j in 2048 { for k in 2048 {
    block "C" [vi: S(2048) = i, vj: S(2048) = j, vk: R(2048) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk]) * i32(B[vk, vj]) } } } } })"),
                              *ir::target_from_string("cuda:h100"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  double warps = 1e12, across = 1e12, warpgroups = 1e12, lanes = 1e12;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const Sketch& sketch = space->sketches[s];
    double& best = sketch.name.find("across") != sketch.name.npos   ? across
                   : sketch.name.find("tensor") != sketch.name.npos ? warps
                   : sketch.name.find("wgmma") != sketch.name.npos  ? warpgroups
                                                                    : lanes;
    for (int i = 0; i < num_cases(200); ++i) {
      Rng rng(first_seed(), static_cast<uint64_t>(s), static_cast<uint64_t>(i));
      schedule::Trace candidate = sketch.trace;
      candidate.decisions = random_genome(*space, static_cast<int>(s), rng).decisions;
      const Result<schedule::Schedule> made = schedule::replay(task.base, candidate);
      if (!made.ok() || !schedule::check_gpu_limits(made->program(), task.target).ok()) continue;
      best = std::min(best, estimate_latency(made->program(), task.target).total_ns);
    }
  }
  CHECK(warps < lanes);
  // Packed byte by byte (across) they take longer than turned (tests/data/h100/drafted has both).
  CHECK(warps < across);
  CHECK(across < lanes);
  CHECK(warpgroups < lanes);
  CHECK(lanes < 1e12);
}

TEST_CASE("what a draft sees of swizzled tiles is what a candidate's program has") {
  const Task task =
      make_task("p", parse_or_die(kHalfProduct), *ir::target_from_string("cuda:a100"));
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  Count count;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const std::string& name = space->sketches[s].name;
    const bool swizzles =
        name.find("swizzle") != name.npos || name.find("tensor+split k") != name.npos;
    if (swizzles) compare(task, *space, static_cast<int>(s), num_cases(200) / 10, &count);
  }
  print("swizzled", count);
  CHECK(count.sketches == 4);
  CHECK(count.wrongly_refused == 0);
  CHECK(count.candidates > 20);
  CHECK(count.near > 0.99 * count.candidates);
}

}  // namespace
}  // namespace prunerc
