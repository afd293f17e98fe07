// Random index expressions and an evaluator of their own: the oracle of the property tests.
#ifndef PRUNERC_TESTS_SUPPORT_RANDOM_EXPR_H_
#define PRUNERC_TESTS_SUPPORT_RANDOM_EXPR_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/support/rng.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::ir {

/// A builder with a few variables, tile parameters and integer buffers, and random expressions over
/// them.
class ExprMaker {
 public:
  explicit ExprMaker(uint64_t seed);

  Expr index(int depth);      // i64
  Expr condition(int depth);  // bool
  /// Any type: index, condition, or data of a narrow integer type.
  Expr any(int depth);

  IrBuilder b{"random"};
  std::vector<const Var*> vars;
  std::vector<int64_t> extents;
  std::vector<Expr> params;
  bool with_data = false;    // loads of i8 and i64 buffers
  bool with_params = false;  // tile parameters

  VarRanges ranges() const;
  Rng rng;

 private:
  Expr leaf();
  Expr data(int depth);
  BufferId bytes_, words_;
};

/// Values for variables, parameters and loads (a load's value depends on the buffer and the index
/// values).
struct Env {
  std::map<int32_t, int64_t> vars;
  std::map<int32_t, int64_t> params;
  uint64_t data_seed = 0;
};

/// Reference value; nullopt where it is not defined (division by zero, i64 index arithmetic that
/// overflows).
std::optional<int64_t> value_of(Expr e, const Env& env);

/// A random point within the ranges.
Env random_env(const ExprMaker& maker, Rng& rng);
/// "((i // 4) + j)" for messages.
std::string show(Expr e);

}  // namespace prunerc::ir

#endif  // PRUNERC_TESTS_SUPPORT_RANDOM_EXPR_H_
