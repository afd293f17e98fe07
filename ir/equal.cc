#include "ir/equal.h"

#include "ir/visit.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <vector>

namespace prunerc::ir {
namespace {

// Serialises a program as a stream of words in which variables and (optionally) ids are numbered by
// first appearance. Two programs are equal if their streams are; the fingerprint is the stream's
// hash.
class Canonical {
 public:
  enum class Ids { kKeep, kRenumber };
  Canonical(const Program& program, Ids ids) : program_(program), ids_(ids) {}

  template <typename Sink>
  void run(Sink&& sink) {
    emit_ = [&sink](uint64_t word) { sink(word); };
    word(program_.params().size());
    for (BufferId id : program_.params()) buffer(id);
    if (ids_ == Ids::kKeep) {
      word(program_.buffers().size());
      for (const Buffer& b : program_.buffers()) description(b);
    }
    domain();
    stmt(program_.root());
  }

 private:
  void word(uint64_t w) { emit_(w); }
  void signed_word(int64_t w) { emit_(static_cast<uint64_t>(w)); }

  void description(const Buffer& b) {
    word(static_cast<uint64_t>(b.dtype));
    word(static_cast<uint64_t>(b.scope));
    // Nothing is added for other buffers, so that programs without const inputs keep their keys.
    constexpr uint64_t kConstInput = 16;
    word(static_cast<uint64_t>(b.role) | (b.is_const ? kConstInput : 0));
    word(b.shape.size());
    for (Expr e : b.shape) expr(e);
  }

  void buffer(BufferId id) {
    if (ids_ == Ids::kKeep) return signed_word(id.value);
    const auto [entry, is_new] = buffers_.try_emplace(id.value, buffers_.size());
    word(entry->second);
    if (is_new) description(program_.buffer(id));
  }

  void var(const Var* v) { word(vars_.try_emplace(v->id.value, vars_.size()).first->second); }

  void domain() {
    const Domain& d = program_.domain();
    word(d.names.size());
    word(d.tiles.size());
    for (const TileVector& t : d.tiles) {
      word(t.params.size());
      for (ParamId p : t.params) signed_word(p.value);
      signed_word(t.extent);
      word(static_cast<uint64_t>(t.kind));
      signed_word(t.max_innermost);
    }
    word(d.choices.size());
    for (const Choice& c : d.choices) {
      signed_word(c.param.value);
      word(c.values.size());
      for (int64_t v : c.values) signed_word(v);
    }
    word(d.constraints.size());
    for (Expr e : d.constraints) expr(e);
  }

  void attrs(std::span<const Attr> items) {
    word(items.size());
    for (const Attr& a : items) {
      word(hash_bytes(a.key));
      signed_word(a.value);
    }
  }

  void accesses(std::span<const Access> items) {
    word(items.size());
    for (const Access& a : items) {
      buffer(a.buffer);
      for (const Range& r : a.region) {
        expr(r.min);
        expr(r.extent);
      }
    }
  }

  void expr(Expr e) {
    if (!e.defined()) return word(~uint64_t{0});
    word(static_cast<uint64_t>(e.kind()) << 8 | static_cast<uint64_t>(e.dtype()));
    if (const Var* v = e.as<Var>()) {
      var(v);
    } else if (const TileParam* p = e.as<TileParam>()) {
      signed_word(p->id.value);
    } else if (const IntImm* i = e.as<IntImm>()) {
      signed_word(i->value);
    } else if (const FloatImm* f = e.as<FloatImm>()) {
      word(hash_double(f->value));
    } else if (const Load* l = e.as<Load>()) {
      buffer(l->buffer);
    } else if (const Call* c = e.as<Call>()) {
      word(static_cast<uint64_t>(c->intrinsic));
    }
    for_each_child(e, [&](Expr child) { expr(child); });
  }

  void loop(const Loop& l) {
    if (ids_ == Ids::kKeep) signed_word(l.id.value);
    expr(l.extent);
    word(static_cast<uint64_t>(l.loop_kind));
    attrs(l.attrs);
    var(l.var);
    stmt(l.body);
  }

  void block(const Block& b) {
    if (ids_ == Ids::kKeep) signed_word(b.id.value);
    word(b.iters.size());
    for (const IterVar& iter : b.iters) {
      expr(iter.extent);
      expr(iter.binding);
      word(static_cast<uint64_t>(iter.kind));
    }
    expr(b.guard);
    for (const IterVar& iter : b.iters) var(iter.var);
    attrs(b.attrs);
    accesses(b.reads);
    accesses(b.writes);
    stmt(b.init);
    if (b.combiner != nullptr) combiner(*b.combiner);
    stmt(b.body);
  }

  // Its variables count by their places: blocks may share them.
  void combiner(const Combiner& c) {
    word(~uint64_t{0} - 2);
    std::unordered_map<int32_t, uint64_t> mine;
    for (const auto& list : {c.left, c.right}) {
      for (const Var* v : list) {
        mine.emplace(v->id.value, mine.size());
        word(static_cast<uint64_t>(v->dtype));
      }
    }
    vars_.swap(mine);
    word(c.results.size());
    for (Expr e : c.results) expr(e);
    vars_.swap(mine);
  }

  void stmt(Stmt s) {
    if (!s.defined()) return word(~uint64_t{0} - 1);
    word(0x1000 + static_cast<uint64_t>(s.kind()));
    visit(s, Overload{[&](const Seq& n) {
                        word(n.stmts.size());
                        for (Stmt child : n.stmts) stmt(child);
                      },
                      [&](const Loop& n) { loop(n); }, [&](const Block& n) { block(n); },
                      [&](const Store& n) {
                        buffer(n.buffer);
                        for (Expr index : n.indices) expr(index);
                        expr(n.value);
                      },
                      [&](const If& n) {
                        expr(n.condition);
                        stmt(n.then_body);
                        stmt(n.else_body);
                      },
                      [&](const Alloc& n) {
                        buffer(n.buffer);
                        stmt(n.body);
                      }});
  }

  const Program& program_;
  Ids ids_;
  std::function<void(uint64_t)> emit_;
  std::unordered_map<int32_t, uint64_t> vars_;
  std::unordered_map<int32_t, uint64_t> buffers_;
};

std::vector<uint64_t> stream(const Program& program) {
  std::vector<uint64_t> words;
  Canonical(program, Canonical::Ids::kKeep).run([&](uint64_t w) { words.push_back(w); });
  return words;
}

bool equal_accesses(std::span<const Access> a, std::span<const Access> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].buffer != b[i].buffer || a[i].region.size() != b[i].region.size()) return false;
    for (std::size_t d = 0; d < a[i].region.size(); ++d) {
      if (!structural_equal(a[i].region[d].min, b[i].region[d].min)) return false;
      if (!structural_equal(a[i].region[d].extent, b[i].region[d].extent)) return false;
    }
  }
  return true;
}

bool equal_attrs(std::span<const Attr> a, std::span<const Attr> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].key != b[i].key || a[i].value != b[i].value) return false;
  }
  return true;
}

bool equal_vars(std::span<const Var* const> a, std::span<const Var* const> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Var* x, const Var* y) { return x->id == y->id; });
}

bool equal_combiners(const Combiner* a, const Combiner* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && equal_vars(a->left, b->left) &&
         equal_vars(a->right, b->right) && structural_equal(a->results, b->results);
}

bool equal_iters(std::span<const IterVar> a, std::span<const IterVar> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].var->id != b[i].var->id || a[i].kind != b[i].kind) return false;
    if (!structural_equal(a[i].extent, b[i].extent)) return false;
    if (!structural_equal(a[i].binding, b[i].binding)) return false;
  }
  return true;
}

}  // namespace

bool structural_equal(Expr a, Expr b) {
  if (a.is(b)) return true;
  if (!a.defined() || !b.defined() || a.hash() != b.hash()) return false;
  if (a.kind() != b.kind() || a.dtype() != b.dtype()) return false;
  if (const BinaryNode* n = as_binary(a)) {
    const BinaryNode* m = as_binary(b);
    return structural_equal(n->lhs, m->lhs) && structural_equal(n->rhs, m->rhs);
  }
  return visit(
      a, Overload{
             [&](const Var& n) { return n.id == b.as<Var>()->id; },
             [&](const TileParam& n) { return n.id == b.as<TileParam>()->id; },
             [&](const IntImm& n) { return n.value == b.as<IntImm>()->value; },
             [&](const FloatImm& n) {
               return hash_double(n.value) == hash_double(b.as<FloatImm>()->value);
             },
             [&](const Not& n) { return structural_equal(n.operand, b.as<Not>()->operand); },
             [&](const Select& n) {
               const Select* m = b.as<Select>();
               return structural_equal(n.condition, m->condition) &&
                      structural_equal(n.on_true, m->on_true) &&
                      structural_equal(n.on_false, m->on_false);
             },
             [&](const Cast& n) { return structural_equal(n.operand, b.as<Cast>()->operand); },
             [&](const Load& n) {
               const Load* m = b.as<Load>();
               return n.buffer == m->buffer && structural_equal(n.indices, m->indices);
             },
             [&](const Call& n) {
               const Call* m = b.as<Call>();
               return n.intrinsic == m->intrinsic && structural_equal(n.args, m->args);
             },
             [&](const BinaryNode&) -> bool { PRUNERC_UNREACHABLE("binary handled above"); },
         });
}

bool structural_equal(Stmt a, Stmt b) {
  if (a.is(b)) return true;
  if (!a.defined() || !b.defined() || a.hash() != b.hash() || a.kind() != b.kind()) return false;
  return visit(a, Overload{[&](const Seq& n) {
                             const Seq* m = b.as<Seq>();
                             if (n.stmts.size() != m->stmts.size()) return false;
                             for (std::size_t i = 0; i < n.stmts.size(); ++i) {
                               if (!structural_equal(n.stmts[i], m->stmts[i])) return false;
                             }
                             return true;
                           },
                           [&](const Loop& n) {
                             const Loop* m = b.as<Loop>();
                             return n.id == m->id && n.var->id == m->var->id &&
                                    n.loop_kind == m->loop_kind && equal_attrs(n.attrs, m->attrs) &&
                                    structural_equal(n.extent, m->extent) &&
                                    structural_equal(n.body, m->body);
                           },
                           [&](const Block& n) {
                             const Block* m = b.as<Block>();
                             return n.id == m->id && equal_iters(n.iters, m->iters) &&
                                    equal_accesses(n.reads, m->reads) &&
                                    equal_accesses(n.writes, m->writes) &&
                                    equal_attrs(n.attrs, m->attrs) &&
                                    structural_equal(n.guard, m->guard) &&
                                    structural_equal(n.init, m->init) &&
                                    equal_combiners(n.combiner, m->combiner) &&
                                    structural_equal(n.body, m->body);
                           },
                           [&](const Store& n) {
                             const Store* m = b.as<Store>();
                             return n.buffer == m->buffer &&
                                    structural_equal(n.indices, m->indices) &&
                                    structural_equal(n.value, m->value);
                           },
                           [&](const If& n) {
                             const If* m = b.as<If>();
                             return structural_equal(n.condition, m->condition) &&
                                    structural_equal(n.then_body, m->then_body) &&
                                    structural_equal(n.else_body, m->else_body);
                           },
                           [&](const Alloc& n) {
                             const Alloc* m = b.as<Alloc>();
                             return n.buffer == m->buffer && structural_equal(n.body, m->body);
                           }});
}

bool structural_equal(std::span<const Expr> a, std::span<const Expr> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Expr x, Expr y) { return structural_equal(x, y); });
}

bool structural_equal(const Program& a, const Program& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.is(b) || stream(a) == stream(b);
}

Fingerprint fingerprint(const Program& program) {
  FingerprintBuilder builder;
  Canonical(program, Canonical::Ids::kRenumber).run([&](uint64_t w) { builder.add(w); });
  return builder.finish();
}

}  // namespace prunerc::ir
