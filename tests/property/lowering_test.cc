// The promise of every lowering pass: scheduled programs keep their meaning, down to the form that
// code is made from.
#include "codegen/pipeline.h"
#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// "" if the program still does what it should, else what is wrong.
std::string wrong(const Program& program, const std::vector<Tensor>& inputs,
                  const std::vector<Tensor>& expected) {
  const Result<void> verified = verify(program);
  if (!verified.ok()) return "verify: " + verified.error().message();
  for (ParallelOrder order : {ParallelOrder::kForward, ParallelOrder::kBackward}) {
    InterpretOptions options;
    options.parallel_order = order;
    options.max_steps = 20'000'000;
    const Result<std::vector<Tensor>> outputs = interpret(program, inputs, options);
    if (!outputs.ok()) return outputs.error().message();
    const std::string difference = first_difference(expected, *outputs);
    if (!difference.empty()) return difference;
  }
  const std::string text = print(program);
  const Result<Program> parsed = parse(text);
  if (!parsed.ok()) return "parse: " + parsed.error().message();
  if (print(*parsed) != text) return "prints differently after parsing";
  if (fingerprint(*parsed) != fingerprint(program)) return "another fingerprint after parsing";
  return "";
}

schedule::Schedule random_schedule(const Program& base, Rng& rng) {
  schedule::Schedule s(base);
  const int num_steps = static_cast<int>(rng.between(0, 16));
  for (int i = 0; i < num_steps; ++i) {
    const RandomStep step = random_step(s, rng);
    // Steps that are refused are none.
    static_cast<void>(s.apply(step.instruction, step.decision).ok());
  }
  return s;
}

TEST_CASE("each lowering pass keeps the meaning of random scheduled programs") {
  const Result<Target> target = target_from_string("cpu");
  REQUIRE_OK(target);
  int lowered = 0;
  std::map<std::string, int> refusals;
  for (int i = 0; i < num_cases(); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 4);
    const Program base = random_program(rng, random_policy(rng));
    const std::vector<Tensor> inputs = random_inputs(base, rng);
    const std::vector<Tensor> expected = interpret_or_die(base, inputs);
    const schedule::Schedule s = random_schedule(base, rng);
    Program program = s.program();
    bool is_whole = true;
    for (const codegen::Pass& pass : codegen::cpu_passes()) {
      if (std::getenv("PRUNERC_TRACE") != nullptr) {
        std::fprintf(stderr, "seed %d: %s\n", static_cast<int>(seed),
                     std::string(pass.name).c_str());
      }
      const Result<Program> after = pass.run(program, *target);
      if (!after.ok()) {
        ++refusals[std::string(pass.name) + ": " + after.error().message()];
        is_whole = false;
        break;
      }
      const std::string problem = wrong(*after, inputs, expected);
      if (!problem.empty()) {
        INFO("seed " << seed << " pass " << pass.name << ": " << problem);
        INFO("before:\n" << print(program) << "after:\n" << print(*after));
        FAIL_CHECK("a pass changed what the program means");
        is_whole = false;
        break;
      }
      program = *after;
    }
    lowered += is_whole ? 1 : 0;
  }
  if (std::getenv("PRUNERC_TALLY") != nullptr) {
    for (const auto& [reason, count] : refusals) std::printf("%7d %s\n", count, reason.c_str());
  }
  CHECK(lowered * 10 >= num_cases() * 9);
}

}  // namespace
}  // namespace prunerc
