// Initialisation leaves the blocks of reductions.
// Before: blocks may have an init. After: none has; where the loops of a reduction do not allow a
// nest of its own in front of them, the block tests whether all its reduction iterations are 0.
//     for i in 8 { for k in 16 { block "C" [vi: S(8) = i, vk: R(16) = k] {
//       init { C[vi] = 0f32 }  C[vi] = C[vi] + A[vi, vk] } } }
// ~>  for i in 8 {
//       block "C_init" [vi: S(8) = i] { C[vi] = 0f32 }
//       for k in 16 { block "C" [vi: S(8) = i, vk: R(16) = k] { C[vi] = C[vi] + A[vi, vk] } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/region.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

bool intersects(const std::set<BufferId>& a, const std::set<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.count(id) != 0; });
}

class InitLowering {
 public:
  explicit InitLowering(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  // A statement on the way to a block: a loop, or something else that hoisting cannot cross (null).
  using Path = std::vector<const Loop*>;

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>()) return go_loop(s, *loop);
    if (const Block* block = s.as<Block>()) return go_block(s, *block);
    const bool barrier = s.as<If>() != nullptr || s.as<Alloc>() != nullptr;
    if (barrier) path_.push_back(nullptr);
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    if (barrier) path_.pop_back();
    return r;
  }

  Stmt go_loop(Stmt s, const Loop& loop) {
    path_.push_back(&loop);
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    path_.pop_back();
    const auto pending = before_.find(loop.id);
    if (pending == before_.end()) return r;
    std::vector<Stmt> all = pending->second;
    all.push_back(r);
    return b_.seq(all);
  }

  Stmt go_block(Stmt s, const Block& block) {
    const Path outer = std::exchange(path_, {});
    Stmt body = go(block.body);
    path_ = outer;
    if (!block.init.defined()) {
      if (body.is(block.body)) return s;
      Block changed = block;
      changed.body = body;
      return b_.block(changed);
    }
    Block update = block;
    update.init = {};
    update.body = body;
    const int at = hoist_position(block);
    if (at >= 0) {
      before_[path_[static_cast<std::size_t>(at)]->id].push_back(init_nest(block, at));
    } else {
      update.body = b_.seq({conditional_init(block), body});
    }
    return b_.block(update);
  }

  // if (all reduction iterations are 0) init
  Stmt conditional_init(const Block& block) {
    Expr condition;
    for (const IterVar& iter : block.iters) {
      if (iter.kind != IterKind::kReduce) continue;
      condition = conjunction(b_, condition, b_.eq(Expr(iter.var), b_.int_imm(0)));
    }
    return condition.defined() ? b_.if_then(condition, block.init) : block.init;
  }

  struct Bindings {
    std::set<VarId> spatial, reduce;
  };
  Bindings bindings(const Block& block) const {
    Bindings r;
    for (const IterVar& iter : block.iters) {
      collect_vars(iter.binding, iter.kind == IterKind::kReduce ? &r.reduce : &r.spatial);
    }
    return r;
  }

  // Index in path_ of the loop before which the initialisation may run once for all; -1: there is
  // none.
  int hoist_position(const Block& block) {
    const Bindings vars = bindings(block);
    int at = 0;
    while (at < static_cast<int>(path_.size()) &&
           (path_[static_cast<std::size_t>(at)] == nullptr ||
            vars.reduce.count(path_[static_cast<std::size_t>(at)]->var->id) == 0)) {
      ++at;
    }
    if (at == static_cast<int>(path_.size())) return -1;
    std::set<VarId> inner;
    for (std::size_t i = static_cast<std::size_t>(at); i < path_.size(); ++i) {
      const Loop* loop = path_[i];
      if (loop == nullptr) return -1;
      const bool spatial = vars.spatial.count(loop->var->id) != 0;
      const bool reduce = vars.reduce.count(loop->var->id) != 0;
      const IntImm* extent = loop->extent.as<IntImm>();
      // A loop of both kinds orders them in its own way; one of neither kind repeats the whole
      // reduction.
      if (spatial && reduce) return -1;
      if (!spatial && !reduce && (extent == nullptr || extent->value != 1)) return -1;
      if (extent == nullptr) return -1;
      if (reduce) inner.insert(loop->var->id);
    }
    if (!starts_at_zero(block, inner) || !alone(block, *path_[static_cast<std::size_t>(at)]))
      return -1;
    return at;
  }

  // The first iteration of the inner reduction loops is the one whose reduction iterations are all
  // 0.
  bool starts_at_zero(const Block& block, const std::set<VarId>& inner) {
    const VarMap zeros = zero_map(inner);
    for (const IterVar& iter : block.iters) {
      if (iter.kind == IterKind::kOpaque) return false;
      if (iter.kind != IterKind::kReduce) continue;
      const IntImm* first = substitute(b_, iter.binding, zeros).as<IntImm>();
      if (first == nullptr || first->value != 0) return false;
    }
    return true;
  }

  // Nothing else under `loop` touches what the initialisation writes, or writes what it reads.
  bool alone(const Block& block, const Loop& loop) const {
    const std::set<BufferId> written = stored_buffers(block.init);
    const std::set<BufferId> read = loaded_buffers(block.init);
    bool ok = true;
    walk(
        Stmt(&loop),
        [&](Stmt s) {
          if (s.as<Block>() == &block)
            return ok = ok && !intersects(read, stored_buffers(s)), false;
          if (s.as<Block>() != nullptr || s.as<Store>() != nullptr) {
            const std::set<BufferId> stored = stored_buffers(s);
            ok = ok && !intersects(written, stored) && !intersects(written, loaded_buffers(s)) &&
                 !intersects(read, stored);
            return false;
          }
          return true;
        },
        [](Expr) {});
    return ok;
  }

  VarMap zero_map(const std::set<VarId>& vars) {
    VarMap map;
    for (VarId id : vars) map[id] = b_.int_imm(0);
    return map;
  }

  // The spatial loops inside path_[at] around a block that only initialises.
  Stmt init_nest(const Block& block, int at) {
    std::set<VarId> dropped;
    const Bindings vars = bindings(block);
    for (std::size_t i = static_cast<std::size_t>(at); i < path_.size(); ++i) {
      if (vars.reduce.count(path_[i]->var->id) != 0) dropped.insert(path_[i]->var->id);
    }
    Block init = block;
    init.id = b_.fresh_block_id();
    init.name = b_.copy(std::string_view(std::string(block.name) + "_init"));
    std::vector<IterVar> iters;
    VarMap reduce_iters;
    for (const IterVar& iter : block.iters) {
      if (iter.kind == IterKind::kReduce) {
        reduce_iters[iter.var->id] = b_.int_imm(0);
      } else {
        iters.push_back(iter);
      }
    }
    init.iters = b_.copy(iters);
    init.reads = loaded_buffers(block.init).empty() ? std::span<const Access>{} : block.reads;
    init.init = {};
    init.body = substitute(b_, block.init, reduce_iters);
    if (!init.reads.empty()) rebuild_accesses(b_, init);
    if (init.guard.defined()) init.guard = substitute(b_, init.guard, zero_map(dropped));
    Stmt nest = b_.block(init);
    for (std::size_t i = path_.size(); i-- > static_cast<std::size_t>(at);) {
      if (dropped.count(path_[i]->var->id) != 0) continue;
      Loop copy = *path_[i];
      copy.body = nest;
      nest = b_.loop(copy);
    }
    return clone_with_fresh_ids(b_, nest);
  }

  IrBuilder b_;
  Path path_;
  std::map<LoopId, std::vector<Stmt>> before_;
};

}  // namespace

Result<Program> lower_init(const Program& program, const Target&) {
  return InitLowering(program).run(program);
}

}  // namespace prunerc::codegen
