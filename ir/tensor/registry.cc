#include "ir/tensor/registry.h"

#include <iterator>
#include <utility>

namespace prunerc::ir {
namespace {

// A CPU's lane is one 32-bit element of the accumulator; four (two) narrow products go into each.
constexpr const char* kCpu[] = {
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
}
implements
program lanes(A: u8[16, 4], B: i8[16, 4]) -> (C: i32[16, 1]) {
  for l in 16 { for k in 4 {
    block "C" [vl: S(16) = l, vk: R(4) = k] {
      init { C[vl, 0] = 0i32 }
      C[vl, 0] = C[vl, 0] + i32(A[vl, vk])*i32(B[vl, vk])
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
}
implements
program lanes(A: bf16[16, 2], B: bf16[16, 2]) -> (C: f32[16, 1]) {
  for l in 16 { for k in 2 {
    block "C" [vl: S(16) = l, vk: R(2) = k] {
      init { C[vl, 0] = 0f32 }
      C[vl, 0] = C[vl, 0] + f32(A[vl, vk])*f32(B[vl, vk])
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
}
implements
program lanes(A: i8[4, 4], B: i8[4, 4]) -> (C: i32[4, 1]) {
  for l in 4 { for k in 4 {
    block "C" [vl: S(4) = l, vk: R(4) = k] {
      init { C[vl, 0] = 0i32 }
      C[vl, 0] = C[vl, 0] + i32(A[vl, vk])*i32(B[vl, vk])
  } } }
})",
};

}  // namespace

std::vector<std::string> cpu_tensor_texts() { return {std::begin(kCpu), std::end(kCpu)}; }

std::vector<std::string> tensor_texts() {
  std::vector<std::string> out = cpu_tensor_texts();
  for (std::string& text : cuda_tensor_texts()) out.push_back(std::move(text));
  for (std::string& text : ldmatrix_tensor_texts()) out.push_back(std::move(text));
  for (std::string& text : wgmma_tensor_texts()) out.push_back(std::move(text));
  return out;
}

}  // namespace prunerc::ir
