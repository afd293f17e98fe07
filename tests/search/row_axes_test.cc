// Which axes sums and stages have before rows are scheduled, and which of them are rows.
#include "ir/verify.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <fmt/format.h>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Task task_of(const std::string& text) {
  ir::Target target = *ir::target_from_string("cpu:icelake-server");
  target.num_threads = 2;
  return make_task("p", parse_or_die(text), target);
}

// The trace of one structure; all structures, with the decisions that they come with, mean the same.
std::string trace_of(const std::string& text, const std::string& name) {
  std::string found;
  const Task task = task_of(text);
  const SearchSpace space = make_space(task).value();
  for (std::size_t s = 0; s < space.sketches.size(); ++s) {
    const int sketch = static_cast<int>(s);
    const Result<Candidate> made =
        instantiate(task, space, sketch, default_genome(space, sketch).decisions);
    INFO(space.sketches[s].name);
    REQUIRE_OK(made);
    REQUIRE_OK(ir::verify(made->program));
    check_same_result(task.base, made->program, 1);
    if (space.sketches[s].name == name) found = schedule::print(space.sketches[s].trace);
  }
  REQUIRE_FALSE(found.empty());
  return found;
}

std::string base_trace(const std::string& text) { return trace_of(text, "base"); }

TEST_CASE("a window over all of a map is one axis") {
  const auto pool = [](int window, int out) {
    return base_trace(fmt::format(
        R"(program p(X: f32[8, 7, 7]) -> (Y: f32[8, {1}, {1}]) {{
      for c in 8 {{ for y in {1} {{ for x in {1} {{ for h in {0} {{ for w in {0} {{
        block "Y" [vc: S(8) = c, vy: S({1}) = y, vx: S({1}) = x, vh: R({0}) = h, vw: R({0}) = w] {{
          init {{ Y[vc, vy, vx] = 0f32 }}
          Y[vc, vy, vx] = Y[vc, vy, vx] + X[vc, vy + vh, vx + vw] }} }} }} }} }} }} }})",
        window, out));
  };
  const std::string whole = pool(7, 1);
  INFO(whole);
  CHECK(num_times(whole, "a3*7 + a4") == 1);
  CHECK(num_times(whole, "rfactor(") > 0);
  CHECK(num_times(pool(6, 2), "a3*6 + a4") == 0);
}

// Y[n, c, ..] = X[n, c, ..] - m[n, c // 4], m the sum of a group of four channels.
std::string group_norm(int batch, const char* mean) {
  return fmt::format(R"(program p(X: f32[{0}, 12, 9, 9]) -> (Y: f32[{0}, 12, 9, 9]) {{
  buffer m: f32[{0}, 3] global
  for n in {0} {{ for g in 3 {{ for c in 4 {{ for h in 9 {{ for w in 9 {{
    block "m" [vn: S({0}) = n, vg: S(3) = g, vc: R(4) = c, vh: R(9) = h, vw: R(9) = w] {{
      init {{ m[vn, vg] = 0f32 }} m[vn, vg] = m[vn, vg] + X[vn, vg*4 + vc, vh, vw] }} }} }} }} }} }}
  for n1 in {0} {{ for k in 12 {{ for y in 9 {{ for x in 9 {{
    block "Y" [wn: S({0}) = n1, wc: S(12) = k, wh: S(9) = y, ww: S(9) = x] {{
      Y[wn, wc, wh, ww] = X[wn, wc, wh, ww] - m[{1}] }} }} }} }} }}
}})",
                     batch, mean);
}

TEST_CASE("rows that share a mean are one row of its chain") {
  const std::string trace = base_trace(group_norm(2, "wn, wc // 4"));
  INFO(trace);
  CHECK(num_times(trace, "(a0, a1, a2, a3) -> (a0, a1 // 4, a1 % 4, a2, a3)") == 1);
  // The pixels of the sum and of the stage.
  CHECK(num_times(trace, "(a0, a1, a2, a3, a4) -> (a0, a1, a2, a3*9 + a4)") == 2);
  CHECK(num_times(trace, "compute_at(@B0") == 1);
  // Two times three groups.
  CHECK(num_times(trace, "sample_covering_tile(6, 2, 0)") == 1);
  // A mean that does not go by all axes before is no row's.
  CHECK(num_times(base_trace(group_norm(2, "0, wc // 4")), "a1 // 4") == 0);
}

TEST_CASE("axes of extent 1 that one block of a chain lacks are no rows") {
  const std::string trace = base_trace(R"(program p(X: f32[1, 6, 40]) -> (Y: f32[1, 6, 40]) {
  buffer m: f32[6] global
  for i in 6 { for j in 40 { block "m" [vi: S(6) = i, vj: R(40) = j] {
    init { m[vi] = 0f32 } m[vi] = m[vi] + X[0, vi, vj] } } }
  for n in 1 { for k in 6 { for x in 40 { block "Y" [wn: S(1) = n, wk: S(6) = k, wx: S(40) = x] {
    Y[wn, wk, wx] = X[wn, wk, wx] - m[wk] } } } }
})");
  INFO(trace);
  CHECK(num_times(trace, "compute_at(@B0") == 1);
  CHECK(num_times(trace, "sample_covering_tile(6, 2, 0)") == 1);
}

// What several threads run in tasks has the axes that it is written with, unless it becomes one axis.
TEST_CASE("stages of odd width become one axis where that costs no rows") {
  const auto relu = [](int rows, int columns) {
    return base_trace(fmt::format(R"(program p(X: f32[{0}, {1}]) -> (Y: f32[{0}, {1}]) {{
  for i in {0} {{ for j in {1} {{ block "Y" [vi: S({0}) = i, vj: S({1}) = j] {{
    Y[vi, vj] = max(X[vi, vj], 0f32) }} }} }}
}})",
                                  rows, columns));
  };
  CHECK(num_times(relu(300, 3), "a0*3 + a1") == 1);
  CHECK(num_times(relu(28, 28), "a0*28 + a1") == 1);
  // Beside it a sum that keeps one axis more than would be left: its rows would be single elements.
  const auto beside = [](const char* kept, const char* rows) {
    return base_trace(fmt::format(
        R"(program p(X: f32[8, 5, 9]) -> (R: f32[{1}], Y: f32[8, 5, 9]) {{
  for n in 8 {{ for h in 5 {{ for w in 9 {{ block "R" [vn: S(8) = n, vh: {0}(5) = h, vw: R(9) = w] {{
    init {{ R[{2}] = 0f32 }} R[{2}] = R[{2}] + X[vn, vh, vw] }} }} }} }}
  for a in 8 {{ for y in 5 {{ for x in 9 {{ block "Y" [wn: S(8) = a, wh: S(5) = y, ww: S(9) = x] {{
    Y[wn, wh, ww] = max(X[wn, wh, ww], 0f32) }} }} }} }}
}})",
        kept, rows, *kept == 'S' ? "vn, vh" : "vn"));
  };
  CHECK(num_times(beside("S", "8, 5"), "(a0, a1*9 + a2)") == 0);
  CHECK(num_times(beside("R", "8"), "(a0, a1*9 + a2)") == 2);
}

TEST_CASE("what finishes the tiles of a product keeps its axes") {
  const std::string trace =
      base_trace(R"(program p(X: f32[8, 16], W: f32[16, 64]) -> (Y: f32[8, 64]) {
  buffer s: f32[2] global
  buffer acc: f32[8, 64] global
  for b in 2 { for t in 4 { for k in 16 { block "s" [vb: S(2) = b, vt: R(4) = t, vk: R(16) = k] {
    init { s[vb] = f32.ninf } s[vb] = max(s[vb], X[vb*4 + vt, vk]) } } } }
  for i in 8 { for j in 64 { for l in 16 { block "acc" [vi: S(8) = i, vj: S(64) = j, vl: R(16) = l] {
    init { acc[vi, vj] = 0f32 } acc[vi, vj] = acc[vi, vj] + X[vi, vl] * W[vl, vj] } } } }
  for p in 8 { for q in 64 { block "Y" [wp: S(8) = p, wq: S(64) = q] {
    Y[wp, wq] = acc[wp, wq] * s[wp // 4] } } }
})");
  INFO(trace);
  CHECK(num_times(trace, "a0 // 4") == 0);
}

TEST_CASE("axes of extent 1 at the end do not keep lanes from what lies before them") {
  // Elementwise: one axis. In a chain each stage has vectors, and its row, if it is to be one, the whole of them.
  const std::string relu = base_trace(R"(program p(X: f32[1, 100, 1, 1]) -> (Y: f32[1, 100, 1, 1]) {
  for n in 1 { for c in 100 { for h in 1 { for w in 1 {
    block "Y" [vn: S(1) = n, vc: S(100) = c, vh: S(1) = h, vw: S(1) = w] {
      Y[vn, vc, vh, vw] = max(X[vn, vc, vh, vw], 0f32) } } } } }
})");
  INFO(relu);
  CHECK(num_times(relu, "(a0, a1) -> (a1)") == 1);
  CHECK(num_times(relu, "vectorize(") == 1);
  const std::string norm = trace_of(R"(program p(X: f32[1, 100, 1]) -> (Y: f32[1, 100, 1]) {
  buffer s: f32[1, 1] global
  for n in 1 { for h in 1 { for c in 100 { block "s" [vn: S(1) = n, vh: S(1) = h, vc: R(100) = c] {
    init { s[vn, vh] = 0f32 } s[vn, vh] = s[vn, vh] + X[vn, vc, vh] } } } }
  for n1 in 1 { for c1 in 100 { for h1 in 1 {
    block "Y" [wn: S(1) = n1, wc: S(100) = c1, wh: S(1) = h1] {
      Y[wn, wc, wh] = X[wn, wc, wh] / s[wn, wh] } } } }
})",
                                    "one row");
  INFO(norm);
  CHECK(num_times(norm, "vectorize(") >= 2);
}

// s = the sum of X, and what a stage makes of it.
std::string total(const char* output, const char* stage) {
  return fmt::format(R"(program p(X: f32[40, 70]) -> (Y: {0}) {{
  buffer s: f32 global
  for i in 40 {{ for j in 70 {{ block "s" [vi: R(40) = i, vj: R(70) = j] {{
    init {{ s[] = 0f32 }} s[] = s[] + X[vi, vj] }} }} }}
  {1}
}})",
                     output, stage);
}

TEST_CASE("a total has parts for all threads, whatever is made of it") {
  const std::string value = base_trace(
      total("f32[1]", R"(for o in 1 { block "Y" [vo: S(1) = o] { Y[vo] = s[] + 1f32 } })"));
  INFO(value);
  CHECK(num_times(value, "sample_covering_tile(40, 2, 0)") == 1);
  CHECK(num_times(value, "parallel(") == 1);
  const std::string rows = base_trace(total(
      "f32[40, 70]",
      R"(for k in 40 { for x in 70 { block "Y" [vk: S(40) = k, vx: S(70) = x] { Y[vk, vx] = X[vk, vx] - s[] } } })"));
  INFO(rows);
  CHECK(num_times(rows, "sample_covering_tile(40, 2, 0)") == 2);
  CHECK(num_times(rows, "parallel(") == 2);
}

TEST_CASE("a short axis has the lanes that it fills") {
  const auto relu = [](int size) {
    return base_trace(fmt::format(R"(program p(X: f32[{0}]) -> (Y: f32[{0}]) {{
      for i in {0} {{ block "Y" [vi: S({0}) = i] {{ Y[vi] = max(X[vi], 0f32) }} }} }})",
                                  size));
  };
  CHECK(num_times(relu(5), "[-1, 1, 1, 8]") == 1);
  CHECK(num_times(relu(16), "[-1, 1, 1, 16]") == 1);
}

}  // namespace
}  // namespace prunerc
