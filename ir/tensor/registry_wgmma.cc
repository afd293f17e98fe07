#include "ir/tensor/registry.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

// Products of a warpgroup: 64 rows, `n` columns, K = 32 bytes of elements. Factors lie in shared
// memory, in either order of their dimensions where elements have 16 bits (the printer sees which);
// sums are spread over 128 lanes as the PTX manual says: each warp has 16 rows.
struct Type {
  const char* name;
  const char* ptx;  // sum, factors
  const char* in;
  const char* out;
  int k;
  const char* rounds;
  const char *strides_a, *strides_b;
};
constexpr Type kTypes[] = {
    {"f16", "f32.f16.f16", "f16", "f32", 16, "", "[*, *]", "[*, *]"},
    {"bf16", "f32.bf16.bf16", "bf16", "f32", 16, "", "[*, *]", "[*, *]"},
    {"tf32", "f32.tf32.tf32", "f32", "f32", 8, "rounds tf32\n", "[*, 1]", "[1, *]"},
    {"s8", "s32.s8.s8", "i8", "i32", 32, "", "[*, 1]", "[1, *]"},
};
/// The hardware has every multiple of 8 up to 256; other widths are several instructions.
constexpr int kColumns[] = {8, 16, 32, 64, 96, 128, 192, 256};

// {0} columns, {1} k, {2} name of the type, {3} PTX types, {4} rounds, {5}, {6} strides,
// {7} registers, {8} type of the factors, {9} of the sum
constexpr const char* kText = R"(
tensor wgmma_m64n{0}k{1}_{2}
needs cuda sm_90a
lanes 128
call wgmma.mma_async.sync.aligned.m64n{0}k{1}.{3}
{4}operand C [*, *] {7}: (lane, reg) -> (lane // 32*16 + reg // 2 % 2*8 + lane % 32 // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand A {5} shared
operand B {6} shared
describes
program mma(A: {8}[64, {1}], B: {8}[{1}, {0}]) -> (C: {9}[64, {0}]) {{
  for i in 64 {{ for j in {0} {{ for k in {1} {{
    block "C" [vi: S(64) = i, vj: S({0}) = j, vk: R({1}) = k] {{
      init {{ C[vi, vj] = 0{9} }}
      C[vi, vj] = C[vi, vj] + {9}(A[vi, vk])*{9}(B[vk, vj])
  }} }} }} }}
}}
)";

std::string text_of(const Type& t, int n) {
  return fmt::format(kText, n, t.k, t.name, t.ptx, t.rounds, t.strides_a, t.strides_b, n / 2, t.in,
                     t.out);
}

}  // namespace

std::vector<std::string> wgmma_tensor_texts() {
  std::vector<std::string> out;
  for (const Type& type : kTypes) {
    for (const int n : kColumns) out.push_back(text_of(type, n));
  }
  return out;
}

}  // namespace prunerc::ir
