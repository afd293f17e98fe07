// Tensor intrinsics: what an instruction computes, as a program; how it is called; which lane holds
// which element.
#ifndef PRUNERC_IR_TENSOR_INTRINSIC_H_
#define PRUNERC_IR_TENSOR_INTRINSIC_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/tensor/index_map.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// One operand, in the order of the call; a parameter of the description.
struct TensorOperand {
  static constexpr int64_t kAnyStride = -1;

  std::string name;
  BufferId buffer;  // in the description
  bool is_output = false;
  /// Elements between neighbours along each dimension, as memory must hold them.
  std::vector<int64_t> strides;
  /// Every lane gets the whole operand.
  bool splat = false;
  /// In shared memory, where all lanes read it together: no lane holds any of it.
  bool in_shared = false;
  /// In a tile register, which memory is loaded into and stored from as rows: no lane holds any of it.
  bool in_tile = false;
  /// Elements that one lane holds.
  int registers = 1;
  /// (lane, register) -> element of the description's buffer. A bijection, unless splat.
  IndexMap fragment;
};

/// Text form, one after the other:
///
///     tensor x86_vpdpbusd_16x4
///     needs cpu +avx512vnni
///     lanes 16
///     call llvm.x86.avx512.vpdpbusd.512
///     operand C [1] 1: (lane, reg) -> (lane)
///     operand A [1] splat 4: (lane, reg) -> (reg)
///     operand B [4, 1] 4: (lane, reg) -> (lane, reg)
///     describes
///     program dot(A: u8[4], B: i8[16, 4]) -> (C: i32[16]) { ... one block ... }
///     implements
///     program lanes(A: u8[16, 4], B: i8[16, 4]) -> (C: i32[16, 1]) { ... }
///
/// `operand A [*, *] shared` has no fragment, nor has `operand A [*, 4, 1] tile`. A stride is a number or `*` (any). `rounds WORD` says
/// that operands are rounded to another type on the way in, so that the description is not exact.
/// `slots 12`: the instructions take as long as 1.2 multiply-adds of that many lanes.
struct TensorIntrinsic {
  std::string name;
  std::string family;    // "cpu", "cuda": who can run it
  std::string features;  // LLVM's names ("+avx512vnni"), or the least architecture ("sm_80")
  std::string call;      // LLVM's intrinsic, or the PTX instruction
  std::string rounds;    // "" if the description is exact
  double slots = 1;      // of a multiply-add port
  int lanes = 1;
  std::vector<TensorOperand> operands;
  Program description;
  /// How the lanes compute it: the same parameters as [lane, register], filled and read through the
  /// fragments. Undefined for what moves data: there the fragments say it all.
  Program implementation;

  const Block& block() const;  // of the description
  const Store& store() const;  // what the block does, its init aside
  /// "cpu with +avx512vnni".
  std::string needs() const;
  /// Its operands are in tile registers (AMX).
  bool uses_tiles() const { return !operands.empty() && operands.front().in_tile; }
};

/// Errors: TensorText, those of parse and IndexMap::parse.
Result<TensorIntrinsic> parse_tensor(std::string_view text);

/// Every registered intrinsic, in a fixed order. Threads: any number at once.
std::span<const TensorIntrinsic> tensor_intrinsics();
/// Errors: TensorUnknown.
Result<const TensorIntrinsic*> find_tensor(std::string_view name);

/// How keys of such attributes begin.
inline constexpr std::string_view kTensorAttr = "tensor_";
/// A loop that stands for an intrinsic carries the attribute `tensor_NAME`. The loop keeps its
/// scalar meaning; whoever makes code of it takes the intrinsic, or refuses.
std::string tensor_attr(const TensorIntrinsic& intrinsic);
/// The name in such an attribute, if the loop has one.
std::optional<std::string_view> tensor_of(const Loop& loop);
/// The intrinsic, if it is one of tile registers; null for all other loops.
const TensorIntrinsic* tile_product_of(const Loop& loop);

/// Where an intrinsic's operands are in a loop nest.
struct TensorMatch {
  struct Operand {
    BufferId buffer;
    std::vector<Expr> base;  // indices of the first element, free of the nest's variables
    /// Per dimension of the operand: elements of memory between neighbours, and the dimension of
    /// the buffer in which they are neighbours (-1 if there is none).
    std::vector<int64_t> strides;
    std::vector<int> dims;
  };
  std::vector<Operand> operands;  // as TensorIntrinsic::operands
};

/// Recognises the nest (loops around one store) as the intrinsic: extents, expression up to
/// commutativity, buffers one to one, strides in memory. `ranges` knows the variables outside; the
/// builder the buffers. Errors: TensorMismatch.
Result<TensorMatch> match_tensor(IrBuilder& b, const Loop& nest, const TensorIntrinsic& intrinsic,
                                 const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_INTRINSIC_H_
