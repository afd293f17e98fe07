// What stands between a form and its use: is it equal, and does it round as well as the operator?
// Shares nothing with what makes forms but the axes.
#ifndef PRUNERC_SEARCH_ALGEBRA_FORM_CHECK_H_
#define PRUNERC_SEARCH_ALGEBRA_FORM_CHECK_H_

#include "ir/fpv/fpv.h"
#include "ir/program.h"
#include "search/algebra/derive.h"
#include "search/algebra/lift.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace prunerc::search::algebra {

/// Two programs of the same parameters with extents small enough to be run whole.
struct SmallPair {
  ir::Program spec, form;
};

/// `scale` times each axis' twin, at most its extent. Errors: Unsupported, where extents contradict
/// each other.
Result<SmallPair> shrink_pair(const ir::Program& spec, const LoopAxes& spec_loops,
                              const Lowered& form, std::span<const Axis> axes, int64_t scale = 1);

/// Both programs with small extents, by their own terms, where nothing else is known of how the form came about:
/// of programs whose nests are all terms, that name no position, and in whose form every loop runs over a whole
/// dimension of a parameter. Errors: Unsupported elsewhere.
Result<SmallPair> shrink_programs(const ir::Program& spec, const ir::Program& form, int64_t scale);

/// The pair with constants that are how many terms a sum of the operator has (a mean's divisor) as small as
/// the sums: else no mean would be one.
SmallPair with_small_counts(const SmallPair& small, const Spec& spec, std::span<const Axis> axes,
                            int64_t scale);

/// The small pair in finite fields; at their own extents if they cannot be shrunk and are small.
ir::FpvVerdict check_form(const SmallPair& small, double log2_error, uint64_t seed);

/// Whether the form, whose graph is the spec's and more, takes exp and pow of nothing that the spec does
/// not: inputs that try it out may not be large enough to overflow.
bool keeps_ranges(const Spec& spec, const Spec& form);

struct NumericVerdict {
  /// Nullopt: errs more than any class allows, or is not finite where the operator is.
  std::optional<NumericClass> numerics;
  bool is_known = false;   // both could be run
  double factor = 0;       // largest error over what is normal for the element
  double norm_factor = 0;  // over the most that is normal in the same output
  std::string what;        // where it errs most
};

/// Runs both in their own types on eight families of inputs (usual, wide, of one sign, tiny, a few huge elements,
/// rows far from zero, rows of nearly equal elements) and compares with the operator in double. Normal: each element errs at
/// most as much as rounding may make the operator err there, or kNormalFactor times as much as it
/// does. Loose: at most kLooseFactor times the largest of these in the output, as what forms sums of
/// differences (Winograd) errs by what stands around an element. Cost: some ms.
NumericVerdict check_numerics(const SmallPair& small, uint64_t seed);
inline constexpr double kNormalFactor = 4, kLooseFactor = 16;

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_FORM_CHECK_H_
