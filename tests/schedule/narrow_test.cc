// Reductions that a congruence narrows, and reads that go through a padded copy.
#include "tests/schedule/apply.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

using namespace testing;  // NOLINT: a test

// A transposed convolution of one axis: every input element adds a kernel to the output, `stride`
// elements after the one before.
std::string transposed(int width, int kernel, int stride, int padding) {
  const int out = (width - 1) * stride + kernel - 2 * padding;
  const std::string s = std::to_string(stride), p = std::to_string(padding);
  const std::string at = "(v + " + p + " - u) // " + s;
  return "program up(X: f32[" + std::to_string(width) + "], F: f32[" + std::to_string(kernel) +
         "]) -> (Y: f32[" + std::to_string(out) + "]) { for o in " + std::to_string(out) +
         " @L0 { for k in " + std::to_string(kernel) + " @L1 { block \"Y\" @B0 [v: S(" +
         std::to_string(out) + ") = o, u: R(" + std::to_string(kernel) +
         ") = k] { init { Y[v] = 0f32 } Y[v] = Y[v] + select((v + " + p + " - u) % " + s +
         " == 0, select(0 <= " + at + " && " + at + " < " + std::to_string(width) + ", X[" + at +
         "], 0f32)*F[u], 0f32) } } } }";
}

// A reduction over 6 steps with that update.
std::string folded(const std::string& update, const std::string& from = "0f32",
                   const std::string& op = "+") {
  return "program p(X: f32[8, 6], Z: i64[8]) -> (Y: f32[8]) { for i in 8 @L0 { for k in 6 @L1 { "
         "block \"Y\" @B0 [v: S(8) = i, u: R(6) = k] { init { Y[v] = " +
         from + " } Y[v] = Y[v] " + op + " " + update + " } } } }";
}

TEST_CASE("transposed convolutions of all small sizes are narrowed, padded and split into phases") {
  int num_split = 0;
  for (int stride = 2; stride <= 4; ++stride) {
    for (int kernel = 2; kernel <= 6; ++kernel) {
      for (int padding = 0; padding <= 2; ++padding) {
        const int out = 4 * stride + kernel - 2 * padding;
        if (out < 2) continue;
        INFO("stride " << stride << " kernel " << kernel << " padding " << padding);
        std::string steps = "narrow_reduction(@B0, 1)\n";
        const int last = (out - 1 + padding) / stride;
        const int taps = (kernel + stride - 1) / stride;
        const bool leaves = padding / stride - (taps - 1) < 0 || last >= 5;
        if (leaves) steps += "pad_read(@B0, 0, \"global\")\n";
        if (out % stride == 0) {
          const std::string s = std::to_string(stride);
          steps +=
              "transform_block_layout(@B0, \"(o, k) -> (o % " + s + ", o // " + s + ", k)\")\n";
          ++num_split;
        }
        const ir::Program base = parse_or_die(transposed(5, kernel, stride, padding));
        schedule::Schedule s(base, schedule::Verify::kEachStep);
        REQUIRE_OK(apply_steps(s, steps));
        check_same_result(base, s.program(), 1);
      }
    }
  }
  CHECK(num_split >= 5);
}

TEST_CASE("a reduction takes only the steps that contribute, or the reason is said") {
  const std::string up = transposed(6, 4, 2, 1), odd = transposed(6, 3, 2, 1);
  const std::string factor = folded("select((v + 3*u + 1) % 5 == 2, X[v, u], 0f32)");
  const std::string both = folded("select(u % 3 == 1 && v < 7, X[v, u], 0f32)");
  const std::string product = folded("select((v - u) % 3 == 0, X[v, u], 1f32)", "1f32", "*");
  const std::string unequal = folded("select((v - u) % 3 == 0, X[v, u], 1f32)");
  const std::string common = folded("select((v - 2*u) % 4 == 0, X[v, u], 0f32)");
  const std::string bound = folded("select(u < v, X[v, u], 0f32)");
  const std::string data = folded("select((Z[v] - u) % 2 == 0, X[v, u], 0f32)");
  const std::string plain = folded("X[v, u]");
  const Case cases[] = {
      {up, "narrow_reduction(@B0, 1)", ""},
      {odd, "narrow_reduction(@B0, 1)", ""},
      {factor, "narrow_reduction(@B0, 1)", ""},
      {both, "narrow_reduction(@B0, 1)", ""},
      {product, "narrow_reduction(@B0, 1)", ""},
      {up, "narrow_reduction(@B0, 0)", "BlockNotSimple"},
      {up, "narrow_reduction(@B0, 2)", "BlockNotSimple"},
      {up, "narrow_reduction(@B0, -1)", "BlockNotSimple"},
      {up, "narrow_reduction(@B1, 1)", "BlockNotFound"},
      {up, "parallel(@L0)\nnarrow_reduction(@B0, 1)", "BlockNotSimple"},
      {up, "split(@L1, [2, 2])\nnarrow_reduction(@B0, 1)", "BlockNotSimple"},
      {up, "narrow_reduction(@B0, 1)\nnarrow_reduction(@B0, 1)", "BlockNotSimple"},
      {unequal, "narrow_reduction(@B0, 1)", "BlockNotSimple"},
      {common, "narrow_reduction(@B0, 1)", "BlockNotSimple"},
      {bound, "narrow_reduction(@B0, 1)", "BlockNotSimple"},
      {data, "narrow_reduction(@B0, 1)", "BlockNotSimple"},
      {plain, "narrow_reduction(@B0, 1)", "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
}

std::string shifted(const std::string& value) {
  return "program p(X: f32[6, 8], Z: i64[8]) -> (Y: f32[8, 8]) { for i in 8 @L0 { for j in 8 @L1 { "
         "block \"Y\" @B0 [v: S(8) = i, w: S(8) = j] { Y[v, w] = " +
         value + " } } } }";
}

constexpr std::string_view kLate = R"(
program late(A: f32[6]) -> (Y: f32[8], X: f32[6]) {
  for i in 8 @L0 { block "Y" @B0 [v: S(8) = i] {
    Y[v] = select(1 <= v && v < 7, X[v - 1], 0f32) } }
  for k in 6 @L1 { block "X" @B1 [u: S(6) = k] { X[u] = A[u] } }
})";

TEST_CASE(
    "a read whose subscripts leave the buffer goes through a padded copy, or the reason is said") {
  const std::string rows = shifted("select(1 <= v && v < 7, X[v - 1, w], 7f32)");
  const std::string ends =
      shifted("select(0 <= v - 3 && w < 5 && v - 3 < 6, X[v - 3, w], 0f32) * 2f32");
  const std::string both =
      shifted("select(2 <= v && w < 5, X[v - 2, w + 3], 1f32) + select(2 <= v, X[v - 2, w], 1f32)");
  const std::string inside = shifted("select(v < 4, X[v, w], 0f32)");
  const std::string other =
      shifted("select(2 <= v, X[v - 2, w], 1f32) + select(2 <= v, X[v - 2, w], 2f32)");
  const std::string inner = shifted("select(2 <= v, X[v - 2, w]*3f32, 0f32)");
  const std::string gather = shifted("select(0 <= Z[v] && Z[v] < 6, X[Z[v], w], 0f32)");
  const Case cases[] = {
      {rows, "pad_read(@B0, 0, \"global\")", ""},
      {ends, "pad_read(@B0, 0, \"global\")", ""},
      {transposed(6, 3, 2, 0), "pad_read(@B0, 0, \"global\")", ""},
      {rows, "parallel(@L0)\npad_read(@B0, 0, \"local\")", ""},
      {rows, "split(@L1, [-1, 3])\npad_read(@B0, 0, \"global\")", ""},
      {rows, "pad_read(@B0, 1, \"global\")", "AccessIndexRange"},
      {rows, "pad_read(@B0, 0, \"nowhere\")", "ScopeUnknown"},
      {rows, "pad_read(@B7, 0, \"global\")", "BlockNotFound"},
      {both, "pad_read(@B0, 0, \"global\")", "ReindexForm"},
      {inside, "pad_read(@B0, 0, \"global\")", "ReindexForm"},
      {other, "pad_read(@B0, 0, \"global\")", "ReindexForm"},
      {inner, "pad_read(@B0, 0, \"global\")", "ReindexForm"},
      {gather, "pad_read(@B0, 0, \"global\")", "ReindexForm"},
      {kLate, "pad_read(@B0, 0, \"global\")", "BlockProducerLate"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc
