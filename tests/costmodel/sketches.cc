#include "tests/costmodel/sketches.h"

#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "tests/support/check.h"

#include <fmt/format.h>

namespace prunerc::costmodel {

using testing::parse_or_die;

ir::Program matmul(int64_t n) {
  const std::string e = std::to_string(n);
  return parse_or_die("program matmul(A: f32[" + e + ", " + e + "], B: f32[" + e + ", " + e +
                      "]) -> (C: f32[" + e + ", " + e + "]) { for i in " + e + " { for j in " + e +
                      " { for k in " + e + " { block \"C\" [vi: S(" + e + ") = i, vj: S(" + e +
                      ") = j, vk: R(" + e +
                      ") = k] { init { C[vi, vj] = 0f32 } C[vi, vj] = C[vi, vj] + "
                      "A[vi, vk] * B[vk, vj] } } } } }");
}

ir::Program cpu_gemm(int64_t m, int64_t n, int64_t k) {
  return parse_or_die(fmt::format(
      R"(program gemm(A: f32[{m}, {k}], B: f32[{k}, {n}]) -> (C: f32[{m}, {n}]) {{
  buffer P: f32[{k}, {n}] global
  param i0 param i1 param i2 param j0 param j1 param j2 param k0 param k1
  tiles {m} perfect [$0, $1, $2] max 16
  tiles {n} perfect [$3, $4, $5] max 64
  tiles {k} perfect [$6, $7] max 0
  for i0 in $0 @L0 parallel {{ for j0 in $3 @L1 {{
    for p in {k} @L2 {{ for q in $4 * $5 @L3 vectorized {{
      block "P" @B0 [vk: S({k}) = p, vj: S({n}) = j0 * ($4 * $5) + q] {{
        reads B[vk, vj] writes P[vk, vj] P[vk, vj] = B[vk, vj] }} }} }}
    for i1 in $1 @L4 {{ for j1 in $4 @L5 {{ for k0 in $6 @L6 {{ for k1 in $7 @L7 {{
      for i2 in $2 @L8 unrolled {{ for j2 in $5 @L9 vectorized {{
        block "C" @B1 [vi: S({m}) = (i0 * $1 + i1) * $2 + i2, vj: S({n}) = (j0 * $4 + j1) * $5 + j2,
                       vk: R({k}) = k0 * $7 + k1] {{
          reads A[vi, vk], P[vk, vj] writes C[vi, vj] init {{ C[vi, vj] = 0f32 }}
          C[vi, vj] = C[vi, vj] + A[vi, vk] * P[vk, vj] }} }} }} }} }} }} }}
  }} }} }})",
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("k", k)));
}

ir::Program cpu_gemm_covering(int64_t m, int64_t n, int64_t k) {
  return parse_or_die(fmt::format(
      R"(program gemm(A: f32[{m}, {k}], B: f32[{k}, {n}], bias: f32[{n}]) -> (D: f32[{m}, {n}]) {{
  buffer C: f32[{m}, {n}] local
  param i0 param i1 param j0 param j1 param jv
  tiles {m} covering [$0, $1] max 16
  tiles {n} covering [$2, $3] max 0
  choice $4 [1, 8, 16]
  require $4 <= $3
  for i0 in $0 @L0 parallel {{ for j0 in $2 @L1 {{
    for k in {k} @L2 {{ for i1 in $1 @L3 unrolled {{
      for j1 in ($3 + $4 - 1) // $4 @L4 unrolled {{ for jv in $4 @L5 vectorized {{
        block "C" @B0 [vi: S({m}) = i0 * $1 + i1, vj: S({n}) = j0 * $3 + (j1 * $4 + jv), vk: R({k}) = k]
            where (i0 * $1 + i1 < {m}) && (j1 * $4 + jv < $3) && (j0 * $3 + (j1 * $4 + jv) < {n}) {{
          reads A[vi, vk], B[vk, vj] writes C[vi, vj] init {{ C[vi, vj] = 0f32 }}
          C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] }} }} }} }} }}
    for ie in $1 @L6 {{ for je in $3 @L7 vectorized {{
      block "D" @B1 [vi: S({m}) = i0 * $1 + ie, vj: S({n}) = j0 * $3 + je]
          where (i0 * $1 + ie < {m}) && (j0 * $3 + je < {n}) {{
        reads C[vi, vj], bias[vj] writes D[vi, vj]
        D[vi, vj] = max(C[vi, vj] + bias[vj], 0f32) }} }} }}
  }} }} }})",
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("k", k)));
}

ir::Program cpu_conv2d(int64_t c, int64_t s, int64_t o) {
  return parse_or_die(fmt::format(
      R"(program conv(X: f32[{c}, {p}, {p}], W: f32[{o}, {c}, 3, 3]) -> (Y: f32[{o}, {s}, {s}]) {{
  param o0 param o1 param o2 param y0 param y1 param x0 param x1 param c0 param c1
  tiles {o} perfect [$0, $1, $2] max 16
  tiles {s} perfect [$3, $4] max 0
  tiles {s} perfect [$5, $6] max 64
  tiles {c} perfect [$7, $8] max 0
  for o0 in $0 @L0 parallel {{ for y0 in $3 @L1 {{ for o1 in $1 @L2 {{ for x0 in $5 @L3 {{
    for y1 in $4 @L4 {{ for c0 in $7 @L5 {{ for r in 3 @L6 {{ for q in 3 @L7 unrolled {{ for c1 in $8 @L8 {{
      for o2 in $2 @L9 unrolled {{ for x1 in $6 @L10 vectorized {{
        block "Y" @B0 [vo: S({o}) = (o0 * $1 + o1) * $2 + o2, vy: S({s}) = y0 * $4 + y1, vx: S({s}) = x0 * $6 + x1,
                       vc: R({c}) = c0 * $8 + c1, vr: R(3) = r, vq: R(3) = q] {{
          reads X[vc, vy + vr, vx + vq], W[vo, vc, vr, vq] writes Y[vo, vy, vx]
          init {{ Y[vo, vy, vx] = 0f32 }}
          Y[vo, vy, vx] = Y[vo, vy, vx] + X[vc, vy + vr, vx + vq] * W[vo, vc, vr, vq] }}
      }} }} }} }} }} }} }} }} }} }} }} }})",
      fmt::arg("c", c), fmt::arg("s", s), fmt::arg("o", o), fmt::arg("p", s + 2)));
}

ir::Program gpu_gemm(int64_t m, int64_t n, int64_t k) {
  // Blocks are inferred from the tiles below; threads are $0 by $3, one thread has
  // $1 x $2 by $4 x $5.
  return parse_or_die(fmt::format(
      R"(program gemm(A: f32[{m}, {k}], B: f32[{k}, {n}]) -> (C: f32[{m}, {n}]) {{
  buffer L: f32[{m}, {n}] local
  buffer SA: f32[{m}, {k}] shared
  buffer SB: f32[{k}, {n}] shared
  param ib param iv param it param ir param jb param jv param jt param jr param k0 param k1 param w
  tiles {m} perfect [$0, $1, $2, $3] max 16
  tiles {n} perfect [$4, $5, $6, $7] max 16
  tiles {k} perfect [$8, $9] max 32
  choice $10 [1, 2, 4]
  for by in $0 @L0 bind(block.y) {{ for bx in $4 @L1 bind(block.x) {{
    for v0 in $1 @L40 bind(vthread.y) {{ for v1 in $5 @L41 bind(vthread.x) {{
    for y in $2 @L2 bind(thread.y) {{ for x in $6 @L3 bind(thread.x) {{ for r in $3 @L4 {{ for q in $7 @L5 {{
      block "Z" @B0 [vi: S({m}) = ((by * $1 + v0) * $2 + y) * $3 + r, vj: S({n}) = ((bx * $5 + v1) * $6 + x) * $7 + q] {{
        writes L[vi, vj] L[vi, vj] = 0f32 }} }} }} }} }} }} }}
    for k0 in $8 @L6 {{
      for fo in (($1 * $2 * $3) * $9 + $2 * $6 * $10 - 1) // ($2 * $6 * $10) @L7 {{
        for fy in $2 @L8 bind(thread.y) {{ for fx in $6 @L9 bind(thread.x) {{ for fv in $10 @L10 vectorized {{
          block "SA" @B1 [vi: S({m}) = by * ($1 * $2 * $3) + (((fo * $2 + fy) * $6 + fx) * $10 + fv) // $9,
                          vk: S({k}) = k0 * $9 + (((fo * $2 + fy) * $6 + fx) * $10 + fv) % $9]
              where ((fo * $2 + fy) * $6 + fx) * $10 + fv < ($1 * $2 * $3) * $9 {{
            reads A[vi, vk] writes SA[vi, vk] SA[vi, vk] = A[vi, vk] }} }} }} }} }}
      for go in (($5 * $6 * $7) * $9 + $2 * $6 * $10 - 1) // ($2 * $6 * $10) @L11 {{
        for gy in $2 @L12 bind(thread.y) {{ for gx in $6 @L13 bind(thread.x) {{ for gv in $10 @L14 vectorized {{
          block "SB" @B2 [vk: S({k}) = k0 * $9 + (((go * $2 + gy) * $6 + gx) * $10 + gv) // ($5 * $6 * $7),
                          vj: S({n}) = bx * ($5 * $6 * $7) + (((go * $2 + gy) * $6 + gx) * $10 + gv) % ($5 * $6 * $7)]
              where ((go * $2 + gy) * $6 + gx) * $10 + gv < ($5 * $6 * $7) * $9 {{
            reads B[vk, vj] writes SB[vk, vj] SB[vk, vj] = B[vk, vj] }} }} }} }} }}
      for v0 in $1 @L15 bind(vthread.y) {{ for v1 in $5 @L16 bind(vthread.x) {{
      for y in $2 @L17 bind(thread.y) {{ for x in $6 @L18 bind(thread.x) {{
        for k1 in $9 @L19 {{ for r in $3 @L20 {{ for q in $7 @L21 {{
          block "L" @B3 [vi: S({m}) = ((by * $1 + v0) * $2 + y) * $3 + r, vj: S({n}) = ((bx * $5 + v1) * $6 + x) * $7 + q,
                         vk: R({k}) = k0 * $9 + k1] {{
            reads L[vi, vj], SA[vi, vk], SB[vk, vj] writes L[vi, vj]
            L[vi, vj] = L[vi, vj] + SA[vi, vk] * SB[vk, vj] }} }} }} }} }} }} }} }}
    }}
    for v0 in $1 @L22 bind(vthread.y) {{ for v1 in $5 @L23 bind(vthread.x) {{
    for y in $2 @L24 bind(thread.y) {{ for x in $6 @L25 bind(thread.x) {{ for r in $3 @L26 {{ for q in $7 @L27 {{
      block "C" @B4 [vi: S({m}) = ((by * $1 + v0) * $2 + y) * $3 + r, vj: S({n}) = ((bx * $5 + v1) * $6 + x) * $7 + q] {{
        reads L[vi, vj] writes C[vi, vj] C[vi, vj] = L[vi, vj] }} }} }} }} }} }} }}
  }} }} }})",
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("k", k)));
}

ir::Program gpu_conv2d(int64_t c, int64_t s, int64_t o) {
  return parse_or_die(fmt::format(
      R"(program conv(X: f32[{c}, {p}, {p}], W: f32[{o}, {c}, 3, 3]) -> (Y: f32[{o}, {s}, {s}]) {{
  buffer L: f32[{o}, {s}, {s}] local
  buffer SX: f32[{c}, {p}, {p}] shared
  param ob param ot param oi param yb param xb param xt param xi param c0 param c1 param w
  tiles {o} perfect [$0, $1, $2] max 16
  tiles {s} perfect [$4, $5, $6] max 16
  tiles {c} perfect [$7, $8] max 16
  choice $9 [1, 2, 4] choice $3 [1]
  for z in {s} @L0 bind(block.z) {{ for by in $0 @L1 bind(block.y) {{ for bx in $4 @L2 bind(block.x) {{
    for c0 in $7 @L3 {{
      for fo in ((($5 * $6) + 2) * 3 * $8 + $1 * $5 * $9 - 1) // ($1 * $5 * $9) @L4 {{
        for fy in $1 @L5 bind(thread.y) {{ for fx in $5 @L6 bind(thread.x) {{ for fv in $9 @L7 vectorized {{
          block "SX" @B0 [
              vc: S({c}) = c0 * $8 + (((fo * $1 + fy) * $5 + fx) * $9 + fv) // ((($5 * $6) + 2) * 3),
              vy: S({p}) = z + (((fo * $1 + fy) * $5 + fx) * $9 + fv) // (($5 * $6) + 2) % 3,
              vx: S({p}) = bx * ($5 * $6) + (((fo * $1 + fy) * $5 + fx) * $9 + fv) % (($5 * $6) + 2)]
              where ((fo * $1 + fy) * $5 + fx) * $9 + fv < (($5 * $6) + 2) * 3 * $8 {{
            reads X[vc, vy, vx] writes SX[vc, vy, vx] SX[vc, vy, vx] = X[vc, vy, vx] }} }} }} }} }}
      for y in $1 @L8 bind(thread.y) {{ for x in $5 @L9 bind(thread.x) {{
        for c1 in $8 @L10 {{ for r in 3 @L11 {{ for q in 3 @L12 {{ for oi in $2 @L13 {{ for xi in $6 @L14 {{
          block "L" @B1 [vo: S({o}) = (by * $1 + y) * $2 + oi, vy: S({s}) = z, vx: S({s}) = (bx * $5 + x) * $6 + xi,
                         vc: R({c}) = c0 * $8 + c1, vr: R(3) = r, vq: R(3) = q] {{
            reads SX[vc, vy + vr, vx + vq], W[vo, vc, vr, vq] writes L[vo, vy, vx]
            init {{ L[vo, vy, vx] = 0f32 }}
            L[vo, vy, vx] = L[vo, vy, vx] + SX[vc, vy + vr, vx + vq] * W[vo, vc, vr, vq] }}
        }} }} }} }} }} }} }} }}
    for y in $1 @L15 bind(thread.y) {{ for x in $5 @L16 bind(thread.x) {{ for oi in $2 @L17 {{ for xi in $6 @L18 {{
      block "Y" @B2 [vo: S({o}) = (by * $1 + y) * $2 + oi, vy: S({s}) = z, vx: S({s}) = (bx * $5 + x) * $6 + xi] {{
        reads L[vo, vy, vx] writes Y[vo, vy, vx] Y[vo, vy, vx] = L[vo, vy, vx] }} }} }} }} }}
  }} }} }} }})",
      fmt::arg("c", c), fmt::arg("s", s), fmt::arg("o", o), fmt::arg("p", s + 2)));
}

std::vector<NamedSketch> all_sketches() {
  return {
      {"cpu_gemm", cpu_gemm(96, 192, 128), "cpu:icelake-server num_threads=2"},
      {"cpu_gemm_small", cpu_gemm(8, 16, 12), "cpu:znver4 num_threads=8"},
      {"cpu_gemm_covering", cpu_gemm_covering(100, 130, 64), "cpu:icelake-server num_threads=4"},
      {"cpu_conv2d", cpu_conv2d(64, 56, 64), "cpu:icelake-server num_threads=2"},
      {"gpu_gemm", gpu_gemm(1024, 512, 256), "cuda:sm_80"},
      {"gpu_conv2d", gpu_conv2d(64, 56, 64), "cuda:sm_90a"},
  };
}

ir::Program instance(const ir::Program& sketch, std::span<const int64_t> values) {
  ir::IrBuilder b(sketch);
  b.clear_domain();
  const ir::Stmt root = ir::map_exprs(
      b, sketch.root(), [&](ir::Expr e) { return ir::substitute_params(b, e, values); });
  return ir::simplify(b.finish(root));
}

bool is_guarded(const ir::Program& program) {
  bool out = false;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const auto* block = s.as<ir::Block>();
        out = out || (block != nullptr && block->guard.defined());
        return true;
      },
      [](ir::Expr) {});
  return out;
}

}  // namespace prunerc::costmodel
