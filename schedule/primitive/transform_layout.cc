// transform_layout(@P, 0, "(i) -> (i // 4, i % 4)", [0]): a buffer is laid out by an injective map.
// Needs: an intermediate of constant shape, accessed inside of blocks only; to pad with a value,
// one writer in a canonical nest, one store (DESIGN.md, D23). After: every access is moved alike.
//   for i in 10 { block @P [v: S(10) = i] { T[v] = X[v] } }  .. Y[v] = T[v] ..
// ~>
//   for ax0 in 3 { for ax1 in 4 { block @P [v0: S(3) = ax0, v1: S(4) = ax1] {
//     T[v0, v1] = select(v0*4 + v1 < 10, X[v0*4 + v1], 0f32) } } }  .. Y[v] = T[v // 4, v % 4] ..
#include "ir/arith/simplify.h"
#include "ir/tensor/index_map.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct LayoutArgs {
  BlockId block;
  int64_t index;
  std::string map;
  std::vector<int64_t> pad;
};

struct LayoutPlan {
  Program program;
  std::vector<Output> outputs;
};

class LayoutPlanner {
 public:
  explicit LayoutPlanner(const Program& program) : program_(program), b_(program), flow_(program) {}

  Result<LayoutPlan> plan(const LayoutArgs& args);

 private:
  Error unfit(std::string what) const {
    return error(Diag::kLayoutForm, std::string(program_.buffer(buffer_).name), std::move(what));
  }
  Result<void> check_buffer(const LayoutArgs& args);
  Result<void> check_inside_blocks();
  Result<void> check_padder();
  void reshape();
  Stmt padded_nest(const LeafBlock& writer, Expr pad, std::vector<Output>* outputs);

  const Program& program_;
  IrBuilder b_;
  Dataflow flow_;
  BufferId buffer_;
  IndexMap map_;
  Layout layout_;
  std::size_t writer_ = 0;
};

Result<void> LayoutPlanner::check_buffer(const LayoutArgs& args) {
  PRUNERC_TRY(const Site site, find_block(program_, args.block));
  PRUNERC_TRY(buffer_, accessed_buffer(*site.block(), site.block()->writes, args.index));
  const Buffer& buffer = program_.buffer(buffer_);
  if (buffer.role != BufferRole::kIntermediate) {
    return unfit("it is a parameter, whose layout is the caller's; cache_read or cache_write it");
  }
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer);
  if (!shape) return unfit("its shape is not constant");
  PRUNERC_TRY(map_, IndexMap::parse(args.map));
  PRUNERC_TRY(layout_, make_layout(map_, *shape));
  return check_inside_blocks();
}

Result<void> LayoutPlanner::check_inside_blocks() {
  if (accessed_outside_blocks(program_, buffer_)) {
    return unfit("it is accessed outside of blocks");
  }
  for (const LeafBlock& leaf : flow_.blocks()) {
    for (const Attr& attr : leaf.block->attrs) {
      const bool aligns = attr.key.substr(0, kAlignFactor.size()) == kAlignFactor ||
                          attr.key.substr(0, kSwizzle.size()) == kSwizzle;
      if (aligns && writes(*leaf.block, buffer_)) return unfit("its rows are aligned already");
    }
    if (!reads(*leaf.block, buffer_) && !writes(*leaf.block, buffer_)) continue;
    if (leaf_blocks(leaf.block->body).empty()) continue;
    return error(Diag::kBlockNested, leaf.block->id);
  }
  return {};
}

// Can the writer run over the whole image?
Result<void> LayoutPlanner::check_padder() {
  if (layout_.whole.empty()) return unfit("the map has no inverse, so that no value can be padded");
  const std::vector<std::size_t> writers = flow_.writers(buffer_);
  if (writers.size() != 1) return unfit("a padded buffer needs one writer");
  writer_ = writers[0];
  const LeafBlock& leaf = flow_[writer_];
  const Block& block = *leaf.block;
  const std::string fault = canonical_nest_fault(program_, leaf);
  if (!fault.empty()) return unfit("its writer cannot pad: " + fault);
  const Store* store = block.body.as<Store>();
  if (store == nullptr || block.init.defined() || reads(block, buffer_)) {
    return unfit("its writer cannot pad: it is not one store");
  }
  if (block.writes.size() != 1 || block.iters.size() != store->indices.size()) {
    return unfit("its writer cannot pad: it does not store to its variables");
  }
  for (const IterVar& iter : block.iters) {
    const bool stored = std::any_of(store->indices.begin(), store->indices.end(), [&](Expr e) {
      const Var* var = e.as<Var>();
      return var != nullptr && var->id == iter.var->id;
    });
    if (!stored || iter.kind != IterKind::kSpatial) {
      return unfit("its writer cannot pad: it does not store to its variables");
    }
  }
  // Every element of the buffer, as the image is larger than the buffer by the padding alone.
  for (std::size_t d = 0; d < store->indices.size(); ++d) {
    for (const IterVar& iter : block.iters) {
      if (!mentions(store->indices[d], iter.var->id)) continue;
      if (constant(iter.extent) != layout_.domain[d]) {
        return unfit("its writer cannot pad: it does not write every element");
      }
    }
  }
  return {};
}

void LayoutPlanner::reshape() {
  Buffer buffer = program_.buffer(buffer_);
  std::vector<Expr> shape;
  for (int64_t extent : layout_.shape) shape.push_back(b_.int_imm(extent));
  buffer.shape = b_.copy(shape);
  b_.set_buffer(buffer);
}

Stmt LayoutPlanner::padded_nest(const LeafBlock& writer, Expr pad, std::vector<Output>* outputs) {
  const Block& block = *writer.block;
  const Store& store = *block.body.as<Store>();
  NewNest nest = make_nest(b_, block.name, layout_.shape, [&](std::span<const Expr> vars) {
    VarRanges ranges;
    for (std::size_t d = 0; d < vars.size(); ++d) {
      ranges.bind(vars[d].as<Var>(), b_.int_imm(layout_.shape[d]));
    }
    const std::vector<Expr> element = invert_layout(b_, map_, layout_, vars, ranges);
    VarMap values;
    Expr inside;
    for (std::size_t d = 0; d < element.size(); ++d) {
      values[store.indices[d].as<Var>()->id] = element[d];
      if (layout_.whole[d] == layout_.domain[d]) continue;
      const Expr below = b_.lt(element[d], b_.int_imm(layout_.domain[d]));
      inside = conjoin(b_, inside, below);
    }
    const Expr value = substitute(b_, store.value, values);
    return b_.store(buffer_, vars, inside.defined() ? b_.select(inside, value, pad) : value);
  });
  outputs->assign(nest.outputs.begin() + 1, nest.outputs.end());
  // The block keeps its id.
  StmtFn rename = [&](Stmt s) -> Stmt {
    const Block* made = s.as<Block>();
    if (made == nullptr) return map_children(b_, s, rename, [](Expr e) { return e; });
    Block copy = *made;
    copy.id = block.id;
    copy.attrs = block.attrs;
    return b_.block(copy);
  };
  return rename(nest.stmt);
}

// Every loop that stands for a tensor intrinsic still computes it.
Result<void> check_tensors(const Program& program) {
  Result<void> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        const std::optional<std::string_view> name =
            loop == nullptr ? std::nullopt : tensor_of(*loop);
        if (!name || !out.ok()) return out.ok();
        const Result<const TensorIntrinsic*> tensor = find_tensor(*name);
        if (!tensor.ok()) {
          out = tensor.error();
          return false;
        }
        const Site site = find_loop_in(program.root(), loop->id);
        IrBuilder b(program);
        const Result<TensorMatch> match =
            match_tensor(b, *loop, **tensor, ranges_at(program, site));
        if (!match.ok()) out = match.error();
        return out.ok();
      },
      [](Expr) {});
  return out;
}

Result<LayoutPlan> LayoutPlanner::plan(const LayoutArgs& args) {
  PRUNERC_TRY_VOID(check_buffer(args));
  if (args.pad.size() > 1) return unfit("there is one value to pad with");
  const DType dtype = program_.buffer(buffer_).dtype;
  if (!args.pad.empty() && !is_float(dtype) && wrap_to(dtype, args.pad[0]) != args.pad[0]) {
    return unfit("it cannot hold " + std::to_string(args.pad[0]) + ", which it is padded with");
  }
  const bool pads = layout_.pads && !args.pad.empty();
  if (pads) PRUNERC_TRY_VOID(check_padder());
  LayoutPlan out;
  reshape();
  const IndexFn moved = [&](std::span<const Expr> indices, const VarRanges& ranges) {
    std::vector<Expr> to = map_.apply(b_, indices);
    for (Expr& e : to) e = simplify(b_, e, ranges);
    return to;
  };
  Stmt root = program_.root();
  if (pads) {
    const LeafBlock& writer = flow_[writer_];
    const Expr pad = is_float(dtype) ? b_.constant(static_cast<double>(args.pad[0]), dtype)
                                     : b_.int_imm(args.pad[0], dtype);
    const Stmt top = top_of(writer);
    const Stmt nest = padded_nest(writer, pad, &out.outputs);
    // The writer goes last: its new store has its place already.
    StmtFn each = [&](Stmt s) -> Stmt {
      if (s.is(top)) return nest;
      if (s.as<Seq>() != nullptr) return map_children(b_, s, each, [](Expr e) { return e; });
      return move_accesses(b_, s, buffer_, buffer_, moved);
    };
    root = each(root);
  } else {
    root = move_accesses(b_, root, buffer_, buffer_, moved);
  }
  out.program = b_.finish(root);
  PRUNERC_TRY_VOID(check_tensors(out.program));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kTransformLayout>(const Program& program, const Call& call) {
  PRUNERC_TRY(const LayoutPlan plan, LayoutPlanner(program).plan({call.block(0), call.integer(1),
                                                                  call.text(2), call.integers(3)}));
  return Applied{plan.program, plan.outputs, {}};
}

}  // namespace prunerc::schedule
