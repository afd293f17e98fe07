// Index arithmetic over tile parameters as polynomials, in which sums of tiles telescope.
#ifndef PRUNERC_COSTMODEL_LATENCY_POLY_H_
#define PRUNERC_COSTMODEL_LATENCY_POLY_H_

#include "costmodel/symbol/sym.h"
#include "ir/domain.h"
#include "ir/expr.h"
#include "ir/stmt.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace prunerc::costmodel {

/// coef * atoms[0] * .., the atoms (nodes of a graph) ascending; they may repeat.
struct Monomial {
  static constexpr int kMaxDegree = 12;
  double coef = 0;
  int32_t degree = 0;
  std::array<int32_t, kMaxDegree> atoms;
  std::span<const int32_t> factors() const {
    return {atoms.data(), static_cast<std::size_t>(degree)};
  }
};

/// constant + terms in order of their atoms, which differ. Without parameters: the constant alone.
struct Poly {
  double constant = 0;
  std::vector<Monomial> terms;

  Poly(double value = 0) : constant(value) {}  // NOLINT: numbers are polynomials
  bool is_constant() const { return terms.empty(); }
  bool is(double value) const { return terms.empty() && constant == value; }
};

Poly operator+(const Poly& a, const Poly& b);
Poly operator-(const Poly& a, const Poly& b);
Poly operator*(const Poly& a, double factor);

/// An attribute whose value is offset + max(least, factor * product of the parameters).
struct OpenAttr {
  ir::LoopId loop;    // of either
  ir::BlockId block;  // kind
  std::string key;
  double factor = 1;
  std::vector<ir::ParamId> params;
  double least = 0, offset = 0;
};

/// The parameters of a sketch as symbols, with what is known of their tiles. Serves the expressions
/// of one program, which must live as long.
class ParamSpace {
 public:
  /// `attrs`: attributes of the program that are parameters; borrowed.
  explicit ParamSpace(const ir::Domain& domain, std::span<const OpenAttr> attrs = {});

  SymGraph& graph() { return *graph_; }
  const std::shared_ptr<SymGraph>& shared_graph() const { return graph_; }

  Sym param(ir::ParamId id) const { return params_[static_cast<std::size_t>(id.value)]; }
  Poly poly(Sym s) const;
  /// Products get bounds: those of tiles of one loop are at most its extent.
  Sym symbol(const Poly& p);
  /// The product of all tiles of a perfect vector is its extent.
  Poly multiply(const Poly& a, const Poly& b);

  /// An integer or truth value over parameters and constants; nullopt if it holds anything else.
  std::optional<Sym> value(ir::Expr e);
  std::optional<Poly> polynomial(ir::Expr e);
  /// The value of a loop's or a block's attribute; `otherwise` if it has none.
  Sym attr(const ir::Loop& loop, std::string_view key, double otherwise = 0) const;
  Sym attr(const ir::Block& block, std::string_view key, double otherwise = 0) const;

 private:
  Sym attr(ir::LoopId loop, ir::BlockId block, std::span<const ir::Attr> attrs,
           std::string_view key, double otherwise) const;
  struct Tile {
    std::vector<int32_t> nodes;
    double extent = 1;  // of the product of any of them: at most
    bool is_perfect = false;
  };
  std::optional<Poly> of_binary(const ir::BinaryNode& e);
  Monomial reduced(Monomial m) const;
  double most(const Monomial& m) const;

  std::shared_ptr<SymGraph> graph_;
  std::vector<Sym> params_;
  std::vector<Tile> tiles_;
  std::span<const OpenAttr> attrs_;
  // Of sums and products that were asked for, since subscripts are read from the outside in.
  std::unordered_map<const ir::ExprNode*, std::optional<Poly>> known_;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_POLY_H_
