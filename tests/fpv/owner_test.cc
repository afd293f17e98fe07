// Elements of scope local belong to the threads that wrote them.
#include "ir/fpv/fpv.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using namespace testing;  // NOLINT: a test

const std::string kSpec = R"(program p(A: f32[16, 4]) -> (C: f32[16]) {
  for i in 16 { for k in 4 {
    block "C" [vi: S(16) = i, vk: R(4) = k] { init { C[vi] = 0f32 } C[vi] = C[vi] + A[vi, vk] } } } })";

FpvVerdict check(const std::string& body, const std::string& scope) {
  const std::string text = "program p(A: f32[16, 4]) -> (C: f32[16]) { buffer T: f32[16] " + scope +
                           " buffer U: f32[16] " + scope + " " + body + " }";
  return check_equivalent(parse_or_die(kSpec), parse_or_die(text));
}

void accepts(const std::string& body, const std::string& scope = "local") {
  const FpvVerdict verdict = check(body, scope);
  INFO(scope << " " << body << "\n" << to_string(verdict));
  CHECK(verdict.kind == VerdictKind::kEqual);
}

// Wrong in registers alone: in memory of the block, the same program is right.
void rejects(const std::string& body) {
  accepts(body, "shared");
  const FpvVerdict verdict = check(body, "local");
  INFO(body << "\n" << to_string(verdict));
  CHECK(verdict.kind == VerdictKind::kInvalid);
  CHECK(verdict.text.find("by a thread that has not written it") != std::string::npos);
}

// T[b*8 + t] = sum of row b*8 + t, by thread t.
const std::string kSum = R"(for t in 8 bind(thread.x) { for k in 4 {
    block "T" [vi: S(16) = b*8 + t, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } })";

TEST_CASE("what a thread keeps in registers it alone reads in the loops that follow") {
  accepts("for b in 2 bind(block.x) { " + kSum +
          " for t in 8 bind(thread.x) { C[b*8 + t] = T[b*8 + t] } }");
  rejects("for b in 2 bind(block.x) { " + kSum +
          " for t in 8 bind(thread.x) { C[b*8 + 7 - t] = T[b*8 + 7 - t] } }");
  rejects("for b in 2 bind(block.x) { " + kSum + " for t in 8 { C[b*8 + t] = T[b*8 + t] } }");
  rejects("for b in 2 bind(block.x) { " + kSum +
          " for t in 8 bind(thread.y) { C[b*8 + t] = T[b*8 + t] } }");
}

TEST_CASE("a tensor instruction reads registers of its own warp") {
  rejects(R"(for b in 1 bind(block.x) {
    for w in 4 bind(thread.y) { for i in 4 { for k in 4 {
      block "T" [vi: S(16) = w*4 + i, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } }
    for i in 16 {tensor_mma = 1} { U[i] = T[i] }
    for i in 16 { C[i] = U[i] } })");
}

TEST_CASE("virtual threads are one thread's") {
  accepts(R"(for t in 8 bind(thread.x) { for v in 2 bind(vthread.x) { for k in 4 {
      block "T" [vi: S(16) = v*8 + t, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } }
    for v in 2 bind(vthread.x) { C[8 - v*8 + t] = T[8 - v*8 + t] } })");
  accepts(
      R"(for b in 1 bind(block.x) { for v in 2 bind(vthread.x) { for t in 8 bind(thread.x) { for k in 4 {
      block "T" [vi: S(16) = v*8 + t, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } }
    for t in 8 bind(thread.x) { for v in 2 { C[v*8 + t] = T[v*8 + t] } } })");
}

TEST_CASE("what stands outside of an axis every thread along it has for itself") {
  const std::string uniform = R"(for b in 2 bind(block.x) { for i in 8 { for k in 4 {
      block "T" [vi: S(16) = b*8 + i, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } )";
  accepts(uniform + "for t in 8 bind(thread.x) { C[b*8 + t] = T[b*8 + t] } }");
  accepts(uniform + "for t in 8 bind(thread.x) { C[b*8 + 7 - t] = T[b*8 + 7 - t] } }");
  // Of two axes one.
  const std::string rows = R"(for y in 4 bind(thread.y) { for i in 4 { for k in 4 {
      block "T" [vi: S(16) = y*4 + i, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } } )";
  accepts("for b in 1 bind(block.x) { " + rows +
          "for y in 4 bind(thread.y) { for x in 4 bind(thread.x) { C[y*4 + x] = T[y*4 + x] } } }");
  rejects("for b in 1 bind(block.x) { " + rows +
          "for y in 4 bind(thread.y) { for x in 4 bind(thread.x) { C[x*4 + y] = T[x*4 + y] } } }");
  rejects("for b in 1 bind(block.x) { " + rows +
          "for x in 4 bind(thread.x) { for y in 4 { C[y*4 + x] = T[y*4 + x] } } }");
}

TEST_CASE("what threads reduce together they all get") {
  const std::string sum = R"(for b in 16 bind(block.x) { for t in 4 bind(thread.x) {
      block "T" [vi: S(16) = b, vk: R(4) = t] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } )";
  accepts(sum + "C[b] = T[b] }");
  accepts(sum + "for t in 4 bind(thread.x) { if t < 1 { C[b] = T[b] } } }");
  // Partial sums of one thread each, then the sum of all.
  accepts(R"(for b in 4 bind(block.x) { for y in 4 bind(thread.y) {
      for t in 4 bind(thread.x) { block "U" [vi: S(16) = b*4 + y, vk: S(4) = t] { U[vk*4 + vi % 4] = A[vi, vk] } }
      for t in 4 bind(thread.x) {
        block "T" [vi: S(16) = b*4 + y, vk: R(4) = t] { init { T[vi] = 0f32 } T[vi] = T[vi] + U[vk*4 + vi % 4] } }
      C[b*4 + y] = T[b*4 + y] } })");
  // Together along x, apart along y.
  const std::string both =
      R"(for b in 2 bind(block.x) { for y in 8 bind(thread.y) { for t in 4 bind(thread.x) {
      block "T" [vi: S(16) = b*8 + y, vk: R(4) = t] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } )";
  accepts(both + "for y in 8 bind(thread.y) { C[b*8 + y] = T[b*8 + y] } }");
  rejects(both + "for y in 8 bind(thread.y) { C[b*8 + 7 - y] = T[b*8 + 7 - y] } }");
}

TEST_CASE("registers do not outlive their kernel") {
  const std::string sum = R"(for t in 16 bind(thread.x) { for k in 4 {
      block "T" [vi: S(16) = t, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } )";
  const std::string out = "for t in 16 bind(thread.x) { C[t] = T[t] } ";
  rejects(sum + out);
  rejects(sum + "for t in 16 { C[t] = T[t] }");
  accepts("for b in 1 bind(block.x) { " + sum + out + "}");
  // Nobody else's: of the CPU's loops each has its own copy or none.
  accepts(R"(for t in 16 parallel { for k in 4 {
      block "T" [vi: S(16) = t, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } }
    for t in 16 parallel { C[15 - t] = T[15 - t] })");
}

TEST_CASE("the last write counts") {
  const std::string turned = R"(for b in 2 bind(block.x) {
    for t in 8 bind(thread.x) { T[b*8 + 7 - t] = A[b*8 + t, 0] } )";
  accepts(turned + kSum + " for t in 8 bind(thread.x) { C[b*8 + t] = T[b*8 + t] } }");
  rejects("for b in 2 bind(block.x) { " + kSum + R"(
    for t in 8 bind(thread.x) { U[b*8 + 7 - t] = A[b*8 + t, 0] if t < 4 { T[b*8 + 7 - t] = T[b*8 + 7 - t] + 0f32 } }
    for t in 8 bind(thread.x) { C[b*8 + t] = T[b*8 + t] } })");
}

TEST_CASE("fragments of tensor instructions, which stand outside of lanes, are no false alarm") {
  accepts(R"(for b in 1 bind(block.x) {
    for w in 4 bind(thread.y) { for i in 4 {tensor_mma = 1} { for k in 4 {
      block "T" [vi: S(16) = w*4 + i, vk: R(4) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + A[vi, vk] } } } }
    for w in 4 bind(thread.y) { for i in 4 { U[w*4 + i] = T[w*4 + i] } }
    for w in 4 bind(thread.y) { for i in 4 {tensor_store = 1} { C[w*4 + i] = U[w*4 + i] } } })");
}

}  // namespace
}  // namespace prunerc::ir
