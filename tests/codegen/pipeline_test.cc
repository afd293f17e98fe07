// The wrapper around every lowering pass.
#include "codegen/pipeline.h"

#include "ir/builder.h"
#include "ir/printer.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

Program copy_program() {
  return parse_or_die(R"(program p(A: f32[4]) -> (B: f32[4]) {
    for i in 4 @L0 { block "B" @B0 [v: S(4) = i] { reads A[v] writes B[v] B[v] = A[v] } }
  })");
}

// A faulty pass: it forgets the loop whose variable the block is bound to.
Result<Program> drop_loop(const Program& program, const Target&) {
  return IrBuilder(program).finish(program.root().as<Loop>()->body);
}
Result<Program> keep(const Program& program, const Target&) { return program; }

TEST_CASE("a pass that makes a malformed program is named, with the program") {
  const Target target = *target_from_string("cpu");
  const codegen::Pass passes[] = {{"keep", keep, true}, {"drop", drop_loop, true}};
  const Result<Program> lowered = codegen::run_passes(passes, copy_program(), target);
  REQUIRE_FALSE(lowered.ok());
  CHECK(lowered.error().id() == Diag::kInternal);
  const std::string message = lowered.error().message();
  INFO(message);
  CHECK(message.find("after:lower/drop") != std::string::npos);
  CHECK(message.find("outside its scope") != std::string::npos);
  CHECK(message.find("block \"B\"") != std::string::npos);
}

TEST_CASE("optional passes are left out by name and by number") {
  const Target target = *target_from_string("cpu");
  const codegen::Pass passes[] = {
      {"first", keep, false}, {"second", keep, true}, {"third", keep, false}};
  const auto names = [&](codegen::PipelineOptions options) {
    std::vector<codegen::PassTime> times;
    options.times = &times;
    REQUIRE_OK(codegen::run_passes(passes, copy_program(), target, options));
    std::string text;
    for (const codegen::PassTime& time : times) text += std::string(time.name) + " ";
    return text;
  };
  CHECK(names({}) == "first second third ");
  CHECK(names({.max_optional_passes = 1, .disabled = {}, .times = nullptr}) == "first second ");
  const std::string_view disabled[] = {"first"};
  CHECK(names({.max_optional_passes = -1, .disabled = disabled, .times = nullptr}) ==
        "second third ");
}

}  // namespace
}  // namespace prunerc
