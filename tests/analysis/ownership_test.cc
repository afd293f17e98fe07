// Who may read a register: proofs on large programs, replays of small ones.
#include "ir/analysis/ownership.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

OwnershipCheck check(const std::string& body, int64_t max_points,
                     const std::string& scope = "local") {
  const std::string text =
      "program p(A: f32[4096, 64], I: i64[64]) -> (C: f32[4096]) { buffer T: f32[4096] " + scope +
      " buffer U: f32[4096] " + scope + " " + body + " }";
  return check_ownership(parse_or_die(text), {.max_points = max_points});
}

constexpr int64_t kMany = 1'000'000;

// Without looking at a single point.
void shows(const std::string& body) {
  const OwnershipCheck found = check(body, 0);
  INFO(body << "\n" << found.reason);
  CHECK(found.proof == Proof::kYes);
}
void replays(const std::string& body) {
  INFO(body);
  CHECK(check(body, 0).proof == Proof::kUnknown);
  const OwnershipCheck found = check(body, kMany);
  INFO(found.reason);
  CHECK(found.proof == Proof::kYes);
}
void refutes(const std::string& body, const std::string& reason) {
  const OwnershipCheck found = check(body, kMany);
  INFO(body << "\n" << found.reason);
  CHECK(found.proof == Proof::kNo);
  CHECK(found.reason.find(reason) != std::string::npos);
  CHECK(check(body, kMany, "shared").proof == Proof::kYes);
}

const std::string kSum = R"(for t in 256 bind(thread.x) { for k in 64 {
    block "T" [vi: S(4096) = b*256 + t, vk: R(64) = k] {
      init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } )";

TEST_CASE("a thread may read in later loops what it wrote") {
  shows("for b in 16 bind(block.x) { " + kSum +
        "for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + t] } }");
  shows("for b in 16 bind(block.x) { " + kSum +
        "for t in 256 bind(thread.x) { C[b*256 + t // 2*2 + t % 2] = T[b*256 + t // 2*2 + t % 2] } "
        "}");
  shows(
      "for b in 16 bind(block.x) { for k in 64 { for t in 256 bind(thread.x) { T[b*256 + t] = "
      "A[b*256 + t, k] } "
      "for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + t] } } }");
}

TEST_CASE("another thread may not") {
  refutes("for b in 16 bind(block.x) { " + kSum +
              "for t in 256 bind(thread.x) { C[b*256 + 255 - t] = T[b*256 + 255 - t] } }",
          "[255] is written at block.x 0, thread.x 255 and read at block.x 0, thread.x 0");
  refutes("for b in 16 bind(block.x) { " + kSum +
              "for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + (t + 1) % 256] } }",
          "written at block.x 0, thread.x 1 and read at block.x 0, thread.x 0");
  refutes("for b in 16 bind(block.x) { " + kSum + "for t in 256 { C[b*256 + t] = T[b*256 + t] } }",
          "and read at block.x 0");
  refutes("for b in 16 bind(block.x) { " + kSum +
              "for t in 256 bind(thread.y) { C[b*256 + t] = T[b*256 + t] } }",
          "thread.y");
  refutes(
      R"(for y in 16 bind(block.y) { for x in 16 bind(block.x) { for i in 16 { T[y*256 + x*16 + i] = A[x, 0] } }
             for x in 16 bind(block.x) { for i in 16 { C[y*256 + i*16 + x] = T[y*256 + i*16 + x] } } })",
      "block.x");
}

TEST_CASE("what is outside of an axis belongs to all along it") {
  shows(R"(for b in 16 bind(block.x) { for i in 256 { T[b*256 + i] = A[b*256 + i, 0] }
        for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + 255 - t] } })");
  shows(R"(for b in 16 bind(block.x) {
        for y in 16 bind(thread.y) { for i in 16 { T[b*256 + y*16 + i] = A[b*256 + i, 0] } }
        for y in 16 bind(thread.y) { for x in 16 bind(thread.x) { C[b*256 + y*16 + x] = T[b*256 + y*16 + x] } } })");
  refutes(R"(for b in 16 bind(block.x) {
        for y in 16 bind(thread.y) { for i in 16 { T[b*256 + y*16 + i] = A[b*256 + i, 0] } }
        for y in 16 bind(thread.y) { for x in 16 bind(thread.x) { C[b*256 + x*16 + y] = T[b*256 + x*16 + y] } } })",
          "written at block.x 0, thread.y 1 and read at block.x 0, thread.x 1, thread.y 0");
}

TEST_CASE("virtual threads and lanes of vectors are one thread's") {
  shows(R"(for b in 16 bind(block.x) {
        for v in 2 bind(vthread.x) { for t in 128 bind(thread.x) { T[b*256 + v*128 + t] = A[t, v] } }
        for t in 128 bind(thread.x) { for v in 2 vectorized { C[b*256 + v*128 + t] = T[b*256 + (1 - v)*128 + t] } } })");
}

TEST_CASE("what threads reduce together they all get") {
  const std::string sum = R"(for b in 4096 bind(block.x) { for t in 64 bind(thread.x) {
      block "T" [vi: S(4096) = b, vk: R(64) = t] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } )";
  shows(sum + "C[b] = T[b] }");
  shows(sum + "for t in 64 bind(thread.x) { if t < 1 { C[b] = T[b] } } }");
  refutes(R"(for b in 256 bind(block.x) {
      for y in 16 bind(thread.y) { for t in 64 bind(thread.x) {
        block "T" [vi: S(4096) = b*16 + y, vk: R(64) = t] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } }
      for y in 16 bind(thread.y) { C[b*16 + 15 - y] = T[b*16 + 15 - y] } })",
          "thread.y");
}

TEST_CASE("registers end with their kernel") {
  const std::string sum = "for b in 16 bind(block.x) { " + kSum + "} ";
  const std::string out =
      "for b in 16 bind(block.x) { for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + t] } } ";
  refutes(sum + out, "another kernel");
  refutes(sum + "for i in 4096 { C[i] = T[i] }", "another kernel");
  refutes("for i in 4096 { T[i] = A[i, 0] } " + out, "another kernel");
  // A kernel that is launched twice.
  refutes(R"(for k in 2 { for t in 256 bind(thread.x) {
      block "T" [v: S(4096) = t, vk: R(2) = k] { init { T[v] = 0f32 } T[v] = T[v] + A[v, vk] C[v] = T[v] } } })",
          "another kernel");
  shows("for i in 4096 { T[i] = A[i, 0] } for i in 4096 parallel { C[i] = T[4095 - i] }");
}

TEST_CASE("what cannot be proved pairwise is replayed") {
  // The first write is overwritten by the reader.
  replays(
      R"(for b in 16 bind(block.x) { for t in 256 bind(thread.x) { T[b*256 + 255 - t] = A[t, 0] }
        for t in 256 bind(thread.x) { T[b*256 + t] = A[t, 1] }
        for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + t] } })");
  // Subscripts that are no sums.
  replays(R"(for b in 16 bind(block.x) { for t in 16 bind(thread.x) { T[b*256 + t*t] = A[t, 0] }
        for t in 16 bind(thread.x) { C[b*256 + t*t] = T[b*256 + t*t] } })");
  // A branch of a selection that is not taken.
  replays(R"(for b in 16 bind(block.x) { for t in 256 bind(thread.x) { T[b*256 + t] = A[t, 0] }
        for t in 256 bind(thread.x) { C[b*256 + t] = select(t < 300, 0f32, T[b*256 + 255 - t]) } })");
}

TEST_CASE("data does not matter where every element it may choose is the same thread's") {
  shows(R"(for b in 1 bind(block.x) { for t in 64 { T[t] = A[t, 0] }
        for t in 64 bind(thread.x) { C[t] = T[I[t]] } })");
  replays(
      R"(for b in 16 bind(block.x) { for t in 64 bind(thread.x) { T[b*64 + t] = A[t, 0] U[b*64 + 63 - t] = A[t, 1] }
        for t in 64 bind(thread.x) { U[b*64 + t] = A[t, 0]
          C[b*64 + t] = select(I[t] < 3, T[b*64 + t], U[b*64 + t]) } })");
  // Written by one thread, then by all.
  replays(R"(for b in 1 bind(block.x) { for t in 64 bind(thread.x) { T[t] = A[t, 0] }
        for t in 64 { T[t] = A[t, 1] } for t in 64 bind(thread.x) { C[t] = T[I[t]] } })");
  refutes(R"(for t in 64 { T[t] = A[t, 0] }
        for t in 64 bind(thread.x) { C[t] = T[I[t]] })",
          "any element is written outside of kernels and read in another kernel");
}

TEST_CASE("what depends on data or is too large is not known") {
  const std::string gather =
      R"(for b in 16 bind(block.x) { for t in 64 bind(thread.x) { T[b*64 + t] = A[t, 0] }
        for t in 64 bind(thread.x) { C[b*64 + t] = T[I[t]] } })";
  CHECK(check(gather, kMany).proof == Proof::kUnknown);
  CHECK(check(gather, kMany).reason == "this is not excluded, as a subscript depends on data");
  const std::string select =
      R"(for b in 16 bind(block.x) { for t in 64 bind(thread.x) { T[b*64 + t] = A[t, 0] }
        for t in 64 bind(thread.x) { C[b*64 + t] = select(I[t] < 3, T[b*64 + 63 - t], 0f32) } })";
  CHECK(check(select, kMany).proof == Proof::kUnknown);
  CHECK(check(select, kMany).reason == "this is not excluded, as a selection depends on data");
  const std::string wrong = "for b in 16 bind(block.x) { " + kSum +
                            "for t in 256 bind(thread.x) { C[b*256 + t] = T[b*256 + 255 - t] } }";
  CHECK(check(wrong, 100).proof == Proof::kUnknown);
  CHECK(check(wrong, 100).reason == "this is not excluded, as there are too many iterations");
  CHECK(check(wrong, kMany).proof == Proof::kNo);
}

TEST_CASE("the check as a precondition refuses doubts unless they are allowed") {
  const auto program = [](const std::string& index) {
    return parse_or_die(R"(program p(I: i64[64]) -> (C: i64[64]) { buffer T: i64[64] local
      for b in 1 bind(block.x) { for t in 64 bind(thread.x) { T[t] = I[t] }
        for t in 64 bind(thread.x) { C[t] = T[)" +
                        index + "] } } }");
  };
  REQUIRE_OK(check_thread_ownership(program("t")));
  CHECK_DIAG(check_thread_ownership(program("63 - t")), ThreadOwner);
  CHECK_DIAG(check_thread_ownership(program("63 - t"), Doubt::kAllowed), ThreadOwner);
  CHECK_DIAG(check_thread_ownership(program("I[t]")), ThreadOwner);
  REQUIRE_OK(check_thread_ownership(program("I[t]"), Doubt::kAllowed));
}

}  // namespace
}  // namespace prunerc::ir
