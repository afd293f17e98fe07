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
};
/// The calls that this back end makes; their operands are the intrinsic's, in order, and the result
/// is the first operand's new value.
constexpr Known kKnown[] = {
    {"llvm.x86.avx512.vpdpbusd.512", llvm::Intrinsic::x86_avx512_vpdpbusd_512},
    {"llvm.x86.avx512bf16.dpbf16ps.512", llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512},
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
  for (std::size_t i = 0; i < tensor.operands.size(); ++i) {
    args.push_back(load_tensor(tensor.operands[i], match->operands[i],
                               call->getFunctionType()->getParamType(static_cast<unsigned>(i))));
  }
  const TensorMatch::Operand& out = match->operands[0];
  Value* pointer = element(out.buffer, flat_affine(out.buffer, out.base)->base, true);
  const llvm::Align align(static_cast<uint64_t>(byte_size(program_.buffer(out.buffer).dtype)));
  tag(ir_.CreateAlignedStore(ir_.CreateCall(call, args), pointer, align), out.buffer);
  // They are keyed by nodes of b, which ends here.
  memo_.clear();
  affine_memo_.clear();
}

}  // namespace prunerc::codegen
