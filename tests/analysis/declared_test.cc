// Declared regions against what bodies touch.
#include "ir/analysis/declared.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

Program copy(const std::string& regions, const std::string& value = "A[v + 1]") {
  return parse_or_die(R"(program p(A: f32[10]) -> (B: f32[8]) {
    for i in 8 @L0 { block "B" @B4 [v: S(8) = i] { )" +
                      regions + " B[v] = " + value + " } } }");
}

TEST_CASE("regions that contain every access are accepted") {
  CHECK(check_declared_regions(copy("")) == Proof::kYes);
  CHECK(check_declared_regions(copy("reads A[v + 1] writes B[v]")) == Proof::kYes);
  CHECK(check_declared_regions(copy("reads A[0 +: 10] writes B[0 +: 8]")) == Proof::kYes);
  CHECK(check_declared_regions(copy("reads A[v +: 3] writes B[v]", "A[v] + A[v + 2]")) ==
        Proof::kYes);
}

TEST_CASE("a reduction need not declare that it reads its accumulator") {
  const Program sum = parse_or_die(R"(program p(A: f32[10]) -> (B: f32) {
    for i in 10 @L0 { block "B" @B0 [v: R(10) = i] {
      reads A[v] writes B[] init { B[] = 0f32 } B[] = B[] + A[v] } } })");
  CHECK(check_declared_regions(sum) == Proof::kYes);
}

TEST_CASE("other elements of the accumulator's buffer are declared") {
  const auto program = [](const std::string& reads) {
    return parse_or_die(
        "program p(A: f32[8]) -> (B: f32[8]) { for i in 8 { for k in 8 { "
        "block \"B\" [v: S(8) = i, r: R(8) = k] { " +
        reads +
        " writes B[v] init { B[v] = 0f32 } "
        "B[v] = B[v] + select(1 <= v, B[v - 1], A[r]) } } } }");
  };
  CHECK(check_declared_regions(program("reads A[r], B[v - 1 +: 2]")) == Proof::kYes);
  CHECK_DIAG(verify_declared_regions(program("reads A[r]")), VerifyUndeclaredAccess);
}

TEST_CASE("an access outside its block's regions is refused by block and buffer") {
  BlockId block;
  BufferId buffer;
  const Program read = copy("reads A[v] writes B[v]");
  CHECK(check_declared_regions(read, &block, &buffer) == Proof::kNo);
  CHECK(block == BlockId(4));
  CHECK(read.buffer(buffer).name == "A");
  CHECK_DIAG(verify_declared_regions(read), VerifyUndeclaredAccess);
  CHECK_DIAG(verify_declared_regions(copy("reads A[v + 1] writes B[0]")), VerifyUndeclaredAccess);
  CHECK_DIAG(verify_declared_regions(copy("reads A[v +: 2] writes B[v]", "A[v] + A[v + 2]")),
             VerifyUndeclaredAccess);
}

TEST_CASE("an access whose place depends on data needs its whole dimension") {
  const std::string head =
      "program p(A: f32[10], I: i32[8]) -> (B: f32[8]) { for i in 8 @L0 { "
      "block \"B\" @B0 [v: S(8) = i] { reads I[v], ";
  const std::string tail = " writes B[v] B[v] = A[i64(I[v])] } } }";
  CHECK(check_declared_regions(parse_or_die(head + "A[0 +: 10]" + tail)) == Proof::kYes);
  CHECK(check_declared_regions(parse_or_die(head + "A[0 +: 9]" + tail)) != Proof::kYes);
}

TEST_CASE("an access that no block can declare is refused") {
  const auto program = [](const std::string& y) {
    return parse_or_die(
        "program p(A: f32[8], I: i64[8]) -> (B: f32[8]) { buffer T: i64[8] global "
        "for i in 8 @L0 { block \"T\" @B0 [v: S(8) = i] { T[v] = I[v] % 8 } } "
        "for j in 8 @L1 { " +
        y + " } }");
  };
  const Program guard = program("block \"B\" @B1 [v: S(8) = j] where T[j] < 3 { B[v] = A[v] }");
  const Result<void> found = verify_declared_regions(guard);
  CHECK_DIAG(found, VerifyStructure);
  CHECK(found.error().message() ==
        "block @B1 reads 'T' to find out whether or where it runs; a select in its body may do so");
  CHECK(check_declared_regions(guard) == Proof::kNo);
  CHECK_DIAG(verify_declared_regions(program("block \"B\" @B1 [v: S(8) = T[j]] { B[v] = A[v] }")),
             VerifyStructure);
  CHECK_DIAG(verify_declared_regions(program("B[j] = A[T[j]]")), VerifyStructure);
  CHECK_DIAG(verify_declared_regions(
                 program("if T[j] < 3 { block \"B\" @B1 [v: S(8) = j] { B[v] = A[v] } }")),
             VerifyStructure);
  // A lowered program has no blocks at all.
  CHECK(verify_declared_regions(
            parse_or_die("program p(A: f32[8]) -> (B: f32[8]) { for j in 8 { B[j] = A[j] } }"))
            .ok());
}

}  // namespace
}  // namespace prunerc::ir
