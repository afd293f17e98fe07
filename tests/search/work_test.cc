#include "search/space/work.h"

#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <string>

namespace prunerc {
namespace {

using search::Work;
using testing::operator_program;
using testing::parse_or_die;

TEST_CASE(
    "a gathered table counts by what is read of it, one that is also read in order as a whole") {
  const auto bytes = [](const std::string& body) {
    return search::work_of(
               parse_or_die("program p(T: f32[1000, 8], I: i32[10]) -> (Y: f32[10, 8]) { for i in "
                            "10 { for j in 8 {"
                            " block \"Y\" [vi: S(10) = i, vj: S(8) = j] { Y[vi, vj] = " +
                            body + " } } } }"))
        .bytes;
  };
  CHECK(bytes("T[i64(I[vi]), vj]") == 4 * (80 + 10 + 80));
  CHECK(bytes("T[i64(I[vi]), vj] + T[i64(I[vi]) + 1, vj]") == 4 * (160 + 10 + 80));
  CHECK(bytes("T[i64(I[vi]), vj] + T[vi, vj]") == 4 * (8000 + 10 + 80));
  CHECK(bytes("f32(I[vi])") == 4 * (8000 + 10 + 80));
}

TEST_CASE("a gather that reads more than there is reads all") {
  CHECK(search::work_of(
            parse_or_die("program p(T: f32[4], I: i32[10]) -> (Y: f32[10]) { for i in 10 {"
                         " block \"Y\" [vi: S(10) = i] { Y[vi] = T[i64(I[vi])] } } }"))
            .bytes == 4 * (4 + 10 + 10));
}

TEST_CASE("finding the place of a gathered element is no work on data") {
  const Work work = search::work_of(parse_or_die(
      "program p(T: f32[100], I: i32[10], J: i32[10]) -> (Y: f32[10], Z: i32[10]) { for i in 10 {"
      " block \"Y\" [vi: S(10) = i] { Y[vi] = T[i64(I[vi]) * 2 + i64(J[vi])] * 3f32 } }"
      " for i2 in 10 { block \"Z\" [vz: S(10) = i2] { Z[vz] = I[vz] + J[vz] } } }"));
  CHECK(work.float_ops == 10);
  CHECK(work.integer_ops == 10);
}

TEST_CASE("a transposed convolution computes what its congruences let through") {
  CHECK(search::work_of(operator_program("transposed_conv")).float_ops ==
        2.0 * 6 * 3 * (8 * 4 / 2) * (36 * 4 / 2));
}

TEST_CASE("a running sum takes a step for each element") {
  CHECK(search::work_of(operator_program("running_sum")).float_ops == 3.0 * 7 * 29);
}

TEST_CASE("a causal mask halves the scores that it hides and the sums of what it leaves") {
  const auto ops = [](const std::string& weight) {
    return search::work_of(
               parse_or_die(R"(program p(Q: f32[20, 3], V: f32[20, 8]) -> (Y: f32[20, 8]) {
      buffer a: f32[20, 20] global
      buffer p: f32[20, 20] global
      for i in 20 { for k in 20 { for e in 3 {
        block "a" [vt: S(20) = i, vs: S(20) = k, ve: R(3) = e] {
          init { a[vt, vs] = 0f32 } a[vt, vs] = a[vt, vs] + Q[vt, ve]*Q[vs, ve] } } } }
      for i1 in 20 { for k1 in 20 {
        block "p" [vt: S(20) = i1, vs: S(20) = k1] { p[vt, vs] = )" +
                            weight + R"( } } }
      for i2 in 20 { for f in 8 { for k2 in 20 {
        block "Y" [vt: S(20) = i2, vf: S(8) = f, vs: R(20) = k2] {
          init { Y[vt, vf] = 0f32 } Y[vt, vf] = Y[vt, vf] + p[vt, vs]*V[vs, vf] } } } } })"))
        .float_ops;
  };
  const double whole = ops("a[vt, vs]");
  CHECK(whole == 20.0 * 20 * (2 * 3 + 2 * 8));
  CHECK(whole - ops("select(vs <= vt, a[vt, vs], 0f32)") == 190.0 * (2 * 3 + 2 * 8));
  // A border of less than a tenth is part of the work, as everywhere.
  CHECK(ops("select(vs < 19, a[vt, vs], 0f32)") == whole);
}

TEST_CASE("an integer product is rated by its integer operations, a float one by its floats") {
  const Work integers = search::work_of(operator_program("gemm_i8"));
  CHECK(integers.is_integer());
  CHECK(integers.rated_ops() == 2.0 * 10 * 35 * 12);
  CHECK(integers.bytes == 10 * 12 + 12 * 35 + 4 * 10 * 35);
  const Work floats = search::work_of(operator_program("gemm"));
  CHECK_FALSE(floats.is_integer());
  CHECK(floats.rated_ops() == 2.0 * 24 * 144 * 20);
}

}  // namespace
}  // namespace prunerc
