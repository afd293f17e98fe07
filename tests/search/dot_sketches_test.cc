// Sketches of products of bytes that run on dot instructions.
#include "ir/target.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "tests/support/check.h"

#include <algorithm>
#include <string>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("windows of few channels run on dot instructions, rounded up to whole groups") {
  const ir::Program first = parse_or_die(
      R"(program first(X: u8[9, 9, 3], F: i8[16, 3, 3, 3]) -> (Y: i32[4, 4, 16]) {
  for h in 4 { for w in 4 { for f in 16 { for c in 3 { for r in 3 { for s in 3 {
    block "Y" [vh: S(4) = h, vw: S(4) = w, vf: S(16) = f, vc: R(3) = c, vr: R(3) = r, vs: R(3) = s] {
      init { Y[vh, vw, vf] = 0i32 }
      Y[vh, vw, vf] = Y[vh, vw, vf] + i32(X[vh*2 + vr, vw*2 + vs, vc])*i32(F[vf, vc, vr, vs])
  } } } } } } } })");
  const Task task = make_task("first", first, ir::target_from_string("cpu:icelake-server").value());
  const SearchSpace space = make_space(task).value();
  CHECK(std::any_of(space.sketches.begin(), space.sketches.end(), [](const Sketch& sketch) {
    return sketch.name == "narrow" &&
           schedule::print(sketch.trace).find("pad_einsum") != std::string::npos;
  }));
}

TEST_CASE("rows that are copied for dot instructions are of whole groups") {
  const ir::Program turned = parse_or_die(
      R"(program turned(X: u8[3, 9], F: i8[16, 3]) -> (Y: i32[9, 16]) {
  for i in 9 { for j in 16 { for k in 3 {
    block "Y" [vi: S(9) = i, vj: S(16) = j, vk: R(3) = k] {
      init { Y[vi, vj] = 0i32 }
      Y[vi, vj] = Y[vi, vj] + i32(X[vk, vi])*i32(F[vj, vk])
  } } } } })");
  const Task task =
      make_task("turned", turned, ir::target_from_string("cpu:icelake-server").value());
  const SearchSpace space = make_space(task).value();
  const auto narrow = std::find_if(space.sketches.begin(), space.sketches.end(),
                                   [](const Sketch& sketch) { return sketch.name == "narrow"; });
  REQUIRE(narrow != space.sketches.end());
  const std::string trace = schedule::print(narrow->trace);
  INFO(trace);
  CHECK(trace.find("reorder([@L9, @L10])\nsplit(@L10, [-1, 4])") != std::string::npos);
}

}  // namespace
}  // namespace prunerc
