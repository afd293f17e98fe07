// Emission of loops that stand for a tensor intrinsic: operands as vectors, one call.
#include "codegen/cpu/emitter.h"
#include "ir/tensor/intrinsic.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

struct Known {
  std::string_view call;
  llvm::Intrinsic::ID id;
  bool adds = true;  // it takes the first operand and returns its new value; else what to add to it
};
/// The calls that this back end makes; their operands are the intrinsic's, in order.
constexpr Known kKnown[] = {
    {"llvm.x86.avx512.vpdpbusd.512", llvm::Intrinsic::x86_avx512_vpdpbusd_512},
    {"llvm.x86.avx512bf16.dpbf16ps.512", llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512},
    {"llvm.x86.avx512.pmaddw.d.512", llvm::Intrinsic::x86_avx512_pmaddw_d_512, false},
    {"llvm.x86.avx2.pmadd.wd", llvm::Intrinsic::x86_avx2_pmadd_wd, false},
};

// Calls of one intrinsic with the operands' element types as they are.
struct TensorCall {
  llvm::IRBuilderBase& ir;
  llvm::Function* call;

  // vpdpbusd takes its first factor as bytes without a sign. x*b = (x + 128)*b - 128*b, of which the
  // last is the same for all rows of a tile.
  Value* signed_bytes(Value* c, Value* a, Value* b) const {
    Value* offset = llvm::ConstantInt::get(a->getType(), 0x80808080U);
    Value* more = ir.CreateCall(call, {llvm::Constant::getNullValue(c->getType()), offset, b});
    return ir.CreateSub(ir.CreateCall(call, {c, ir.CreateXor(a, offset), b}), more);
  }

  // Bytes as 16 bits each: sums of two products fit 32.
  Value* widened(Value* c, std::vector<Value*> factors, const std::vector<DType>& dtypes) const {
    for (std::size_t i = 0; i < factors.size(); ++i) {
      llvm::Type* wide = call->getFunctionType()->getParamType(static_cast<unsigned>(i));
      factors[i] = dtypes[i] == DType::kU8 ? ir.CreateZExt(factors[i], wide)
                                           : ir.CreateSExt(factors[i], wide);
    }
    return ir.CreateAdd(c, ir.CreateCall(call, factors));
  }
};

}  // namespace

// `operand` at `at`: all of it as one vector, or a whole operand of a few bytes in every lane.
Value* Emitter::load_tensor(const TensorOperand& operand, const TensorMatch::Operand& at,
                            llvm::Type* type) {
  const DType dtype = program_.buffer(at.buffer).dtype;
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  Value* pointer = element(at.buffer, flat_affine(at.buffer, at.base)->base, true);
  if (!operand.splat) return tag(ir_.CreateAlignedLoad(type, pointer, align), at.buffer);
  const int64_t bits = operand.registers * byte_size(dtype) * 8;
  Value* word = tag(
      ir_.CreateAlignedLoad(ir_.getIntNTy(static_cast<unsigned>(bits)), pointer, align), at.buffer);
  const auto lanes = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue() /
                                           static_cast<uint64_t>(bits));
  return ir_.CreateBitCast(ir_.CreateVectorSplat(lanes, word), type);
}

// The nest is recognised once more in its lowered form: passes may have changed subscripts and
// shapes, and an instruction on other elements would be a wrong result.
void Emitter::emit_tensor(const Loop& loop, std::string_view name) {
  const Result<const TensorIntrinsic*> found = find_tensor(name);
  if (!found.ok()) return void(status_ = found.error());
  const TensorIntrinsic& tensor = **found;
  PRUNERC_CHECK(lanes_ == 0 && mask_ == nullptr, "tensor loops are not inside vectorized ones");
  if (tensor.uses_tiles()) return emit_tile_nest(loop, tensor);
  const Known* known = nullptr;
  for (const Known& one : kKnown) known = one.call == tensor.call ? &one : known;
  if (known == nullptr) {
    return void(status_ = error(Diag::kTensorTarget, tensor.name, tensor.needs(),
                                std::string("code for x86")));
  }
  IrBuilder b(program_);
  const Result<TensorMatch> match = match_tensor(b, loop, tensor, ranges_);
  if (!match.ok()) return void(status_ = match.error());
  llvm::Function* call = llvm::Intrinsic::getDeclaration(&module_, known->id);
  // A target that prefers narrower vectors still has to have registers for these.
  const uint64_t bits = call->getReturnType()->getPrimitiveSizeInBits().getFixedValue();
  if (static_cast<int64_t>(bits) > vector_bytes_ * 8) {
    function_->addFnAttr("min-legal-vector-width", std::to_string(bits));
  }
  std::vector<Value*> args;
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < tensor.operands.size(); ++i) {
    dtypes.push_back(program_.buffer(match->operands[i].buffer).dtype);
    const auto param = static_cast<unsigned>(known->adds || i == 0 ? i : i - 1);
    llvm::Type* type =
        i == 0 ? call->getReturnType() : call->getFunctionType()->getParamType(param);
    if (i > 0 && !known->adds) {
      auto* wide = llvm::cast<llvm::FixedVectorType>(type);
      type = llvm::FixedVectorType::get(ir_.getInt8Ty(), wide->getNumElements());
    }
    args.push_back(load_tensor(tensor.operands[i], match->operands[i], type));
  }
  const TensorCall make{ir_, call};
  Value* result = nullptr;
  if (!known->adds) {
    result = make.widened(args[0], {args[1], args[2]}, {dtypes[1], dtypes[2]});
  } else if (dtypes[1] == DType::kI8) {
    result = make.signed_bytes(args[0], args[1], args[2]);
  } else {
    result = ir_.CreateCall(call, args);
  }
  const TensorMatch::Operand& out = match->operands[0];
  Value* pointer = element(out.buffer, flat_affine(out.buffer, out.base)->base, true);
  const llvm::Align align(static_cast<uint64_t>(byte_size(program_.buffer(out.buffer).dtype)));
  tag(ir_.CreateAlignedStore(result, pointer, align), out.buffer);
  // They are keyed by nodes of b, which ends here.
  memo_.clear();
  affine_memo_.clear();
}

}  // namespace prunerc::codegen
