// Intrinsics of tile registers: what is registered, which nests are theirs, and which are not.
#include "ir/tensor/intrinsic.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

const TensorIntrinsic& tensor(const std::string& name) {
  const Result<const TensorIntrinsic*> found = find_tensor(name);
  REQUIRE_OK(found);
  return **found;
}

int64_t extent(const TensorIntrinsic& t, std::size_t iter) {
  return t.block().iters[iter].extent.as<IntImm>()->value;
}

TEST_CASE("tiles are registered for all rows from 4 to 16, both depths, and all signs of bytes") {
  const struct {
    const char* name;
    DType a, b, c;
    int group;
  } types[] = {{"tdpbssd", DType::kI8, DType::kI8, DType::kI32, 4},
               {"tdpbsud", DType::kI8, DType::kU8, DType::kI32, 4},
               {"tdpbusd", DType::kU8, DType::kI8, DType::kI32, 4},
               {"tdpbuud", DType::kU8, DType::kU8, DType::kI32, 4},
               {"tdpbf16ps", DType::kBF16, DType::kBF16, DType::kF32, 2}};
  for (const auto& type : types) {
    for (int rows = 4; rows <= 16; ++rows) {
      for (const int groups : {8, 16}) {
        const std::string name = "x86_" + std::string(type.name) + "_" + std::to_string(rows) +
                                 "x16x" + std::to_string(groups * type.group);
        INFO(name);
        const TensorIntrinsic& t = tensor(name);
        CHECK(t.uses_tiles());
        CHECK(t.call == "llvm.x86." + std::string(type.name));
        CHECK(t.features == (type.group == 4 ? "+amx-int8" : "+amx-bf16"));
        CHECK(t.slots == 2 * rows);
        REQUIRE(t.operands.size() == 3);
        const DType dtypes[] = {type.c, type.a, type.b};
        for (std::size_t i = 0; i < 3; ++i)
          CHECK(t.description.buffer(t.operands[i].buffer).dtype == dtypes[i]);
        CHECK(t.operands[0].is_output);
        CHECK(t.operands[0].strides == std::vector<int64_t>{TensorOperand::kAnyStride, 1});
        CHECK(t.operands[1].strides ==
              std::vector<int64_t>{TensorOperand::kAnyStride, type.group, 1});
        CHECK(t.operands[2].strides == t.operands[1].strides);
        CHECK(extent(t, 0) == rows);
        CHECK(extent(t, 1) == 16);
        CHECK(extent(t, 2) == groups);
        CHECK(extent(t, 3) == type.group);
      }
    }
  }
  CHECK(!find_tensor("x86_tdpbssd_3x16x64").ok());
  CHECK(!find_tensor("x86_tdpbssd_17x16x64").ok());
  CHECK(!find_tensor("x86_tdpbssd_16x16x48").ok());
  CHECK(!tensor("x86_vpdpbusd_16x4").uses_tiles());
}

TEST_CASE("operands of an instruction are in tiles, all or none") {
  const std::string text = R"(tensor t
needs cpu +x
call f
operand C [1] tile
operand A [1] tile
describes
program copy(A: f32[2]) -> (C: f32[2]) {
  for i in 2 { block "C" [v: S(2) = i] { C[v] = A[v] } }
})";
  const Result<TensorIntrinsic> read = parse_tensor(text);
  REQUIRE_OK(read);
  CHECK(read->uses_tiles());
  CHECK_DIAG(parse_tensor(replaced(text, "A [1] tile", "A [1] shared")), TensorText);
  CHECK_DIAG(parse_tensor(replaced(text, "A [1] tile", "A [1] tiles")), TensorText);
  CHECK_DIAG(parse_tensor(replaced(text, "A [1] tile", "A [1, 1] tile")), TensorText);
}

Result<TensorMatch> match(const std::string& name, const std::string& program) {
  const Program p = parse_or_die(program);
  IrBuilder b(p);
  return match_tensor(b, *p.root().as<Loop>(), tensor(name), {});
}

struct Nest {
  std::string update = "C[i + 5, j + 16] = C[i + 5, j + 16] + i32(A[i, g*4 + k])*i32(B[g, j, k])";
  std::string loops = "for i in 12 { for j in 16 { for g in 8 { for k in 4 {";
  std::string a = "u8[12, 32]", b = "i8[8, 16, 4]", c = "i32[20, 48]";

  std::string text() const {
    return "program p(A: " + a + ", B: " + b + ", X: i8[12, 32]) -> (C: " + c + ") { " + loops +
           " " + update + " } } } } }";
  }
};

constexpr const char* kTile = "x86_tdpbusd_12x16x32";

TEST_CASE("a product of tiles is recognised with its places and the distance of its rows") {
  const Result<TensorMatch> found = match(kTile, Nest{}.text());
  REQUIRE_OK(found);
  REQUIRE(found->operands.size() == 3);
  CHECK(found->operands[0].base[0].as<IntImm>()->value == 5);
  CHECK(found->operands[0].strides == std::vector<int64_t>{48, 1});
  CHECK(found->operands[1].strides == std::vector<int64_t>{32, 4, 1});
  CHECK(found->operands[2].strides == std::vector<int64_t>{64, 4, 1});
  const Nest others[] = {
      {.update = "C[i, j] = i32(B[g, j, k])*i32(A[i, g*4 + k]) + C[i, j]"},
      {.loops = "for k in 4 { for g in 8 { for j in 16 { for i in 12 {"},
      // Rows of A that share elements, as windows do; rows of B with a gap.
      {.update = "C[i, j] = C[i, j] + i32(A[i*8 + g*4 + k])*i32(B[g, j, k])", .a = "u8[120]"},
      {.b = "i8[8, 20, 4]"},
      {.update = "C[i*16 + j] = C[i*16 + j] + i32(A[i, g*4 + k])*i32(B[g, j, k])", .c = "i32[192]"},
  };
  for (const Nest& nest : others) {
    INFO(nest.text());
    CHECK(match(kTile, nest.text()).ok());
  }
}

TEST_CASE("nests that a tile register would read or write elsewhere are refused") {
  const struct {
    Nest nest;
    std::string_view reason;
  } cases[] = {
      {{.loops = "for i in 11 { for j in 16 { for g in 8 { for k in 4 {"},
       "extents [11, 16, 8, 4]"},
      {{.update = "C[i, j] = C[i, j] + i32(A[i, k])*i32(B[0, j, k])",
        .loops = "for i in 12 { for j in 16 { for k in 4 { if i < 3 {"},
       "inside its loops"},
      {{.update = "C[i, j] = C[i, j] + i32(A[i, g + k*8])*i32(B[g, j, k])"}, "along 'g'"},
      {{.update = "C[i, j] = C[i, j] + i32(A[i, g*4 + k])*i32(B[j//2, g*2 + j%2, k])"},
       "is not affine"},
      {{.update = "C[j, i] = C[j, i] + i32(A[i, g*4 + k])*i32(B[g, j, k])"}, "along 'j'"},
      {{.update = "C[i, j] = C[i, j] + i32(A[0, g*4 + k])*i32(B[g, j, k])"}, "along 'i'"},
      {{.update = "C[i, j] = C[i, j] + i32(X[i, g*4 + k])*i32(B[g, j, k])"}, "type i8 where u8"},
      {{.update = "C[i, j] = C[i, j] - i32(A[i, g*4 + k])*i32(B[g, j, k])"}, "an operation is"},
      // Two rows of sums at one element: the tile would add to one of them only.
      {{.update = "C[i*8 + j] = C[i*8 + j] + i32(A[i, g*4 + k])*i32(B[g, j, k])", .c = "i32[192]"},
       "lie over each other"},
  };
  for (const auto& c : cases) {
    INFO(c.nest.text());
    const Result<TensorMatch> found = match(kTile, c.nest.text());
    CHECK_DIAG(found, TensorMismatch);
    if (found.ok()) continue;
    INFO(found.error().message());
    CHECK(found.error().message().find(c.reason) != std::string::npos);
  }
  CHECK_DIAG(match("x86_tdpbssd_12x16x32", Nest{}.text()), TensorMismatch);
  CHECK_DIAG(match("x86_tdpbusd_16x16x64", Nest{}.text()), TensorMismatch);
}

TEST_CASE("subscripts that read the sums are refused: the instruction would read them too early") {
  const std::string sums =
      "program p(A: u8[80, 64], B: i8[16, 16, 4]) -> (C: i32[16, 16]) { for i in 16 { for j in 16 "
      "{ "
      "for g in 16 { for k in 4 { C[i, j] = C[i, j] + i32(A[FROM + i, g*4 + k])*i32(B[g, j, k]) } "
      "} "
      "} } }";
  const std::string dot =
      "program p(A: u8[80], B: i8[16, 4], T: i32[16]) -> (C: i32[16]) { for j in 16 { for k in 4 { "
      "C[j] = C[j] + i32(A[FROM + k])*i32(B[j, k]) } } }";
  CHECK(match("x86_tdpbusd_16x16x64", replaced(sums, "FROM", "7")).ok());
  CHECK(match("x86_vpdpbusd_16x4", replaced(dot, "FROM", "i64(T[0]) % 4")).ok());
  for (const auto& found :
       {match("x86_tdpbusd_16x16x64", replaced(sums, "FROM", "i64(C[0, 0]) % 4")),
        match("x86_vpdpbusd_16x4", replaced(dot, "FROM", "i64(C[0]) % 4"))}) {
    CHECK_DIAG(found, TensorMismatch);
    if (found.ok()) continue;
    CHECK(found.error().message().find("a subscript of 'A' reads the output") != std::string::npos);
  }
}

}  // namespace
}  // namespace prunerc
