#include "ir/tensor/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

// One kind of matrix product: what its variants for several types share. Fragments are as the PTX
// manual gives them for mma.sync: lane = 4*group + thread. Those of wmma are not documented; ours
// serve whoever models it, who must use them for load, product and store alike. `reads` is how the
// lanes compute: which lane's registers of A and B go into register `reg` of C, for the k-th
// product of k = (h, t, e).
struct Shape {
  int m, n, k;
  const char* strides;
  int regs_c, regs_a, regs_b;
  const char *fragment_c, *fragment_a, *fragment_b;
  const char* k_loops;  // extents of h, t, e
  const char *read_a, *read_b;
};

constexpr Shape kWmma = {16,
                         16,
                         16,
                         "[*, 1]",
                         8,
                         8,
                         8,
                         "(reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)",
                         "(reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)",
                         "(reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)",
                         "242",
                         "vl // 4*4 + vt, vh*4 + vr // 2 % 2*2 + ve",
                         "(vl % 4*2 + vr % 2)*4 + vt, vr // 4*4 + vh*2 + ve"};
constexpr Shape kM16n8k16 = {16,
                             8,
                             16,
                             "[*, *]",
                             4,
                             8,
                             4,
                             "(reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)",
                             "(reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)",
                             "(reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)",
                             "242",
                             "vl // 4*4 + vt, vh*4 + vr // 2*2 + ve",
                             "(vl % 4*2 + vr % 2)*4 + vt, vh*2 + ve"};
constexpr Shape kM16n8k8 = {16,
                            8,
                            8,
                            "[*, *]",
                            4,
                            4,
                            2,
                            "(reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)",
                            "(reg % 2*8 + lane // 4, reg // 2*4 + lane % 4)",
                            "(reg*4 + lane % 4, lane // 4)",
                            "241",
                            "vl // 4*4 + vt, vh*2 + vr // 2 + ve",
                            "(vl % 4*2 + vr % 2)*4 + vt, vh + ve"};
constexpr Shape kM16n8k32 = {16,
                             8,
                             32,
                             "[*, *]",
                             4,
                             16,
                             8,
                             "(reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)",
                             "(reg // 4 % 2*8 + lane // 4, reg // 8*16 + lane % 4*4 + reg % 4)",
                             "(reg // 4*16 + lane % 4*4 + reg % 4, lane // 4)",
                             "244",
                             "vl // 4*4 + vt, vh*8 + vr // 2*4 + ve",
                             "(vl % 4*2 + vr % 2)*4 + vt, vh*4 + ve"};

struct Variant {
  const char *name, *call;
  const Shape* shape;
  const char *in, *out;  // types of the factors and of the sum
  const char* rounds;    // "" if products are exact
  const char* arch = "sm_80";
};
constexpr Variant kProducts[] = {
    {"wmma_16x16x16_f16", "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32", &kWmma, "f16", "f32",
     ""},
    {"wmma_16x16x16_bf16", "wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32", &kWmma,
     "bf16", "f32", ""},
    {"wmma_16x16x16_s8", "wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32", &kWmma, "i8",
     "i32", ""},
    {"mma_m16n8k16_f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", &kM16n8k16, "f16",
     "f32", "", "sm_75"},
    {"mma_m16n8k16_bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", &kM16n8k16, "bf16",
     "f32", ""},
    {"mma_m16n8k8_tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", &kM16n8k8, "f32",
     "f32", "rounds tf32\n"},
    {"mma_m16n8k32_s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", &kM16n8k32, "i8", "i32",
     "", "sm_75"},
};

// {0} name, {1} call, {2} rounds, {3} strides, {4} .. {6} registers, {7} .. {9} fragments,
// {10} m, {11} n, {12} k, {13} type of the factors, {14} of the sum, {15} .. {17} h, t, e,
// {18}, {19} lane and register of A and B, {20} least architecture
constexpr const char* kText = R"(
tensor {0}
needs cuda {20}
lanes 32
call {1}
{2}operand C {3} {4}: (lane, reg) -> {7}
operand A {3} {5}: (lane, reg) -> {8}
operand B {3} {6}: (lane, reg) -> {9}
describes
program mma(A: {13}[{10}, {12}], B: {13}[{12}, {11}]) -> (C: {14}[{10}, {11}]) {{
  for i in {10} {{ for j in {11} {{ for k in {12} {{
    block "C" [vi: S({10}) = i, vj: S({11}) = j, vk: R({12}) = k] {{
      init {{ C[vi, vj] = 0{14} }}
      C[vi, vj] = C[vi, vj] + {14}(A[vi, vk])*{14}(B[vk, vj])
  }} }} }} }}
}}
implements
program lanes(A: {13}[32, {5}], B: {13}[32, {6}]) -> (C: {14}[32, {4}]) {{
  for l in 32 bind(thread.x) {{ for r in {4} {{ for h in {15} {{ for t in {16} {{ for e in {17} {{
    block "C" [vl: S(32) = l, vr: S({4}) = r, vh: R({15}) = h, vt: R({16}) = t, ve: R({17}) = e] {{
      init {{ C[vl, vr] = 0{14} }}
      C[vl, vr] = C[vl, vr] + {14}(A[{18}])*{14}(B[{19}])
  }} }} }} }} }} }}
}}
)";

std::string text_of(const Variant& v) {
  const Shape& s = *v.shape;
  return fmt::format(kText, v.name, v.call, v.rounds, s.strides, s.regs_c, s.regs_a, s.regs_b,
                     s.fragment_c, s.fragment_a, s.fragment_b, s.m, s.n, s.k, v.in, v.out,
                     s.k_loops[0], s.k_loops[1], s.k_loops[2], s.read_a, s.read_b, v.arch);
}

}  // namespace

std::vector<std::string> cuda_tensor_texts() {
  std::vector<std::string> out;
  for (const Variant& v : kProducts) out.push_back(text_of(v));
  return out;
}

}  // namespace prunerc::ir
