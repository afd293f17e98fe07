// What a warp's lanes hold of registers that its tensor instructions meet, by the analyzer.
#include "costmodel/latency/gpu_kernel.h"
#include "costmodel/latency/symbols.h"
#include "tests/support/check.h"

#include <string_view>

namespace prunerc::costmodel {
namespace {

ir::BufferId named(const ir::Program& program, std::string_view name) {
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.name == name) return buffer.id;
  }
  FAIL("no such buffer");
  return {};
}

TEST_CASE("elements are held by all lanes, values of rows by those of a column, vectors by each") {
  const ir::Program program = testing::parse_or_die(R"(
program p(A: f16[16, 16], B: f16[16, 8], X: f32[8]) -> (Y: f32[16, 8]) {
  buffer a: f16[16, 16] local
  buffer b: f16[16, 8] local
  buffer c: f32[16, 8] local
  buffer d: f32[16, 8] local
  buffer m: f32[16] local
  buffer n: f32[16] local
  buffer x: f32[8] local
  for z in 1 bind(block.x) { for w in 1 bind(thread.y) {
    for i in 16 { for k in 16 { block "a" [vi: S(16) = i, vk: S(16) = k] { a[vi, vk] = A[vi, vk] } } }
    for k in 16 { for j in 8 { block "b" [vk: S(16) = k, vj: S(8) = j] { b[vk, vj] = B[vk, vj] } } }
    for i in 16 { for j in 8 { block "c" [vi: S(16) = i, vj: S(8) = j] { c[vi, vj] = 0f32 } } }
    block "C" [vz: S(1) = z] {
      reads a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 8], c[0 +: 16, 0 +: 8]
      writes c[0 +: 16, 0 +: 8]
      for i in 16 {tensor_mma_m16n8k16_f16 = 1} { for j in 8 { for k in 16 {
        c[i, j] = c[i, j] + f32(a[i, k])*f32(b[k, j]) } } }
    }
    for i in 16 { for j in 8 { block "d" [vi: S(16) = i, vj: S(8) = j] { d[vi, vj] = c[vi, vj]*2f32 } } }
    for i in 16 { for j in 8 { block "m" [vi: S(16) = i, vj: R(8) = j] {
      init { m[vi] = f32.ninf }
      m[vi] = max(m[vi], d[vi, vj]) } } }
    for i in 16 { block "n" [vi: S(16) = i] { n[vi] = exp(m[vi]) } }
    for j in 8 { block "x" [vj: S(8) = j] { x[vj] = X[vj] } }
    for i in 16 { for j in 8 { block "Y" [vi: S(16) = i, vj: S(8) = j] {
      Y[vi, vj] = (d[vi, vj] - n[vi])*x[vj] } } }
  } }
})");
  ParamSpace space(program.domain());
  const NestTable table(program, space);
  const auto lanes = [&](std::string_view name) {
    return fragment_lanes(table, named(program, name));
  };
  CHECK(lanes("a") == 32);
  CHECK(lanes("c") == 32);
  CHECK(lanes("d") == 32);
  CHECK(lanes("m") == 8);
  CHECK(lanes("n") == 8);
  CHECK(lanes("x") == 1);
  CHECK(lanes("Y") == 1);
}

}  // namespace
}  // namespace prunerc::costmodel
