// Tiles of keys for rule "chain+online": attention over whole rows becomes attention over tiles.
//
//     for h, t { for s { m[h,t] = max(m, A[h,t,s]) } }
//     for h, t, s { P[h,t,s] = exp(A[h,t,s] - m[h,t]) }
//     for h, t { for s { l[h,t] += P[h,t,s] } }
//     for h, t, e { for s { O[h,t,e] += P[h,t,s]*V[h,s,e] } }
//   ~>
//     for h, t, c { for s { n[h,t,c] = max(n, A[h,t,c,s]) } }          for h, t { for c { m = max(m, n[h,t,c]) } }
//     for h, t, c, s { P[h,t,c,s] = exp(A[h,t,c,s] - n[h,t,c]) }       primitive `rescale`
//     for h, t, c { for s { l'[h,t,c] += P[h,t,c,s] } }                for h, t { for c { l += exp(n - m)*l' } }
//     for h, t, c, e { for s { O' += P[h,t,c,s]*V[h,c*B + s,e] } }     for h, t, e { for c { O += exp(n - m)*O' } }
//
// The axis is followed from the maximum through all intermediates: a variable or a dimension along it becomes two, a
// reduction leaves a partial result for each tile. Inputs stay as they lie. Axes of extent 1 are none.
#include "ir/analysis/accumulator.h"
#include "search/space/sketch_rule/gpu/gpu_chain.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::BufferId;
using ir::LoopId;
using schedule::Int;

/// Keys of a tile, the first that divide: as many as lanes have room for beside results of 128 columns.
constexpr int64_t kKeys[] = {64, 32, 16};
constexpr int64_t kLeastTiles = 2;

Result<void> refuse(const char* what) {
  return error(Diag::kUnsupported, std::string(what) + " in tiles of keys");
}

bool is_maximum(const ir::Block& block) {
  const std::optional<ir::Reducer> reducer = ir::match_reducer(block);
  return reducer && reducer->op == ir::ExprKind::kMax && is_reduction(block);
}

// As tensor instructions compute.
bool is_product(const ir::Block& block) {
  const std::optional<ir::Reducer> reducer = ir::match_reducer(block);
  return reducer && reducer->op == ir::ExprKind::kAdd && reducer->update.as<ir::Mul>() != nullptr;
}

// "(x0, x1, x2) -> (x0, x1//64, x1%64, x2)".
std::string cut_map(const char* name, std::size_t rank, std::size_t at, int64_t size) {
  std::string from, to;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::string here = name + std::to_string(i), by = std::to_string(size);
    const std::string separator = i > 0 ? ", " : "";
    from += separator + here;
    to += separator + (i == at ? here + "//" + by + ", " + here + "%" + by : here);
  }
  return "(" + from + ") -> (" + to + ")";
}

class KeyTiles {
 public:
  explicit KeyTiles(SketchContext& context) : s_(context.schedule) {}

  Result<void> run(BlockId maximum) {
    const BlockFacts facts = facts_of(s_, maximum);
    if (!is_maximum(*facts.block) || facts.reduce.size() != 1) return refuse("no maximum");
    const Axis& axis = facts.reduce[0];
    for (const int64_t keys : kKeys) {
      if (keys_ == 0 && axis.extent % keys == 0 && axis.extent / keys >= kLeastTiles) keys_ = keys;
    }
    if (keys_ == 0) return refuse("keys of this number");
    for (const BlockId reader : s_.consumers(maximum)) {
      if (is_maximum(block(reader))) return refuse("what has tiles");
    }
    extent_ = axis.extent;
    first_of_tiles_ = facts.block->writes[0].region.size();
    PRUNERC_TRY_VOID(follow(maximum, static_cast<std::size_t>(axis.iter)));
    PRUNERC_TRY_VOID(cut());
    return rescale(maximum);
  }

 private:
  const ir::Block& block(BlockId id) const { return *find_block(s_.program(), id); }

  // The axis is a variable of the block, and a dimension of what is read and written along it.
  Result<void> follow(BlockId id, std::size_t variable) {
    const auto [at, is_new] = blocks_.emplace(id, variable);
    if (!is_new) return at->second == variable ? Result<void>() : refuse("two axes of a block");
    const ir::Block& block = this->block(id);
    const ir::IterVar& iter = block.iters[variable];
    if (ir::constant_value(iter.extent) != extent_) return refuse("a part of the keys");
    for (const auto& accesses : {block.reads, block.writes}) {
      for (const ir::Access& access : accesses) {
        const ir::BufferRole role = s_.program().buffer(access.buffer).role;
        if (role == ir::BufferRole::kInput || !mentions(access, iter.var->id)) continue;
        if (role == ir::BufferRole::kOutput) return refuse("a result");
        std::optional<std::size_t> dim;
        for (std::size_t d = 0; d < access.region.size(); ++d) {
          if (!mentions(access.region[d].min, iter.var->id)) continue;
          if (dim || variable_at(block, access.buffer, d) != variable) return refuse("a subscript");
          dim = d;
        }
        if (!dim) return refuse("a subscript");
        PRUNERC_TRY_VOID(follow(access.buffer, *dim));
      }
    }
    return {};
  }

  Result<void> follow(BufferId buffer, std::size_t dim) {
    const auto [at, is_new] = buffers_.emplace(buffer, dim);
    if (!is_new) return at->second == dim ? Result<void>() : refuse("two axes of a buffer");
    for (const BlockId id : s_.blocks()) {
      const ir::Block& block = this->block(id);
      const auto is_here = [&](const ir::Access& access) { return access.buffer == buffer; };
      if (std::none_of(block.reads.begin(), block.reads.end(), is_here) &&
          std::none_of(block.writes.begin(), block.writes.end(), is_here)) {
        continue;
      }
      const std::optional<std::size_t> variable = variable_at(block, buffer, dim);
      if (!variable) return refuse("a subscript");
      PRUNERC_TRY_VOID(follow(id, *variable));
    }
    return {};
  }

  Result<void> cut() {
    const std::vector<BlockId> all = s_.blocks();  // what rfactor adds has tiles
    std::vector<BlockId> elementwise;
    for (const BlockId id : all) {
      const auto at = blocks_.find(id);
      if (at == blocks_.end()) continue;
      if (block(id).iters[at->second].kind == ir::IterKind::kReduce) {
        PRUNERC_TRY_VOID(cut_reduction(id));
      } else {
        elementwise.push_back(id);
      }
    }
    for (const BlockId id : elementwise) PRUNERC_TRY_VOID(cut_results(id));
    for (const BlockId id : elementwise) {
      const std::string map = cut_map("v", block(id).iters.size(), blocks_.at(id), keys_);
      const Result<std::vector<LoopId>> done = s_.transform_block_layout(id, map);
      if (!done.ok()) return done.error();
    }
    return {};
  }

  //     for h, t { for s { .. } }  ~>  for c, h, t { for s { partial } }  for h, t { for c { .. } }
  Result<void> cut_reduction(BlockId id) {
    const BlockFacts facts = facts_of(s_, id);
    if (!facts.trivial || facts.reduce.size() != 1) return refuse("sums of this shape");
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(facts.reduce[0].loop, {Int(-1), Int(keys_)}));
    std::vector<LoopId> order = {parts[0]};
    for (const Axis& axis : facts.spatial) order.push_back(axis.loop);
    order.push_back(parts[1]);
    PRUNERC_TRY_VOID(s_.reorder(order));
    const std::size_t rank = block(id).writes[0].region.size();
    const Result<BlockId> partial =
        s_.rfactor(parts[0], static_cast<int>(std::min(first_of_tiles_, rank)));
    return partial.ok() ? Result<void>() : partial.error();
  }

  // Buffers that the block writes, along the axis.
  Result<void> cut_results(BlockId id) {
    for (std::size_t w = 0; w < block(id).writes.size(); ++w) {
      const BufferId buffer = block(id).writes[w].buffer;
      const auto at = buffers_.find(buffer);
      if (at == buffers_.end()) continue;
      const std::size_t rank = s_.program().buffer(buffer).shape.size();
      const Result<std::vector<LoopId>> done =
          s_.transform_layout(id, static_cast<int>(w), cut_map("d", rank, at->second, keys_));
      if (!done.ok()) return done.error();
      buffers_.erase(at);
    }
    return {};
  }

  Result<void> rescale(BlockId maximum) {
    bool has_weights = false;
    for (const BlockId reader : s_.consumers(maximum)) {
      if (blocks_.count(reader) == 0 || is_reduction(block(reader))) continue;
      PRUNERC_TRY_VOID(s_.rescale(reader));
      has_weights = true;
    }
    return has_weights ? Result<void>() : refuse("no weights");
  }

  schedule::Schedule& s_;
  int64_t keys_ = 0, extent_ = 0;  // of a tile, of all
  std::size_t first_of_tiles_ = 0;
  std::map<BlockId, std::size_t> blocks_;    // variables along the axis
  std::map<BufferId, std::size_t> buffers_;  // dimensions along it
};

// "(d0, d1, d2) -> (d1, d2)": dimensions longer than 1; nullopt if these are none, or all.
std::optional<std::string> long_dims_map(const ir::Buffer& buffer) {
  std::string from, to;
  std::size_t num_long = 0;
  for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
    const std::string here = "d" + std::to_string(d);
    from += (d > 0 ? ", " : "") + here;
    if (ir::constant_value(buffer.shape[d]) == 1) continue;
    to += (num_long++ > 0 ? ", " : "") + here;
  }
  if (num_long == 0 || num_long == buffer.shape.size()) return std::nullopt;
  return "(" + from + ") -> (" + to + ")";
}

// Blocks and intermediates without axes of extent 1, which simplification makes constants of in some blocks only.
void drop_units(SketchContext& context) {
  schedule::Schedule& s = context.schedule;
  for (const BlockId id : s.blocks()) static_cast<void>(drop_unit_axes(context, id).ok());
  for (const BlockId id : s.blocks()) {
    const std::size_t num_writes = find_block(s.program(), id)->writes.size();
    for (std::size_t w = 0; w < num_writes; ++w) {
      const BufferId written = find_block(s.program(), id)->writes[w].buffer;
      const ir::Buffer& buffer = s.program().buffer(written);
      if (buffer.role != ir::BufferRole::kIntermediate) continue;
      const std::optional<std::string> map = long_dims_map(buffer);
      if (map) static_cast<void>(s.transform_layout(id, static_cast<int>(w), *map).ok());
    }
  }
}

}  // namespace

Result<void> tile_keys(SketchContext& context) {
  schedule::Schedule& s = context.schedule;
  const std::vector<BlockId> all = s.blocks();
  const auto count = [&](bool (*is_such)(const ir::Block&)) {
    return std::count_if(all.begin(), all.end(),
                         [&](BlockId id) { return is_such(*find_block(s.program(), id)); });
  };
  if (count(is_maximum) == 0) return refuse("what has no maximum");
  if (count(is_product) < 2) return refuse("what has no two products");
  const schedule::Schedule whole = s.fork();
  drop_units(context);
  const schedule::Schedule before = s.fork();
  for (const BlockId id : s.blocks()) {
    if (KeyTiles(context).run(id).ok()) return {};
    s = before;
  }
  s = whole;
  return refuse("this program");
}

}  // namespace prunerc::search
