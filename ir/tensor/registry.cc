#include "ir/tensor/registry.h"

namespace prunerc::ir {
namespace {

// A CPU's lane is one 32-bit element of the accumulator; four (two) narrow products go into each.
constexpr std::string_view kCpu[] = {
    R"(
tensor x86_vpdpbusd_16x4
needs cpu +avx512vnni
lanes 16
call llvm.x86.avx512.vpdpbusd.512
operand C [1] 1: (lane, reg) -> (lane)
operand A [1] splat 4: (lane, reg) -> (reg)
operand B [4, 1] 4: (lane, reg) -> (lane, reg)
describes
program dot(A: u8[4], B: i8[16, 4]) -> (C: i32[16]) {
  for i in 16 { for k in 4 {
    block "C" [vi: S(16) = i, vk: R(4) = k] {
      init { C[vi] = 0i32 }
      C[vi] = C[vi] + i32(A[vk])*i32(B[vi, vk])
  } } }
})",
    // Pairs are added with one rounding each and denormals as zero: within the bound of a sum.
    R"(
tensor x86_vdpbf16ps_16x2
needs cpu +avx512bf16
lanes 16
call llvm.x86.avx512bf16.dpbf16ps.512
operand C [1] 1: (lane, reg) -> (lane)
operand A [1] splat 2: (lane, reg) -> (reg)
operand B [2, 1] 2: (lane, reg) -> (lane, reg)
describes
program dot(A: bf16[2], B: bf16[16, 2]) -> (C: f32[16]) {
  for i in 16 { for k in 2 {
    block "C" [vi: S(16) = i, vk: R(2) = k] {
      init { C[vi] = 0f32 }
      C[vi] = C[vi] + f32(A[vk])*f32(B[vi, vk])
  } } }
})",
    R"(
tensor arm_sdot_4x4
needs cpu +dotprod
lanes 4
call llvm.aarch64.neon.sdot.v4i32.v16i8
operand C [1] 1: (lane, reg) -> (lane)
operand A [1] splat 4: (lane, reg) -> (reg)
operand B [4, 1] 4: (lane, reg) -> (lane, reg)
describes
program dot(A: i8[4], B: i8[4, 4]) -> (C: i32[4]) {
  for i in 4 { for k in 4 {
    block "C" [vi: S(4) = i, vk: R(4) = k] {
      init { C[vi] = 0i32 }
      C[vi] = C[vi] + i32(A[vk])*i32(B[vi, vk])
  } } }
})",
};

}  // namespace

std::span<const std::string_view> cpu_tensor_texts() { return kCpu; }

std::vector<std::string_view> tensor_texts() {
  std::vector<std::string_view> out(std::begin(kCpu), std::end(kCpu));
  for (std::string_view text : cuda_tensor_texts()) out.push_back(text);
  for (std::string_view text : ldmatrix_tensor_texts()) out.push_back(text);
  return out;
}

}  // namespace prunerc::ir
