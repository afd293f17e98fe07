#include "search/space/sketch_rule/gpu/gpu.h"

#include "ir/arith/loop_index.h"
#include "ir/thread_axis.h"
#include "search/space/sketch_rule/gpu/gpu_chain.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;

bool in_kernel(const schedule::Schedule& s, BlockId block) {
  const ir::LoopIndex index(s.program());
  const std::vector<const ir::Loop*> loops = index.enclosing_loops(block);
  return std::any_of(loops.begin(), loops.end(),
                     [](const ir::Loop* loop) { return ir::is_thread_axis(loop->loop_kind); });
}

// Whether some operand is all there is to read, each element once, as the matrix of a product with a
// vector: then its rows matter, and who else reads the vector does not.
constexpr int64_t kLongRow = 256;
const ir::Access* read_once(const BlockFacts& facts, int64_t least_row) {
  if (facts.block == nullptr || !facts.trivial) return nullptr;
  int64_t row = 1;
  for (const Axis& axis : facts.reduce) row *= axis.extent;
  if (row < least_row) return nullptr;
  for (const ir::Access& access : facts.block->reads) {
    const auto moves = [&](const Axis& axis) {
      return axis.extent == 1 || mentions(access, axis.var);
    };
    if (access.buffer != facts.block->writes[0].buffer && has_variable_subscripts(access) &&
        std::all_of(facts.spatial.begin(), facts.spatial.end(), moves) &&
        std::all_of(facts.reduce.begin(), facts.reduce.end(), moves))
      return &access;
  }
  return nullptr;
}

// Behind two products a sum that reads something once, as over the results of tiles, has a thread for each of its own.
bool combines_tiles(const SketchContext& context, BlockId id, const GpuVariant& variant) {
  return variant.chain && read_once(facts_of(context.schedule, id), 1) != nullptr;
}

// Stages that a tiled block alone reads are computed where their elements are fetched.
void inline_into_tiles(SketchContext& context, const GpuVariant& variant) {
  for (const BlockId id : context.schedule.blocks()) {
    if (!can_gpu_tile(context.schedule, id) || combines_tiles(context, id, variant)) continue;
    for (const BlockId stage : stages_of(context.schedule, id)) {
      static_cast<void>(context.schedule.compute_inline(stage).ok());
    }
  }
}

bool wgmma(SketchContext& context, BlockId block, const GpuVariant& variant) {
  const BlockId epilogue = epilogue_of(context.schedule, block);
  if (epilogue.valid() && gpu_wgmma(context, block, epilogue, variant.wgmma).ok()) return true;
  return gpu_wgmma(context, block, BlockId(), variant.wgmma).ok();
}

bool tile(SketchContext& context, BlockId block, const GpuVariant& variant) {
  const BlockId epilogue = epilogue_of(context.schedule, block);
  if (epilogue.valid() && gpu_tile(context, block, epilogue, variant).ok()) return true;
  return gpu_tile(context, block, BlockId(), variant).ok();
}

GpuVariant row_per_thread(GpuVariant variant) {
  variant.threads_share_rows = false;
  return variant;
}

int64_t num_results(const schedule::Schedule& s, BlockId id) {
  int64_t n = 1;
  for (const Axis& axis : facts_of(s, id).spatial) n *= axis.extent;
  return n;
}

// Whether a chain's rows have a block each. Not those that were cut into parts: who reads their sums has more threads.
bool fuses_rows(const schedule::Schedule& s, const std::vector<BlockId>& chain,
                const GpuVariant& variant) {
  int64_t most_sums = 0;
  for (const BlockId id : chain) {
    if (is_reduction(*find_block(s.program(), id)))
      most_sums = std::max(most_sums, num_results(s, id));
  }
  if (!variant.fuse_rows || most_sums == 0 || chain.size() < 2) return false;
  return !variant.parts || num_results(s, chain.back()) <= most_sums;
}

// Stages that follow each other: together if they have rows in common, else each by itself.
void schedule_chain(SketchContext& context, const std::vector<BlockId>& chain,
                    const GpuVariant& variant) {
  const auto reduces = [&](BlockId id) { return is_reduction(*find_block(context.program(), id)); };
  if (fuses_rows(context.schedule, chain, variant)) {
    if (gpu_rows(context, chain, variant)) return;
    // Rows of values of few tiles are shorter than a warp.
    if (variant.chain && gpu_rows(context, chain, row_per_thread(variant))) return;
  }
  for (const BlockId id : chain) {
    if (reduces(id) && gpu_rows(context, {id}, variant)) continue;
    if (variant.shared && gpu_transposition(context, id)) continue;
    static_cast<void>(gpu_bind(context, id).ok());
  }
}

// A product with a vector: the threads of a block share a row, or columns are neighbours.
bool product_rows(SketchContext& context, BlockId id, const GpuVariant& variant) {
  if (!variant.shared || !variant.threads_share_rows) return false;
  const BlockFacts facts = facts_of(context.schedule, id);
  const ir::Access* const matrix = read_once(facts, kLongRow);
  if (matrix == nullptr) return false;
  const bool by_rows = is_contiguous(*matrix, facts.reduce.back().var);
  if (!by_rows && !is_along_columns(facts)) return false;
  const BlockId epilogue = epilogue_of(context.schedule, id);
  const bool fuses = by_rows && variant.fuse_rows && epilogue.valid();
  return (fuses && gpu_rows(context, {id, epilogue}, variant)) || gpu_rows(context, {id}, variant);
}

bool combine_tiles(SketchContext& context, BlockId id, const GpuVariant& variant) {
  if (!combines_tiles(context, id, variant)) return false;
  std::vector<BlockId> blocks = {id};
  const BlockId epilogue = epilogue_of(context.schedule, id);
  if (epilogue.valid()) blocks.push_back(epilogue);
  return gpu_rows(context, blocks, row_per_thread(variant)).ok();
}

/// A block, and as which matrix products it may be computed, the best first.
struct MappedBlock {
  BlockId block;
  std::vector<schedule::TensorMapping> mappings;
};

// In a chain rows of the result are rows of the first factor, whatever tiles waste.
constexpr std::size_t kChainMappings = 8;
bool keeps_order(const schedule::TensorMapping& mapping) {
  return mapping.reads.size() == 3 && mapping.reads[1] < mapping.reads[2];
}

// By the n-th best mapping, or by the last one if there are fewer; in a chain by any that keeps the factors' order.
std::vector<MappedBlock> map_blocks(const SketchContext& context, const GpuVariant& variant,
                                    std::size_t rank) {
  std::vector<MappedBlock> out;
  // Lanes multiply what is given to tf32 otherwise.
  const std::vector<std::string_view> names =
      variant.unit == WarpUnit::kLanes ? std::vector<std::string_view>{"mma_m16n8k8_tf32"}
                                       : tensor_products(context.target);
  for (const BlockId id : context.schedule.blocks()) {
    if (variant.wgmma.warpgroups > 0 && can_gpu_wgmma(context, id)) continue;
    for (const std::string_view name : names) {
      std::vector<schedule::TensorMapping> mappings =
          matrix_mappings(context.schedule, id, name, variant.chain ? kChainMappings : rank);
      if (variant.chain) std::erase_if(mappings, std::not_fn(keeps_order));
      if (mappings.empty()) continue;
      out.push_back({id, std::move(mappings)});
      break;
    }
  }
  return out;
}

// Extents of the variables outside; nothing if one of them is added up.
std::optional<std::vector<int64_t>> outer_extents(const ir::Block& block,
                                                  const schedule::TensorMapping& mapping) {
  std::vector<int64_t> out;
  for (const int i : mapping.outer) {
    const ir::IterVar& iter = block.iters[static_cast<std::size_t>(i)];
    if (iter.kind != ir::IterKind::kSpatial) return std::nullopt;
    out.push_back(ir::constant_value(iter.extent).value_or(0));
  }
  return out;
}

// Of each block one mapping stays: of two products that follow each other the best ones by which rows and what is outside
// are the same, and columns of the first are what the second adds up; of several such pairs those with the longest rows,
// but best ones first. Of all others the best one; beside such a pair none with a single row, as what combines tiles is.
void choose_mappings(const schedule::Schedule& s, std::vector<MappedBlock>* blocks) {
  struct Pair {
    MappedBlock *first, *second;
    std::size_t x, y;
  };
  std::optional<Pair> best;
  std::pair<bool, int64_t> best_key;
  const auto note = [&](const Pair& pair) {
    const schedule::TensorMapping& x = pair.first->mappings[pair.x];
    const schedule::TensorMapping& y = pair.second->mappings[pair.y];
    if (x.extents[0] != y.extents[0] || x.extents[1] != y.extents[2]) return;
    const auto outer = outer_extents(*find_block(s.program(), pair.first->block), x);
    if (!outer || outer != outer_extents(*find_block(s.program(), pair.second->block), y)) return;
    const std::pair key(pair.x == 0 && pair.y == 0, x.extents[1]);
    if (best && key <= best_key) return;
    best = pair;
    best_key = key;
  };
  for (MappedBlock& first : *blocks) {
    for (MappedBlock& second : *blocks) {
      if (!comes_of(s, second.block, first.block)) continue;
      for (std::size_t x = 0; x < first.mappings.size(); ++x) {
        for (std::size_t y = 0; y < second.mappings.size(); ++y) note({&first, &second, x, y});
      }
    }
  }
  if (best) {
    std::swap(best->first->mappings[0], best->first->mappings[best->x]);
    std::swap(best->second->mappings[0], best->second->mappings[best->y]);
  }
  for (MappedBlock& mapped : *blocks) mapped.mappings.resize(1);
  if (!best) return;
  const BlockId first = best->first->block, second = best->second->block;
  std::erase_if(*blocks, [&](const MappedBlock& mapped) {
    const bool is_chained = mapped.block == first || mapped.block == second;
    return !is_chained && mapped.mappings[0].extents[0] == 1;
  });
}

// Every block that a tensor instruction can compute, as a matrix product. Warpgroups take matrices as they are, and
// other products by the best mapping, but for bytes that they do not share out to turn them.
std::vector<ShapedProduct> shape_products(SketchContext& context, const GpuVariant& variant) {
  std::vector<ShapedProduct> out;
  const bool wants_wgmma = variant.wgmma.warpgroups > 0;
  const auto rank = static_cast<std::size_t>(wants_wgmma ? 1 : variant.mapping);
  if (rank == 0) return out;
  std::vector<MappedBlock> blocks = map_blocks(context, variant, rank);
  if (variant.chain) choose_mappings(context.schedule, &blocks);
  const bool divides =
      !wants_wgmma || variant.wgmma.columns % (variant.wgmma.warpgroups * kTurnedRows) == 0;
  bool is_last = false;
  for (const MappedBlock& mapped : blocks) {
    is_last = is_last || mapped.mappings.size() == rank;
    const schedule::Schedule before = context.schedule.fork();
    Result<MatrixProduct> product =
        to_matrix_product(context, mapped.block, mapped.mappings.back(), variant.turns_bytes);
    const bool turns = product.ok() && (product->a.turns || product->b.turns);
    if (product.ok() && (divides || !turns) &&
        (!wants_wgmma || can_gpu_wgmma(context, mapped.block))) {
      out.push_back({mapped.mappings.back(), *std::move(product)});
    } else {
      context.schedule = before;
    }
  }
  if (!is_last) out.clear();
  return out;
}

// Does some product come before the block?
bool follows_product(const schedule::Schedule& s, BlockId block,
                     const std::vector<ShapedProduct>& products) {
  return std::any_of(products.begin(), products.end(), [&](const ShapedProduct& shaped) {
    return comes_of(s, block, shaped.product.block);
  });
}

// Copies of operands stay beside their product. So does the last stage between two products: it
// belongs to the first one, which has its values in registers.
void keep_operands(SketchContext& context, const std::vector<ShapedProduct>& products) {
  for (const ShapedProduct& shaped : products) {
    for (const BlockId copy : {shaped.product.a.copy, shaped.product.b.copy}) {
      if (!copy.valid()) continue;
      context.keep.push_back(copy);
      for (const BlockId stage : context.schedule.producers(copy)) {
        if (follows_product(context.schedule, stage, products)) context.keep.push_back(stage);
      }
    }
  }
}

// The first two products that fit into one kernel together with what is between them: their places. Errors: why the
// last pair does not.
Result<std::array<std::size_t, 2>> chain_products(SketchContext& context,
                                                  const std::vector<ShapedProduct>& products,
                                                  const GpuVariant& variant) {
  Result<void> last =
      error(Diag::kUnsupported, std::string("two products in one kernel in this program"));
  for (std::size_t i = 0; i < products.size(); ++i) {
    for (std::size_t j = i + 1; j < products.size(); ++j) {
      if (!is_chained(context.schedule, products[i], products[j])) continue;
      last = variant.online
                 ? gpu_chain_online(context, products[i], products[j])
                 : gpu_chain(context, products[i], products[j], variant.unit, variant.bulk);
      if (last.ok()) return std::array<std::size_t, 2>{i, j};
    }
  }
  return last.error();
}

// Below that a thread walks its row.
constexpr int64_t kLongSum = 1024;

bool has_long_sum(const schedule::Schedule& s, BlockId id) {
  int64_t n = 1;
  for (const Axis& axis : facts_of(s, id).reduce) n *= axis.extent;
  return n >= kLongSum;
}

// Axes of long sums that lie side by side become one; if it is asked for, long rows are cut into parts, whose blocks
// are returned.
std::vector<BlockId> prepare_sums(SketchContext& context, const GpuVariant& variant) {
  std::vector<BlockId> parts;
  for (const BlockId id : context.schedule.blocks()) {
    if (in_kernel(context.schedule, id)) continue;
    if (has_long_sum(context.schedule, id) && !can_gpu_tile(context.schedule, id))
      join_summed_axes(context, id);
    if (!variant.parts) continue;
    const Result<BlockId> made = gpu_parts(context, id);
    if (made.ok()) parts.push_back(*made);
  }
  return parts;
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
      {.name = "gpu+wgmma 128x128 split k",
       .threads_share_rows = false,
       .wgmma = {.warpgroups = 2, .columns = 128, .parts = true}},
      {.name = "gpu+wgmma 64x128 split k",
       .threads_share_rows = false,
       .wgmma = {.warpgroups = 1, .columns = 128, .parts = true}},
      {.name = "gpu+tensor+staged", .mapping = 1, .staged = true},
      {.name = "gpu+tensor+swizzle+staged", .mapping = 1, .staged = true, .swizzled = true},
      {.name = "gpu+tensor+chain", .mapping = 1, .chain = true},
      {.name = "gpu+wgmma+chain", .mapping = 1, .chain = true, .unit = WarpUnit::kWarpgroup},
      {.name = "gpu+wgmma+chain+tma",
       .mapping = 1,
       .chain = true,
       .unit = WarpUnit::kWarpgroup,
       .bulk = true},
      {.name = "gpu+chain", .mapping = 1, .chain = true, .unit = WarpUnit::kLanes},
      {.name = "gpu+tensor+split k",
       .threads_share_rows = false,
       .mapping = 1,
       .split_reduction = true,
       .swizzled = true},
      {.name = "gpu+tensor+split k+staged",
       .threads_share_rows = false,
       .mapping = 1,
       .split_reduction = true,
       .staged = true,
       .swizzled = true},
      // Bytes that cp.async brings as they lie.
      {.name = "gpu+tensor+across", .mapping = 1, .turns_bytes = false},
      {.name = "gpu+parts", .parts = true},
      {.name = "gpu+tensor+chain+online", .mapping = 1, .chain = true, .online = true},
  };
}

namespace {

Result<void> apply(SketchContext& context, const GpuVariant& variant) {
  const bool wants_wgmma = variant.wgmma.warpgroups > 0;
  const bool wants_warpgroups = wants_wgmma || variant.unit == WarpUnit::kWarpgroup;
  if (wants_warpgroups && !has_wgmma(context.target)) {
    return error(Diag::kUnsupported, std::string("wgmma for this target"));
  }
  for (const BlockId id : context.schedule.blocks()) {
    if (!variant.shared && must_share_operands(context.schedule, id)) {
      return error(Diag::kUnsupported, std::string("direct reads of a large product's operands"));
    }
  }
  std::vector<ShapedProduct> products = shape_products(context, variant);
  Variant stages;
  stages.inline_stages = variant.inline_stages;
  keep_operands(context, products);
  inline_stages(context, stages);
  // What one product hands on to the next is its epilogue; fetches are their own.
  std::erase_if(context.keep, [&](BlockId id) {
    return std::none_of(products.begin(), products.end(), [&](const ShapedProduct& shaped) {
      return shaped.product.a.copy == id || shaped.product.b.copy == id;
    });
  });
  std::size_t num_tensor = 0;
  if (variant.chain) {
    PRUNERC_TRY(const auto chained, chain_products(context, products, variant));
    for (const std::size_t i : {chained[1], chained[0]}) {
      products.erase(products.begin() + static_cast<std::ptrdiff_t>(i));
    }
    ++num_tensor;
    if (variant.unit == WarpUnit::kLanes) products.clear();
  }
  for (const ShapedProduct& shaped : products) {
    const Result<void> done =
        wants_wgmma ? gpu_wgmma(context, shaped.mapping, shaped.product, variant.wgmma)
                    : gpu_tensor(context, shaped.mapping, shaped.product, variant);
    // What keeps the shape of a product without its instruction would go through memory as that.
    if (wants_wgmma) PRUNERC_TRY_VOID(done);
    num_tensor += done.ok() ? 1 : 0;
  }
  if (variant.mapping > 0 && num_tensor == 0) {
    return error(Diag::kUnsupported, std::string("tensor instructions for this program"));
  }
  if (variant.inline_stages) inline_into_tiles(context, variant);
  const std::vector<BlockId> parts = prepare_sums(context, variant);
  if (variant.parts && parts.empty()) {
    return error(Diag::kUnsupported, std::string("parts of this program's sums"));
  }
  bool found_wgmma = wants_wgmma && num_tensor > 0;
  std::vector<BlockId> chain;
  const auto flush = [&] {
    if (!chain.empty()) schedule_chain(context, chain, variant);
    chain.clear();
  };
  for (const BlockId id : context.schedule.blocks()) {
    if (std::find(parts.begin(), parts.end(), id) != parts.end()) flush();
    if (find_block(context.program(), id) == nullptr || in_kernel(context.schedule, id)) continue;
    if (wants_wgmma && can_gpu_wgmma(context, id) && (flush(), wgmma(context, id, variant))) {
      found_wgmma = true;
      continue;
    }
    if (can_gpu_tile(context.schedule, id)) {
      flush();
      if (product_rows(context, id, variant) || combine_tiles(context, id, variant) ||
          tile(context, id, variant)) {
        continue;
      }
    }
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

}  // namespace

Result<void> apply_gpu_variant(SketchContext& context, const GpuVariant& variant) {
  if (!variant.online) return apply(context, variant);
  // Over the program's own tiles of keys, or over those that it is cut into.
  const schedule::Schedule before = context.schedule.fork();
  const std::vector<BlockId> keep = context.keep;
  if (apply(context, variant).ok()) return {};
  context.schedule = before;
  context.keep = keep;
  PRUNERC_TRY_VOID(tile_keys(context));
  return apply(context, variant);
}

}  // namespace prunerc::search
