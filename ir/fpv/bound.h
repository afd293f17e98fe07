// How likely a wrong program is to pass one test: degrees of what a program computes. Internal.
#ifndef PRUNERC_IR_FPV_BOUND_H_
#define PRUNERC_IR_FPV_BOUND_H_

#include "ir/fpv/code.h"

#include <cmath>

namespace prunerc::ir {

/// Upper bounds over all elements of all buffers. Infinite where the degree grows faster than
/// linearly in a loop.
struct FpDegrees {
  // Of output elements: numerator and denominator, in inputs, exponentials and hashes; degree in integer inputs.
  double numerator = 0, denominator = 0, int_degree = 0;
  double largest = 0;          // numerator plus denominator, of any element or argument
  double int_mass = 0;         // largest chance that two floats become one integer
  bool compares_data = false;  // a condition depends on data, or integer data may wrap
  bool is_too_long = false;    // nothing is known
  /// An exponent is not one, a sum or a difference of inputs and hashes.
  bool has_products_in_exp = false;
  bool is_finite() const { return std::isfinite(numerator + denominator + int_degree + largest); }
};

/// Looks at so many statements at most, those of a loop that makes degrees grow 17 times for each time that it runs.
FpDegrees find_degrees(const FpCode& code, int64_t max_visits);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_BOUND_H_
