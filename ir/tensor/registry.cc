#include "ir/tensor/registry.h"

#include <utility>

namespace prunerc::ir {
namespace {

constexpr const char* kArm =
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
})";

}  // namespace

std::vector<std::string> cpu_tensor_texts() {
  std::vector<std::string> out = x86_tensor_texts();
  for (std::string& text : amx_tensor_texts()) out.push_back(std::move(text));
  out.emplace_back(kArm);
  return out;
}

std::vector<std::string> tensor_texts() {
  std::vector<std::string> out = cpu_tensor_texts();
  for (std::string& text : cuda_tensor_texts()) out.push_back(std::move(text));
  for (std::string& text : ldmatrix_tensor_texts()) out.push_back(std::move(text));
  for (std::string& text : wgmma_tensor_texts()) out.push_back(std::move(text));
  return out;
}

}  // namespace prunerc::ir
