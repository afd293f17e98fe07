// Time of the analyses on a tiled matrix product with a copied operand (12 loops, 2 blocks): what
// one schedule primitive costs at most. Run: ./dev bench analysis
#include "ir/analysis/dependence.h"
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/parser.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

namespace prunerc::ir {
namespace {

constexpr const char* kTiled = R"(
program matmul(A: f32[512, 512], B: f32[512, 512]) -> (C: f32[512, 512]) {
  buffer T: f32[512, 512] global
  for i0 in 8 @L0 { for j0 in 8 @L1 { for i1 in 4 @L2 { for j1 in 4 @L3 { for k0 in 32 @L4 {
    for a in 16 @L9 { for c in 16 @L10 {
      block "P" @B1 [vi: S(512) = (i0*4 + i1)*16 + a, vj: S(512) = k0*16 + c]
          where (i0*4 + i1)*16 + a < 512 && k0*16 + c < 512 {
        reads A[vi, vj]
        writes T[vi, vj]
        T[vi, vj] = A[vi, vj]
    } } }
    for i2 in 4 @L5 { for j2 in 2 @L6 { for k1 in 16 @L7 { for i3 in 4 @L8 { for j3 in 8 @L11 {
      block "C" @B0 [vi: S(512) = ((i0*4 + i1)*4 + i2)*4 + i3, vj: S(512) = ((j0*4 + j1)*2 + j2)*8 + j3,
                     vk: R(512) = k0*16 + k1] where ((i0*4 + i1)*4 + i2)*4 + i3 < 512 && k0*16 + k1 < 512 {
        reads T[vi, vk], B[vk, vj]
        writes C[vi, vj]
        init { C[vi, vj] = 0f32 }
        C[vi, vj] = C[vi, vj] + T[vi, vk]*B[vk, vj]
  } } } } } } } } } } }
})";

Program tiled() {
  Result<Program> p = parse(kTiled);
  if (!p.ok()) std::abort();
  return *std::move(p);
}

void simplify_raw(benchmark::State& state) {
  const Program p = tiled();
  for (auto _ : state) benchmark::DoNotOptimize(simplify(p));
}
BENCHMARK(simplify_raw);

void simplify_simple(benchmark::State& state) {
  const Program p = simplify(tiled());
  for (auto _ : state) benchmark::DoNotOptimize(simplify(p));
}
BENCHMARK(simplify_simple);

void affine(benchmark::State& state) {
  const Program p = simplify(tiled());
  const LoopIndex index(p);
  for (auto _ : state) benchmark::DoNotOptimize(check_affine(p, index, BlockId(0)));
}
BENCHMARK(affine);

void region_cover(benchmark::State& state) {
  const Program p = simplify(tiled());
  const LoopIndex index(p);
  for (auto _ : state) benchmark::DoNotOptimize(check_region_cover(p, index, BlockId(0)));
}
BENCHMARK(region_cover);

void regions_under_loop(benchmark::State& state) {
  const Program p = simplify(tiled());
  const LoopIndex index(p);
  for (auto _ : state) {
    IrBuilder b(p);
    const VarRanges ranges = ranges_inside(p, index, LoopId(4));
    benchmark::DoNotOptimize(touched_regions(b, index.loop(LoopId(4))->body, ranges));
  }
}
BENCHMARK(regions_under_loop);

}  // namespace
}  // namespace prunerc::ir

BENCHMARK_MAIN();
