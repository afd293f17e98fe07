// What iterations of a loop hand on to later ones, or write again: buffers that are no iteration's
// own, values that are not final, instances that occur twice.
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// Sums of all that there is so far: T starts in the first iteration of @L0 alone.
constexpr std::string_view kRunning = R"(
program running(X: f32[16]) -> (Y: f32[4]) {
  buffer T: f32[1] global
  for i in 4 @L0 {
    for k in 4 @L1 {
      block "T" @B0 [r: R(16) = i*4 + k] { init { T[0] = 0f32 } T[0] = T[0] + X[r] }
    }
    block "Y" @B1 [v: S(4) = i] { Y[v] = T[0] }
  }
})";

// The same, but each iteration has a sum of its own.
constexpr std::string_view kApart = R"(
program apart(X: f32[4, 4]) -> (Y: f32[4]) {
  buffer T: f32[1] global
  for i in 4 @L0 {
    for k in 4 @L1 {
      block "T" @B0 [r: R(4) = k] { init { T[0] = 0f32 } T[0] = T[0] + X[0, r] }
    }
    block "Y" @B1 [v: S(4) = i] { Y[v] = T[0]*X[v, 0] }
  }
})";

TEST_CASE("a reduction that a loop carries is no iteration's own") {
  const Case cases[] = {
      {kRunning, "parallel(@L0)", "BlocksDepend"},
      {kRunning, "software_pipeline(@L0, [0, 1], [0, 1])", "PipelineOrder"},
      {kRunning, "double_buffer(@B0, 0)", "BlockNotSimple"},
      {kRunning, "software_pipeline(@L0, [0, 0], [0, 1])", ""},
      {kApart, "parallel(@L0)", ""},
      {kApart, "software_pipeline(@L0, [0, 1], [0, 1])", ""},
      {kApart, "double_buffer(@B0, 0)", ""},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
