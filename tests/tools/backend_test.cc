// What a search learns of candidates that are not worth a measurement.
#include "tools/driver/backend.h"

#include "ir/parser.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

Candidate build(const std::string& text, const std::string& target = "cuda:sm_80") {
  const Result<ir::Program> program = ir::parse(text);
  if (!program.ok()) FAIL(program.error().message());
  const Result<ir::Target> known = ir::target_from_string(target);
  REQUIRE(known.ok());
  return build_candidate(*program, *known);
}

// `columns` sums in each of 1024 threads, of which each has 64 registers.
std::string sums(int columns) {
  const std::string n = std::to_string(columns);
  return "program m(A: f32[1024, 64], B: f32[64, " + n + "]) -> (C: f32[1024, " + n + R"(]) {
  buffer L: f32[1024, )" +
         n + R"(] local
  for i in 1024 @L0 bind(thread.x) {
    for j in )" +
         n + R"( @L1 unrolled {
      block "start" @B0 [v: S(1024) = i, w: S()" +
         n + R"() = j] { writes L[v, w]  L[v, w] = 0f32 }
    }
    for k in 64 @L2 {
      for j in )" +
         n + R"( @L3 unrolled {
        block "sum" @B1 [v: S(1024) = i, w: S()" +
         n + R"() = j, r: R(64) = k] {
          reads L[v, w], A[v, r], B[r, w]
          writes L[v, w]
          L[v, w] = L[v, w] + A[v, r]*B[r, w]
        }
      }
    }
    for j in )" +
         n + R"( @L4 unrolled {
      block "out" @B2 [v: S(1024) = i, w: S()" +
         n + R"() = j] {
        reads L[v, w]
        writes C[v, w]
        C[v, w] = L[v, w]
      }
    }
  }
}
)";
}

TEST_CASE("kernels that spill are rejected by the compiler's word") {
  const Candidate small = build(sums(8));
  if (small.detail.find("NVRTC") != std::string::npos) {
    WARN("skipped: " << small.detail);
    return;
  }
  INFO(small.detail);
  CHECK(small.status == MeasureStatus::kOk);
  CHECK_FALSE(small.artifact.bytes.empty());
  const Candidate large = build(sums(96));
  CHECK(large.status == MeasureStatus::kSpills);
  CHECK(large.detail.find(" spills ") != std::string::npos);
  CHECK(large.artifact.bytes.empty());
}

TEST_CASE("kernels beyond a limit are rejected before they are compiled, with the limit") {
  const Candidate shared = build(R"(
program p(X: f32[64, 1024]) -> (Y: f32[64, 1024]) {
  buffer S: f32[64, 1024] shared
  for b in 1 @L0 bind(block.x) {
    for t in 64 @L1 bind(thread.x) {
      for i in 1024 @L2 {
        block "in" @B0 [v: S(64) = t, w: S(1024) = i] { reads X[v, w] writes S[v, w] S[v, w] = X[v, w] }
      }
    }
    for t in 64 @L3 bind(thread.x) {
      for i in 1024 @L4 {
        block "out" @B1 [v: S(64) = t, w: S(1024) = i] {
          reads S[63 - v, w]
          writes Y[v, w]
          Y[v, w] = S[63 - v, w]
        }
      }
    }
  }
}
)");
  CHECK(shared.status == MeasureStatus::kOverLimit);
  CHECK(shared.detail.find("262144 bytes of shared memory") != std::string::npos);
}

TEST_CASE("what cannot be compiled is a build error on every target") {
  const Candidate nested = build(R"(
program p(X: f32[8]) -> (Y: f32[8]) {
  for n in 2 @L0 {
    for t in 4 @L1 bind(thread.x) {
      block "y" @B0 [v: S(8) = n*4 + t] { reads X[v] writes Y[v] Y[v] = X[v] }
    }
  }
}
)",
                                 "cuda-host:sm_80");
  INFO(nested.detail);
  CHECK(nested.status == MeasureStatus::kBuildError);
}

}  // namespace
}  // namespace prunerc
