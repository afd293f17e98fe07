#include "ir/tensor/registry.h"

namespace prunerc::ir {
namespace {

// Fragments as the PTX manual gives them for mma.sync: lane = 4*group + thread. The fragments of
// wmma are not documented; those here serve whoever models it, who must use them for load, product
// and store alike.
constexpr std::string_view kCuda[] = {
    R"(
tensor wmma_16x16x16_f16
needs cuda sm_80
lanes 32
call wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32
operand C [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand A [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand B [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)
describes
program mma(A: f16[16, 16], B: f16[16, 16]) -> (C: f32[16, 16]) {
  for i in 16 { for j in 16 { for k in 16 {
    block "C" [vi: S(16) = i, vj: S(16) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})",
    R"(
tensor wmma_16x16x16_bf16
needs cuda sm_80
lanes 32
call wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32
operand C [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand A [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand B [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)
describes
program mma(A: bf16[16, 16], B: bf16[16, 16]) -> (C: f32[16, 16]) {
  for i in 16 { for j in 16 { for k in 16 {
    block "C" [vi: S(16) = i, vj: S(16) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})",
    R"(
tensor wmma_16x16x16_s8
needs cuda sm_80
lanes 32
call wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32
operand C [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand A [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand B [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)
describes
program mma(A: i8[16, 16], B: i8[16, 16]) -> (C: i32[16, 16]) {
  for i in 16 { for j in 16 { for k in 16 {
    block "C" [vi: S(16) = i, vj: S(16) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj])
  } } } }
})",
    R"(
tensor mma_m16n8k16_f16
needs cuda sm_80
lanes 32
call mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
operand C [*, *] 4: (lane, reg) -> (reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)
operand A [*, *] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand B [*, *] 4: (lane, reg) -> (reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)
describes
program mma(A: f16[16, 16], B: f16[16, 8]) -> (C: f32[16, 8]) {
  for i in 16 { for j in 8 { for k in 16 {
    block "C" [vi: S(16) = i, vj: S(8) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})",
    R"(
tensor mma_m16n8k16_bf16
needs cuda sm_80
lanes 32
call mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
operand C [*, *] 4: (lane, reg) -> (reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)
operand A [*, *] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand B [*, *] 4: (lane, reg) -> (reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)
describes
program mma(A: bf16[16, 16], B: bf16[16, 8]) -> (C: f32[16, 8]) {
  for i in 16 { for j in 8 { for k in 16 {
    block "C" [vi: S(16) = i, vj: S(8) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})",
    R"(
tensor mma_m16n8k8_tf32
needs cuda sm_80
lanes 32
call mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
rounds tf32
operand C [*, *] 4: (lane, reg) -> (reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)
operand A [*, *] 4: (lane, reg) -> (reg % 2*8 + lane // 4, reg // 2*4 + lane % 4)
operand B [*, *] 2: (lane, reg) -> (reg*4 + lane % 4, lane // 4)
describes
program mma(A: f32[16, 8], B: f32[8, 8]) -> (C: f32[16, 8]) {
  for i in 16 { for j in 8 { for k in 8 {
    block "C" [vi: S(16) = i, vj: S(8) = j, vk: R(8) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})",
    R"(
tensor mma_m16n8k32_s8
needs cuda sm_80
lanes 32
call mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
operand C [*, *] 4: (lane, reg) -> (reg // 2*8 + lane // 4, lane % 4*2 + reg % 2)
operand A [*, *] 16: (lane, reg) -> (reg // 4 % 2*8 + lane // 4, reg // 8*16 + lane % 4*4 + reg % 4)
operand B [*, *] 8: (lane, reg) -> (reg // 4*16 + lane % 4*4 + reg % 4, lane // 4)
describes
program mma(A: i8[16, 32], B: i8[32, 8]) -> (C: i32[16, 8]) {
  for i in 16 { for j in 8 { for k in 32 {
    block "C" [vi: S(16) = i, vj: S(8) = j, vk: R(32) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj])
  } } } }
})",
    R"(
tensor ldmatrix_x4_f16
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x4.shared.b16
operand D [*, *] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
operand S [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane // 4, reg // 4*8 + lane % 4*2 + reg % 2)
describes
program load(S: f16[16, 16]) -> (D: f16[16, 16]) {
  for i in 16 { for j in 16 {
    block "D" [vi: S(16) = i, vj: S(16) = j] { D[vi, vj] = S[vi, vj] }
  } }
})",
};

}  // namespace

std::span<const std::string_view> cuda_tensor_texts() { return kCuda; }

}  // namespace prunerc::ir
