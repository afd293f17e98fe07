#include "costmodel/latency/poly.h"

#include "ir/tile_space.h"
#include "ir/visit.h"

#include <algorithm>
#include <compare>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;

std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  const auto x = a.factors(), y = b.factors();
  return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
}

void add_term(Poly* p, const Monomial& m) {
  if (m.coef == 0) return;
  if (m.degree == 0) {
    p->constant += m.coef;
    return;
  }
  const auto at =
      std::lower_bound(p->terms.begin(), p->terms.end(), m,
                       [](const Monomial& a, const Monomial& b) { return compare(a, b) < 0; });
  if (at == p->terms.end() || compare(*at, m) != 0) {
    p->terms.insert(at, m);
  } else if (at->coef + m.coef == 0) {
    p->terms.erase(at);
  } else {
    at->coef += m.coef;
  }
}

}  // namespace

Poly operator+(const Poly& a, const Poly& b) {
  if (a.is_constant() && b.is_constant()) return a.constant + b.constant;
  Poly out = a;
  out.constant += b.constant;
  for (const Monomial& m : b.terms) add_term(&out, m);
  return out;
}

Poly operator*(const Poly& a, double factor) {
  if (factor == 0) return 0;
  Poly out = a;
  out.constant *= factor;
  for (Monomial& m : out.terms) m.coef *= factor;
  return out;
}

Poly operator-(const Poly& a, const Poly& b) {
  if (a.is_constant() && b.is_constant()) return a.constant - b.constant;
  return a + b * -1;
}

ParamSpace::ParamSpace(const ir::Domain& domain, std::span<const OpenAttr> attrs)
    : graph_(std::make_shared<SymGraph>()), attrs_(attrs) {
  params_.assign(domain.names.size(), Sym(1));
  for (const ir::TileVector& tiles : domain.tiles) {
    Tile tile;
    tile.is_perfect = tiles.kind == ir::TileKind::kPerfect;
    // A covering vector's product may exceed its extent by a share.
    tile.extent = static_cast<double>(
        tile.is_perfect ? tiles.extent : tiles.extent + tiles.extent / ir::TileSpace::kMaxWaste);
    for (const ir::ParamId id : tiles.params) {
      const bool is_innermost = id == tiles.params.back() && tiles.max_innermost > 0;
      const double most = is_innermost
                              ? std::min(tile.extent, static_cast<double>(tiles.max_innermost))
                              : tile.extent;
      const Sym s = graph_->param(id, 1, most);
      params_[static_cast<std::size_t>(id.value)] = s;
      if (!s.is_constant()) tile.nodes.push_back(s.node());
    }
    std::sort(tile.nodes.begin(), tile.nodes.end());
    tiles_.push_back(std::move(tile));
  }
  for (const ir::Choice& choice : domain.choices) {
    const auto [lo, hi] = std::minmax_element(choice.values.begin(), choice.values.end());
    params_[static_cast<std::size_t>(choice.param.value)] =
        graph_->param(choice.param, static_cast<double>(*lo), static_cast<double>(*hi));
  }
}

Sym ParamSpace::attr(const ir::Loop& loop, std::string_view key, double otherwise) const {
  return attr(loop.id, ir::BlockId(), loop.attrs, key, otherwise);
}

Sym ParamSpace::attr(const ir::Block& block, std::string_view key, double otherwise) const {
  return attr(ir::LoopId(), block.id, block.attrs, key, otherwise);
}

Sym ParamSpace::attr(ir::LoopId loop, ir::BlockId block, std::span<const ir::Attr> attrs,
                     std::string_view key, double otherwise) const {
  for (const OpenAttr& open : attrs_) {
    if (open.loop != loop || open.block != block || open.key != key) continue;
    Sym product = open.factor;
    for (const ir::ParamId id : open.params) product *= param(id);
    return open.offset + max(open.least, product);
  }
  for (const ir::Attr& one : attrs) {
    if (one.key == key) return static_cast<double>(one.value);
  }
  return otherwise;
}

Poly ParamSpace::poly(Sym s) const {
  if (s.is_constant()) return s.value();
  Poly out;
  Monomial m;
  m.coef = 1;
  m.degree = 1;
  m.atoms[0] = s.node();
  out.terms.push_back(m);
  return out;
}

Monomial ParamSpace::reduced(Monomial m) const {
  for (const Tile& tile : tiles_) {
    if (!tile.is_perfect || tile.nodes.empty()) continue;
    while (std::includes(m.atoms.begin(), m.atoms.begin() + m.degree, tile.nodes.begin(),
                         tile.nodes.end())) {
      Monomial rest;
      rest.coef = m.coef * tile.extent;
      const auto end =
          std::set_difference(m.atoms.begin(), m.atoms.begin() + m.degree, tile.nodes.begin(),
                              tile.nodes.end(), rest.atoms.begin());
      rest.degree = static_cast<int32_t>(end - rest.atoms.begin());
      m = rest;
    }
  }
  return m;
}

double ParamSpace::most(const Monomial& m) const {
  std::vector<int32_t> rest(m.factors().begin(), m.factors().end());
  double out = m.coef;
  while (!rest.empty()) {
    // As many different tiles of one vector as there are, together.
    const auto tile = std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& t) {
      return std::binary_search(t.nodes.begin(), t.nodes.end(), rest.front());
    });
    double alone = 1;
    std::vector<int32_t> left;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const bool again = i > 0 && rest[i] == rest[i - 1];
      const bool taken =
          tile == tiles_.end()
              ? i == 0
              : !again && std::binary_search(tile->nodes.begin(), tile->nodes.end(), rest[i]);
      if (taken) {
        alone *= graph_->node(rest[i]).range.hi;
      } else {
        left.push_back(rest[i]);
      }
    }
    out *= tile == tiles_.end() ? alone : std::min(alone, tile->extent);
    rest = std::move(left);
  }
  return out;
}

Poly ParamSpace::multiply(const Poly& a, const Poly& b) {
  if (a.is_constant()) return b * a.constant;
  if (b.is_constant()) return a * b.constant;
  constexpr std::size_t kMaxTerms = 12;
  bool fits = a.terms.size() * b.terms.size() <= kMaxTerms;
  for (const Monomial& x : a.terms) {
    for (const Monomial& y : b.terms) fits = fits && x.degree + y.degree <= Monomial::kMaxDegree;
  }
  if (!fits) return poly(symbol(a) * symbol(b));
  Poly out = a.constant * b.constant;
  for (const Monomial& x : a.terms) {
    Monomial one = x;
    one.coef *= b.constant;
    add_term(&out, one);
    for (const Monomial& y : b.terms) {
      Monomial m;
      m.coef = x.coef * y.coef;
      m.degree = x.degree + y.degree;
      std::merge(x.factors().begin(), x.factors().end(), y.factors().begin(), y.factors().end(),
                 m.atoms.begin());
      add_term(&out, reduced(m));
    }
  }
  for (const Monomial& y : b.terms) {
    Monomial one = y;
    one.coef *= a.constant;
    add_term(&out, one);
  }
  return out;
}

Sym ParamSpace::symbol(const Poly& p) {
  Sym sum = p.constant;
  for (std::size_t i = p.terms.size(); i-- > 0;) {
    Monomial m = p.terms[i];
    Sym product = 1;
    bool is_positive = true;
    for (const int32_t atom : m.factors()) {
      product *= graph_->symbol(atom);
      is_positive = is_positive && graph_->node(atom).range.lo >= 0;
    }
    const double coef = m.coef;
    m.coef = 1;
    if (is_positive && m.degree > 1) product = graph_->within(product, 0, most(m));
    sum = coef < 0 ? sum - product * -coef : product * coef + sum;
  }
  return sum;
}

std::optional<Sym> ParamSpace::value(Expr e) {
  const std::optional<Poly> p = polynomial(e);
  return p ? std::optional(symbol(*p)) : std::nullopt;
}

std::optional<Poly> ParamSpace::polynomial(Expr e) {
  if (!e.defined()) return std::nullopt;
  if (const auto* imm = e.as<ir::IntImm>()) return Poly(static_cast<double>(imm->value));
  if (const auto* p = e.as<ir::TileParam>()) return poly(param(p->id));
  if (const auto* n = e.as<ir::Not>()) {
    const std::optional<Sym> a = value(n->operand);
    return a ? std::optional(poly(logical_not(*a))) : std::nullopt;
  }
  if (const auto* s = e.as<ir::Select>()) {
    const std::optional<Sym> c = value(s->condition), a = value(s->on_true), b = value(s->on_false);
    if (!c || !a || !b) return std::nullopt;
    return poly(select(*c, *a, *b));
  }
  const ir::BinaryNode* binary = ir::as_binary(e);
  if (binary == nullptr) return std::nullopt;
  if (const auto at = known_.find(binary); at != known_.end()) return at->second;
  std::optional<Poly> p = of_binary(*binary);
  known_.emplace(binary, p);
  return p;
}

std::optional<Poly> ParamSpace::of_binary(const ir::BinaryNode& e) {
  const std::optional<Poly> lhs = polynomial(e.lhs);
  if (!lhs) return std::nullopt;
  const std::optional<Poly> rhs = polynomial(e.rhs);
  if (!rhs) return std::nullopt;
  if (e.kind == ExprKind::kAdd) return *lhs + *rhs;
  if (e.kind == ExprKind::kSub) return *lhs - *rhs;
  if (e.kind == ExprKind::kMul) return multiply(*lhs, *rhs);
  const Sym l = symbol(*lhs), r = symbol(*rhs);
  switch (e.kind) {
    case ExprKind::kFloorDiv: return poly(floor(l / r));
    case ExprKind::kFloorMod: return poly(l - r * floor(l / r));
    case ExprKind::kMin: return poly(min(l, r));
    case ExprKind::kMax: return poly(max(l, r));
    case ExprKind::kEq: return poly(equal(l, r));
    case ExprKind::kNe: return poly(logical_not(equal(l, r)));
    case ExprKind::kLt: return poly(less(l, r));
    case ExprKind::kLe: return poly(less_equal(l, r));
    case ExprKind::kAnd: return poly(logical_and(l, r));
    case ExprKind::kOr: return poly(logical_or(l, r));
    default: return std::nullopt;
  }
}

}  // namespace prunerc::costmodel
