// Programs that read what no iteration has made, or leave elements out, are refused when they come.
#include "schedule/legality/written.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// T[v] = X[v] and a reader of T in one loop.
std::string one_loop(std::string_view reader) {
  return "program p(X: f32[8]) -> (Y: f32[8]) {\n"
         "  buffer T: f32[8] global\n"
         "  for i in 8 @L0 {\n"
         "    block \"T\" @B0 [v: S(8) = i] { T[v] = X[v] }\n"
         "    block \"Y\" @B1 [v: S(8) = i] { Y[v] = " +
         std::string(reader) +
         " }\n"
         "  }\n"
         "}";
}

// Tiles of 4 with `made` elements of T, of which each reader wants three.
std::string tiles(int made, std::string_view reader = "T[v] + T[v + 1] + T[v + 2]") {
  return "program p(X: f32[18]) -> (Y: f32[16]) {\n"
         "  buffer T: f32[18] global\n"
         "  for o in 4 @L0 {\n"
         "    for i in " +
         std::to_string(made) +
         " @L1 { block \"T\" @B0 [v: S(18) = o*4 + i] { T[v] = X[v] } }\n"
         "    for i in 4 @L2 { block \"Y\" @B1 [v: S(16) = o*4 + i] { Y[v] = " +
         std::string(reader) +
         " } }\n"
         "  }\n"
         "}";
}

TEST_CASE("a read of what another iteration has written is refused where a buffer lives for one") {
  const std::string before = one_loop("select(1 <= v, T[v - 1], 0f32)");
  const Result<void> found = schedule::verify_lifetimes(parse_or_die(before));
  CHECK_DIAG(found, ProgramInvalid);
  CHECK(found.error().message() ==
        "the program 'p' is not valid: block @B1 reads 'T' at [i - 1], but 'T' lives in one "
        "iteration of loop @L0, which does not always write that element");
  const std::string refused[] = {
      one_loop("T[7 - v]"),
      one_loop("T[v]*T[v // 2]"),
      one_loop("select(3 < v && T[v - 4] < 1f32, 1f32, 0f32)"),
      tiles(5),
      tiles(6, "T[v] + T[v + 2] + select(v < 4, T[v + 3], 0f32)"),
  };
  for (const std::string& text : refused) {
    INFO(text);
    CHECK_DIAG(schedule::verify_lifetimes(parse_or_die(text)), ProgramInvalid);
  }
}

TEST_CASE("a read of what the same iteration may have written passes") {
  const std::string passing[] = {
      one_loop("T[v]*2f32"),
      // Read nowhere.
      one_loop("select(8 < v, T[v - 1], T[v])"),
      // Data decides.
      one_loop("select(X[v] < 0f32, T[v // 2], T[v])"),
      tiles(6),
      tiles(6, "T[v] + select(16 <= v, T[v + 9], T[v + 1])"),
      // A reduction carries values from one iteration to the next.
      "program p(X: f32[8]) -> (Y: f32[8]) {\n"
      "  buffer A: f32 global\n"
      "  for k in 8 @L0 {\n"
      "    block \"A\" @B0 [vk: R(8) = k] { init { A[] = 0f32 } A[] = A[] + X[vk] }\n"
      "    block \"Y\" @B1 [vk: S(8) = k] { Y[vk] = A[] }\n"
      "  }\n"
      "}",
      // So does a variable in order.
      "program p(X: f32[8]) -> (Y: f32[8]) {\n"
      "  buffer T: f32[9] global\n"
      "  for k in 8 @L0 {\n"
      "    block \"T\" @B0 [v: O(8) = k] { T[v + 1] = X[v] + select(0 < v, T[v], 0f32) }\n"
      "    block \"Y\" @B1 [v: S(8) = k] { Y[v] = T[v + 1] }\n"
      "  }\n"
      "}",
      // Not all accesses stand in the loop.
      "program p(X: f32[8]) -> (Y: f32[8]) {\n"
      "  buffer T: f32[8] global\n"
      "  for i in 8 @L0 { block \"T\" @B0 [v: S(8) = i] { T[v] = X[v] } }\n"
      "  for i in 8 @L1 { block \"Y\" @B1 [v: S(8) = i] { Y[v] = T[7 - v] } }\n"
      "}",
  };
  for (const std::string& text : passing) {
    INFO(text);
    CHECK(schedule::verify_lifetimes(parse_or_die(text)).ok());
  }
}

std::string output(std::string_view block) {
  return "program p(X: f32[16]) -> (Y: f32[16]) { for i in 16 @L0 { block \"Y\" @B0 " +
         std::string(block) + " } }";
}

TEST_CASE("an output of which the ends are never written is refused with the elements") {
  const std::string tail = output("[v: S(16) = i] where i < 13 { Y[v] = X[v] }");
  const Result<void> found = schedule::verify_outputs_written(parse_or_die(tail));
  CHECK_DIAG(found, ProgramInvalid);
  CHECK(found.error().message() ==
        "the program 'p' is not valid: elements 13 .. 15 of dimension 0 of output 'Y' are never "
        "written");
  const std::string refused[] = {
      output("[v: S(16) = i] where 2 <= i { Y[v] = X[v] }"),
      output("[v: S(16) = i] { Y[v // 2] = X[v] }"),
      "program p(X: f32[4]) -> (Y: f32[4, 5]) { for i in 4 @L0 { for j in 4 @L1 { block \"Y\" @B0 "
      "[vi: S(4) = i, vj: S(4) = j] { Y[vi, vj] = X[vi] } } } }",
  };
  for (const std::string& text : refused) {
    INFO(text);
    CHECK_DIAG(schedule::verify_outputs_written(parse_or_die(text)), ProgramInvalid);
  }
  const std::string passing[] = {
      output("[v: S(16) = i] { Y[v] = X[v] }"),
      output("[v: S(16) = i] { Y[15 - v] = X[v] }"),
      output("[v: S(16) = i] where X[i] < 3f32 { Y[v] = X[v] }"),
      "program p(X: f32[8]) -> (Y: f32[8]) {\n"
      "  for i in 4 @L0 { block \"a\" @B0 [v: S(4) = i] { Y[v + 4] = X[v] } }\n"
      "  for i in 4 @L1 { block \"b\" @B1 [v: S(4) = i] { Y[v] = X[v + 4] } } }",
  };
  for (const std::string& text : passing) {
    INFO(text);
    CHECK(schedule::verify_outputs_written(parse_or_die(text)).ok());
  }
}

}  // namespace
}  // namespace prunerc::testing
