#include "costmodel/latency/index.h"

#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;

/// Subscripts from data may be anywhere: this far apart, in elements.
constexpr double kUnknownSpan = 1e6;
constexpr double kUnknownStep = 4096;

Sym modulo(Sym a, Sym b) { return a - b * floor(a / b); }

}  // namespace

IndexReader::Form IndexReader::still() const {
  return {std::vector<Poly>(loops_.size() + 1), std::vector<Poly>(loops_.size()),
          std::vector<Sym>(loops_.size())};
}

IndexReader::Form IndexReader::of_var(const ir::Var& var) {
  for (std::size_t i = loops_.size(); i-- > 0;) {
    if (loops_[i].var != var.id) continue;
    Form f = still();
    const Sym runs = loops_[i].runs;
    Poly span = loops_[i].trips - 1;
    if (!runs.is(1)) span = space_.poly(select(runs, space_.symbol(span), 0));
    for (std::size_t d = 0; d <= i; ++d) f.span[d] = span;
    f.step[i] = space_.poly(runs);
    f.moves[i] = runs;
    return f;
  }
  const Expr binding = bindings_[static_cast<std::size_t>(var.id.value)];
  if (!binding.defined()) return still();
  if (const auto at = known_.find(var.id); at != known_.end()) return at->second;
  Form f = form(binding);
  known_.emplace(var.id, f);
  return f;
}

void IndexReader::add(Form* sum, const Form& f, double sign) {
  for (std::size_t d = 0; d < sum->span.size(); ++d) {
    if (!f.span[d].is(0)) sum->span[d] = sum->span[d] + f.span[d];
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (!f.step[i].is(0)) sum->step[i] = sum->step[i] + f.step[i] * sign;
    sum->moves[i] = logical_or(sum->moves[i], f.moves[i]);
  }
}

Poly IndexReader::magnitude(const Poly& p) {
  if (p.is_constant()) return std::abs(p.constant);
  const Sym s = space_.symbol(p);
  return range_of(s).lo >= 0 ? p : space_.poly(abs(s));
}

IndexReader::Form IndexReader::scaled(const Form& f, const Poly& factor) {
  Form out = f;
  const Poly size = magnitude(factor);
  for (Poly& span : out.span) span = space_.multiply(span, size);
  for (Poly& step : out.step) step = space_.multiply(step, factor);
  if (factor.is(0)) out = still();
  return out;
}

void IndexReader::recompute_spans(Form* f, const std::vector<Poly>& steps) {
  Poly span = 0;
  for (std::size_t i = loops_.size(); i-- > 0;) {
    if (!f->moves[i].is(0)) {
      const Poly own = space_.multiply(magnitude(steps[i]), loops_[i].trips - 1);
      span = span +
             (f->moves[i].is(1) ? own : space_.poly(select(f->moves[i], space_.symbol(own), 0)));
    }
    f->span[i] = span;
  }
}

// x / m: a loop whose digits lie below m does not move it.
IndexReader::Form IndexReader::quotient(const Form& f, Sym divisor) {
  Form out = f;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (f.moves[i].is(0)) continue;
    const Sym digits = max(1, abs(space_.symbol(space_.multiply(f.step[i], loops_[i].trips))));
    out.moves[i] = logical_and(f.moves[i], logical_not(equal(modulo(divisor, digits), 0)));
  }
  recompute_spans(&out, f.step);
  for (std::size_t d = 0; d < out.span.size(); ++d) {
    const Sym span = min(space_.symbol(out.span[d]), space_.symbol(f.span[d]));
    out.span[d] = space_.poly(floor(span / divisor));
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (f.moves[i].is(0)) continue;
    out.moves[i] = logical_and(out.moves[i], less(0, space_.symbol(out.span[i])));
    const Sym step = space_.symbol(f.step[i]) / divisor;
    out.step[i] = space_.poly(select(out.moves[i], step, 0));
  }
  return out;
}

// x % m: a loop that moves x by whole multiples of m does not move it.
IndexReader::Form IndexReader::remainder(const Form& f, Sym divisor) {
  Form out = f;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (f.moves[i].is(0)) continue;
    const Sym step = space_.symbol(f.step[i]);
    out.moves[i] = logical_and(f.moves[i], logical_not(equal(modulo(step, divisor), 0)));
    out.step[i] = space_.poly(select(out.moves[i], step, 0));
  }
  recompute_spans(&out, f.step);
  for (std::size_t d = 0; d < out.span.size(); ++d) {
    const Sym span = min(space_.symbol(out.span[d]), space_.symbol(f.span[d]));
    out.span[d] = space_.poly(min(span, divisor - 1));
  }
  return out;
}

IndexReader::Form IndexReader::of_data(std::span<const Expr> indices) {
  Form sum = still();
  for (const Expr index : indices) add(&sum, form(index), 1);
  for (Poly& span : sum.span) {
    span = space_.poly(select(less(0, space_.symbol(span)), kUnknownSpan, 0));
  }
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    sum.step[i] = space_.poly(select(sum.moves[i], kUnknownStep, 0));
  }
  return sum;
}

IndexReader::Form IndexReader::of_binary(ExprKind kind, const ir::BinaryNode& e) {
  const std::optional<Poly> lhs = space_.polynomial(e.lhs), rhs = space_.polynomial(e.rhs);
  if (lhs && rhs) return still();
  if (kind == ExprKind::kMul && rhs) return scaled(form(e.lhs), *rhs);
  if (kind == ExprKind::kMul && lhs) return scaled(form(e.rhs), *lhs);
  if (kind == ExprKind::kFloorDiv && rhs) return quotient(limited(e.lhs), space_.symbol(*rhs));
  if (kind == ExprKind::kFloorMod && rhs) return remainder(limited(e.lhs), space_.symbol(*rhs));
  Form sum = form(e.lhs);
  add(&sum, form(e.rhs), kind == ExprKind::kSub ? -1 : 1);
  return sum;
}

bool IndexReader::is_linear(Expr e) {
  if (space_.polynomial(e)) return true;
  if (const auto* var = e.as<ir::Var>()) {
    return std::any_of(loops_.begin(), loops_.end(),
                       [&](const NestLoop& loop) { return loop.var == var->id; });
  }
  const ir::BinaryNode* sides = ir::as_binary(e);
  if (sides == nullptr) return false;
  if (e.kind() == ExprKind::kMul) {
    return (space_.polynomial(sides->lhs) && is_linear(sides->rhs)) ||
           (space_.polynomial(sides->rhs) && is_linear(sides->lhs));
  }
  const bool is_sum = e.kind() == ExprKind::kAdd || e.kind() == ExprKind::kSub;
  return is_sum && is_linear(sides->lhs) && is_linear(sides->rhs);
}

void IndexReader::limit(Expr e, Sym most) {
  Limit known{e, most, {}};
  if (is_linear(e)) known.steps = form(e).step;
  limits_.push_back(std::move(known));
}

// The guard of a fused copy and its subscripts are made by different primitives, which order
// factors and terms each in their own way.
bool IndexReader::is_limited_by(const Limit& limit, Expr e, const Form& f) {
  if (limit.e.hash() == e.hash() && ir::structural_equal(limit.e, e)) return true;
  if (!limit.steps || !is_linear(e)) return false;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (!((*limit.steps)[i] - f.step[i]).is(0)) return false;
  }
  return true;
}

IndexReader::Form IndexReader::limited(Expr e) {
  Form f = form(e);
  for (const Limit& limit : limits_) {
    if (!is_limited_by(limit, e, f)) continue;
    for (Poly& span : f.span) {
      if (!span.is(0)) span = space_.poly(min(space_.symbol(span), limit.most));
    }
  }
  return f;
}

// Where parameters alone decide, an instance has one side only: a tile that covers its whole
// dimension begins at 0, whatever loops its start would follow.
IndexReader::Form IndexReader::of_select(const ir::Select& e) {
  const std::optional<Sym> condition = space_.value(e.condition);
  if (!condition) {
    Form sum = form(e.condition);
    add(&sum, form(e.on_true), 1);
    add(&sum, form(e.on_false), 1);
    sum.step = form(e.on_true).step;
    return sum;
  }
  Form out = form(e.on_true);
  const Form other = form(e.on_false);
  const auto choose = [&](Poly* a, const Poly& b) {
    if (!(*a - b).is(0)) *a = space_.poly(select(*condition, space_.symbol(*a), space_.symbol(b)));
  };
  for (std::size_t d = 0; d < out.span.size(); ++d) choose(&out.span[d], other.span[d]);
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    choose(&out.step[i], other.step[i]);
    out.moves[i] = select(*condition, out.moves[i], other.moves[i]);
  }
  return out;
}

IndexReader::Form IndexReader::form(Expr e) {
  if (const auto* var = e.as<ir::Var>()) return of_var(*var);
  if (const ir::BinaryNode* binary = ir::as_binary(e)) return of_binary(e.kind(), *binary);
  if (const auto* load = e.as<ir::Load>()) return of_data(load->indices);
  if (const auto* choice = e.as<ir::Select>()) return of_select(*choice);
  Form sum = still();
  ir::for_each_child(e, [&](Expr child) { add(&sum, form(child), 1); });
  return sum;
}

IndexFacts IndexReader::read(Expr e) {
  const Form f = form(e);
  IndexFacts out;
  for (const Poly& span : f.span) out.reach.push_back(space_.symbol(span + 1));
  for (const Poly& step : f.step) out.step.push_back(space_.symbol(step));
  out.moves = f.moves;
  out.distinct.assign(f.span.size(), Sym(1));
  Poly iterations = 1;
  for (std::size_t i = loops_.size(); i-- > 0;) {
    if (f.moves[i].is(1)) {
      iterations = space_.multiply(iterations, loops_[i].trips);
    } else if (!f.moves[i].is(0)) {
      iterations =
          space_.multiply(iterations, space_.poly(select(f.moves[i], loops_[i].extent, 1)));
    }
    out.distinct[i] = min(out.reach[i], space_.symbol(iterations));
  }
  return out;
}

}  // namespace prunerc::costmodel
