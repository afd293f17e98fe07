#include "costmodel/feature/tag.h"

#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::IterVar;
using ir::Stmt;

// Places of the flags.
constexpr std::size_t kMax = 0;
constexpr std::size_t kMin = 1;
constexpr std::size_t kAdd = 2;
constexpr std::size_t kConv2d = 3;
constexpr std::size_t kWinograd = 4;
constexpr std::size_t kDepthwise = 5;
constexpr std::size_t kDense = 6;
constexpr std::size_t kSoftmax = 7;
constexpr std::size_t kBatchMatmul = 8;

bool is_one(Expr extent) {
  const auto* imm = extent.as<ir::IntImm>();
  return imm != nullptr && imm->value == 1;
}

/// Calls f with every part of a value, subscripts left out.
template <typename F>
void walk_data(Expr value, F&& f) {
  ir::walk(value, [&](Expr e) {
    f(e);
    return e.as<ir::Load>() == nullptr;
  });
}

std::vector<const ir::Load*> loads_of(Expr value) {
  std::vector<const ir::Load*> out;
  walk_data(value, [&](Expr e) {
    if (const auto* load = e.as<ir::Load>()) out.push_back(load);
  });
  return out;
}

/// Reads the kinds of sums of products off one program.
class Reader {
 public:
  void read(Stmt s) {
    if (!s.defined()) return;
    if (const auto* block = s.as<ir::Block>()) {
      const std::size_t outer = iters_.size();
      for (const IterVar& iter : block->iters) {
        if (!is_one(iter.extent)) iters_.push_back(&iter);
      }
      std::vector<const ir::Loop*> around;
      std::swap(around, loops_);
      read(block->body);
      loops_ = std::move(around);
      iters_.resize(outer);
    } else if (const auto* loop = s.as<ir::Loop>()) {
      if (!is_one(loop->extent)) loops_.push_back(loop);
      const std::size_t depth = loops_.size();
      read(loop->body);
      loops_.resize(is_one(loop->extent) ? depth : depth - 1);
    } else if (const auto* store = s.as<ir::Store>()) {
      with_loops(*store);
    } else {
      ir::for_each_child(
          s, [&](Stmt child) { read(child); }, [](Expr) {});
    }
  }

  TaskTag tag() const {
    TaskTag out = tag_;
    out[kSoftmax] = has_exp_of_difference_ && reduces_max_ && reduces_sum_ ? 1 : 0;
    out[kWinograd] = has_double_batch_ && reads_overlapping_tiles_ ? 1 : 0;
    return out;
  }

 private:
  using Iters = std::vector<const IterVar*>;

  // Loops inside a block, as those of a tensor instruction, or without any, are like its variables:
  // what does not move the result is reduced over.
  void with_loops(const ir::Store& store) {
    std::vector<IterVar> inner;
    for (const ir::Loop* loop : loops_) {
      const bool moves = std::any_of(store.indices.begin(), store.indices.end(), [&](Expr index) {
        return ir::mentions(index, loop->var->id);
      });
      inner.push_back({loop->var, loop->extent,
                       moves ? ir::IterKind::kSpatial : ir::IterKind::kReduce, Expr()});
    }
    const std::size_t outer = iters_.size();
    for (const IterVar& iter : inner) iters_.push_back(&iter);
    read_store(store);
    iters_.resize(outer);
  }

  bool reduces() const {
    return std::any_of(iters_.begin(), iters_.end(),
                       [](const IterVar* i) { return i->kind == ir::IterKind::kReduce; });
  }

  void read_store(const ir::Store& store) {
    bool is_reduction = false;
    walk_data(store.value, [&](Expr e) {
      const auto* load = e.as<ir::Load>();
      is_reduction = is_reduction || (load != nullptr && load->buffer == store.buffer);
    });
    is_reduction = is_reduction && reduces();
    const ir::BinaryNode* product = nullptr;  // the outermost of loaded values
    walk_data(store.value, [&](Expr e) {
      read_operation(e, is_reduction);
      if (e.kind() != ExprKind::kMul || product != nullptr) return;
      const ir::BinaryNode* sides = ir::as_binary(e);
      if (!loads_of(sides->lhs).empty() && !loads_of(sides->rhs).empty()) product = sides;
    });
    if (is_reduction && product != nullptr) {
      read_product(loads_of(product->lhs), loads_of(product->rhs));
    }
  }

  void read_operation(Expr e, bool is_reduction) {
    if (const auto* load = e.as<ir::Load>()) {
      for (const Expr index : load->indices) read_tiles(index);
    }
    if (const auto* call = e.as<ir::Call>(); call != nullptr) {
      has_exp_of_difference_ = has_exp_of_difference_ || (call->intrinsic == ir::Intrinsic::kExp &&
                                                          call->args[0].kind() == ExprKind::kSub);
    }
    if (e.dtype() == ir::DType::kI64) return;  // index arithmetic of a condition
    if (e.kind() == ExprKind::kMin) tag_[kMin] = 1;
    if (e.kind() == ExprKind::kMax) {
      tag_[kMax] = 1;
      reduces_max_ = reduces_max_ || is_reduction;
    }
    if (e.kind() == ExprKind::kAdd) {
      tag_[kAdd] = 1;
      reduces_sum_ = reduces_sum_ || is_reduction;
    }
  }

  // Iteration variables that make more than one step, in the subscript.
  Iters iters_in(Expr index) const {
    Iters out;
    ir::walk(index, [&](Expr e) {
      const auto* var = e.as<ir::Var>();
      if (var == nullptr) return true;
      for (const IterVar* iter : iters_) {
        if (iter->var->id == var->id) out.push_back(iter);
      }
      return true;
    });
    return out;
  }

  Iters iters_in(std::span<const ir::Load* const> loads) const {
    Iters out;
    for (const ir::Load* load : loads) {
      for (const Expr index : load->indices) {
        for (const IterVar* iter : iters_in(index)) {
          if (!has(out, iter)) out.push_back(iter);
        }
      }
    }
    return out;
  }

  static bool has(const Iters& iters, const IterVar* iter) {
    return std::find(iters.begin(), iters.end(), iter) != iters.end();
  }

  // Reduction variables that slide a window: they stand in a subscript beside a dimension of the
  // result that moves this factor alone.
  Iters window_of(std::span<const ir::Load* const> loads, const Iters& other) const {
    Iters out;
    for (const ir::Load* load : loads) {
      for (const Expr index : load->indices) {
        const Iters here = iters_in(index);
        const bool slides = std::any_of(here.begin(), here.end(), [&](const IterVar* i) {
          return i->kind == ir::IterKind::kSpatial && !has(other, i);
        });
        for (const IterVar* i : here) {
          if (slides && i->kind == ir::IterKind::kReduce) out.push_back(i);
        }
      }
    }
    return out;
  }

  void read_product(std::span<const ir::Load* const> lhs, std::span<const ir::Load* const> rhs) {
    const Iters left = iters_in(lhs), right = iters_in(rhs);
    Iters window = window_of(lhs, right);
    const Iters more = window_of(rhs, left);
    window.insert(window.end(), more.begin(), more.end());
    int batch = 0, own = 0, summed = 0;
    for (const IterVar* iter : iters_) {
      const bool both = has(left, iter) && has(right, iter);
      if (iter->kind == ir::IterKind::kSpatial) {
        (both ? batch : own) += 1;
      } else if (both && !has(window, iter)) {
        ++summed;
      }
    }
    if (!window.empty()) {
      tag_[batch > 0 && summed == 0 ? kDepthwise : kConv2d] = 1;
    } else if (summed > 0 && (own > 0 || batch == 0)) {
      tag_[batch > 0 ? kBatchMatmul : kDense] = 1;
      has_double_batch_ = has_double_batch_ || batch > 1;
    }
  }

  // t * c + u, where u goes beyond c.
  void read_tiles(Expr index) {
    ir::walk(index, [&](Expr e) {
      if (e.kind() != ExprKind::kAdd) return true;
      const ir::BinaryNode* sides = ir::as_binary(e);
      const Expr tile = sides->lhs;
      if (tile.kind() != ExprKind::kMul) return true;
      const auto* step = ir::as_binary(tile)->rhs.as<ir::IntImm>();
      if (step == nullptr || step->value < 2) return true;
      for (const IterVar* iter : iters_in(sides->rhs)) {
        const auto* extent = iter->extent.as<ir::IntImm>();
        const bool overlaps = extent != nullptr && extent->value > step->value;
        reads_overlapping_tiles_ = reads_overlapping_tiles_ || overlaps;
      }
      return true;
    });
  }

  Iters iters_;  // of the blocks around, outermost first, without those of one step
  std::vector<const ir::Loop*> loops_;  // inside the innermost block
  TaskTag tag_ = {};
  bool has_exp_of_difference_ = false;
  bool reduces_max_ = false, reduces_sum_ = false;
  bool has_double_batch_ = false;
  bool reads_overlapping_tiles_ = false;
};

}  // namespace

TaskTag task_tag(const ir::Program& program) {
  Reader reader;
  reader.read(program.root());
  return reader.tag();
}

}  // namespace prunerc::costmodel
