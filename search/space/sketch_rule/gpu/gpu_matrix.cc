// From any sum of products to a padded matrix product:
//
//     for oh, ow, co, kh, kw, ci { Y[oh, ow, co] += X[oh + kh, ow + kw, ci]*F[kh, kw, ci, co] }
//     for oh, ow, co { Z[oh, ow, co] = relu(Y[oh, ow, co]) }
//   ~>  to_matrix_product
//     for m, k { A[m, k] = X[m // W + k // (KW*CI), ..] }      for k, n { B[k, n] = F[..] }
//     for m, n, k { C[m, n] += A[m, k]*B[k, n] }      for .. { Y[..] = C[..] }      Z as it was
//   ~>  pad_operands
//     for m, k { A'[m, k] = select(m < M && k < K, X[..], 0) }  the same for B
//     for m, n, k { C'[m, n] += A'[m, k]*B'[k, n] }
//     for m, n { Z[m // W, m % W, n] = relu(C'[m, n]) }
//
// The copies are what is fetched into shared memory later: nothing of them lies in global memory.
#include "search/space/sketch_rule/gpu/gpu_matrix.h"

#include "ir/visit.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;
using schedule::Int;
using schedule::TensorMapping;

constexpr std::size_t kOperandA = 1, kOperandB = 2;  // of TensorIntrinsic::operands
constexpr std::size_t kM = 0, kN = 1, kK = 2;        // of its variables

int64_t extent_of(const ir::IterVar& iter) {
  const auto* extent = iter.extent.as<ir::IntImm>();
  return extent != nullptr ? extent->value : 1;
}

// "(v3*8 + v4)" for variables fused in this order; names[i] is that of the block's variable i.
std::string fused_text(const ir::Block& block, const std::vector<int>& iters,
                       const std::vector<std::string>& names) {
  std::string out;
  for (const int i : iters) {
    const auto at = static_cast<std::size_t>(i);
    const std::string by = std::to_string(extent_of(block.iters[at]));
    out = out.empty() ? names[at] : "(" + out + ")*" + by + " + " + names[at];
  }
  return out;
}

std::string map_text(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  const auto list = [](const std::vector<std::string>& items) {
    std::string out;
    for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
    return "(" + out + ")";
  };
  return list(from) + " -> " + list(to);
}

// The block as it came, and what the mapping makes of its variables.
class Shaping {
 public:
  Shaping(SketchContext& context, BlockId id, const TensorMapping& mapping, bool turns_bytes)
      : s_(context.schedule), id_(id), mapping_(mapping), turns_bytes_(turns_bytes) {}

  Result<MatrixProduct> run() {
    PRUNERC_TRY(product_.tensor, ir::find_tensor(mapping_.intrinsic));
    product_.block = id_;
    const ir::Block* block = find_block(s_.program(), id_);
    if (block == nullptr || mapping_.fused.size() != 3) {
      return error(Diag::kUnsupported, std::string("this block as a matrix product"));
    }
    for (std::size_t i = 0; i < block->iters.size(); ++i) names_.push_back("v" + std::to_string(i));
    for (std::size_t t = 0; t < 3; ++t) product_.extents[t] = mapping_.extents[t];
    const std::vector<ir::Access> reads(block->reads.begin(), block->reads.end());
    const ir::Access written = block->writes[0];
    PRUNERC_TRY_VOID(shape_operand(reads[at(kOperandA)], {kM, kK}, &product_.a));
    PRUNERC_TRY_VOID(shape_operand(reads[at(kOperandB)], {kK, kN}, &product_.b));
    PRUNERC_TRY_VOID(shape_result(written));
    PRUNERC_TRY_VOID(fuse());
    return std::move(product_);
  }

 private:
  std::size_t at(std::size_t operand) const {
    return static_cast<std::size_t>(mapping_.reads[operand]);
  }
  const ir::Block& block() const { return *find_block(s_.program(), id_); }
  const ir::IterVar& iter(int i) const { return block().iters[static_cast<std::size_t>(i)]; }

  bool is_fused(std::size_t t) const { return mapping_.fused[t].size() > 1; }

  // Does some variable of group t move the subscript?
  bool moves(ir::Expr index, std::size_t t) const {
    const std::vector<int>& group = mapping_.fused[t];
    return std::any_of(group.begin(), group.end(),
                       [&](int i) { return mentions(index, iter(i).var->id); });
  }

  // Subscripts that are variables of the block, each once, or constants; those of both groups are
  // among them, and not fused.
  bool is_matrix(const ir::Access& access, const std::array<std::size_t, 2>& groups) const {
    std::vector<ir::VarId> seen;
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      const ir::Expr subscript = access.region[d].min;
      const auto* var = subscript.as<ir::Var>();
      if (var == nullptr && subscript.as<ir::IntImm>() == nullptr) return false;
      if (var == nullptr) continue;
      // Of a sum, as c*8 + s where c is 0, regions say s alone.
      if (!variable_at(block(), access.buffer, d)) return false;
      if (std::find(seen.begin(), seen.end(), var->id) != seen.end()) return false;
      seen.push_back(var->id);
    }
    return std::all_of(groups.begin(), groups.end(), [&](std::size_t t) {
      const ir::VarId var = iter(mapping_.fused[t][0]).var->id;
      return !is_fused(t) && std::find(seen.begin(), seen.end(), var) != seen.end();
    });
  }

  // The two groups, that of the last subscript last.
  std::array<std::size_t, 2> in_order(const ir::Access& access,
                                      std::array<std::size_t, 2> groups) const {
    std::size_t last[2] = {0, 0};
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      for (std::size_t g = 0; g < 2; ++g) {
        if (moves(access.region[d].min, groups[g])) last[g] = d;
      }
    }
    if (last[0] > last[1]) std::swap(groups[0], groups[1]);
    return groups;
  }

  // Elements that follow each other in memory and in the matrix, from a multiple of them on.
  int64_t widest(const ir::Access& access, std::size_t last_group) const {
    const int innermost = mapping_.fused[last_group].back();
    if (!is_contiguous(access, iter(innermost).var->id)) return 1;
    const ir::Buffer& buffer = s_.program().buffer(access.buffer);
    const auto* row = buffer.shape.back().as<ir::IntImm>();
    const int64_t run = std::gcd(row != nullptr ? row->value : 1, extent_of(iter(innermost)));
    return run & -run;
  }

  // [outside.., first group, second group] in the block's variables, those outside that the
  // access moves with.
  std::vector<std::string> outputs(const ir::Access& access,
                                   const std::array<std::size_t, 2>& groups) const {
    std::vector<std::string> out;
    for (const int i : mapping_.outer) {
      if (mentions(access, iter(i).var->id)) out.push_back(names_[static_cast<std::size_t>(i)]);
    }
    for (const std::size_t t : groups)
      out.push_back(fused_text(block(), mapping_.fused[t], names_));
    return out;
  }

  int index_of(ir::BufferId buffer) const {
    const std::span<const ir::Access> reads = block().reads;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (reads[i].buffer == buffer) return static_cast<int>(i);
    }
    return -1;
  }

  bool is_computed(ir::BufferId buffer) const {
    return s_.program().buffer(buffer).role != ir::BufferRole::kInput;
  }

  Result<void> shape_operand(const ir::Access& access, std::array<std::size_t, 2> groups,
                             MatrixOperand* out) {
    groups = in_order(access, groups);
    out->widest = widest(access, groups[1]);
    // Instructions take bytes along k only, and nothing turns them but their fetch.
    out->turns = turns_bytes_ && groups[1] != kK &&
                 ir::byte_size(s_.program().buffer(access.buffer).dtype) == 1;
    if (out->turns) std::swap(groups[0], groups[1]);
    out->k_last = groups[1] == kK;
    // What computes the operand is inlined into the copy, never into the product.
    if (!out->turns && is_matrix(access, groups) && !is_computed(access.buffer)) return {};
    const std::vector<std::string> to = outputs(access, groups);
    PRUNERC_TRY(out->copy, s_.reindex_cache_read(id_, index_of(access.buffer), ir::Scope::kGlobal,
                                                 map_text(names_, to)));
    if (!is_fused(groups[0]) && !is_fused(groups[1])) return {};
    // The copy's variables are those of the block that the access moves with.
    std::vector<std::string> from;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (mentions(access, iter(static_cast<int>(i)).var->id)) from.push_back(names_[i]);
    }
    PRUNERC_TRY_VOID(s_.transform_block_layout(out->copy, map_text(from, to)));
    return {};
  }

  Result<void> shape_result(const ir::Access& access) {
    const std::array<std::size_t, 2> groups = in_order(access, {kM, kN});
    if (is_matrix(access, groups)) return {};
    const std::vector<std::string> to = outputs(access, groups);
    PRUNERC_TRY_VOID(s_.reindex_cache_write(id_, 0, ir::Scope::kGlobal, map_text(names_, to)));
    std::vector<std::string> from;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!mentions(access, iter(static_cast<int>(i)).var->id)) continue;
      from.push_back(names_[i]);
      product_.result_extents.push_back(extent_of(iter(static_cast<int>(i))));
    }
    product_.result_map = map_text(from, to);
    return {};
  }

  Result<void> fuse() {
    std::vector<std::string> to;
    for (const int i : mapping_.outer) to.push_back(names_[static_cast<std::size_t>(i)]);
    for (const std::vector<int>& group : mapping_.fused) {
      to.push_back(fused_text(block(), group, names_));
    }
    std::vector<ir::LoopId> loops = s_.loops_of(id_);
    if (to != names_) {
      PRUNERC_TRY(loops, s_.transform_block_layout(id_, map_text(names_, to)));
    }
    const std::size_t num_outer = mapping_.outer.size();
    if (loops.size() != num_outer + 3) {
      return error(Diag::kUnsupported, std::string("loops of another shape"));
    }
    for (std::size_t i = 0; i < num_outer; ++i) {
      const bool spatial = block().iters[i].kind == ir::IterKind::kSpatial;
      (spatial ? product_.spatial : product_.reduce).push_back(loops[i]);
    }
    product_.m = loops[num_outer + kM];
    product_.n = loops[num_outer + kN];
    product_.k = loops[num_outer + kK];
    return {};
  }

  schedule::Schedule& s_;
  BlockId id_;
  const TensorMapping& mapping_;
  bool turns_bytes_;
  std::vector<std::string> names_;  // of the block's variables, in maps
  MatrixProduct product_;
};

class Padding {
 public:
  Padding(SketchContext& context, const TensorMapping& mapping, MatrixProduct* product)
      : context_(context),
        s_(context.schedule),
        num_outer_(mapping.outer.size()),
        product_(*product) {}

  Result<void> run(const std::array<Int, 3>& multiples) {
    std::vector<Int> all(num_outer_, Int(1));
    all.insert(all.end(), multiples.begin(), multiples.end());
    PRUNERC_TRY(const std::vector<BlockId> copies, s_.pad_einsum(product_.block, all));
    const bool keeps_a = copies.size() == 2;
    if (copies.size() != 3 && !keeps_a) {
      return error(Diag::kUnsupported, std::string("these operands"));
    }
    for (MatrixOperand* operand : {&product_.a, &product_.b}) {
      if (operand == &product_.a && keeps_a) continue;
      const BlockId before = operand->copy;
      operand->copy = copy_of(operand == &product_.a ? kM : kN, copies);
      operand->rank = static_cast<int>(find_block(s_.program(), operand->copy)->iters.size());
      if (before.valid()) PRUNERC_TRY_VOID(s_.compute_inline(before));
    }
    product_.out = copies.back();
    return leave_through_consumer();
  }

 private:
  const ir::Block& block(BlockId id) const { return *find_block(s_.program(), id); }

  // The copy of the operand that moves with the product's variable t.
  BlockId copy_of(std::size_t t, const std::vector<BlockId>& copies) const {
    const ir::Block& block = this->block(product_.block);
    const ir::VarId var = block.iters[num_outer_ + t].var->id;
    for (const ir::Access& access : block.reads) {
      if (!mentions(access, var)) continue;
      for (const BlockId copy : copies) {
        if (this->block(copy).writes[0].buffer == access.buffer) return copy;
      }
    }
    return copies[0];
  }

  // Positions among the reader's variables of those along m and n.
  bool find_places(BlockId reader) {
    const ir::Block& writer = block(product_.block);
    const ir::Access& written = writer.writes[0];
    for (const std::size_t t : {kM, kN}) {
      std::size_t dim = 0;
      while (dim < written.region.size() &&
             !mentions(written.region[dim].min, writer.iters[num_outer_ + t].var->id)) {
        ++dim;
      }
      const std::optional<std::size_t> place = variable_at(block(reader), written.buffer, dim);
      if (!place) return false;
      (t == kM ? product_.out_m : product_.out_n) = *place;
    }
    return true;
  }

  bool is_elementwise(BlockId id) const {
    const BlockFacts facts = facts_of(s_, id);
    return facts.block != nullptr && facts.trivial && facts.reduce.empty() &&
           facts.block->writes.size() == 1 && !facts.block->init.defined();
  }

  // Of the consumer's variables those of the result, fused as the result's are.
  Result<void> fuse_consumer(BlockId consumer) {
    if (product_.result_map.empty()) return {};
    std::vector<int64_t> extents;
    for (const ir::IterVar& iter : block(consumer).iters) extents.push_back(extent_of(iter));
    if (extents != product_.result_extents) {
      return error(Diag::kUnsupported, std::string("a consumer of another shape"));
    }
    PRUNERC_TRY_VOID(s_.transform_block_layout(consumer, product_.result_map));
    return {};
  }

  Result<void> leave_through_consumer() {
    const std::vector<BlockId> readers = s_.consumers(product_.out);
    if (readers.size() == 1 && is_elementwise(readers[0]) && !context_.keeps(readers[0])) {
      const schedule::Schedule before = s_.fork();
      const bool fits = s_.compute_inline(product_.out).ok() && fuse_consumer(readers[0]).ok() &&
                        find_places(readers[0]);
      if (fits) {
        product_.out = readers[0];
        return {};
      }
      s_ = before;
    }
    if (find_places(product_.out)) return {};
    return error(Diag::kUnsupported, std::string("results of another shape"));
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  std::size_t num_outer_;
  MatrixProduct& product_;
};

}  // namespace

std::vector<TensorMapping> matrix_mappings(const schedule::Schedule& schedule, BlockId block,
                                           std::string_view intrinsic, std::size_t most) {
  const Result<std::vector<TensorMapping>> all =
      schedule::tensor_mappings(schedule.program(), block, intrinsic);
  if (!all.ok()) return {};
  std::vector<TensorMapping> out(
      all->begin(), all->begin() + static_cast<std::ptrdiff_t>(std::min(most, all->size())));
  return out;
}

Result<MatrixProduct> to_matrix_product(SketchContext& context, BlockId block,
                                        const TensorMapping& mapping, bool turns_bytes) {
  return Shaping(context, block, mapping, turns_bytes).run();
}

Result<void> pad_operands(SketchContext& context, const TensorMapping& mapping,
                          const std::array<Int, 3>& multiples, MatrixProduct* product) {
  return Padding(context, mapping, product).run(multiples);
}

std::optional<std::size_t> variable_at(const ir::Block& block, ir::BufferId buffer,
                                       std::size_t dim) {
  std::optional<std::size_t> place;
  const auto note = [&](ir::BufferId accessed, std::span<const ir::Expr> indices) {
    const auto* var =
        accessed == buffer && dim < indices.size() ? indices[dim].as<ir::Var>() : nullptr;
    for (std::size_t i = 0; var != nullptr && i < block.iters.size(); ++i) {
      if (block.iters[i].var->id == var->id) place = i;
    }
  };
  ir::walk(
      block.body,
      [&](ir::Stmt s) {
        if (const auto* store = s.as<ir::Store>()) note(store->buffer, store->indices);
        return true;
      },
      [&](ir::Expr top) {
        ir::walk(top, [&](ir::Expr e) {
          if (const auto* load = e.as<ir::Load>()) note(load->buffer, load->indices);
          return true;
        });
      });
  return place;
}

int read_index(const schedule::Schedule& schedule, BlockId block, BlockId copy) {
  const ir::Block* reader = find_block(schedule.program(), block);
  const ir::Block* writer = find_block(schedule.program(), copy);
  for (std::size_t i = 0; reader != nullptr && writer != nullptr && i < reader->reads.size(); ++i) {
    if (reader->reads[i].buffer == writer->writes[0].buffer) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace prunerc::search
