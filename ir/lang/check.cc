#include "ir/lang/check.h"

#include "ir/lang/range.h"

#include <algorithm>
#include <map>
#include <utility>

namespace prunerc::lang {
namespace {

/// Work limits of one operator, so that every input is answered in under a second: node evaluations
/// of enumerations and nodes visited. Beyond them nothing more is proved.
constexpr int64_t kEnumerationBudget = 30'000'000;
constexpr int64_t kVisitBudget = 2'000'000;
/// What a new fact and a proof cost in visits.
constexpr int64_t kFactCost = 200;
constexpr int64_t kProofCost = 20;

std::string show(ValueRange range) {
  const auto bound = [](int64_t value) {
    return value == INT64_MIN   ? std::string("-inf")
           : value == INT64_MAX ? std::string("inf")
                                : fmt::format("{}", value);
  };
  return fmt::format("[{}, {}]", bound(range.lo), bound(range.hi));
}

class Checker {
 public:
  Checker(const BoundOp& op, DiagSink& sink) : op_(op), sink_(sink) {}

  Proofs run() {
    for (const BoundStmt& stmt : op_.stmts) {
      if (!sink_.is_full()) check(stmt.value, FactSet());
    }
    if (visits_left_ <= 0 && !sink_.has_errors()) {
      sink_.report<LangDiag::kProofLimit>(op_.stmts.back().range, kVisitBudget);
    }
    return std::move(proofs_);
  }

 private:
  /// True if everything below `node` is proved. Reports what is not, unless this is a trial.
  bool check(const Node* node, const FactSet& facts) {
    if (facts.is_unreachable()) {
      note_places(node, facts);
      return true;
    }
    if (--visits_left_ <= 0) return false;
    // The largest part of an expression is asked about, which stands for all integers in it but
    // those of reductions.
    const bool asks = !is_in_index_ && is_index_arithmetic(node);
    if (asks) visits_left_ -= node->size;
    if (asks && may_wrap(node, facts)) {
      if (!is_trial()) sink_.report<LangDiag::kIndexWraps>(node->range);
      return false;
    }
    const bool stays = node->type.is_int() && node->kind != NodeKind::kReduce;
    const bool inside = asks || (is_in_index_ && stays);
    const bool outer = std::exchange(is_in_index_, inside);
    const bool ok = check_kind(node, facts);
    is_in_index_ = outer;
    return ok;
  }

  /// Of indices and constants alone: the IR takes it never to wrap.
  static bool is_index_arithmetic(const Node* node) {
    const bool is_arithmetic =
        node->kind == NodeKind::kUnary ||
        (node->kind == NodeKind::kBinary && node->op != AstOp::kAnd && node->op != AstOp::kOr);
    return is_arithmetic && !node->has_data && node->type.is_typed() &&
           node->type.dtype == ir::DType::kI64;
  }

  bool check_kind(const Node* node, const FactSet& facts) {
    switch (node->kind) {
      case NodeKind::kRead: return check_read(node, facts);
      case NodeKind::kReduce: return check_reduce(node, facts);
      case NodeKind::kIf: {
        bool ok = check(node->args[0], facts);
        ok = check(node->args[1], extend(facts, node->args[0], true)) && ok;
        return check(node->args[2], extend(facts, node->args[0], false)) && ok;
      }
      case NodeKind::kBinary: return check_binary(node, facts);
      default: return check_children(node, facts);
    }
  }

  bool check_children(const Node* node, const FactSet& facts) {
    bool ok = true;
    for (const Node* arg : node->args) ok = check(arg, facts) && ok;
    return ok;
  }

  bool check_binary(const Node* node, const FactSet& facts) {
    if (node->op == AstOp::kAnd || node->op == AstOp::kOr) {
      const bool ok = check(node->args[0], facts);
      return check(node->args[1], extend(facts, node->args[0], node->op == AstOp::kAnd)) && ok;
    }
    const bool ok = check_children(node, facts);
    const bool divides =
        (node->op == AstOp::kDiv || node->op == AstOp::kMod) && node->type.is_int();
    return (!divides || check_divisor(node->args[1], facts)) && ok;
  }

  bool check_divisor(const Node* divisor, const FactSet& facts) {
    const ValueRange range = range_of(divisor, facts);
    if (!range.contains(0)) return true;
    for (const Fact& fact : facts.facts()) {
      if (excludes_zero(fact, divisor)) return true;
    }
    if (visits_left_ > 0 && enumerate_nonzero(divisor, facts, enumeration_left_)) return true;
    if (is_trial()) return false;
    if (divisor->kind == NodeKind::kInt) {
      sink_.report<LangDiag::kConstantDivByZero>(divisor->range, "");
    } else {
      sink_.report<LangDiag::kDivisorMayBeZero>(divisor->range,
                                                fmt::format("; its range is {}", show(range)));
    }
    return false;
  }

  FactSet extend(const FactSet& facts, const Node* condition, bool holds) {
    visits_left_ -= kFactCost;
    return facts.with(condition, holds);
  }

  static bool excludes_zero(const Fact& fact, const Node* divisor) {
    const Node* condition = fact.condition;
    if (condition->kind != NodeKind::kBinary) return false;
    if (condition->op != (fact.holds ? AstOp::kNe : AstOp::kEq)) return false;
    const auto is_zero = [](const Node* node) {
      return node->kind == NodeKind::kInt && node->int_value == 0;
    };
    const Node* lhs = condition->args[0];
    const Node* rhs = condition->args[1];
    return (is_zero(rhs) && structural_equal(strip(lhs), strip(divisor))) ||
           (is_zero(lhs) && structural_equal(strip(rhs), strip(divisor)));
  }

  /// A widening of an integer is zero where the integer is.
  static const Node* strip(const Node* node) {
    while (node->kind == NodeKind::kCast && node->type.is_int() && node->args[0]->type.is_int() &&
           ir::byte_size(node->type.dtype) > ir::byte_size(node->args[0]->type.dtype)) {
      node = node->args[0];
    }
    return node;
  }

  bool check_read(const Node* node, const FactSet& facts) {
    bool ok = true;
    const Tensor& tensor = *node->tensor;
    std::vector<Doubt>* doubts = nullptr;
    if (node->or_value != nullptr) {
      doubts = &proofs_.doubts[node];
      doubts->resize(tensor.rank);
    }
    for (size_t d = 0; d < tensor.rank; ++d) {
      const Node* subscript = node->args[d];
      ok = check(subscript, facts) && ok;
      const ValueRange range = subscript_range(subscript, tensor.shape[d], facts);
      const Doubt doubt = {range.lo <= range.hi && range.lo < 0,
                           range.lo <= range.hi && range.hi >= tensor.shape[d]};
      if (doubts != nullptr) {
        (*doubts)[d].below |= doubt.below;
        (*doubts)[d].above |= doubt.above;
      } else if (subscript->has_data || doubt.below || doubt.above) {
        if (!is_trial()) report_read(node, d, range);
        ok = false;
      }
    }
    // In the order of for_each_child, in which stages are made.
    return (node->or_value == nullptr || check(node->or_value, facts)) && ok;
  }

  ValueRange subscript_range(const Node* subscript, int64_t extent, const FactSet& facts) {
    visits_left_ -= kProofCost + subscript->size;
    const ValueRange range = range_of(subscript, facts);
    if ((range.lo >= 0 && range.hi < extent) || subscript->has_data || visits_left_ <= 0)
      return range;
    const std::optional<ValueRange> exact = enumerate_range(subscript, facts, enumeration_left_);
    return exact.value_or(range);
  }

  void report_read(const Node* node, size_t dim, ValueRange range) {
    const Tensor& tensor = *node->tensor;
    const Node* subscript = node->args[dim];
    const char* value = ir::is_bool(*tensor.dtype) ? " or false" : " or 0";
    if (subscript->has_data) {
      sink_.report<LangDiag::kDataDependent>(subscript->range, tensor.name)
          .fix(end_of(node->range), value);
      return;
    }
    const ValueRange allowed = {0, tensor.shape[dim] - 1};
    SourceDiagnostic& diagnostic = sink_.report<LangDiag::kOutOfRange>(
        subscript->range, dim, tensor.name, show(range), show(allowed));
    diagnostic.fix(end_of(node->range), value);
    if (dim < tensor.shape_ranges.size()) {
      diagnostic.note(tensor.shape_ranges[dim],
                      fmt::format("the dimension is {}", tensor.shape[dim]));
    }
  }

  bool check_reduce(const Node* node, const FactSet& facts) {
    for (const IndexVar* index : node->indices) {
      if (index->extent() == 0) return true;  // nothing is evaluated
    }
    if (!check_positions(node)) return false;
    // Proved without the facts of its place it can be computed for all places, once.
    if (facts.is_empty() || stands_alone(node))
      return facts.is_empty() ? check_body(node, facts) : true;
    // Its stage carries the conditions of the first place. An argument of an fn may stand at several.
    const auto place = places_.emplace(std::pair(trial_, node), facts.facts()).first;
    const auto holds_here = [&](const Fact& fact) {
      return std::find(facts.facts().begin(), facts.facts().end(), fact) != facts.facts().end();
    };
    if (!std::all_of(place->second.begin(), place->second.end(), holds_here))
      return check_body(node, FactSet());
    proofs_.guarded.insert(node);
    return check_body(node, facts);
  }

  /// A place that is never reached may be the first one, too.
  void note_places(const Node* node, const FactSet& facts) {
    if (--visits_left_ <= 0) return;
    if (node->kind == NodeKind::kReduce) places_.emplace(std::pair(trial_, node), facts.facts());
    for_each_child(*node, [&](const Node* child) { note_places(child, facts); });
  }

  /// Positions are counted from 0: -1 is that of nothing.
  bool check_positions(const Node* node) {
    if (node->reducer != Reducer::kArgMax && node->reducer != Reducer::kArgMin) return true;
    int64_t num_positions = 1;
    for (const IndexVar* index : node->indices) {
      const bool starts_below = index->begin < 0;
      if (!starts_below && !__builtin_mul_overflow(num_positions, index->end, &num_positions))
        continue;
      if (!is_trial()) {
        sink_.report<LangDiag::kPositionRange>(
            index->range, to_string(node->reducer), index->name,
            starts_below ? fmt::format("starts at {}", index->begin) : "takes them beyond 64 bits");
      }
      return false;
    }
    return true;
  }

  bool check_body(const Node* node, const FactSet& facts) {
    if (node->condition == nullptr) return check(node->args[0], facts);
    const bool ok = check(node->condition, facts);
    return check(node->args[0], extend(facts, node->condition, true)) && ok;
  }

  bool stands_alone(const Node* node) {
    const auto known = alone_.find(node);
    if (known != alone_.end()) return known->second;
    const Node* const outer_trial = std::exchange(trial_, node);
    const bool ok = check_body(node, FactSet());
    trial_ = outer_trial;
    alone_[node] = ok;
    return ok;
  }

  bool is_trial() const { return trial_ != nullptr; }

  bool is_in_index_ = false;
  const BoundOp& op_;
  DiagSink& sink_;
  Proofs proofs_;
  std::unordered_map<const Node*, bool> alone_;
  std::map<std::pair<const Node*, const Node*>, std::vector<Fact>> places_;  // by trial, reduction
  const Node* trial_ = nullptr;  // the reduction that is tried without the facts of its place
  int64_t enumeration_left_ = kEnumerationBudget;
  int64_t visits_left_ = kVisitBudget;
};

}  // namespace

Proofs check_operator(const BoundOp& op, DiagSink& sink) { return Checker(op, sink).run(); }

}  // namespace prunerc::lang
