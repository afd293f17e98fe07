// The working state of one simplification; private to ir/analysis.
#ifndef PRUNERC_IR_ARITH_SIMPLIFIER_H_
#define PRUNERC_IR_ARITH_SIMPLIFIER_H_

#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace prunerc::ir {

/// Rewrites expressions bottom up: index arithmetic through the normal form, the rest by the rules
/// of simplify_rules.cc. Scopes of variables and facts are pushed and popped by the caller.
class Simplifier {
 public:
  Simplifier(IrBuilder& b, const VarRanges& ranges, const SimplifyOptions& options);

  /// Loads stay as they are: for builders that do not know the program's buffers.
  void keep_loads() { keep_loads_ = true; }

  Expr visit(Expr e);
  /// Normal form of an i64 expression.
  Linear linear(Expr e);

  IrBuilder& builder() { return b_; }
  /// To be narrowed or widened: what was derived from the old ranges is forgotten.
  VarRanges& change_ranges() {
    forms_.clear();
    return ranges_;
  }
  const VarRanges& ranges() const { return ranges_; }

  /// Adds a condition (already simplified) as a fact.
  void assume(Expr condition, bool holds = true);
  struct Mark {
    VarRanges::Mark ranges;
    std::size_t num_facts = 0;
  };
  Mark mark() const { return {ranges_.mark(), linear_facts_.size()}; }
  void rewind(Mark mark);

  /// May the value leave 64 bits, so that neither its order nor its quotients can be told?
  bool may_wrap(const Linear& linear) const;
  /// Is difference <= 0 always (true), never (false), or not known?
  std::optional<bool> decide_not_positive(const Linear& difference);
  /// Tighter than interval_of: facts count too.
  Interval interval_with_facts(const Linear& linear);
  int64_t multiplied_out(const Linear& linear);
  /// The value of a bool expression if ranges and facts give it.
  std::optional<bool> decide(Expr condition);

  /// Floor quotient or remainder of normal forms; dividend may not wrap.
  enum class Part { kQuotient, kRemainder };
  Linear divide(const Linear& dividend, const Linear& divisor, Part part);

 private:
  struct LinearFact {
    Linear form;  // form <= 0, or form == 0
    bool is_equality = false;
  };

  Linear linear_of_arithmetic(Expr e);
  bool take_fuel() { return fuel_ > 0 && fuel_-- > 0; }
  Expr visit_arithmetic(Expr e);
  Expr visit_comparison(Expr e);
  Expr visit_logic(Expr e);
  void collect(ExprKind kind, Expr e, std::vector<Expr>& parts, std::optional<bool>& decided);
  void drop_implied(ExprKind kind, std::vector<Expr>& parts);
  Expr visit_select(Expr e);
  Expr apply_rules(Expr e);
  Expr visit_children(Expr e);
  Expr unexpanded(Expr e, int64_t normal_size);
  Expr emit_equality(ExprKind kind, Linear difference);
  Expr emit_order(Linear difference);
  Linear drop_small_part(const Linear& difference);
  Linear product(const Linear& a, const Linear& b);
  Term reduced(const Term& divisor) const;
  Linear recombine(Linear linear);
  bool recombine_step(Linear& linear);
  bool join_quotient(Linear& linear, const Term& rest, const BinaryNode& mod);
  bool join_next_digit(Linear& linear, const Term& rest, const BinaryNode& mod);
  bool cancel_dividend(Linear& linear, const Term& rest, const BinaryNode& part);
  Linear divide_by_term(const Linear& dividend, const Term& divisor, Part part);
  Linear divide_rest(const Linear& rest, const Term& divisor, Part part);
  std::optional<Linear> divide_by_factor(const Linear& rest, const Term& divisor, Part part);
  std::optional<Linear> divide_single_atom(const Linear& rest, const Term& divisor, Part part);
  std::optional<Linear> unwrap_inner_mod(const Linear& rest, const Term& divisor);
  bool is_within(const Linear& linear, const Term& limit);
  const std::vector<LinearFact>& linear_facts();

  IrBuilder& b_;
  VarRanges ranges_;
  const SimplifyOptions& options_;
  std::vector<bool> disabled_;
  std::vector<LinearFact> linear_facts_;  // of the first facts of ranges_; made when first needed
  bool making_facts_ = false;
  bool keep_loads_ = false;
  int64_t fuel_;
  int depth_ = 0;
  // Normal forms found under the present ranges: rules ask for those of the same parts many times.
  std::unordered_map<const ExprNode*, Linear> forms_;
};

/// A rule of simplify_rules.cc: null if it does not apply. The operands of `e` are simplified.
struct SimplifyRule {
  std::string_view name;
  uint32_t kinds;  // bit ExprKind: where it is tried
  Expr (*apply)(Simplifier& s, Expr e);
};
std::span<const SimplifyRule> simplify_rules();

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_SIMPLIFIER_H_
