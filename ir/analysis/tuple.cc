#include "ir/analysis/tuple.h"

#include "ir/equal.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::ir {

namespace {

// Each loop variable is one of the indices, so that the loops visit each element once.
bool visits_once(const TupleStore& s) {
  return std::all_of(s.loops.begin(), s.loops.end(), [&](const Loop* loop) {
    const auto uses = std::count_if(s.store->indices.begin(), s.store->indices.end(),
                                    [&](Expr index) { return mentions(index, loop->var->id); });
    const auto bare = std::count_if(s.store->indices.begin(), s.store->indices.end(),
                                    [&](Expr index) { return index.is(Expr(loop->var)); });
    return uses == 1 && bare == 1 && constant_value(loop->extent).has_value();
  });
}

// Stores in order; each to another buffer. Empty if there is anything else.
std::vector<TupleStore> stores_of(Stmt s) {
  std::vector<Stmt> parts;
  if (const Seq* seq = s.as<Seq>()) {
    parts.assign(seq->stmts.begin(), seq->stmts.end());
  } else {
    parts.push_back(s);
  }
  std::vector<TupleStore> out;
  for (Stmt part : parts) {
    TupleStore found{nullptr, {}};
    while (const Loop* loop = part.as<Loop>()) {
      found.loops.push_back(loop);
      part = loop->body;
    }
    found.store = part.as<Store>();
    if (found.store == nullptr || !visits_once(found)) return {};
    for (const TupleStore& other : out) {
      if (other.store->buffer == found.store->buffer) return {};
    }
    out.push_back(std::move(found));
  }
  return out;
}

bool place_is_fixed(const Block& block, const TupleStore& s) {
  for (Expr index : s.store->indices) {
    bool fixed = true;
    walk(index, [&](Expr part) {
      fixed &= part.as<Load>() == nullptr;
      return fixed;
    });
    for (const IterVar& iter : block.iters) {
      fixed &= iter.kind == IterKind::kSpatial || !mentions(index, iter.var->id);
    }
    if (!fixed) return false;
  }
  return true;
}

// The same elements: equal extents, equal indices once the loop variables are renamed.
bool same_place(IrBuilder& b, const TupleStore& x, const TupleStore& y) {
  if (x.loops.size() != y.loops.size()) return false;
  VarMap rename;
  for (std::size_t i = 0; i < x.loops.size(); ++i) {
    if (constant_value(x.loops[i]->extent) != constant_value(y.loops[i]->extent)) return false;
    rename[x.loops[i]->var->id] = y.loops[i]->var;
  }
  std::vector<Expr> indices;
  for (Expr index : x.store->indices) indices.push_back(substitute(b, index, rename));
  return structural_equal(indices, y.store->indices);
}

// Does the value read, of the buffers that the step stores to, only elements that it may?
bool reads_elementwise(const Tuple& tuple, std::size_t at) {
  const TupleStore& mine = tuple.step[at];
  bool sound = true;
  walk(mine.store->value, [&](Expr part) {
    const Load* load = part.as<Load>();
    if (load == nullptr) return sound;
    for (std::size_t i = 0; i < tuple.step.size(); ++i) {
      const TupleStore& other = tuple.step[i];
      if (other.store->buffer != load->buffer) continue;
      const bool scratch = tuple.target(load->buffer) == tuple.size();
      sound = sound && structural_equal(load->indices, other.store->indices) &&
              (i == at || other.loops.empty()) && (!scratch || i < at);
    }
    return sound;
  });
  return sound;
}

}  // namespace

std::size_t Tuple::target(BufferId buffer) const {
  const auto found = std::find_if(start.begin(), start.end(),
                                  [&](const TupleStore& s) { return s.store->buffer == buffer; });
  return static_cast<std::size_t>(found - start.begin());
}

const TupleStore& Tuple::result(std::size_t target) const {
  return *std::find_if(step.begin(), step.end(), [&](const TupleStore& s) {
    return s.store->buffer == start[target].store->buffer;
  });
}

std::optional<Tuple> read_tuple(const Block& block) {
  if (!block.init.defined()) return std::nullopt;
  Tuple out{stores_of(block.init), stores_of(block.body)};
  if (out.start.empty() || out.step.empty()) return std::nullopt;
  IrBuilder b("tuple");
  std::size_t num_found = 0;
  for (std::size_t i = 0; i < out.step.size(); ++i) {
    const std::size_t target = out.target(out.step[i].store->buffer);
    if (!place_is_fixed(block, out.step[i]) || !reads_elementwise(out, i)) return std::nullopt;
    if (target == out.size()) continue;
    if (!same_place(b, out.start[target], out.step[i])) return std::nullopt;
    ++num_found;
  }
  if (num_found != out.size()) return std::nullopt;
  for (const TupleStore& start : out.start) {
    bool reads_own = false;
    walk(start.store->value, [&](Expr part) {
      const Load* load = part.as<Load>();
      for (const TupleStore& s : out.step) {
        reads_own |= load != nullptr && load->buffer == s.store->buffer;
      }
      return !reads_own;
    });
    if (reads_own) return std::nullopt;
  }
  return out;
}

namespace {

// Makes the stores of a combination one after another.
class Combination {
 public:
  Combination(IrBuilder& b, const Tuple& tuple, const Combiner& combiner, const ElementFn& right)
      : b_(b), tuple_(tuple), combiner_(combiner), right_(right), kept_(tuple.size()) {}

  Stmt run() {
    std::vector<std::size_t> pending;
    for (std::size_t t = 0; t < tuple_.size(); ++t) pending.push_back(t);
    while (!pending.empty()) {
      const auto free = std::find_if(pending.begin(), pending.end(),
                                     [&](std::size_t t) { return !needed(t, pending); });
      const auto next = free == pending.end() ? pending.begin() : free;
      if (free == pending.end()) keep(*next);
      store(*next);
      pending.erase(next);
    }
    return b_.seq(stmts_);
  }

 private:
  const TupleStore& at(std::size_t t) const { return tuple_.result(t); }
  std::span<const Expr> indices(std::size_t t) const { return at(t).store->indices; }

  // Does another pending result read what target t holds?
  bool needed(std::size_t t, const std::vector<std::size_t>& pending) const {
    return std::any_of(pending.begin(), pending.end(), [&](std::size_t other) {
      return other != t && mentions(combiner_.results[other], combiner_.left[t]->id);
    });
  }

  void keep(std::size_t t) {
    const Buffer buffer = b_.buffer(at(t).store->buffer);
    const BufferId scratch = b_.add_buffer(std::string(buffer.name) + "_old", buffer.dtype,
                                           buffer.shape, Scope::kLocal, BufferRole::kIntermediate);
    stmts_.push_back(b_.store(scratch, indices(t), b_.load(buffer.id, indices(t))));
    kept_[t] = b_.load(scratch, indices(t));
  }

  void store(std::size_t t) {
    VarMap vars;
    for (std::size_t other = 0; other < tuple_.size(); ++other) {
      const std::span<const Expr> place = indices(other);
      vars[combiner_.left[other]->id] = kept_[other].defined() && other != t
                                            ? kept_[other]
                                            : b_.load(at(other).store->buffer, place);
      vars[combiner_.right[other]->id] = right_(other, place);
    }
    Stmt s = b_.store(at(t).store->buffer, indices(t), substitute(b_, combiner_.results[t], vars));
    for (std::size_t i = at(t).loops.size(); i-- > 0;) {
      Loop copy = *at(t).loops[i];
      copy.body = s;
      s = b_.loop(copy);
    }
    stmts_.push_back(at(t).loops.empty() ? s : clone_with_fresh_ids(b_, s));
  }

  IrBuilder& b_;
  const Tuple& tuple_;
  const Combiner& combiner_;
  const ElementFn& right_;
  std::vector<Expr> kept_;
  std::vector<Stmt> stmts_;
};

}  // namespace

Stmt combine_into(IrBuilder& b, const Tuple& tuple, const Combiner& combiner,
                  const ElementFn& right) {
  return Combination(b, tuple, combiner, right).run();
}

}  // namespace prunerc::ir
