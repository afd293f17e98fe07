// Annotations with a checked meaning: pipelines, double buffers, alignment; removing them.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

// Each iteration of @L0 fills T and uses it.
constexpr std::string_view kStaged = R"(
program staged(X: f32[8, 4]) -> (Y: f32[8, 4]) {
  buffer T: f32[4] shared
  buffer U: f32[4] local
  for i in 8 @L0 {
    for k in 4 @L1 { block "T" @B0 [v: S(8) = i, w: S(4) = k] { T[w] = X[v, w] } }
    for k in 4 @L2 { block "U" @B1 [v: S(8) = i, w: S(4) = k] { U[w] = T[3 - w] + 1f32 } }
    for k in 4 @L3 { block "Y" @B2 [v: S(8) = i, w: S(4) = k] { Y[v, w] = U[w]*2f32 } }
  }
})";

// S outlives the iteration: the second statement adds to what the first one set.
constexpr std::string_view kOutlives = R"(
program outlives(X: f32[8]) -> (Y: f32[8], Z: f32[8]) {
  for i in 8 @L0 {
    block "Y" @B0 [v: S(8) = i] { Y[v] = X[v] }
    block "Z" @B1 [v: S(8) = i] { Z[v] = Y[v] + 1f32 }
  }
})";

TEST_CASE("software_pipeline keeps writers before readers") {
  const Case cases[] = {
      {kStaged, "software_pipeline(@L0, [0, 1, 2], [0, 1, 2])", ""},
      {kStaged, "software_pipeline(@L0, [0, 1, 1], [2, 0, 1])", ""},
      {kStaged, "software_pipeline(@L0, [0, 0, 0], [0, 1, 2])", ""},
      {kOutlives, "software_pipeline(@L0, [0, 0], [0, 1])", ""},
      {kMatmul, "software_pipeline(@L2, [0], [0])", ""},
      {kStaged, "software_pipeline(@L0, [0, 1], [0, 1])", "PipelineShape"},
      {kStaged, "software_pipeline(@L0, [0, 1, 1], [0, 1])", "PipelineShape"},
      {kStaged, "software_pipeline(@L0, [0, 1, 16], [0, 1, 2])", "PipelineShape"},
      {kStaged, "software_pipeline(@L0, [0, -1, 1], [0, 1, 2])", "PipelineShape"},
      {kStaged, "software_pipeline(@L0, [0, 1, 1], [0, 1, 1])", "PermutationInvalid"},
      {kStaged, "software_pipeline(@L0, [0, 1, 1], [0, 1, 3])", "PermutationInvalid"},
      {kStaged, "software_pipeline(@L0, [1, 0, 1], [0, 1, 2])", "PipelineOrder"},
      {kStaged, "software_pipeline(@L0, [0, 1, 1], [0, 2, 1])", "PipelineOrder"},
      {kOutlives, "software_pipeline(@L0, [0, 1], [0, 1])", "PipelineOrder"},
      {kOutlives, "unroll(@L0)\nsoftware_pipeline(@L0, [0, 0], [0, 1])", "LoopNotSerial"},
      {kStaged, "software_pipeline(@L7, [0], [0])", "LoopNotFound"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("a pipeline is printed, and goes as a whole") {
  const schedule::Schedule s = check_steps(kStaged, "software_pipeline(@L0, [0, 1, 1], [2, 0, 1])");
  const std::string text = print(s.program());
  CHECK(text.find("@L0 {software_pipeline = 2}") != std::string::npos);
  CHECK(text.find("@L1 {pipeline_stage = 0, pipeline_order = 2}") != std::string::npos);
  const schedule::Schedule gone =
      check_steps(kStaged,
                  "software_pipeline(@L0, [0, 1, 1], [2, 0, 1])\n"
                  "unannotate_loop(@L0, \"software_pipeline\")\nsplit(@L1, [2, 2])");
  CHECK(print(gone.program()).find("pipeline") == std::string::npos);
}

TEST_CASE("annotations are removed, reserved keys have their setters") {
  const Case cases[] = {
      {kMatmul, "annotate_loop(@L0, \"x\", 1)\nunannotate_loop(@L0, \"x\")\nsplit(@L0, [4, 4])",
       ""},
      {kMatmul, "annotate_block(@B0, \"x\", 1)\nunannotate_block(@B0, \"x\")", ""},
      {kStaged, "double_buffer(@B0, 0)\nunannotate_block(@B0, \"double_buffer\")", ""},
      {kMatmul, "annotate_loop(@L0, \"x\", 1)\nunannotate_loop(@L0, \"x\")", ""},
      {kStaged,
       "software_pipeline(@L0, [0, 1, 2], [0, 1, 2])\nunannotate_loop(@L0, \"software_pipeline\")",
       ""},
      {kStaged, "storage_align(@B0, 0, 0, 32, 8)\nunannotate_block(@B0, \"align_offset_0_0\")", ""},
      {kMatmul, "unannotate_loop(@L0, \"x\")", "AttrMissing"},
      {kMatmul, "annotate_block(@B0, \"x\", 1)\nunannotate_block(@B0, \"y\")", "AttrMissing"},
      {kMatmul, "unannotate_loop(@L9, \"x\")", "LoopNotFound"},
      {kMatmul, "unannotate_block(@B9, \"x\")", "BlockNotFound"},
      {kStaged,
       "software_pipeline(@L0, [0, 1, 2], [0, 1, 2])\nunannotate_loop(@L1, \"pipeline_stage\")",
       "AttrReserved"},
      {kMatmul, "annotate_loop(@L0, \"software_pipeline\", 2)", "AttrReserved"},
      {kMatmul, "annotate_loop(@L0, \"pipeline_order\", 2)", "AttrReserved"},
      {kMatmul, "annotate_block(@B0, \"double_buffer\", 0)", "AttrReserved"},
      {kMatmul, "annotate_loop(@L0, \"sync\", 0)", "AttrReserved"},
      {kMatmul, "annotate_loop(@L0, \"ahead\", 1)", "AttrReserved"},
      {kMatmul, "annotate_loop(@L0, \"align_1\", 0)", "AttrReserved"},
      {kMatmul, "annotate_block(@B0, \"align_factor_0_0\", 8)", "AttrReserved"},
      {kMatmul, "annotate_block(@B0, \"align_offset_0_0\", 8)", "AttrReserved"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("double_buffer needs a buffer that lives within an iteration") {
  const Case cases[] = {
      {kStaged, "double_buffer(@B0, 0)", ""},
      {kStaged, "double_buffer(@B1, 0)", ""},
      {kDenseRelu, "reverse_compute_at(@B1, @L0)\ndouble_buffer(@B0, 0)", ""},
      {kStaged, "double_buffer(@B0, 1)", "AccessIndexRange"},
      {kStaged, "double_buffer(@B2, 0)", "BufferNotIntermediate"},
      {kDenseRelu, "double_buffer(@B0, 0)", "BlockNotSimple"},
      {kStaged, "double_buffer(@B8, 0)", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("storage_align says where rows start") {
  const schedule::Schedule s = check_steps(kDenseRelu, "storage_align(@B0, 0, -2, 32, 8)");
  CHECK(print(s.program()).find("{align_factor_0_0 = 32, align_offset_0_0 = 8}") !=
        std::string::npos);
  const Case cases[] = {
      {kDenseRelu, "storage_align(@B0, 0, 0, 32, 0)\nstorage_align(@B0, 0, 0, 16, 4)", ""},
      {kDenseRelu, "storage_align(@B0, 0, 1, 1, 0)", ""},
      {kDenseRelu, "storage_align(@B0, 0, 2, 32, 8)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 0, -3, 32, 8)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 0, 0, 0, 0)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 0, 0, 4294967296, 0)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 0, 0, 32, 32)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 0, 0, 32, -1)", "AlignArgument"},
      {kDenseRelu, "storage_align(@B0, 1, 0, 32, 8)", "AccessIndexRange"},
      {kDenseRelu, "storage_align(@B1, 0, 0, 32, 8)", "BufferNotIntermediate"},
      {kDenseRelu, "storage_align(@B7, 0, 0, 32, 8)", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("swizzle wants rows of panels in shared memory") {
  const std::string shared = "set_scope(@B0, 0, \"shared\")\n";
  const schedule::Schedule s = check_steps(kDenseRelu, shared + "swizzle(@B0, 0, 64)");
  CHECK(print(s.program()).find("{swizzle_0 = 64}") != std::string::npos);
  const std::string align = "storage_align(@B0, 0, 0, 32, 8)";
  const Case cases[] = {
      {kDenseRelu, shared + "swizzle(@B0, 0, 32)\nswizzle(@B0, 0, 64)", ""},
      {kDenseRelu, shared + "swizzle(@B0, 0, 64)\nunannotate_block(@B0, \"swizzle_0\")\n" + align,
       ""},
      {kDenseRelu, shared + "swizzle(@B0, 0, 32)", ""},
      {kDenseRelu, shared + "swizzle(@B0, 0, 48)", "SwizzleForm"},
      {kDenseRelu, shared + "swizzle(@B0, 0, 0)", "SwizzleForm"},
      {kDenseRelu, shared + "swizzle(@B0, 0, 128)", "SwizzleForm"},
      {kDenseRelu, "swizzle(@B0, 0, 64)", "SwizzleForm"},
      {kChain, "set_scope(@B0, 0, \"shared\")\nswizzle(@B0, 0, 32)", "SwizzleForm"},
      {kDenseRelu, shared + align + "\nswizzle(@B0, 0, 64)", "SwizzleForm"},
      {kDenseRelu, shared + "swizzle(@B0, 0, 64)\n" + align, "SwizzleForm"},
      {kDenseRelu, shared + "swizzle(@B0, 1, 64)", "AccessIndexRange"},
      {kDenseRelu, "swizzle(@B1, 0, 64)", "BufferNotIntermediate"},
      {kDenseRelu, "swizzle(@B9, 0, 64)", "BlockNotFound"},
      {kMatmul, "annotate_block(@B0, \"swizzle_0\", 64)", "AttrReserved"},
  };
  for (const Case& c : cases) check(c);
}

// Tiles of 16 rows go through shared memory; beyond the 60th column there are zeros.
constexpr std::string_view kTiles = R"(
program tiles(A: f16[64, 64], P: f16[64, 60], Q: f16[64, 56]) -> (Y: f16[64, 64]) {
  buffer S: f16[64, 64] shared
  buffer T: f16[64, 64] shared
  buffer U: f16[64, 64] shared
  for b in 4 @L0 {
    for i in 16 @L1 { for j in 64 @L2 {
      block "S" @B0 [v: S(64) = b*16 + i, w: S(64) = j] { S[v, w] = A[v, w] } } }
    for i in 16 @L3 { for j in 64 @L4 {
      block "T" @B1 [v: S(64) = b*16 + i, w: S(64) = j] {
        T[v, w] = select(w < 60, P[v, w], 0f16) } } }
    for i in 16 @L5 { for j in 64 @L6 {
      block "U" @B2 [v: S(64) = b*16 + i, w: S(64) = j] {
        U[v, w] = select(w < 56, Q[v, w], 0f16) } } }
    for i in 16 @L7 { for j in 64 @L8 {
      block "Y" @B3 [v: S(64) = b*16 + i, w: S(64) = j] {
        Y[v, w] = S[v, w] + T[v, w]*U[v, w] } } }
  }
})";

TEST_CASE("a swizzle is of as many bytes as rows have, or of a part of them") {
  std::string wide(kTiles);  // rows of 256 bytes
  for (std::size_t at; (at = wide.find("f16")) != std::string::npos;) wide.replace(at, 3, "f32");
  const std::string choice =
      "sample_categorical([1, 2, 4], [1, 1, 1]) -> v0 = [2]\nproduct([v0, 32]) -> v1\n";
  const Case cases[] = {
      {kTiles, "swizzle(@B0, 0, 128)", ""},
      {kTiles, "swizzle(@B0, 0, 96)", ""},
      {kTiles, choice + "swizzle(@B0, 0, v1)", ""},
      {kTiles, "swizzle(@B0, 0, 192)", "SwizzleForm"},
      {kTiles, "swizzle(@B0, 0, 80)", "SwizzleForm"},
      {kTiles, "swizzle(@B0, 0, -32)", "SwizzleForm"},
      {wide, "swizzle(@B0, 0, 256)", ""},
      {wide, "swizzle(@B0, 0, 512)", "SwizzleForm"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("bulk_copy takes boxes of matrices with aligned rows into shared memory") {
  const schedule::Schedule s = check_steps(kTiles, "bulk_copy(@L1)\nbulk_copy(@L5)");
  CHECK(print(s.program()).find("for i in 16 @L1 {bulk_copy = 1}") != std::string::npos);
  // One row and zeros below it; the same row again and again.
  const std::string one_row = R"(
program row(A: f16[1, 64]) -> (Y: f16[16, 64]) {
  buffer S: f16[16, 64] shared
  buffer T: f16[16, 64] shared
  for i in 16 @L0 { for j in 64 @L1 {
    block "S" @B0 [v: S(16) = i, w: S(64) = j] { S[v, w] = select(v < 1, A[0, w], 0f16) } } }
  for i in 16 @L2 { for j in 64 @L3 {
    block "T" @B1 [v: S(16) = i, w: S(64) = j] { T[v, w] = A[0, w] } } }
  for i in 16 @L4 { for j in 64 @L5 {
    block "Y" @B2 [v: S(16) = i, w: S(64) = j] { Y[v, w] = S[v, w] + T[v, w] } } }
})";
  const std::string somewhere = R"(
program somewhere(A: f16[64, 64], Z: i64[1]) -> (Y: f16[16, 64]) {
  buffer S: f16[16, 64] shared
  for i in 16 @L0 { for j in 64 @L1 {
    block "S" @B0 [v: S(16) = i, w: S(64) = j] { S[v, w] = A[min(max(Z[0], 0), 48) + v, w] } } }
  for i in 16 @L2 { for j in 64 @L3 {
    block "Y" @B1 [v: S(16) = i, w: S(64) = j] { Y[v, w] = S[v, w] } } }
})";
  const std::string shorter = replaced(kTiles, "w < 56", "w < 55");
  const std::string ones = replaced(kTiles, "Q[v, w], 0f16", "Q[v, w], 1f16");
  const std::string sums =
      replaced(kTiles, "{ S[v, w] = A[v, w] }", "{ S[v, w] = A[v, w] + 1f16 }");
  const std::string turned = replaced(kTiles, "{ S[v, w] = A[v, w] }", "{ S[v, w] = A[w, v] }");
  const std::string too_long = replaced(kTiles, "A: f16[64, 64]", "A: f16[2147483648, 64]");
  const Case cases[] = {
      {too_long, "bulk_copy(@L1)", "BulkForm"},
      {kTiles, "bulk_copy(@L2)", ""},
      {kTiles, "split(@L1, [2, 8])\nbulk_copy(@L10)", ""},
      {kTiles, "bulk_copy(@L5)", ""},
      {one_row, "bulk_copy(@L0)", ""},
      {one_row, "bulk_copy(@L2)", "BulkForm"},
      {somewhere, "bulk_copy(@L0)", "BulkForm"},
      {kTiles, "bulk_copy(@L1)\nbulk_copy(@L1)", "LoopHasAttr"},
      {kTiles, "split(@L2, [2, 32])\nbulk_copy(@L1)", "BulkForm"},
      {kTiles, "split(@L2, [16, 4])\nbulk_copy(@L10)", "BulkForm"},
      {kTiles, "vectorize(@L2)\nbulk_copy(@L1)", "BulkForm"},
      {kTiles, "bind(@L1, \"thread.x\")\nbulk_copy(@L2)", "BulkForm"},
      {kTiles, "bulk_copy(@L3)", "BulkForm"},  // rows of 120 bytes
      {kTiles, "bulk_copy(@L7)", "BulkForm"},
      {kTiles, "bulk_copy(@L0)", "BulkForm"},
      {shorter, "bulk_copy(@L5)", "BulkForm"},
      {ones, "bulk_copy(@L5)", "BulkForm"},
      {sums, "bulk_copy(@L1)", "BulkForm"},
      {turned, "bulk_copy(@L1)", "BulkForm"},
      {kTiles, "bulk_copy(@L19)", "LoopNotFound"},
      {kTiles, "annotate_loop(@L1, \"bulk_copy\", 1)", "AttrReserved"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("bulk_copy takes windows of images whose pixels follow each other") {
  const auto tile = [](std::string_view image, std::string_view value) {
    return "program windows(A: f16" + std::string(image) +
           ") -> (Y: f16[64, 64]) {\n  buffer S: f16[64, 64] shared\n"
           "  for i in 64 @L0 { for j in 64 @L1 {\n"
           "    block \"S\" @B0 [v: S(64) = i, w: S(64) = j] { S[v, w] = " +
           std::string(value) +
           " } } }\n  for i in 64 @L2 { for j in 64 @L3 {\n"
           "    block \"Y\" @B1 [v: S(64) = i, w: S(64) = j] { Y[v, w] = S[v, w] } } }\n}";
  };
  const std::string tap = tile("[2, 7, 9, 64]",
                               "select(1 <= v // 9 % 7 && v % 9 < 8, "
                               "A[v // 63, v // 9 % 7 - 1, v % 9 + 1, w], 0f16)");
  const std::string steps = tile("[4, 8, 10, 64]", "A[v // 20, v // 5 % 4*2, v % 5*2, w]");
  const std::string end = tile("[1, 6, 8, 64]", "select(v < 48, A[0, v // 8, v % 8, w], 0f16)");
  const std::string line = tile("[2, 5, 64, 64]", "select(1 <= v, A[1, 3, v - 1, w], 0f16)");
  const std::string far = tile("[4, 30, 40, 64]", "A[v // 16, v // 4 % 4*9, v % 4*9, w]");
  const std::string narrow = tile("[2, 7, 9, 65]", "A[v // 63, v // 9 % 7, v % 9, w]");
  const std::string turned = tile("[2, 7, 9, 64]", "A[v // 63, v % 7, v // 7 % 9, w]");
  const Case cases[] = {
      {tap, "bulk_copy(@L0)", ""},
      {replaced(tap, "v % 9 < 8", "v % 9 < 7"), "bulk_copy(@L0)", "BulkForm"},
      {replaced(tap, "0f16", "1f16"), "bulk_copy(@L0)", "BulkForm"},
      {steps, "bulk_copy(@L0)", ""},
      {line, "bulk_copy(@L0)", ""},
      {replaced(line, "1 <= v", "2 <= v"), "bulk_copy(@L0)", "BulkForm"},
      {far, "bulk_copy(@L0)", "BulkForm"},
      {end, "bulk_copy(@L0)", ""},
      {replaced(end, "v < 48", "v < 40"), "bulk_copy(@L0)", ""},
      {replaced(end, "v < 48", "v < 47"), "bulk_copy(@L0)", "BulkForm"},
      {replaced(end, "v < 48", "v + w * 8 < 48"), "bulk_copy(@L0)", "BulkForm"},
      {replaced(end, "v < 48", "v < 48 + w * 8"), "bulk_copy(@L0)", "BulkForm"},
      {narrow, "bulk_copy(@L0)", "BulkForm"},  // pixels of 130 bytes
      {turned, "bulk_copy(@L0)", "BulkForm"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
