#include "ir/verify.h"

#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace prunerc::ir {
namespace {

/// Later passes recurse over statements: what a script nests must not reach the end of the stack.
constexpr int kMaxNesting = 500;

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  Result<void> run() {
    for (const Buffer& b : program_.buffers()) {
      for (Expr extent : b.shape) {
        expr(extent);
        positive(extent, "an extent of a buffer");
      }
      if (b.is_const && b.role != BufferRole::kInput) {
        fail(Diag::kVerifyStructure, "'" + std::string(b.name) + "' is const and no input");
      }
    }
    domain(program_.domain());
    stmt(program_.root());
    if (failure_.empty()) return check_thread_axes(program_.root());
    return failure_.front();
  }

 private:
  template <typename... Args>
  void fail(Diag id, Args&&... args) {
    if (failure_.empty()) failure_.push_back(error(id, std::forward<Args>(args)...));
  }

  void positive(Expr extent, const char* what) {
    const IntImm* c = extent.as<IntImm>();
    if (c != nullptr && c->value < 1) {
      fail(Diag::kVerifyStructure,
           std::string(what) + " must be at least 1, found " + std::to_string(c->value));
    }
  }

  // Every tile parameter belongs to one tile vector or one choice.
  void domain(const Domain& d) {
    std::vector<int> owners(d.names.size(), 0);
    auto own = [&](ParamId id) {
      const auto i = static_cast<std::size_t>(id.value);
      if (!id.valid() || i >= owners.size()) {
        fail(Diag::kVerifyStructure, std::string("an unknown tile parameter is used"));
      } else {
        ++owners[i];
      }
    };
    for (const TileVector& tiles : d.tiles) {
      for (ParamId id : tiles.params) own(id);
    }
    for (const Choice& choice : d.choices) own(choice.param);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == 1) continue;
      fail(Diag::kVerifyStructure, "tile parameter $" + std::to_string(i) + " belongs to " +
                                       std::to_string(owners[i]) +
                                       " tile vectors or choices, needs exactly one");
    }
    for (Expr e : d.constraints) expr(e);
  }

  void define(const Var* v) {
    if (!defined_.insert(v->id.value).second) {
      fail(Diag::kVerifyDuplicateId, "variable '" + std::string(v->name) + "'");
    }
    scope_.push_back(v->id);
  }

  bool known(BufferId id) {
    const bool ok = id.valid() && static_cast<std::size_t>(id.value) < program_.buffers().size();
    if (!ok) fail(Diag::kVerifyStructure, "an unknown buffer is used");
    return ok;
  }

  void touch(BufferId id, bool writes) {
    if (!known(id)) return;
    const Buffer& b = program_.buffer(id);
    if (writes && b.role == BufferRole::kInput) {
      fail(Diag::kVerifyStructure, "input '" + std::string(b.name) + "' is written");
    }
    if (block_ == nullptr) return;
    auto declared = [&](std::span<const Access> list) {
      return std::any_of(list.begin(), list.end(), [&](const Access& a) { return a.buffer == id; });
    };
    if (!declared(block_->writes) && (writes || !declared(block_->reads))) {
      fail(Diag::kVerifyUndeclaredAccess, block_->id, std::string(b.name));
    }
  }

  void expr(Expr e) {
    walk(e, [&](Expr part) {
      if (const Var* v = part.as<Var>()) {
        if (std::find(scope_.begin() + static_cast<std::ptrdiff_t>(visible_), scope_.end(),
                      v->id) == scope_.end()) {
          fail(Diag::kVerifyUnboundVar, std::string(v->name));
        }
      } else if (const Load* l = part.as<Load>()) {
        touch(l->buffer, false);
      } else if (const TileParam* p = part.as<TileParam>()) {
        if (static_cast<std::size_t>(p->id.value) >= program_.domain().names.size()) {
          fail(Diag::kVerifyStructure, "an unknown tile parameter is used");
        }
      }
      return failure_.empty();
    });
  }

  void loop(const Loop& l) {
    if (!loops_.insert(l.id.value).second) fail(Diag::kVerifyDuplicateId, l.id);
    expr(l.extent);
    positive(l.extent, "a loop's extent");
    const std::size_t outer = scope_.size();
    define(l.var);
    stmt(l.body);
    scope_.resize(outer);
  }

  void accesses(std::span<const Access> list) {
    for (const Access& a : list) {
      if (!known(a.buffer)) return;
      if (a.region.size() != program_.buffer(a.buffer).shape.size()) {
        fail(Diag::kVerifyRank, std::string(program_.buffer(a.buffer).name),
             static_cast<int64_t>(program_.buffer(a.buffer).shape.size()),
             static_cast<int64_t>(a.region.size()));
      }
      for (const Range& r : a.region) {
        expr(r.min);
        expr(r.extent);
      }
    }
  }

  void block(const Block& b) {
    if (!blocks_.insert(b.id.value).second) fail(Diag::kVerifyDuplicateId, b.id);
    for (const IterVar& iter : b.iters) {
      expr(iter.extent);
      positive(iter.extent, "an iteration variable's extent");
      expr(iter.binding);
    }
    if (b.guard.defined()) expr(b.guard);
    const std::size_t outer = scope_.size();
    const std::size_t outer_visible = visible_;
    const Block* const outer_block = block_;
    visible_ = outer;
    block_ = &b;
    for (const IterVar& iter : b.iters) define(iter.var);
    accesses(b.reads);
    accesses(b.writes);
    stmt(b.init);
    for (const IterVar& iter : b.iters) {
      if (iter.kind == IterKind::kReduce) absent_from_init(b, iter.var);
    }
    if (b.combiner != nullptr) combiner(b);
    stmt(b.body);
    scope_.resize(outer);
    visible_ = outer_visible;
    block_ = outer_block;
  }

  // An init runs once for all iterations of the reduction, so it belongs to none of them.
  void absent_from_init(const Block& b, const Var* reduced) {
    if (!b.init.defined()) return;
    walk(
        b.init, [](Stmt) { return true; },
        [&](Expr e) {
          walk(e, [&](Expr part) {
            const Var* v = part.as<Var>();
            if (v != nullptr && v->id == reduced->id) {
              fail(Diag::kVerifyStructure, "the init of block '" + std::string(b.name) +
                                               "' uses '" + std::string(v->name) +
                                               "', over which it reduces");
            }
            return true;
          });
        });
  }

  // Two variables and a result of the buffer's type for each buffer that the init stores to.
  void combiner(const Block& b) {
    const Combiner& c = *b.combiner;
    const std::vector<BufferId> targets = stored_in_order(b.init);
    bool fits = !targets.empty() && c.results.size() == targets.size();
    for (std::size_t t = 0; fits && t < targets.size(); ++t) {
      const DType dtype = program_.buffer(targets[t]).dtype;
      fits =
          c.left[t]->dtype == dtype && c.right[t]->dtype == dtype && c.results[t].dtype() == dtype;
    }
    const auto own = [&](const Var* v) {
      return std::find(c.left.begin(), c.left.end(), v) != c.left.end() ||
             std::find(c.right.begin(), c.right.end(), v) != c.right.end();
    };
    for (Expr result : c.results) {
      walk(result, [&](Expr part) {
        const Var* v = part.as<Var>();
        fits = fits && (v == nullptr || own(v)) && part.as<Load>() == nullptr &&
               part.as<TileParam>() == nullptr;
        return fits;
      });
    }
    if (!fits) fail(Diag::kVerifyStructure, "a combiner does not fit what its block's init stores");
  }

  void stmt(Stmt s) {
    if (!s.defined() || !failure_.empty()) return;
    if (depth_ == kMaxNesting) return fail(Diag::kParseTooDeep, int64_t{kMaxNesting});
    ++depth_;
    visit(s, Overload{[&](const Seq& n) {
                        for (Stmt child : n.stmts) stmt(child);
                      },
                      [&](const Loop& n) { loop(n); }, [&](const Block& n) { block(n); },
                      [&](const Store& n) {
                        touch(n.buffer, true);
                        for (Expr index : n.indices) expr(index);
                        expr(n.value);
                      },
                      [&](const If& n) {
                        expr(n.condition);
                        stmt(n.then_body);
                        stmt(n.else_body);
                      },
                      [&](const Alloc& n) {
                        if (known(n.buffer) &&
                            program_.buffer(n.buffer).role != BufferRole::kIntermediate) {
                          fail(Diag::kVerifyStructure, "a parameter is allocated");
                        }
                        stmt(n.body);
                      }});
    --depth_;
  }

  const Program& program_;
  std::vector<Error> failure_;  // the first one
  std::vector<VarId> scope_;
  std::size_t visible_ = 0;  // scope_ from here on may be used: a block hides the loops around it
  const Block* block_ = nullptr;
  int depth_ = 0;  // of statements around
  std::unordered_set<int32_t> defined_, loops_, blocks_;
};

}  // namespace

Result<void> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace prunerc::ir
