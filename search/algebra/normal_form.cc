#include "search/algebra/normal_form.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace prunerc::search::algebra {
namespace {

constexpr NfId kBeyond = 0;
// Sums that denominators are divided by; programs have a few.
constexpr std::size_t kMaxDivisors = 64;

// Names of functions that are no intrinsics, beyond their numbers.
enum : uint64_t { kCastName = 1000, kProductName = 2000, kMaxName, kMinName };

uint64_t unsigned_hash(const Monomial& m) { return m.negative ? m.hash - kSignHash : m.hash; }

uint64_t hash_conditions(const Term& term) {
  uint64_t h = term.conditions.size();
  for (const Condition& c : term.conditions) {
    h = hash_combine(hash_combine(h, static_cast<uint64_t>(c.kind)),
                     static_cast<uint64_t>(c.value.base));
    for (const Digit& d : c.value.digits) {
      for (const int64_t part : {int64_t{d.axis}, d.lower, d.extent, d.scale}) {
        h = hash_combine(h, static_cast<uint64_t>(part));
      }
    }
  }
  return h;
}

// The order of exponents that compares products as it compares their factors.
bool is_greater(const Monomial& a, const Monomial& b) {
  for (std::size_t i = 0; i < a.factors.size() && i < b.factors.size(); ++i) {
    const auto& [id, exponent] = a.factors[i];
    const auto& [other_id, other_exponent] = b.factors[i];
    if (id != other_id) return id < other_id;
    if (exponent != other_exponent) return exponent > other_exponent;
  }
  return a.factors.size() > b.factors.size();
}

void canonicalise(Form& form) {
  std::vector<Monomial>& ms = form.monomials;
  std::stable_sort(ms.begin(), ms.end(),
                   [](const Monomial& a, const Monomial& b) { return a.hash < b.hash; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    if (kept > 0 && ms[kept - 1].hash == ms[i].hash) {
      ms[kept - 1].count += ms[i].count;
      ms[kept - 1].axes |= ms[i].axes;
    } else {
      if (kept != i) ms[kept] = std::move(ms[i]);
      ++kept;
    }
  }
  ms.resize(kept);
  if (ms.size() > Form::kMaxMonomials) form = {{}, true};
}

}  // namespace

void HashedForm::add(uint64_t hash, int count) {
  if (beyond) return;
  for (int i = 0; i < size; ++i) {
    Part& part = parts[static_cast<std::size_t>(i)];
    if (part.hash != hash) continue;
    part.count += count;
    return;
  }
  if (size == kMaxParts) {
    beyond = true;
    return;
  }
  parts[static_cast<std::size_t>(size++)] = {hash, count};
}

HashedForm product(const HashedForm& a, const HashedForm& b) {
  HashedForm out;
  out.beyond = a.beyond || b.beyond;
  for (int i = 0; i < a.size && !out.beyond; ++i) {
    const HashedForm::Part& x = a.parts[static_cast<std::size_t>(i)];
    for (int j = 0; j < b.size; ++j) {
      const HashedForm::Part& y = b.parts[static_cast<std::size_t>(j)];
      out.add(x.hash + y.hash, x.count * y.count);
    }
  }
  return out;
}

HashedForm sum(const HashedForm& a, const HashedForm& b) {
  HashedForm out = a;
  out.beyond = a.beyond || b.beyond;
  for (int i = 0; i < b.size; ++i) {
    const HashedForm::Part& x = b.parts[static_cast<std::size_t>(i)];
    out.add(x.hash, x.count);
  }
  return out;
}

HashedForm difference(const HashedForm& a, const HashedForm& b) {
  return sum(a, scaled(b, kSignHash));
}

HashedForm scaled(const HashedForm& a, uint64_t hash) {
  HashedForm out = a;
  for (int i = 0; i < out.size; ++i) out.parts[static_cast<std::size_t>(i)].hash += hash;
  return out;
}

NormalForms::NormalForms(FormOptions options) : options_(options) {
  forms_.push_back({{{}, true}, {}, 0});
  forms_[0].hashed.beyond = true;
}

NfId NormalForms::of(const TermGraph& graph, TermId id) {
  if (const auto at = of_term_.find(id); at != of_term_.end()) return at->second;
  const Term& term = graph[id];
  std::vector<NfId> args;
  for (const TermId arg : term.args) args.push_back(of(graph, arg));
  return of_term_[id] = apply(term, args);
}

NfId NormalForms::apply(const Term& term, std::span<const NfId> args) {
  if (std::any_of(args.begin(), args.end(), [&](NfId a) { return is_beyond(a); })) return kBeyond;
  switch (term.op) {
    case TermOp::kLoad: {
      const uint64_t name =
          hash_combine(static_cast<uint64_t>(term.buffer.value), static_cast<uint64_t>(term.dtype));
      const FactorId f = intern({.kind = Factor::Kind::kInput, .hash = name, .forms = {}});
      return make({{single(f, term.free)}, false});
    }
    case TermOp::kConst: return constant(term.value);
    case TermOp::kMask: return mask(term);
    case TermOp::kBinary:
      switch (term.kind) {
        case ir::ExprKind::kAdd: return sum(args[0], args[1]);
        case ir::ExprKind::kSub: return sum(args[0], args[1], true);
        case ir::ExprKind::kMul: return product(args[0], args[1]);
        case ir::ExprKind::kDiv: return product(args[0], inverse(args[1]));
        default: return extreme(term.kind == ir::ExprKind::kMax, args, 0);
      }
    case TermOp::kCall: return call(term, args);
    case TermOp::kSelect: return select(args);
    case TermOp::kCast: return function(kCastName + static_cast<uint64_t>(term.dtype), args, 0);
    case TermOp::kReduce:
      if (term.kind == ir::ExprKind::kAdd) return summed(term.bound, args[0]);
      if (term.kind == ir::ExprKind::kMul) return function(kProductName, args, term.bound);
      return extreme(term.kind == ir::ExprKind::kMax, args, term.bound);
  }
  PRUNERC_UNREACHABLE("term op");
}

NfId NormalForms::constant(double value) {
  if (value == 0) return make({});
  Monomial m;
  if (std::fabs(value) != 1) {
    const uint64_t name = hash_double(std::fabs(value));
    m = single(intern({.kind = Factor::Kind::kConst, .hash = name, .forms = {}}), 0);
  }
  m.negative = value < 0;
  if (m.negative) m.hash += kSignHash;
  return make({{m}, false});
}

NfId NormalForms::mask(const Term& term) {
  const FactorId f =
      intern({.kind = Factor::Kind::kMask, .hash = hash_conditions(term), .forms = {}});
  return make({{single(f, term.free)}, false});
}

NfId NormalForms::select(std::span<const NfId> args) {
  const Monomial holds = form(args[0]).monomials.front();
  const FactorId base = holds.factors.front().first;
  const FactorId not_it = intern({.kind = Factor::Kind::kMask,
                                  .negative = true,
                                  .base = base,
                                  .hash = hash_combine(factor(base).hash, 1),
                                  .forms = {}});
  const NfId on_true = product(args[0], args[1]);
  const NfId on_false = product(make({{single(not_it, holds.axes)}, false}), args[2]);
  return sum(on_true, on_false);
}

NfId NormalForms::call(const Term& term, std::span<const NfId> args) {
  switch (term.intrinsic) {
    case ir::Intrinsic::kExp: return exponential(args[0]);
    case ir::Intrinsic::kFma: return sum(product(args[0], args[1]), args[2]);
    case ir::Intrinsic::kRsqrt:
      return inverse(function(static_cast<uint64_t>(ir::Intrinsic::kSqrt), args, 0));
    default: return function(static_cast<uint64_t>(term.intrinsic), args, 0);
  }
}

NfId NormalForms::sum(NfId a, NfId b, bool negate_b) {
  if (is_beyond(a) || is_beyond(b)) return kBeyond;
  Form out = form(a);
  for (Monomial m : form(b).monomials) {
    if (negate_b) {
      m.negative = !m.negative;
      m.hash += kSignHash;
    }
    out.monomials.push_back(std::move(m));
  }
  return make(std::move(out));
}

NfId NormalForms::product(NfId a, NfId b) {
  if (is_beyond(a) || is_beyond(b)) return kBeyond;
  const Form& x = form(a);
  const Form& y = form(b);
  if (x.monomials.size() * y.monomials.size() > Form::kMaxMonomials) return kBeyond;
  Form out;
  for (const Monomial& m : x.monomials) {
    for (const Monomial& n : y.monomials) out.monomials.push_back(times(m, n));
  }
  const NfId made = make(std::move(out));
  if (form(a).monomials.size() > 1 && form(b).monomials.size() > 1) {
    note_divisor(a);
    note_divisor(b);
  }
  return made;
}

// A product of sums is not taken apart again, so its parts are remembered for denominators.
void NormalForms::note_divisor(NfId id) {
  // Its inverse makes it one, without what its monomials have in common.
  inverse(id);
}

NfId NormalForms::summed(AxisSet bound, NfId id) {
  if (is_beyond(id)) return kBeyond;
  const Form of = form(id);
  Monomial extents;
  for (AxisSet rest = bound; rest != 0; rest &= rest - 1) {
    const auto axis = static_cast<AxisId>(std::countr_zero(rest));
    const FactorId f =
        intern({.kind = Factor::Kind::kExtent, .hash = static_cast<uint64_t>(axis), .forms = {}});
    extents = times(extents, single(f, 0));
  }
  Form out;
  for (const Monomial& m : of.monomials) {
    Monomial closed = extents;
    closed.count = m.count;
    closed.negative = m.negative;
    if (m.negative) closed.hash += kSignHash;
    for (const auto& [f, exponent] : m.factors) {
      FactorId inside = f;
      if (factor(f).kind == Factor::Kind::kExp && (factor(f).axes & bound) != 0) {
        Factor copy = factor(f);
        copy.closed = true;
        inside = intern(std::move(copy));
      }
      for (int e = 0; e < exponent; ++e) closed = times(closed, single(inside, 0));
    }
    closed.axes = m.axes & ~bound;
    out.monomials.push_back(std::move(closed));
  }
  return make(std::move(out));
}

NfId NormalForms::exponential(NfId id) {
  const Form of = form(id);
  Monomial out;
  for (const Monomial& m : of.monomials) {
    Monomial argument = m;
    argument.negative = false;
    argument.count = 1;
    argument.hash = unsigned_hash(m);
    Factor f{.kind = Factor::Kind::kExp, .negative = m.negative, .axes = m.axes, .forms = {}};
    f.hash = hash_combine(argument.hash, m.negative ? 2 : 1);
    f.forms = {make({{argument}, false})};
    const FactorId made = intern(std::move(f));
    for (int i = 0; i < m.count; ++i) out = times(out, single(made, m.axes));
  }
  return make({{out}, false});
}

FactorId NormalForms::opposite(FactorId exp) {
  Factor f = factor(exp);
  f.negative = !f.negative;
  f.hash = hash_combine(form(f.forms[0]).monomials.front().hash, f.negative ? 2 : 1);
  return intern(std::move(f));
}

NfId NormalForms::function(uint64_t name, std::span<const NfId> args, AxisSet bound) {
  Factor f{.kind = Factor::Kind::kFunction, .hash = name, .forms = {}};
  AxisSet axes = 0;
  for (const NfId arg : args) {
    f.hash = hash_combine(f.hash, hash(arg));
    f.forms.push_back(arg);
    axes |= axes_of(arg);
  }
  return make({{single(intern(std::move(f)), axes & ~bound)}, false});
}

NfId NormalForms::extreme(bool is_max, std::span<const NfId> args, AxisSet bound) {
  std::vector<NfId> members;
  AxisSet axes = 0;
  for (const NfId arg : args) {
    axes |= axes_of(arg);
    const std::vector<Monomial>& ms = form(arg).monomials;
    const Factor* inner = nullptr;
    if (ms.size() == 1 && ms[0].count == 1 && !ms[0].negative && ms[0].factors.size() == 1 &&
        ms[0].factors[0].second == 1) {
      inner = &factor(ms[0].factors[0].first);
    }
    if (inner != nullptr && inner->kind == Factor::Kind::kExtreme && inner->negative != is_max) {
      members.insert(members.end(), inner->forms.begin(), inner->forms.end());
    } else {
      members.push_back(arg);
    }
  }
  return make_extreme(is_max, std::move(members), axes & ~bound);
}

NfId NormalForms::make_extreme(bool is_max, std::vector<NfId> members, AxisSet axes) {
  std::sort(members.begin(), members.end(), [&](NfId a, NfId b) { return hash(a) < hash(b); });
  members.erase(std::unique(members.begin(), members.end(),
                            [&](NfId a, NfId b) { return hash(a) == hash(b); }),
                members.end());
  Factor f{.kind = Factor::Kind::kExtreme, .negative = !is_max, .forms = {}};
  f.hash = is_max ? kMaxName : kMinName;
  for (const NfId member : members) f.hash = hash_combine(f.hash, hash(member));
  f.forms = std::move(members);
  return make({{single(intern(std::move(f)), axes)}, false});
}

NfId NormalForms::inverse(NfId id) {
  if (const auto at = inverses_.find(id); at != inverses_.end()) return at->second;
  inverses_[id] = kBeyond;  // of what is beyond, and of 0
  Form rest = form(id);
  if (rest.beyond || rest.monomials.empty()) return kBeyond;
  std::vector<std::pair<FactorId, int>> common = rest.monomials[0].factors;
  for (const Monomial& m : rest.monomials) {
    for (auto& [f, exponent] : common) {
      const auto at = std::find_if(m.factors.begin(), m.factors.end(),
                                   [f = f](const auto& other) { return other.first == f; });
      exponent = at == m.factors.end() ? 0 : std::min(exponent, at->second);
    }
  }
  std::erase_if(common, [](const auto& f) { return f.second == 0; });
  Monomial content, inverted;
  for (const auto& [f, exponent] : common) {
    for (int e = 0; e < exponent; ++e) {
      content = times(content, single(f, 0));
      inverted = times(inverted, single(inverse_factor(f), 0));
    }
  }
  rest = *divide(std::move(rest), {{content}, false});
  inverted.axes = axes_of(id);
  const NfId of_rest = inverse_of_sum(std::move(rest), inverted.axes);
  const NfId made = product(make({{inverted}, false}), of_rest);
  return inverses_[id] = made;
}

// Of a sum whose monomials have no factor in common; its sign becomes that of the first.
NfId NormalForms::inverse_of_sum(Form rest, AxisSet axes) {
  const auto first = std::min_element(
      rest.monomials.begin(), rest.monomials.end(),
      [](const Monomial& a, const Monomial& b) { return unsigned_hash(a) < unsigned_hash(b); });
  Monomial out;
  out.axes = axes;
  out.negative = first->negative;
  if (out.negative) {
    out.hash += kSignHash;
    for (Monomial& m : rest.monomials) {
      m.negative = !m.negative;
      m.hash += kSignHash;
    }
  }
  canonicalise(rest);
  for (const NfId by : std::vector<NfId>(divisors_)) {
    for (std::optional<Form> quotient = divide(rest, form(by)); quotient;
         quotient = divide(rest, form(by))) {
      out = times(out, form(primitive(form(by))).monomials.front());
      rest = std::move(*quotient);
    }
  }
  const bool is_one = rest.monomials.size() == 1 && rest.monomials[0].count == 1;
  if (!is_one) out = times(out, form(primitive(std::move(rest))).monomials.front());
  return make({{out}, false});
}

// 1 / rest as one factor.
NfId NormalForms::primitive(Form rest) {
  const NfId of = make(std::move(rest));
  const bool is_known = std::find(divisors_.begin(), divisors_.end(), of) != divisors_.end();
  if (!is_known && form(of).monomials.size() > 1 && divisors_.size() < kMaxDivisors) {
    divisors_.push_back(of);
  }
  Factor f{.kind = Factor::Kind::kInverseForm, .hash = hash(of), .forms = {}};
  f.forms = {of};
  return make({{single(intern(std::move(f)), 0)}, false});
}

FactorId NormalForms::inverse_factor(FactorId id) {
  const Factor& f = factor(id);
  if (f.kind == Factor::Kind::kExp && !f.closed) return opposite(id);
  return intern({.kind = Factor::Kind::kInverse, .base = id, .hash = f.hash, .forms = {}});
}

// The form that `by` times it is `whole`, if there is one.
std::optional<Form> NormalForms::divide(Form whole, const Form& by) const {
  const auto lead = [](const Form& form) {
    const auto less = [](const Monomial& a, const Monomial& b) { return is_greater(b, a); };
    return *std::max_element(form.monomials.begin(), form.monomials.end(), less);
  };
  const Monomial leading = lead(by);
  Form out;
  while (!whole.monomials.empty()) {
    const Monomial top = lead(whole);
    if (top.count % leading.count != 0) return std::nullopt;
    Monomial q;
    q.count = top.count / leading.count;
    q.negative = top.negative != leading.negative;
    q.hash = top.hash - leading.hash;
    q.axes = top.axes;
    std::size_t next = 0;
    for (const auto& [f, exponent] : top.factors) {
      int left = exponent;
      if (next < leading.factors.size() && leading.factors[next].first == f) {
        left -= leading.factors[next++].second;
      }
      if (left < 0) return std::nullopt;
      if (left > 0) q.factors.emplace_back(f, left);
    }
    if (next != leading.factors.size()) return std::nullopt;
    for (const Monomial& m : by.monomials) {
      const Monomial part = times(q, m);
      const auto at = std::find_if(
          whole.monomials.begin(), whole.monomials.end(),
          [&](const Monomial& w) { return w.hash == part.hash && w.count >= part.count; });
      if (at == whole.monomials.end()) return std::nullopt;
      at->count -= part.count;
      if (at->count == 0) whole.monomials.erase(at);
    }
    out.monomials.push_back(std::move(q));
  }
  canonicalise(out);
  return out;
}

AxisSet NormalForms::axes_of(NfId id) const {
  AxisSet axes = 0;
  for (const Monomial& m : form(id).monomials) axes |= m.axes;
  return axes;
}

uint64_t NormalForms::extent_hash(AxisSet bound) const {
  uint64_t sum = 0;
  for (; bound != 0; bound &= bound - 1) {
    const auto axis = static_cast<uint64_t>(std::countr_zero(bound));
    sum += hash_combine(axis, static_cast<uint64_t>(Factor::Kind::kExtent));
  }
  return sum;
}

// `factor.hash` names it within its kind.
FactorId NormalForms::intern(Factor factor) {
  // Exponentials are copies of others, whose hashes are finished.
  if (factor.kind != Factor::Kind::kExp) {
    factor.hash = hash_combine(factor.hash, static_cast<uint64_t>(factor.kind));
  }
  const uint64_t key = hash_combine(hash_combine(factor.hash, factor.axes), factor.closed ? 1 : 0);
  const auto [at, is_new] = factor_ids_.try_emplace(key, static_cast<FactorId>(factors_.size()));
  if (is_new) factors_.push_back(std::move(factor));
  return at->second;
}

Monomial NormalForms::single(FactorId id, AxisSet axes) const {
  Monomial m;
  m.factors = {{id, 1}};
  m.axes = axes;
  m.hash = factor(id).hash;
  return m;
}

Monomial NormalForms::times(const Monomial& a, const Monomial& b) const {
  Monomial out;
  out.negative = a.negative != b.negative;
  out.count = a.count * b.count;
  out.axes = a.axes | b.axes;
  out.hash = a.hash + b.hash;
  out.factors.reserve(a.factors.size() + b.factors.size());
  auto x = a.factors.begin();
  auto y = b.factors.begin();
  while (x != a.factors.end() || y != b.factors.end()) {
    if (y == b.factors.end() || (x != a.factors.end() && x->first < y->first)) {
      out.factors.push_back(*x++);
    } else if (x == a.factors.end() || y->first < x->first) {
      out.factors.push_back(*y++);
    } else {
      out.factors.emplace_back(x->first, x->second + y->second);
      ++x;
      ++y;
    }
  }
  if (options_.gauge) cancel(out);
  return out;
}

void NormalForms::cancel(Monomial& m) const {
  const auto meets = [&](const Factor& a, const Factor& b) {
    return a.kind == Factor::Kind::kExp && b.kind == Factor::Kind::kExp && !a.closed && !b.closed &&
           a.negative != b.negative && a.axes == b.axes && hash(a.forms[0]) == hash(b.forms[0]);
  };
  for (std::size_t i = 0; i < m.factors.size(); ++i) {
    for (std::size_t j = i + 1; j < m.factors.size(); ++j) {
      const Factor& a = factor(m.factors[i].first);
      const Factor& b = factor(m.factors[j].first);
      const int both = std::min(m.factors[i].second, m.factors[j].second);
      if (both == 0 || !meets(a, b)) continue;
      m.factors[i].second -= both;
      m.factors[j].second -= both;
      m.hash -= static_cast<uint64_t>(both) * (a.hash + b.hash);
    }
  }
  std::erase_if(m.factors, [](const auto& f) { return f.second == 0; });
}

NfId NormalForms::make_factor(FactorId factor) { return make({{single(factor, 0)}, false}); }

NfId NormalForms::make(Form form) {
  canonicalise(form);
  if (form.beyond) return kBeyond;
  Entry entry;
  uint64_t structure = form.monomials.size();
  for (const Monomial& m : form.monomials) {
    entry.hashed.add(m.hash, m.count);
    entry.hash += mix64(m.hash + 1) * static_cast<uint64_t>(m.count);
    structure = hash_combine(hash_combine(structure, m.hash), m.axes);
    for (const auto& [f, exponent] : m.factors) {
      structure = hash_combine(structure, static_cast<uint64_t>(f));
    }
  }
  std::vector<NfId>& same = by_hash_[structure];
  for (const NfId id : same) {
    if (this->form(id).monomials == form.monomials) return id;
  }
  const auto id = static_cast<NfId>(forms_.size());
  entry.form = std::move(form);
  forms_.push_back(std::move(entry));
  same.push_back(id);
  return id;
}

}  // namespace prunerc::search::algebra
