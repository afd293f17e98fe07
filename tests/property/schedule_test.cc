// The promise of every primitive: it keeps the meaning of the program, or it says why not and
// changes nothing.
#include "schedule/schedule.h"

#include "ir/analysis/ownership.h"
#include "ir/equal.h"
#include "ir/fpv/fpv.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/primitive.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace testing;   // NOLINT: a test
using namespace schedule;  // NOLINT: a test

// "" if what the trace made still does what it should, else what is wrong. Two judges: the interpreter on
// small whole numbers, and the verifier, which sees races and undefined elements besides.
std::string wrong(const Program& base, const Schedule& made, const std::vector<Tensor>& inputs,
                  const std::vector<Tensor>& expected) {
  const Program& program = made.program();
  const Result<void> verified = verify(program);
  if (!verified.ok()) return "verify: " + verified.error().message();
  for (ParallelOrder order : {ParallelOrder::kForward, ParallelOrder::kBackward}) {
    InterpretOptions options;
    options.parallel_order = order;
    options.max_steps = 20'000'000;
    const Result<std::vector<Tensor>> outputs = interpret(program, inputs, options);
    const std::string which = order == ParallelOrder::kForward ? "" : "backwards: ";
    if (!outputs.ok()) return which + outputs.error().message();
    const std::string difference = first_difference(expected, *outputs);
    if (!difference.empty()) return which + difference;
  }
  FpvOptions options;
  if (rounds_elsewhere(made.trace())) options.roundings = Roundings::kIgnored;
  const FpvVerdict verdict = check_equivalent(base, program, options);
  // Primitives bind loop by loop; that threads keep to their own registers is seen afterwards.
  if (check_ownership(program).proof == Proof::kNo) {
    return verdict.kind == VerdictKind::kInvalid ? "" : "stray registers: " + to_string(verdict);
  }
  return verdict.ok() ? "" : "verifier: " + to_string(verdict);
}

// The shortest trace found by dropping steps one at a time that still gives a wrong program.
Trace reduce(const Program& base, Trace trace, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& expected) {
  for (std::size_t i = trace.instructions.size(); i-- > 0;) {
    Trace shorter = trace;
    if (shorter.instructions[i].is_sample()) continue;  // its decision would have to go, too
    shorter.instructions.erase(shorter.instructions.begin() + static_cast<std::ptrdiff_t>(i));
    const Result<Schedule> replayed = replay(base, shorter);
    if (replayed.ok() && !wrong(base, *replayed, inputs, expected).empty()) {
      trace = replayed->trace();
    }
  }
  return trace;
}

struct Tally {
  std::array<int, 96> applied{};
  std::array<int, 96> refused{};
  std::map<std::string, int> reasons;
};

std::string describe(const Instruction& instruction) {
  Trace one;
  one.instructions.push_back(instruction);
  if (instruction.is_sample()) one.decisions.emplace_back();
  return print(one);
}

void check_final(const Program& base, const Schedule& s) {
  const Trace& trace = s.trace();
  const std::string text = print(trace);
  INFO("trace:\n" << text);
  const Result<Trace> read = parse_trace(text);
  REQUIRE_OK(read);
  REQUIRE(*read == trace);
  const Result<Schedule> again = replay(base, *read);
  REQUIRE_OK(again);
  REQUIRE(structural_equal(again->program(), s.program()));
  REQUIRE(again->trace() == trace);

  const std::string program_text = print(s.program());
  INFO("program:\n" << program_text);
  const Result<Program> parsed = parse(program_text);
  REQUIRE_OK(parsed);
  REQUIRE(print(*parsed) == program_text);
  REQUIRE(structural_equal(*parsed, s.program()));
  REQUIRE(fingerprint(*parsed) == fingerprint(s.program()));
}

void check_case(uint64_t seed, Tally* tally) {
  Rng rng(seed, 1);
  const Program base = random_program(rng, random_policy(rng));
  const std::vector<Tensor> inputs = random_inputs(base, rng);
  const std::vector<Tensor> expected = interpret_or_die(base, inputs);
  Schedule s(base, Verify::kEachStep);
  // Random steps alone hardly ever make the tiles of an intrinsic.
  Rng mapping_rng(seed, 2);
  if (mapping_rng.chance(0.15) && random_mapping(s, mapping_rng)) {
    for (const Instruction& step : s.trace().instructions) {
      ++tally->applied[static_cast<std::size_t>(step.primitive)];
    }
    const std::string problem = wrong(base, s, inputs, expected);
    INFO("seed " << seed << ": " << problem << "\nmapping:\n" << print(s.trace()) << print(base));
    if (!problem.empty()) FAIL_CHECK("a mapping changed what the program means");
  }
  const int num_steps = static_cast<int>(rng.between(1, 18));
  for (int i = 0; i < num_steps; ++i) {
    const RandomStep step = random_step(s, rng);
    const Program before = s.program();
    const Trace trace_before = s.trace();
    const std::string step_text = describe(step.instruction);
    const auto kind = static_cast<std::size_t>(step.instruction.primitive);
    if (std::getenv("PRUNERC_TRACE") != nullptr) {
      std::fprintf(stderr, "seed %d: %s", static_cast<int>(seed), step_text.c_str());
    }
    const auto result = s.apply(step.instruction, step.decision);
    if (!result.ok()) {
      INFO("seed " << seed << " step " << step_text << result.error().message());
      INFO("trace:\n" << print(trace_before) << "program:\n" << print(before));
      REQUIRE(s.program().is(before));
      REQUIRE(s.trace() == trace_before);
      REQUIRE(diag_name(result.error().id()) != "Internal");
      REQUIRE(diag_name(result.error().id()).substr(0, 6) != "Verify");
      ++tally->refused[kind];
      ++tally->reasons[std::string(to_string(step.instruction.primitive)) + " " +
                       std::string(diag_name(result.error().id()))];
      continue;
    }
    ++tally->applied[kind];
    const std::string problem = wrong(base, s, inputs, expected);
    if (problem.empty()) continue;
    const Trace reduced = reduce(base, s.trace(), inputs, expected);
    INFO("seed " << seed << ": " << problem << "\nlast step " << step_text);
    INFO("reduced trace:\n" << print(reduced) << "base:\n" << print(base));
    const Result<Schedule> shown = replay(base, reduced);
    INFO("result:\n" << (shown.ok() ? print(shown->program()) : print(s.program())));
    FAIL_CHECK("a primitive changed what the program means");
    return;
  }
  check_final(base, s);
}

TEST_CASE("random primitives keep the meaning of random programs or refuse") {
  Tally tally;
  for (int i = 0; i < num_cases(); ++i) {
    check_case(first_seed() + static_cast<uint64_t>(i), &tally);
  }
  int applied = 0;
  int refused = 0;
  for (std::size_t k = 0; k < tally.applied.size(); ++k) {
    applied += tally.applied[k];
    refused += tally.refused[k];
    if (std::getenv("PRUNERC_TALLY") != nullptr && tally.applied[k] + tally.refused[k] > 0) {
      std::printf("%-24s applied %d refused %d\n",
                  std::string(to_string(static_cast<PrimitiveKind>(k))).c_str(), tally.applied[k],
                  tally.refused[k]);
    }
  }
  if (std::getenv("PRUNERC_TALLY") != nullptr) {
    for (const auto& [reason, count] : tally.reasons)
      std::printf("%7d %s\n", count, reason.c_str());
  }
  // A property that is only ever refused would show nothing.
  CHECK(applied * 5 > refused);
}

}  // namespace
}  // namespace prunerc
