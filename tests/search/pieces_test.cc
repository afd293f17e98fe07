// Schedules that move a rounding: the step that does is compared without roundings, all else with them.
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "search/tune/sampled.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <regex>
#include <string>
#include <vector>

namespace prunerc::search {
namespace {

using testing::parse_or_die;

const std::string kScore = "f32(f16(X[ai, ac, as]*2f32))";
const std::string kResult = "f32(f16(R[oi, oe]))";

// Rows of 12 weights in tiles of 4; scores and results are rounded, weights have a type.
std::string attention(const std::string& weight = "f16", const std::string& score = kScore,
                      const std::string& result = kResult) {
  return R"(
program p(X: f32[5, 3, 4], Y: f32[5, 3, 4, 2]) -> (O: f32[5, 2]) {
  buffer A: f32[5, 3, 4] global
  buffer N: f32[5, 3] global
  buffer M: f32[5] global
  buffer P: )" +
         weight + R"([5, 3, 4] global
  buffer U: f32[5, 3, 2] global
  buffer R: f32[5, 2] global
  for i in 5 @L0 { for c in 3 @L1 { for s in 4 @L2 {
    block "A" @B0 [ai: S(5) = i, ac: S(3) = c, as: S(4) = s] { A[ai, ac, as] = )" +
         score + R"( } } } }
  for i in 5 @L3 { for c in 3 @L4 { for s in 4 @L5 {
    block "N" @B1 [ni: S(5) = i, nc: S(3) = c, ns: R(4) = s] {
      init { N[ni, nc] = f32.ninf } N[ni, nc] = max(N[ni, nc], A[ni, nc, ns]) } } } }
  for i in 5 @L6 { for c in 3 @L7 {
    block "M" @B2 [mi: S(5) = i, mc: R(3) = c] {
      init { M[mi] = f32.ninf } M[mi] = max(M[mi], N[mi, mc]) } } }
  for i in 5 @L8 { for c in 3 @L9 { for s in 4 @L10 {
    block "P" @B3 [pi: S(5) = i, pc: S(3) = c, ps: S(4) = s] {
      P[pi, pc, ps] = )" +
         weight + R"((exp(A[pi, pc, ps] - M[pi])) } } } }
  for i in 5 @L11 { for c in 3 @L12 { for e in 2 @L13 { for s in 4 @L14 {
    block "U" @B4 [ui: S(5) = i, uc: S(3) = c, ue: S(2) = e, us: R(4) = s] {
      init { U[ui, uc, ue] = 0f32 }
      U[ui, uc, ue] = U[ui, uc, ue] + f32(P[ui, uc, us])*Y[ui, uc, us, ue] } } } } }
  for i in 5 @L15 { for e in 2 @L16 { for c in 3 @L17 {
    block "R" @B5 [ri: S(5) = i, re: S(2) = e, rc: R(3) = c] {
      init { R[ri, re] = 0f32 } R[ri, re] = R[ri, re] + U[ri, rc, re] } } } }
  for i in 5 @L18 { for e in 2 @L19 {
    block "O" @B6 [oi: S(5) = i, oe: S(2) = e] { O[oi, oe] = )" +
         result + R"( } } }
})";
}

struct Scheduled {
  schedule::Trace trace;
  std::vector<ir::Program> around;
  ir::Program program;
};

Scheduled scheduled(const std::string& text,
                    const std::string& steps = "rescale(@B3)\nparallel(@L18)") {
  Scheduled out;
  const Result<schedule::Trace> trace = schedule::parse_trace(steps);
  REQUIRE_OK(trace);
  schedule::ReplayOptions options;
  options.around = &out.around;
  const Result<schedule::Schedule> done = schedule::replay(parse_or_die(text), *trace, options);
  REQUIRE_OK(done);
  out.trace = done->trace();
  out.program = done->program();
  return out;
}

// With another value for the result, whatever its subscripts are called.
ir::Program with_result(const ir::Program& program, const std::string& value) {
  const std::string text = print(program);
  const std::regex rounded(R"(f32\(f16\((R_?\[[^\]]*\])\)\))");
  REQUIRE(std::regex_search(text, rounded));
  return parse_or_die(std::regex_replace(text, rounded, value));
}

ir::FpvVerdict check_pieces(const ir::Program& base, const std::vector<ir::Program>& around,
                            const ir::Program& program) {
  return check_in_pieces(base, around, program, kStoredLog2Error,
                         [](const ir::Program& from, const ir::Program& to, ir::Roundings roundings,
                            double log2_error) {
                           ir::FpvOptions options;
                           options.roundings = roundings;
                           options.log2_error = log2_error;
                           return ir::check_equivalent(from, to, options);
                         });
}

Task task_of(const std::string& text) {
  return make_task("op", parse_or_die(text), ir::target_from_string("cpu:znver4").value());
}

// What a check of all steps at once would not see.
bool is_hidden_by_ignoring(const ir::Program& base, const ir::Program& program) {
  ir::FpvOptions options;
  options.roundings = ir::Roundings::kIgnored;
  return ir::check_equivalent(base, program, options).ok();
}

TEST_CASE(
    "a schedule that moves roundings is equal but for these, in whatever way it is compared") {
  const Scheduled made = scheduled(attention());
  const Task task = task_of(attention());
  REQUIRE(made.around.size() == 2);
  SampleOptions tiles;
  tiles.max_whole_cost = 0;
  for (const ir::FpvVerdict& verdict :
       {check_pieces(task.base, made.around, made.program),
        check_on_twin(task, made.trace, kStoredLog2Error, 1).verdict,
        check_schedule(task, made.trace, made.program).verdict,
        check_at_shape(task.base, made.trace, made.program).verdict,
        check_at_shape(task.base, made.trace, made.program, tiles).verdict,
        check_against(task.base, task, made.trace, made.program).verdict}) {
    INFO(to_string(verdict));
    CHECK(verdict.ok());
    CHECK(verdict.log2_error <= -39);
    CHECK(verdict.assumes.roundings);
  }
  CHECK(check_pieces(task.base, made.around, made.program).log2_error <= kStoredLog2Error);
  // Without the trace nobody knows which rounding may move.
  CHECK(check_programs(task.base, made.program).verdict.kind == ir::VerdictKind::kNotEqual);
}

TEST_CASE("weights that are not rounded need no assumption") {
  const Scheduled made = scheduled(attention("f32"));
  const Task task = task_of(attention("f32"));
  const ir::FpvVerdict verdict = check_on_twin(task, made.trace, kStoredLog2Error, 1).verdict;
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  CHECK_FALSE(verdict.assumes.roundings);
}

TEST_CASE("roundings that are lost or doubled behind the step that moves some are found") {
  const Scheduled made = scheduled(attention());
  const Task task = task_of(attention());
  for (const char* wrong : {"$1", "f32(f16(f32(bf16($1))))", "f32(bf16($1))"}) {
    CAPTURE(wrong);
    const ir::Program mutant = with_result(made.program, wrong);
    CHECK(is_hidden_by_ignoring(task.base, mutant));
    CHECK(check_pieces(task.base, made.around, mutant).kind == ir::VerdictKind::kNotEqual);
    CHECK(check_at_shape(task.base, made.trace, mutant).verdict.kind == ir::VerdictKind::kNotEqual);
  }
}

TEST_CASE("roundings that are lost or doubled before the step that moves some are found") {
  const Task task = task_of(attention());
  for (const std::string score :
       {"X[ai, ac, as]*2f32", "f32(f16(f32(bf16(X[ai, ac, as]*2f32))))"}) {
    CAPTURE(score);
    const Scheduled mutant = scheduled(attention("f16", score));
    CHECK(is_hidden_by_ignoring(task.base, mutant.program));
    CHECK(check_pieces(task.base, mutant.around, mutant.program).kind ==
          ir::VerdictKind::kNotEqual);
  }
}

TEST_CASE("a fault in the step that moves roundings is found") {
  const ir::Program base = parse_or_die(attention());
  const Scheduled made = scheduled(attention());
  const std::regex factor(R"(exp\(N_?\[[^\]]*\] - M_?\[[^\]]*\]\)\*)");
  const auto without = [&](const ir::Program& program) {
    REQUIRE(std::regex_search(print(program), factor));
    return parse_or_die(std::regex_replace(print(program), factor, ""));
  };
  CHECK(check_pieces(base, {made.around[0], without(made.around[1])}, without(made.program)).kind ==
        ir::VerdictKind::kNotEqual);
}

TEST_CASE("another program is compared with what was scheduled, roundings included") {
  const Scheduled made = scheduled(attention());
  const Task task = task_of(attention());
  const ir::Program unrounded = parse_or_die(attention("f16", kScore, "R[oi, oe]"));
  CHECK(is_hidden_by_ignoring(unrounded, made.program));
  CHECK(check_against(unrounded, task, made.trace, made.program).verdict.kind ==
        ir::VerdictKind::kNotEqual);
  // Nothing moves: the two are compared at once.
  const Scheduled plain = scheduled(attention(), "parallel(@L18)");
  CHECK(plain.around.empty());
  const SampledVerdict found = check_against(task.base, task, plain.trace, plain.program);
  CHECK(found.verdict.ok());
  CHECK_FALSE(found.verdict.assumes.roundings);
  CHECK(check_against(unrounded, task, plain.trace, plain.program).verdict.kind ==
        ir::VerdictKind::kNotEqual);
}

TEST_CASE("a trace that does not fit gives no verdict at its shape") {
  const Scheduled made = scheduled(attention());
  const ir::Program other =
      parse_or_die("program p(X: f32[7]) -> (C: f32[7]) { for i in 7 { C[i] = X[i] } }");
  CHECK(check_at_shape(other, made.trace, other).verdict.kind == ir::VerdictKind::kUnsupported);
}

TEST_CASE("what refutes is said first, and bounds add up") {
  const auto verdict = [](ir::VerdictKind kind, double log2_error = 0) {
    ir::FpvVerdict out;
    out.kind = kind;
    out.log2_error = log2_error;
    out.tests = 2;
    return out;
  };
  using Kind = ir::VerdictKind;
  const ir::FpvVerdict both = joined(verdict(Kind::kEqual, -10), verdict(Kind::kEqual, -10));
  CHECK(both.ok());
  CHECK(both.log2_error == -9);
  CHECK(both.tests == 4);
  CHECK(joined(verdict(Kind::kUnsupported), verdict(Kind::kNotEqual)).kind == Kind::kNotEqual);
  CHECK(joined(verdict(Kind::kNotEqual), verdict(Kind::kUnsupported)).kind == Kind::kNotEqual);
  CHECK(joined(verdict(Kind::kEqual), verdict(Kind::kUnsupported)).kind == Kind::kUnsupported);
  CHECK(joined(verdict(Kind::kUnsupported), verdict(Kind::kEqual)).kind == Kind::kUnsupported);
}

}  // namespace
}  // namespace prunerc::search
