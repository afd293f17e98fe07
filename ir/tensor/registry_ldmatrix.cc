#include "ir/tensor/registry.h"

namespace prunerc::ir {
namespace {

// What a warp loads from rows of 16 bytes in shared memory into operands of mma. `trans` exchanges
// the rows and columns of each 8 x 8 matrix of 16-bit elements: for B in row-major order.
constexpr std::string_view kLdmatrix[] = {
    // Two neighbouring operands B of mma_m16n8k16.
    R"(
tensor ldmatrix_x4_trans_f16
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
operand D [*, *] 8: (lane, reg) -> (reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)
operand S [*, 1] 8: (lane, reg) -> (reg // 2 % 2*8 + lane % 4*2 + reg % 2, reg // 4*8 + lane // 4)
describes
program load(S: f16[16, 16]) -> (D: f16[16, 16]) {
  for i in 16 { for j in 16 {
    block "D" [vi: S(16) = i, vj: S(16) = j] { D[vi, vj] = S[vi, vj] }
  } }
})",
    R"(
tensor ldmatrix_x2_trans_f16
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
operand D [*, *] 4: (lane, reg) -> (reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)
operand S [*, 1] 4: (lane, reg) -> (reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)
describes
program load(S: f16[16, 8]) -> (D: f16[16, 8]) {
  for i in 16 { for j in 8 {
    block "D" [vi: S(16) = i, vj: S(8) = j] { D[vi, vj] = S[vi, vj] }
  } }
})",
    // B of mma from a matrix that is stored with k along the rows.
    R"(
tensor ldmatrix_x2_f16
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x2.shared.b16
operand D [*, *] 4: (lane, reg) -> (reg // 2*8 + lane % 4*2 + reg % 2, lane // 4)
operand S [*, 1] 4: (lane, reg) -> (lane // 4, reg // 2*8 + lane % 4*2 + reg % 2)
describes
program load(S: f16[8, 16]) -> (D: f16[16, 8]) {
  for i in 16 { for j in 8 {
    block "D" [vi: S(16) = i, vj: S(8) = j] { D[vi, vj] = S[vj, vi] }
  } }
})",
    R"(
tensor ldmatrix_x4_i8
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x4.shared.b16
operand D [*, *] 16: (lane, reg) -> (reg // 4 % 2*8 + lane // 4, reg // 8*16 + lane % 4*4 + reg % 4)
operand S [*, 1] 16: (lane, reg) -> (reg // 4 % 2*8 + lane // 4, reg // 8*16 + lane % 4*4 + reg % 4)
describes
program load(S: i8[16, 32]) -> (D: i8[16, 32]) {
  for i in 16 { for j in 32 {
    block "D" [vi: S(16) = i, vj: S(32) = j] { D[vi, vj] = S[vi, vj] }
  } }
})",
    R"(
tensor ldmatrix_x2_i8
needs cuda sm_80
lanes 32
call ldmatrix.sync.aligned.m8n8.x2.shared.b16
operand D [*, *] 8: (lane, reg) -> (reg // 4*16 + lane % 4*4 + reg % 4, lane // 4)
operand S [*, 1] 8: (lane, reg) -> (lane // 4, reg // 4*16 + lane % 4*4 + reg % 4)
describes
program load(S: i8[8, 32]) -> (D: i8[32, 8]) {
  for i in 32 { for j in 8 {
    block "D" [vi: S(32) = i, vj: S(8) = j] { D[vi, vj] = S[vj, vi] }
  } }
})",
};

}  // namespace

std::span<const std::string_view> ldmatrix_tensor_texts() { return kLdmatrix; }

}  // namespace prunerc::ir
