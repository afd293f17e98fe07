// Hand-written schedules through code generation, on one thread, beside the limit of the machine:
// what emission can reach when the schedule is good. `./dev bench codegen [--json OUT]`
#include "codegen/codegen.h"

#include "ir/parser.h"
#include "runtime/cpu/limits.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/pool.h"
#include "tests/bench/report.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace prunerc {
namespace {

struct Case {
  std::string name;
  std::string text;
  double work = 0;  // operations or bytes of one run
  std::string unit;
  double goal = 0;  // part of the multiply-add limit; 0: none
};

// C = A B with a tile of mr x nr in registers; the panel of B is copied next to where it is used.
std::string gemm(int mr, int nr) {
  const std::string m = std::to_string(mr), n = std::to_string(nr);
  const std::string rows = std::to_string((1024 + mr - 1) / mr),
                    columns = std::to_string(1024 / nr);
  const std::string guard = 1024 % mr == 0 ? "" : " where i*" + m + " + ii < 1024";
  return "program gemm(A: f32[1024, 1024], B: f32[1024, 1024]) -> (C: f32[1024, 1024]) {"
         " buffer T: f32[1024, 1024] local buffer P: f32[1024, 1024] global for j in " +
         columns + " @L0 parallel { for k in 1024 @L1 { for jj in " + n +
         " @L2 vectorized { block \"P\" @B0 [vk: S(1024) = k, vj: S(1024) = j*" + n +
         " + jj] { reads B[vk, vj] writes P[vk, vj] P[vk, vj] = B[vk, vj] } } } for i in " + rows +
         " @L3 { for k in 1024 @L4 { for ii in " + m + " @L5 unrolled { for jj in " + n +
         " @L6 vectorized { block \"T\" @B1 [vi: S(1024) = i*" + m + " + ii, vj: S(1024) = j*" + n +
         " + jj, vk: R(1024) = k]" + guard +
         " { reads A[vi, vk], P[vk, vj] writes T[vi, vj] init { T[vi, vj] = 0f32 }"
         " T[vi, vj] = T[vi, vj] + A[vi, vk]*P[vk, vj] } } } } for ii in " +
         m + " @L7 unrolled { for jj in " + n +
         " @L8 vectorized { block \"C\" @B2 [vi: S(1024) = i*" + m + " + ii, vj: S(1024) = j*" + n +
         " + jj]" + guard + " { reads T[vi, vj] writes C[vi, vj] C[vi, vj] = T[vi, vj] } } } } } }";
}

constexpr const char* kConv =
    R"(program conv2d(X: f32[64, 56, 56], F: f32[64, 64, 3, 3]) -> (Y: f32[64, 56, 56]) {
  buffer T: f32[64, 56, 56] local
  for co in 16 @L0 parallel { for oh in 56 @L1 {
    for kh in 3 @L2 { for kw in 3 @L3 { for ci in 64 @L4 { for cc in 4 @L5 unrolled { for ow in 56 @L6 vectorized {
      block "T" @B0 [vc: S(64) = co*4 + cc, vh: S(56) = oh, vw: S(56) = ow, vi: R(64) = ci, va: R(3) = kh, vb: R(3) = kw] {
        reads X[vi, vh + va - 1, vw + vb - 1], F[vc, vi, va, vb]
        writes T[vc, vh, vw]
        init { T[vc, vh, vw] = 0f32 }
        T[vc, vh, vw] = T[vc, vh, vw] + select(0 <= vh + va - 1 && vh + va - 1 < 56 && 0 <= vw + vb - 1 && vw + vb - 1 < 56,
                                               X[vi, vh + va - 1, vw + vb - 1], 0f32)*F[vc, vi, va, vb]
    } } } } } }
    for cc in 4 @L7 unrolled { for ow in 56 @L8 vectorized {
      block "Y" @B1 [vc: S(64) = co*4 + cc, vh: S(56) = oh, vw: S(56) = ow] {
        reads T[vc, vh, vw] writes Y[vc, vh, vw] Y[vc, vh, vw] = T[vc, vh, vw] } } }
  } } })";

constexpr const char* kSoftmax = R"(program softmax(X: f32[1536, 128]) -> (Y: f32[1536, 128]) {
  buffer M: f32[1536] local buffer E: f32[1536, 128] local buffer Z: f32[1536] local
  for i in 1536 @L0 parallel {
    for ko in 8 @L1 { for ki in 16 @L2 vectorized { block "M" @B0 [vi: S(1536) = i, vk: R(128) = ko*16 + ki] {
      reads X[vi, vk] writes M[vi] init { M[vi] = f32.ninf } M[vi] = max(M[vi], X[vi, vk]) } } }
    for jo in 8 @L3 { for ji in 16 @L4 vectorized { block "E" @B1 [vi: S(1536) = i, vj: S(128) = jo*16 + ji] {
      reads X[vi, vj], M[vi] writes E[vi, vj] E[vi, vj] = exp(X[vi, vj] - M[vi]) } } }
    for ko in 8 @L5 { for ki in 16 @L6 vectorized { block "Z" @B2 [vi: S(1536) = i, vk: R(128) = ko*16 + ki] {
      reads E[vi, vk] writes Z[vi] init { Z[vi] = 0f32 } Z[vi] = Z[vi] + E[vi, vk] } } }
    for jo in 8 @L7 { for ji in 16 @L8 vectorized { block "Y" @B3 [vi: S(1536) = i, vj: S(128) = jo*16 + ji] {
      reads E[vi, vj], Z[vi] writes Y[vi, vj] Y[vi, vj] = E[vi, vj] / Z[vi] } } }
  } })";

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Zeros. Buffers that all start at a page boundary collide in the first-level cache, so each starts
// elsewhere.
class Memory {
 public:
  Memory(int64_t num_bytes, std::size_t index) : start_(64 * 7 * index) {
    const std::size_t size = (static_cast<std::size_t>(num_bytes) + start_ + 4096) / 4096 * 4096;
    base_.reset(std::aligned_alloc(4096, size));
    std::memset(base_.get(), 0, size);
  }
  void* data() const { return static_cast<char*>(base_.get()) + start_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::size_t start_;
  std::unique_ptr<void, Free> base_;
};

// Median time of one run over about half a second.
double time_ns(const codegen::Artifact& artifact, PrunercKernel kernel,
               const PrunercLaunch* launch) {
  std::vector<Memory> memory;
  std::vector<void*> args;
  for (const codegen::ArtifactParam& param : artifact.params) {
    memory.emplace_back(codegen::size_bytes(param), memory.size());
    auto* values = static_cast<float*>(memory.back().data());
    for (int64_t i = 0; i < codegen::num_elems(param); ++i)
      values[i] = static_cast<float>((i * 37) % 64) / 64;
    args.push_back(values);
  }
  const Memory workspace(codegen::total_workspace_bytes(artifact, 1), memory.size());
  std::vector<double> samples;
  for (const double start = now_ns(); samples.size() < 7 || now_ns() - start < 5e8;) {
    const double before = now_ns();
    kernel(args.data(), workspace.data(), launch);
    samples.push_back(now_ns() - before);
  }
  std::nth_element(samples.begin(),
                   samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                   samples.end());
  return samples[samples.size() / 2];
}

std::vector<bench::Row> rows_of(const Case& c, double limit) {
  const runtime::Pool pool({.num_threads = 1});
  const ir::Program program = ir::parse(c.text).value();
  codegen::compile_cpu(program, ir::Target{}).value();  // the first one is slower
  const double start = now_ns();
  const codegen::Artifact artifact = codegen::compile_cpu(program, ir::Target{}).value();
  const double compile_ms = (now_ns() - start) / 1e6;
  const runtime::LoadedKernel kernel = runtime::load_kernel(artifact).value();
  const double ns = time_ns(artifact, kernel.entry(), pool.launch());
  std::optional<double> goal;
  if (c.goal > 0) goal = c.goal * limit;
  return {{c.name + "/t1/hand", c.work / ns, c.unit, goal, ""},
          {c.name + "/compile", compile_ms, "ms", 100, "", /*at_most=*/true}};
}

std::vector<bench::Row> all_rows() {
  const double limit = runtime::measure_fma_gflops(1, 50'000'000);
  std::vector<bench::Row> rows = {{"fma/t1/limit", limit, "GFLOP/s", std::nullopt, ""}};
  const std::vector<Case> cases = {
      {"gemm_1024_6x64", gemm(6, 64), 2.0 * 1024 * 1024 * 1024, "GFLOP/s", 0.6},
      {"gemm_1024_12x32", gemm(12, 32), 2.0 * 1024 * 1024 * 1024, "GFLOP/s", 0.6},
      {"conv2d_64x56_3x3", kConv, 2.0 * 64 * 64 * 56 * 56 * 9, "GFLOP/s", 0.6},
      {"softmax_1536x128", kSoftmax, 1536.0 * 128 * 4 * 2, "GB/s", 0},
  };
  for (const Case& c : cases) {
    for (bench::Row& row : rows_of(c, limit)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace
}  // namespace prunerc

int main(int argc, char** argv) {
  std::string json;
  CLI::App app("hand-written schedules through code generation");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  constexpr uint64_t kNoSeed = 0;  // nothing is random
  const prunerc::bench::Group groups[] = {{"hand", prunerc::all_rows, {kNoSeed}}};
  return prunerc::bench::report("codegen", groups, /*only=*/"", json);
}
