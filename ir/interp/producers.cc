#include "ir/interp/producers.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace prunerc::ir {
namespace {

Error unsupported(const std::string& what) { return error(Diag::kUnsupported, what); }

class Finder {
 public:
  explicit Finder(const Program& program) : found_(program.buffers().size()) {}

  Result<void> stmt(Stmt s);
  std::vector<std::vector<Producer>> take() { return std::move(found_); }

 private:
  Result<void> block(const Block& b);
  Result<void> iters(const Block& b, Producer* out);
  Result<void> indices(const Block& b, Producer* out);

  std::vector<std::vector<Producer>> found_;
  std::unordered_map<int32_t, int64_t> loops_;  // extent of each enclosing loop variable
  std::vector<int32_t> path_;                   // of them, those that run more than once
  int num_producers_ = 0;
};

Result<void> Finder::stmt(Stmt s) {
  if (!s.defined()) return {};
  if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) PRUNERC_TRY_VOID(stmt(child));
    return {};
  }
  if (const Loop* loop = s.as<Loop>()) {
    const IntImm* extent = loop->extent.as<IntImm>();
    if (extent == nullptr) return unsupported("element evaluation below a loop of variable extent");
    loops_[loop->var->id.value] = extent->value;
    if (extent->value > 1) path_.push_back(loop->var->id.value);
    PRUNERC_TRY_VOID(stmt(loop->body));
    if (extent->value > 1) path_.pop_back();
    loops_.erase(loop->var->id.value);
    return {};
  }
  if (const Block* b = s.as<Block>()) return block(*b);
  return unsupported("element evaluation of a statement outside blocks");
}

Result<void> Finder::iters(const Block& b, Producer* out) {
  std::unordered_map<int32_t, int64_t> unbound = loops_;
  for (const IterVar& iter : b.iters) {
    const IntImm* extent = iter.extent.as<IntImm>();
    const Var* bound = iter.binding.as<Var>();
    const IntImm* constant = iter.binding.as<IntImm>();
    const bool is_zero = constant != nullptr && constant->value == 0;
    if (extent == nullptr ||
        (!is_zero && (bound == nullptr || unbound.erase(bound->id.value) == 0))) {
      return unsupported("element evaluation of a scheduled block");
    }
    ProducerIter p;
    p.var = iter.var->id.value;
    p.loop_var = is_zero ? -1 : bound->id.value;
    p.extent = is_zero ? 1 : std::min(extent->value, loops_[bound->id.value]);
    p.is_reduce = iter.kind == IterKind::kReduce;
    out->iters.push_back(p);
  }
  for (const auto& [var, extent] : unbound) {
    if (extent != 1) return unsupported("element evaluation of a block that repeats");
  }
  return {};
}

Result<void> Finder::indices(const Block& b, Producer* out) {
  std::vector<bool> used(out->iters.size(), false);
  const auto iter_of = [&](Expr e) {
    const Var* v = e.as<Var>();
    for (std::size_t i = 0; v != nullptr && i < out->iters.size(); ++i) {
      if (out->iters[i].var == v->id.value) return static_cast<int>(i);
    }
    return -1;
  };
  for (Expr e : out->body->indices) {
    StoreIndex index;
    const IntImm* constant = e.as<IntImm>();
    if (const Add* add = e.as<Add>(); add != nullptr && add->rhs.as<IntImm>() != nullptr) {
      index = {iter_of(add->lhs), add->rhs.as<IntImm>()->value};
    } else if (constant != nullptr) {
      index.offset = constant->value;
    } else {
      index.iter = iter_of(e);
    }
    if (constant == nullptr && (index.iter < 0 || used[static_cast<std::size_t>(index.iter)])) {
      return unsupported("element evaluation of a store at computed positions");
    }
    if (constant == nullptr) used[static_cast<std::size_t>(index.iter)] = true;
    out->indices.push_back(index);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    // What is not seen in the store is reduced, in whatever way the body says.
    if (!used[i]) out->num_reduce_points *= out->iters[i].extent;
    if (used[i] && b.iters[i].kind == IterKind::kReduce) {
      return unsupported("element evaluation of a store indexed by a reduction");
    }
    out->iters[i].is_reduce = !used[i];
  }
  return {};
}

}  // namespace

Expr added_term(const Store& body) {
  const Add* add = body.value.as<Add>();
  if (add == nullptr || !is_float(add->dtype)) return {};
  const auto is_own = [&](Expr e) {
    const Load* load = e.as<Load>();
    return load != nullptr && load->buffer == body.buffer &&
           std::equal(load->indices.begin(), load->indices.end(), body.indices.begin(),
                      [](Expr a, Expr b) { return structural_equal(a, b); });
  };
  const Expr term = is_own(add->lhs) ? add->rhs : is_own(add->rhs) ? add->lhs : Expr();
  bool reads_own = false;
  if (term.defined()) {
    walk(term, [&](Expr e) {
      const Load* load = e.as<Load>();
      reads_own = reads_own || (load != nullptr && load->buffer == body.buffer);
      return true;
    });
  }
  return reads_own ? Expr() : term;
}

namespace {

Result<void> Finder::block(const Block& b) {
  Producer out;
  out.block = &b;
  out.body = b.body.as<Store>();
  out.init = b.init.as<Store>();
  if (out.body == nullptr || (b.init.defined() && out.init == nullptr)) {
    return unsupported("element evaluation of a block with several statements");
  }
  PRUNERC_TRY_VOID(iters(b, &out));
  PRUNERC_TRY_VOID(indices(b, &out));
  if (out.init != nullptr) {
    const bool same =
        out.init->buffer == out.body->buffer &&
        std::equal(out.init->indices.begin(), out.init->indices.end(), out.body->indices.begin(),
                   [](Expr x, Expr y) { return structural_equal(x, y); });
    if (!same) return unsupported("element evaluation of an init at other positions");
  }
  out.term = added_term(*out.body);
  out.order = num_producers_++;
  out.loops = path_;
  found_[static_cast<std::size_t>(out.body->buffer.value)].push_back(std::move(out));
  return {};
}

}  // namespace

Result<std::vector<std::vector<Producer>>> find_producers(const Program& program) {
  if (!program.domain().empty()) return unsupported("element evaluation of a sketch");
  Finder finder(program);
  PRUNERC_TRY_VOID(finder.stmt(program.root()));
  return finder.take();
}

}  // namespace prunerc::ir
