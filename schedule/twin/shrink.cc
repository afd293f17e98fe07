#include "schedule/twin/shrink.h"

#include "ir/arith/interval.h"
#include "ir/map.h"
#include "ir/visit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

constexpr int kMaxRounds = 8;

struct LoopFacts {
  const Loop* loop = nullptr;
  int64_t extent = 1;
  std::size_t parent = 0;  // union-find: loops of one extent
};

// One index of one access.
struct Index {
  BufferId buffer;
  std::size_t dim = 0;
  Expr index;
  int loop = -1;  // the loop whose variable, plus a constant, it is; -1: compound
};

class Shrinker {
 public:
  Shrinker(const Program& base, const LoopExtents& wanted, const LoopExtents& others)
      : base_(base), wanted_(wanted), others_(others), b_(base) {}

  Result<Program> run() {
    PRUNERC_TRY_VOID(collect(base_.root()));
    unite();
    PRUNERC_TRY_VOID(choose());
    PRUNERC_TRY_VOID(resize_buffers());
    return b_.finish(rewrite(base_.root()));
  }

 private:
  Result<void> collect(Stmt s);
  void collect(Expr e);
  void add_access(BufferId buffer, std::span<const Expr> indices);
  int simple_loop(Expr index) const;
  std::size_t root_of(std::size_t loop);
  void unite();
  Result<void> choose();
  int64_t& extent_of(std::size_t loop) { return chosen_[root_of(loop)]; }
  std::optional<Interval> range(Expr e, bool is_new);
  int64_t drop(Expr e);
  bool is_at_start(const BinaryNode& n, int64_t limit);
  Result<void> resize_buffers();
  Expr rewrite(Expr e);
  Stmt rewrite(Stmt s);
  Stmt rewrite_block(const Block& old);
  std::vector<Access> rewrite(std::span<const Access> accesses);

  const Program& base_;
  const LoopExtents& wanted_;
  const LoopExtents& others_;
  IrBuilder b_;
  std::vector<LoopFacts> loops_;
  std::unordered_map<VarId, std::size_t> loop_of_;  // of loop variables
  std::unordered_map<VarId, Expr> bindings_;        // of iteration variables
  std::vector<Index> indices_;
  std::vector<int64_t> chosen_;  // by root of a class
};

Result<void> Shrinker::collect(Stmt s) {
  if (!s.defined()) return {};
  if (const Loop* loop = s.as<Loop>()) {
    const IntImm* extent = loop->extent.as<IntImm>();
    if (extent == nullptr) return error(Diag::kUnsupported, "a twin of extents that vary");
    loop_of_[loop->var->id] = loops_.size();
    loops_.push_back({loop, extent->value, loops_.size()});
  }
  if (const Block* block = s.as<Block>()) {
    for (const IterVar& iter : block->iters) bindings_[iter.var->id] = iter.binding;
  }
  if (const Store* store = s.as<Store>()) {
    add_access(store->buffer, store->indices);
  }
  Result<void> done;
  for_each_child(
      s,
      [&](Stmt child) {
        if (done.ok()) done = collect(child);
      },
      [&](Expr e) { collect(e); });
  return done;
}

void Shrinker::collect(Expr e) {
  walk(e, [&](Expr x) {
    if (const Load* load = x.as<Load>()) add_access(load->buffer, load->indices);
    return true;
  });
}

int Shrinker::simple_loop(Expr index) const {
  if (const Add* add = index.as<Add>(); add != nullptr && add->rhs.as<IntImm>() != nullptr) {
    index = add->lhs;
  } else if (const Sub* sub = index.as<Sub>(); sub != nullptr && sub->rhs.as<IntImm>() != nullptr) {
    index = sub->lhs;
  }
  const Var* v = index.as<Var>();
  while (v != nullptr) {
    if (const auto at = loop_of_.find(v->id); at != loop_of_.end()) {
      return static_cast<int>(at->second);
    }
    const auto bound = bindings_.find(v->id);
    v = bound != bindings_.end() ? bound->second.as<Var>() : nullptr;
  }
  return -1;
}

void Shrinker::add_access(BufferId buffer, std::span<const Expr> indices) {
  for (std::size_t d = 0; d < indices.size(); ++d) {
    indices_.push_back({buffer, d, indices[d], simple_loop(indices[d])});
  }
}

std::size_t Shrinker::root_of(std::size_t loop) {
  while (loops_[loop].parent != loop) loop = loops_[loop].parent;
  return loop;
}

void Shrinker::unite() {
  for (const Index& a : indices_) {
    for (const Index& other : indices_) {
      if (a.loop < 0 || other.loop < 0 || a.buffer != other.buffer || a.dim != other.dim) continue;
      const std::size_t x = root_of(static_cast<std::size_t>(a.loop));
      const std::size_t y = root_of(static_cast<std::size_t>(other.loop));
      // Loops of different extents over one dimension cover parts of it: not one size.
      if (x != y && loops_[x].extent == loops_[y].extent)
        loops_[std::max(x, y)].parent = std::min(x, y);
    }
  }
}

// The values of an index expression over the old or the new extents; nullopt: unknown.
std::optional<Interval> Shrinker::range(Expr e, bool is_new) {
  if (const IntImm* i = e.as<IntImm>()) return Interval::point(i->value);
  if (const Var* v = e.as<Var>()) {
    const auto at = loop_of_.find(v->id);
    if (at != loop_of_.end()) {
      const int64_t extent = is_new ? extent_of(at->second) : loops_[at->second].extent;
      return Interval{0, extent - 1};
    }
    const auto bound = bindings_.find(v->id);
    return bound != bindings_.end() ? range(bound->second, is_new) : std::nullopt;
  }
  const BinaryNode* n = as_binary(e);
  if (n == nullptr || e.dtype() != DType::kI64) return std::nullopt;
  const std::optional<Interval> a = range(n->lhs, is_new);
  const std::optional<Interval> b = range(n->rhs, is_new);
  if (!a || !b) return std::nullopt;
  switch (n->kind) {
    case ExprKind::kAdd: return *a + *b;
    case ExprKind::kSub: return *a - *b;
    case ExprKind::kMul: return *a * *b;
    case ExprKind::kFloorDiv: return floor_div(*a, *b);
    case ExprKind::kFloorMod: return floor_mod(*a, *b);
    case ExprKind::kMin: return min(*a, *b);
    case ExprKind::kMax: return max(*a, *b);
    default: return std::nullopt;  // NOLINT: no index arithmetic
  }
}

// By how much the largest value of an index falls.
int64_t Shrinker::drop(Expr e) {
  const std::optional<Interval> before = range(e, false);
  const std::optional<Interval> after = range(e, true);
  return before && after ? before->hi - after->hi : 0;
}

Result<void> Shrinker::choose() {
  chosen_.assign(loops_.size(), 0);
  std::vector<bool> follows(loops_.size(), false);
  // A loop over a dimension with a compound index follows from that.
  for (const Index& compound : indices_) {
    if (compound.loop >= 0 || !range(compound.index, false)) continue;
    for (const Index& simple : indices_) {
      if (simple.loop < 0 || simple.buffer != compound.buffer || simple.dim != compound.dim)
        continue;
      follows[root_of(static_cast<std::size_t>(simple.loop))] = true;
    }
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    int64_t& extent = extent_of(i);
    const auto at = wanted_.find(loops_[i].loop->id);
    const int64_t own = std::min(loops_[i].extent, at != wanted_.end() ? at->second : 0);
    extent = std::max(extent, own);
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    const auto at = others_.find(loops_[i].loop->id);
    if (extent_of(i) == 0) extent_of(i) = at != others_.end() ? at->second : loops_[i].extent;
  }
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    for (const Index& compound : indices_) {
      if (compound.loop >= 0) continue;
      for (const Index& simple : indices_) {
        if (simple.loop < 0 || simple.buffer != compound.buffer || simple.dim != compound.dim)
          continue;
        const std::size_t root = root_of(static_cast<std::size_t>(simple.loop));
        if (!follows[root]) continue;
        const int64_t extent = loops_[root].extent - drop(compound.index);
        changed |= chosen_[root] != extent;
        chosen_[root] = extent;
        if (extent < 1) return error(Diag::kUnsupported, "a twin of this shape");
      }
    }
    if (!changed) return {};
  }
  return error(Diag::kUnsupported, "a twin of extents that depend on each other");
}

Result<void> Shrinker::resize_buffers() {
  std::unordered_map<BufferId, std::vector<int64_t>> drops;  // -1: unknown so far
  for (const Index& index : indices_) {
    std::vector<int64_t>& by_dim = drops[index.buffer];
    by_dim.resize(base_.buffer(index.buffer).shape.size(), -1);
    int64_t& known = by_dim[index.dim];
    const int64_t found = drop(index.index);
    // What is accessed in parts keeps room for the one that falls least.
    known = known < 0 ? found : std::min(known, found);
  }
  for (const auto& [id, by_dim] : drops) {
    Buffer buffer = base_.buffer(id);
    std::vector<Expr> shape(buffer.shape.begin(), buffer.shape.end());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const IntImm* extent = shape[d].as<IntImm>();
      if (extent == nullptr) return error(Diag::kUnsupported, "a twin of extents that vary");
      if (by_dim[d] <= 0) continue;
      if (by_dim[d] >= extent->value) return error(Diag::kUnsupported, "a twin of this shape");
      shape[d] = b_.int_imm(extent->value - by_dim[d]);
    }
    buffer.shape = b_.copy(shape);
    b_.set_buffer(buffer);
  }
  return {};
}

// Whether a limit is of the first indices and still tells them from others: i < 1.
bool Shrinker::is_at_start(const BinaryNode& n, int64_t limit) {
  const std::optional<Interval> before = range(n.lhs, false);
  const std::optional<Interval> after = range(n.lhs, true);
  const int64_t first = limit + (n.kind == ExprKind::kLe ? 1 : 0);
  return before && after && first > after->lo && first <= after->hi &&
         first - before->lo < before->hi - first;
}

// Upper limits of indices fall with them: i < 56 becomes i < 20.
Expr Shrinker::rewrite(Expr e) {
  const Expr r = map_children(b_, e, [this](Expr child) { return rewrite(child); });
  if (e.kind() != ExprKind::kLt && e.kind() != ExprKind::kLe) return r;
  const BinaryNode* n = as_binary(e);
  const IntImm* limit = n->rhs.as<IntImm>();
  if (limit == nullptr || limit->dtype != DType::kI64) return r;
  const int64_t falls = is_at_start(*n, limit->value) ? 0 : drop(n->lhs);
  return falls == 0 ? r : b_.binary(e.kind(), as_binary(r)->lhs, b_.int_imm(limit->value - falls));
}

std::vector<Access> Shrinker::rewrite(std::span<const Access> accesses) {
  std::vector<Access> out;
  for (const Access& access : accesses) {
    std::vector<Range> region(access.region.begin(), access.region.end());
    const Buffer& before = base_.buffer(access.buffer);
    for (std::size_t d = 0; d < region.size(); ++d) {
      const IntImm* extent = region[d].extent.as<IntImm>();
      const IntImm* whole = before.shape[d].as<IntImm>();
      // What was the whole dimension stays it; smaller ranges are of the block's own making.
      if (extent != nullptr && whole != nullptr && extent->value == whole->value) {
        region[d].extent = b_.buffer(access.buffer).shape[d];
      }
    }
    out.push_back({access.buffer, b_.copy(region)});
  }
  return out;
}

Stmt Shrinker::rewrite_block(const Block& old) {
  Block block = old;
  std::vector<IterVar> iters(old.iters.begin(), old.iters.end());
  for (IterVar& iter : iters) {
    const IntImm* extent = iter.extent.as<IntImm>();
    if (extent != nullptr) iter.extent = b_.int_imm(extent->value - drop(iter.binding));
  }
  block.iters = iters;
  if (old.guard.defined()) block.guard = rewrite(old.guard);
  block.init = rewrite(old.init);
  block.body = rewrite(old.body);
  const std::vector<Access> reads = rewrite(old.reads);
  const std::vector<Access> writes = rewrite(old.writes);
  block.reads = reads;
  block.writes = writes;
  return b_.block(block);
}

Stmt Shrinker::rewrite(Stmt s) {
  if (!s.defined()) return s;
  if (const Block* block = s.as<Block>()) return rewrite_block(*block);
  if (const Loop* loop = s.as<Loop>()) {
    Loop copy = *loop;
    copy.extent = b_.int_imm(extent_of(loop_of_.at(loop->var->id)));
    copy.body = rewrite(loop->body);
    return b_.loop(copy);
  }
  return map_children(
      b_, s, [this](Stmt child) { return rewrite(child); }, [this](Expr e) { return rewrite(e); });
}

constexpr int64_t kMostCost = Interval::kNoUpper / 4;

// Of one evaluation, beside sums and products.
int64_t cost_below(Expr e) {
  constexpr int64_t kSlow = 6;
  int64_t cost = 0;
  walk(e, [&](Expr x) {
    const BinaryNode* n = as_binary(x);
    const bool floats = n != nullptr && is_float(n->lhs.dtype());
    const bool is_slow =
        floats ? n->kind != ExprKind::kAdd && n->kind != ExprKind::kSub && n->kind != ExprKind::kMul
               : x.kind() == ExprKind::kCall;
    if (is_slow) cost += kSlow;
    return true;
  });
  return cost;
}

int64_t cost_below(Stmt s) {
  if (!s.defined()) return 0;
  int64_t cost = 0;
  if (const Store* store = s.as<Store>()) cost = 1 + cost_below(store->value);
  for_each_child(
      s, [&](Stmt child) { cost = std::min(cost + cost_below(child), kMostCost); }, [](Expr) {});
  const Loop* loop = s.as<Loop>();
  const IntImm* extent = loop != nullptr ? loop->extent.as<IntImm>() : nullptr;
  if (extent == nullptr) return cost;
  return cost > kMostCost / extent->value ? kMostCost : cost * extent->value;
}

}  // namespace

Result<Program> shrink(const Program& base, const LoopExtents& wanted, const LoopExtents& others) {
  return Shrinker(base, wanted, others).run();
}

int64_t cost_of(const Program& program) { return cost_below(program.root()); }

}  // namespace prunerc::schedule
