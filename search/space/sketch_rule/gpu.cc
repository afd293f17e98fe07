#include "search/space/sketch_rule/gpu.h"

#include "ir/analysis/loop_index.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::search {
namespace {

using ir::BlockId;

bool in_kernel(const schedule::Schedule& s, BlockId block) {
  const ir::LoopIndex index(s.program());
  const std::vector<const ir::Loop*> loops = index.enclosing_loops(block);
  return std::any_of(loops.begin(), loops.end(),
                     [](const ir::Loop* loop) { return ir::is_thread_axis(loop->loop_kind); });
}

// Stages that a tiled block alone reads are computed where their elements are fetched.
void inline_into_tiles(SketchContext& context) {
  for (const BlockId id : context.schedule.blocks()) {
    if (!can_gpu_tile(context.schedule, id)) continue;
    for (const BlockId stage : stages_of(context.schedule, id)) {
      static_cast<void>(context.schedule.compute_inline(stage).ok());
    }
  }
}

bool wgmma(SketchContext& context, BlockId block, const GpuVariant& variant) {
  if (!can_gpu_wgmma(context, block)) return false;
  const BlockId epilogue = epilogue_of(context.schedule, block);
  if (epilogue.valid() && gpu_wgmma(context, block, epilogue, variant.wgmma).ok()) return true;
  return gpu_wgmma(context, block, BlockId(), variant.wgmma).ok();
}

bool tile(SketchContext& context, BlockId block, const GpuVariant& variant) {
  const BlockId epilogue = epilogue_of(context.schedule, block);
  if (epilogue.valid() && gpu_tile(context, block, epilogue, variant).ok()) return true;
  return gpu_tile(context, block, BlockId(), variant).ok();
}

// Stages that follow each other: together if they have rows in common, else each by itself.
void schedule_chain(SketchContext& context, const std::vector<BlockId>& chain,
                    const GpuVariant& variant) {
  const auto reduces = [&](BlockId id) { return is_reduction(*find_block(context.program(), id)); };
  const bool any = std::any_of(chain.begin(), chain.end(), reduces);
  if (variant.fuse_rows && any && chain.size() > 1 && gpu_rows(context, chain, variant)) return;
  for (const BlockId id : chain) {
    if (reduces(id) && gpu_rows(context, {id}, variant)) continue;
    static_cast<void>(gpu_bind(context, id).ok());
  }
}

struct Shaped {
  schedule::TensorMapping mapping;
  MatrixProduct product;
};

// Every block that a tensor instruction can compute, as a matrix product by its n-th best mapping,
// or by its last one if all have fewer.
std::vector<Shaped> shape_products(SketchContext& context, const GpuVariant& variant) {
  std::vector<Shaped> out;
  if (variant.mapping == 0) return out;
  const auto rank = static_cast<std::size_t>(variant.mapping);
  bool is_last = false;
  for (const BlockId id : context.schedule.blocks()) {
    for (const std::string_view name : tensor_products(context.target)) {
      const std::vector<schedule::TensorMapping> mappings =
          matrix_mappings(context.schedule, id, name, rank);
      if (mappings.empty()) continue;
      is_last = is_last || mappings.size() == rank;
      const schedule::Schedule before = context.schedule.fork();
      Result<MatrixProduct> product = to_matrix_product(context, id, mappings.back());
      if (product.ok()) {
        out.push_back({mappings.back(), *std::move(product)});
      } else {
        context.schedule = before;
      }
      break;
    }
  }
  if (!is_last) out.clear();
  return out;
}

// Does some product come before the block?
bool follows_product(const schedule::Schedule& s, BlockId block,
                     const std::vector<Shaped>& products) {
  const std::vector<BlockId> producers = s.producers(block);
  return std::any_of(producers.begin(), producers.end(), [&](BlockId id) {
    const bool is_product =
        std::any_of(products.begin(), products.end(),
                    [&](const Shaped& shaped) { return shaped.product.block == id; });
    return is_product || follows_product(s, id, products);
  });
}

// Copies of operands stay beside their product. So does the last stage between two products: it
// belongs to the first one, which has its values in registers.
void keep_operands(SketchContext& context, const std::vector<Shaped>& products) {
  for (const Shaped& shaped : products) {
    for (const BlockId copy : {shaped.product.a.copy, shaped.product.b.copy}) {
      if (!copy.valid()) continue;
      context.keep.push_back(copy);
      for (const BlockId stage : context.schedule.producers(copy)) {
        if (follows_product(context.schedule, stage, products)) context.keep.push_back(stage);
      }
    }
  }
}

}  // namespace

std::vector<GpuVariant> gpu_variants() {
  return {
      {.name = "gpu"},
      {.name = "gpu+stages", .inline_stages = false},
      {.name = "gpu+outer row", .outer_row = true},
      {.name = "gpu+direct", .shared = false},
      {.name = "gpu+row per thread", .threads_share_rows = false},
      {.name = "gpu+split", .fuse_rows = false},
      {.name = "gpu+split+row per thread", .threads_share_rows = false, .fuse_rows = false},
      {.name = "gpu+tensor", .mapping = 1},
      {.name = "gpu+tensor 2", .mapping = 2},
      {.name = "gpu+tensor 3", .mapping = 3},
      {.name = "gpu+tensor+stages", .inline_stages = false, .mapping = 1},
      {.name = "gpu+tensor+swizzle", .mapping = 1, .swizzled = true},
      // Wide tiles for large products, small ones for few rows or columns, and without the engine.
      {.name = "gpu+wgmma 128x128", .wgmma = {.warpgroups = 2, .columns = 128}},
      {.name = "gpu+wgmma 128x256", .wgmma = {.warpgroups = 2, .columns = 256}},
      {.name = "gpu+wgmma 128x192", .wgmma = {.warpgroups = 2, .columns = 192}},
      {.name = "gpu+wgmma 192x128", .wgmma = {.warpgroups = 3, .columns = 128}},
      {.name = "gpu+wgmma 64x256", .wgmma = {.warpgroups = 1, .columns = 256}},
      {.name = "gpu+wgmma 64x128", .wgmma = {.warpgroups = 1, .columns = 128}},
      {.name = "gpu+wgmma 64x64", .wgmma = {.warpgroups = 1, .columns = 64}},
      {.name = "gpu+wgmma 64x32", .wgmma = {.warpgroups = 1, .columns = 32}},
      {.name = "gpu+wgmma 128x128 threads",
       .wgmma = {.warpgroups = 2, .columns = 128, .bulk = false}},
      {.name = "gpu+wgmma 64x64 threads", .wgmma = {.warpgroups = 1, .columns = 64, .bulk = false}},
      {.name = "gpu+tensor+staged", .mapping = 1, .staged = true},
      {.name = "gpu+tensor+split k",
       .threads_share_rows = false,
       .mapping = 1,
       .split_reduction = true},
  };
}

Result<void> apply_gpu_variant(SketchContext& context, const GpuVariant& variant) {
  for (const BlockId id : context.schedule.blocks()) {
    if (!variant.shared && must_share_operands(context.schedule, id)) {
      return error(Diag::kUnsupported, std::string("direct reads of a large product's operands"));
    }
  }
  const std::vector<Shaped> products = shape_products(context, variant);
  Variant stages;
  stages.inline_stages = variant.inline_stages;
  keep_operands(context, products);
  inline_stages(context, stages);
  // What one product hands on to the next is its epilogue; fetches are their own.
  std::erase_if(context.keep, [&](BlockId id) {
    return std::none_of(products.begin(), products.end(), [&](const Shaped& shaped) {
      return shaped.product.a.copy == id || shaped.product.b.copy == id;
    });
  });
  std::size_t num_tensor = 0;
  for (const Shaped& shaped : products) {
    num_tensor += gpu_tensor(context, shaped.mapping, shaped.product, variant).ok() ? 1 : 0;
  }
  if (variant.mapping > 0 && num_tensor == 0) {
    return error(Diag::kUnsupported, std::string("tensor instructions for this program"));
  }
  if (variant.inline_stages) inline_into_tiles(context);
  const bool wants_wgmma = variant.wgmma.warpgroups > 0;
  bool found_wgmma = false;
  std::vector<BlockId> chain;
  const auto flush = [&] {
    if (!chain.empty()) schedule_chain(context, chain, variant);
    chain.clear();
  };
  for (const BlockId id : context.schedule.blocks()) {
    if (find_block(context.program(), id) == nullptr || in_kernel(context.schedule, id)) continue;
    if (wants_wgmma && can_gpu_wgmma(context, id) && (flush(), wgmma(context, id, variant))) {
      found_wgmma = true;
      continue;
    }
    if (can_gpu_tile(context.schedule, id) && (flush(), tile(context, id, variant))) continue;
    chain.push_back(id);
  }
  flush();
  if (wants_wgmma && !found_wgmma) return error(Diag::kUnsupported, std::string("wgmma here"));
  // Whatever is left: a block that came with loops of its own shape.
  for (const BlockId id : context.schedule.blocks()) {
    if (!in_kernel(context.schedule, id)) PRUNERC_TRY_VOID(gpu_bind(context, id));
  }
  return {};
}

}  // namespace prunerc::search
