// Emission of products in tile registers (AMX). We number the registers; to LLVM the instructions are
// calls that may touch any memory, so that nothing moves across them.
#include "codegen/cpu/emitter.h"
#include "codegen/cpu/tile_registers.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

llvm::Constant* config_constant(llvm::LLVMContext& context, const TileConfig& config) {
  const std::array<uint8_t, 64> bytes = config_bytes(config);
  return llvm::ConstantDataArray::get(context, llvm::ArrayRef<uint8_t>(bytes));
}

}  // namespace

void Emitter::call_tiles(unsigned id, std::initializer_list<Value*> args) {
  ir_.CreateCall(llvm::Intrinsic::getDeclaration(&module_, static_cast<llvm::Intrinsic::ID>(id)),
                 llvm::ArrayRef<Value*>(args.begin(), args.size()));
}

// The sizes of registers as a constant of 64 bytes, to be given now (null: later).
llvm::GlobalVariable* Emitter::make_tile_config(llvm::Constant* bytes) {
  constexpr uint64_t kBytes = 64;
  auto* type = llvm::ArrayType::get(ir_.getInt8Ty(), kBytes);
  auto* global = new llvm::GlobalVariable(module_, type, /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage, bytes, ".tiles");
  global->setAlignment(llvm::Align(kBytes));
  return global;
}

ParallelLoops Emitter::parallel_loops() const {
  return in_parallel_ ? ParallelLoops::kItself : ParallelLoops::kTasks;
}

// At a function's begin: one configuration for all of its products, which grows as they are emitted.
void Emitter::begin_tiles(Stmt body) {
  tiles_ = {};
  if (!has_tiles_ || !has_tile_products(body, parallel_loops())) return;
  tiles_.config = make_tile_config(nullptr);
  configure_tiles();
}

// Sets the sizes that the function's registers have, and all of them to 0.
void Emitter::configure_tiles() {
  if (tiles_.config != nullptr) call_tiles(llvm::Intrinsic::x86_ldtilecfg, {tiles_.config});
}

// Before the thread does what has a configuration of its own: registers in their initial state cost
// no time where threads are switched.
void Emitter::release_tiles() {
  if (tiles_.config != nullptr) call_tiles(llvm::Intrinsic::x86_tilerelease, {});
}

void Emitter::end_tiles() {
  if (tiles_.config == nullptr) return;
  tiles_.config->setInitializer(config_constant(context_, tiles_.sizes));
  release_tiles();
}

// With what stands in front of the loop, if that only fills the sums; false if either is not so.
bool Emitter::emit_tile_region(const Loop& loop, Stmt fill) {
  if (!has_tiles_ || lanes_ > 0 || mask_ != nullptr) return false;
  IrBuilder b(program_);
  const TileRegionOptions options{kMaxUnrolledCopies / unrolled_copies_, parallel_loops()};
  std::optional<TileRegion> region = find_tile_region(b, loop, ranges_, options);
  if (!region) return false;
  region->starts_at_zero = fill.defined() && fills_sums_with_zero(b, fill, *region, ranges_);
  if (fill.defined() && !region->starts_at_zero) return false;
  emit_tiles(*region);
  return true;
}

void Emitter::emit_tile_nest(const Loop& nest, const TensorIntrinsic& tensor) {
  IrBuilder b(program_);
  const Result<TileRegion> region = tile_region_of(b, nest, tensor, ranges_);
  if (!region.ok()) return void(status_ = region.error());
  emit_tiles(*region);
}

void Emitter::emit_tiles(const TileRegion& region) {
  memo_.clear();
  affine_memo_.clear();
  const TilePlan plan = plan_tiles(region, tiles_.config != nullptr ? &tiles_.sizes : nullptr);
  if (plan.has_own_config) {
    call_tiles(llvm::Intrinsic::x86_ldtilecfg,
               {make_tile_config(config_constant(context_, plan.config))});
  } else {
    tiles_.sizes = plan.config;
  }
  for (std::size_t i = 0; i < region.sums.size(); ++i) {
    if (region.starts_at_zero) {
      call_tiles(llvm::Intrinsic::x86_tilezero, {ir_.getInt8(static_cast<uint8_t>(plan.sums[i]))});
    } else {
      move_tile(llvm::Intrinsic::x86_tileloadd64, plan.sums[i], region.sums[i]);
    }
  }
  std::size_t next = 0;
  emit_tile_items(region, region.items, plan, &next);
  for (std::size_t i = 0; i < region.sums.size(); ++i)
    move_tile(llvm::Intrinsic::x86_tilestored64, plan.sums[i], region.sums[i]);
  if (plan.has_own_config) {
    if (tiles_.config != nullptr) {
      configure_tiles();
    } else {
      call_tiles(llvm::Intrinsic::x86_tilerelease, {});
    }
  }
  // They are keyed by nodes of the region's builder.
  memo_.clear();
  affine_memo_.clear();
}

void Emitter::emit_tile_items(const TileRegion& region, const std::vector<TileItem>& items,
                              const TilePlan& plan, std::size_t* next) {
  const auto number = [&](int reg) { return ir_.getInt8(static_cast<uint8_t>(reg)); };
  for (const TileItem& item : items) {
    if (item.loop != nullptr) {
      const VarRanges::Mark mark = ranges_.mark();
      emit_serial(*item.loop, eval(item.loop->extent),
                  [&] { emit_tile_items(region, item.body, plan, next); });
      ranges_.rewind(mark);
      continue;
    }
    const TileProduct& product = item.product;
    const llvm::Intrinsic::ID call =
        llvm::Function::lookupIntrinsicID(llvm::StringRef(product.tensor->call));
    if (call == llvm::Intrinsic::not_intrinsic) {
      status_ = error(Diag::kTensorTarget, product.tensor->name, product.tensor->needs(),
                      std::string("code for x86"));
      return;
    }
    const TileUse& use = plan.uses[(*next)++];
    if (use.loads_a) move_tile(llvm::Intrinsic::x86_tileloadd64, use.a, region.operands[product.a]);
    if (use.loads_b) move_tile(llvm::Intrinsic::x86_tileloadd64, use.b, region.operands[product.b]);
    call_tiles(call, {number(plan.sums[product.sum]), number(use.a), number(use.b)});
  }
}

// From memory into a register, or back.
void Emitter::move_tile(unsigned id, int reg, const TilePlace& place) {
  Value* at = element(place.buffer, affine(place.start)->base, true);
  call_tiles(id, {ir_.getInt8(static_cast<uint8_t>(reg)), at, i64(place.pitch_bytes)});
}

}  // namespace prunerc::codegen
