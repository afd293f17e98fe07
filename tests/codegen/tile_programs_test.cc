// Programs with matrix tiles (AMX) that schedules seldom make: conditions around, rows backwards, arrays
// that begin anywhere, fills that must not be left out. Compiled everywhere, run where the CPU has them.
#include "codegen/codegen.h"
#include "codegen/lower/passes.h"
#include "ir/printer.h"
#include "tests/codegen/tile_check.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// c += a*b, of 16 rows of 64 bytes, with variables i, j, g and k.
std::string bytes(const std::string& c, const std::string& a, const std::string& b) {
  return "for i in 16 {tensor_x86_tdpbusd_16x16x64 = 1} { for j in 16 { for g in 16 { for k in 4 "
         "{ " +
         c + " = " + c + " + i32(" + a + ")*i32(" + b + ") } } } } ";
}

std::string fill(const std::string& c, const std::string& value = "0i32", int rows = 16) {
  return "for i in " + std::to_string(rows) + " { for j in 16 { " + c + " = " + value + " } } ";
}

// Compiled and interpreted; the assembly.
std::string check_text(const std::string& params, const std::string& body,
                       const char* feature = "+amx-int8") {
  const Program program = parse_or_die("program p" + params + " { " + body + "}");
  check_tiles(program, program, 1, feature);
  return tile_assembly(program);
}

constexpr const char* kUsual = "(A: u8[16, 64], B: i8[16, 16, 4]) -> (C: i32[16, 16])";
const std::string kProduct = bytes("C[i, j]", "A[i, g*4 + k]", "B[g, j, k]");

TEST_CASE("products run under a condition, whatever it says") {
  const std::string text = check_text(
      "(A: u8[6, 16, 64], B: i8[16, 16, 4], X: i32[6]) -> (C: i32[6, 16, 16])",
      "for q in 6 { " + fill("C[q, i, j]") + "if X[q] < 1i32 { " +
          bytes("C[q, i, j]", "A[q, i, g*4 + k]", "B[g, j, k]") + "} if q < 3 { for s in 2 { " +
          bytes("C[q, i, j]", "A[q + s, i, g*4 + k]", "B[g, j, k]") + "} } }");
  CHECK(num_times(text, "tdpbusd\t") >= 2);
}

TEST_CASE("rows of tiles may lie backwards") {
  check_text(kUsual, fill("C[i, j]") + bytes("C[15 - i, j]", "A[i, g*4 + k]", "B[g, j, k]"));
  check_text(kUsual, fill("C[i, j]") + bytes("C[i, j]", "A[15 - i, g*4 + k]", "B[15 - g, j, k]"));
}

TEST_CASE("a parallel loop of one iteration is no other function") {
  const std::string text =
      check_text(kUsual, fill("C[i, j]") + "for q in 1 parallel { " + kProduct + "}");
  CHECK(num_times(text, "ldtilecfg\t") == 1);
}

TEST_CASE("tiles begin at any element") {
  check_text("(A: u8[16, 67], B: i8[1027]) -> (C: i32[17, 17])",
             "for i in 17 { for j in 17 { C[i, j] = 5i32 } } " +
                 bytes("C[i + 1, j + 1]", "A[i, g*4 + k + 1]", "B[g*64 + j*4 + k + 3]"));
}

TEST_CASE("products of bytes and of bf16 share a region") {
  const std::string halves =
      "for i in 16 {tensor_x86_tdpbf16ps_16x16x32 = 1} { for j in 16 { for g in 16 { for k in 2 { "
      "D[i, j] = D[i, j] + f32(X[i, s*32 + g*2 + k])*f32(Y[s, g, j, k]) } } } } ";
  const std::string params =
      "(A: u8[16, 128], B: i8[2, 16, 16, 4], X: bf16[16, 64], Y: bf16[2, 16, 16, 2]) -> (C: "
      "i32[16, "
      "16], D: f32[16, 16])";
  const std::string body = fill("C[i, j]") + fill("D[i, j]", "0f32") + "for s in 2 { " +
                           bytes("C[i, j]", "A[i, s*64 + g*4 + k]", "B[s, g, j, k]") + halves + "}";
  const std::string text = check_text(params, body, "+amx-bf16");
  CHECK(num_times(text, "tilestored\t") == 2);
  CHECK(num_times(text, "tilezero\t") == 0);
  const Result<codegen::Artifact> artifact = codegen::compile_cpu(
      parse_or_die("program p" + params + " { " + body + "}"), sapphire_rapids());
  REQUIRE_OK(artifact);
  CHECK(artifact->tile_features == std::vector<std::string>{"amx-tile", "amx-bf16", "amx-int8"});
}

TEST_CASE("a fill in front of products runs unless all it does is their sums' 0") {
  const std::string depth =
      "for s in 2 { " + bytes("C[i, j]", "A[i, s*64 + g*4 + k]", "B[g, j, k]") + "} ";
  const std::string params = "(A: u8[16, 128], B: i8[16, 16, 4]) -> (C: i32[32, 16], D: i32[16])";
  const std::string rest = "for j in 16 { D[j] = C[3, j] } ";
  const auto num_zeroed = [&](const std::string& body) {
    INFO(body);
    return num_times(check_text(params, body), "tilezero\t");
  };
  const std::string ones = fill("C[i, j]", "1i32", 32);
  CHECK(num_zeroed(ones + fill("C[i, j]") + depth + rest) == 1);
  // Read between.
  CHECK(num_zeroed(ones + fill("C[i, j]") + rest + depth) == 0);
  // In part, too far, beside them, with another value.
  CHECK(num_zeroed(ones + fill("C[i, j]", "0i32", 8) + depth + rest) == 0);
  CHECK(num_zeroed(ones + fill("C[i, j]", "0i32", 32) + depth + rest) == 0);
  CHECK(num_zeroed(ones + fill("C[i + 16, j]") + depth + rest) == 0);
  CHECK(num_zeroed(ones + fill("C[i, j]", "3i32") + depth + rest) == 0);
}

TEST_CASE("loops of the depth that end early keep sums in registers if they run at all") {
  const auto parts = [](const std::string& extent) {
    return check_text(
        "(A: u8[16, 512], B: i8[8, 16, 16, 4]) -> (C: i32[3, 16, 16])",
        "for q in 3 { " + fill("C[q, i, j]") + "for s in " + extent + " { " +
            bytes("C[q, i, j]", "A[i, (q*2 + s)*64 + g*4 + k]", "B[q*2 + s, g, j, k]") + "} } ");
  };
  const std::string runs = parts("min(4, 7 - q*3)");
  CHECK(num_times(runs, "tilezero\t") == 1);
  CHECK(num_times(runs, "tilestored\t") == 1);
  const std::string may_not = parts("min(4, 6 - q*3)");
  CHECK(num_times(may_not, "tilezero\t") == 0);
}

// Sums in a buffer that could be registers of vectors.
std::string small_buffer(const std::string& attr) {
  return "program p(A: u8[4, 32], B: i8[8, 16, 4]) -> (C: i32[4, 16]) { buffer T: i32[4, 16] local "
         "alloc T { for i in 4 { for j in 16 { T[i, j] = 0i32 } } for i in 4 " +
         attr +
         "{ for j in 16 { for g in 8 { for k in 4 { T[i, j] = T[i, j] + i32(A[i, g*4 + "
         "k])*i32(B[g, j, k]) } } } } for i in 4 { for j in 16 { C[i, j] = T[i, j] } } } }";
}

TEST_CASE("sums in a small buffer are memory: the loops that fill it stay loops") {
  const Program tiles = parse_or_die(small_buffer("{tensor_x86_tdpbusd_4x16x32 = 1} "));
  check_tiles(tiles, tiles, 13);
  const auto unrolled = [](const Program& program) {
    const Result<Program> after = codegen::unroll_register_tiles(program, sapphire_rapids());
    REQUIRE_OK(after);
    return num_times(print(*after), "unrolled");
  };
  CHECK(unrolled(tiles) == 0);
  // Of a product that is none of tiles it would be registers.
  CHECK(unrolled(parse_or_die(small_buffer(""))) == 6);
}

TEST_CASE("a kernel may be called like what its tiles are configured with") {
  const Program program =
      parse_or_die(std::string("program p") + kUsual + " { " + fill("C[i, j]") + kProduct + "}");
  codegen::CpuOptions options;
  options.symbol = "tiles";
  const Result<codegen::Artifact> artifact =
      codegen::compile_cpu(program, sapphire_rapids(), options);
  REQUIRE_OK(artifact);
  CHECK(artifact->entry == "tiles");
  CHECK(num_times(tile_assembly(program), "\n.tiles:\n") == 1);
}

}  // namespace
}  // namespace prunerc
