// Reference values for chosen elements of large outputs, each with a bound of the error that a
// correct kernel may make.
#ifndef PRUNERC_IR_INTERP_ELEMENTS_H_
#define PRUNERC_IR_INTERP_ELEMENTS_H_

#include "ir/interp/tensor.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::ir {

/// One element as exact arithmetic would have it (in double; integers exactly) and how far a kernel
/// may be off. A correct kernel computes y with |y - value| <= bound. Integers: bound is 0 unless
/// they come from floats.
struct Reference {
  double value = 0;
  int64_t integer = 0;  // the value of an integer or bool element
  double bound = 0;
};

struct ElementOptions {
  int64_t max_steps = 2'000'000'000;      // instances of blocks
  int64_t max_memory_elements = 1 << 26;  // intermediate elements kept
  int max_depth = 1000;                   // of producers that need producers
  /// Where a sum adds products of two f32 elements, a kernel may take each factor off by this part of
  /// it, unless tf32 holds it: kTf32Error (bounded.h) where that is allowed.
  double factor_error = 0;
};

/// Evaluates outputs of an unscheduled program on demand: each block is one store (and its init) at
/// points of its spatial variables, below loops that its variables are bound to one to one.
/// Elements of intermediates are kept, so that what several outputs share is computed once. The
/// inputs must outlive the object; one thread at a time.
///
/// Bounds: errors of operands are carried through every operation; one rounding of the value's type
/// is added per operation; a sum of K terms adds c * min(K, 8 sqrt(K)) * u * (sum of |terms|) with
/// c = 4, whatever its order. Source: running error analysis (Higham, Accuracy and Stability of
/// Numerical Algorithms, 3.3) with the probabilistic form of the constant (Higham and Mary 2019).
class ElementEvaluator {
 public:
  /// Errors: InterpInput; Unsupported if the program has another form.
  static Result<ElementEvaluator> create(const Program& program, std::span<const Tensor> inputs,
                                         const ElementOptions& options = {});
  ElementEvaluator(ElementEvaluator&&) noexcept;
  ElementEvaluator& operator=(ElementEvaluator&&) noexcept;
  ~ElementEvaluator();

  /// Output number `output`, at a flat row-major position.
  /// Errors: InterpOutOfBounds, InterpUninitialised, InterpUnwrittenOutput, InterpStepBudget,
  /// InterpDivisionByZero, Unsupported.
  Result<Reference> element(int output, int64_t position);

 private:
  class Impl;
  explicit ElementEvaluator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Positions worth checking: the corners, then the first, last and next to last index of each
/// dimension with the others random, then random ones; `count` in all, without repetitions (all
/// positions if there are fewer).
std::vector<int64_t> sample_positions(std::span<const int64_t> shape, int64_t count, Rng& rng);

/// Whether `found` is what a correct kernel may give: within the bound, or not finite exactly where
/// the reference is.
bool accepts(const Reference& reference, DType dtype, double found);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_ELEMENTS_H_
