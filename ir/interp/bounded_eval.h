// Expressions in double with the error that rounding may add: what element evaluation and the bounded run share.
// Internal.
#ifndef PRUNERC_IR_INTERP_BOUNDED_EVAL_H_
#define PRUNERC_IR_INTERP_BOUNDED_EVAL_H_

#include "ir/interp/bounded.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// An integer, exact unless a float decided it.
inline Bounded whole(int64_t value, double error = 0) {
  return {static_cast<double>(value), value, error};
}

/// Evaluates expressions of one program; who derives from it knows what buffers hold. The first
/// failure is kept, values after it do not matter.
class BoundedEval {
 public:
  BoundedEval(Program program, double factor_error)
      : program_(std::move(program)),
        factor_error_(factor_error),
        vars_(static_cast<std::size_t>(program_.next_ids().var), 0) {}
  virtual ~BoundedEval() = default;
  BoundedEval(const BoundedEval&) = delete;
  BoundedEval& operator=(const BoundedEval&) = delete;

 protected:
  virtual Bounded load(const Load& n) = 0;

  Bounded eval(Expr e);
  /// What a sum adds: factors that are f32 elements may be off (ElementOptions::factor_error).
  Bounded eval_term(Expr e);
  /// A subscript, an extent or a binding. Fails if floats made it uncertain.
  int64_t index(Expr e);
  /// Flat row-major position in a buffer of that shape; -1 after a failure.
  int64_t position(BufferId buffer, std::span<const Expr> indices,
                   const std::vector<int64_t>& shape);
  int64_t& var(int32_t id) { return vars_[static_cast<std::size_t>(id)]; }
  void fail(Error e) {
    if (!failure_.has_value()) failure_ = std::move(e);
  }

  Program program_;
  std::optional<Error> failure_;

 private:
  Bounded binary(const BinaryNode& n);
  Bounded integers(const BinaryNode& n, const Bounded& a, const Bounded& b);
  Bounded compare(const BinaryNode& n, const Bounded& a, const Bounded& b);
  Bounded cast(const Cast& n);
  Bounded select(const Select& n);

  const double factor_error_;
  std::vector<int64_t> vars_;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_BOUNDED_EVAL_H_
