// Rule "axis": axes that subscripts take apart become their parts.
#ifndef PRUNERC_SEARCH_ALGEBRA_AXIS_H_
#define PRUNERC_SEARCH_ALGEBRA_AXIS_H_

#include "search/algebra/lift.h"

#include <cstdint>
#include <string>

namespace prunerc::search::algebra {

/// Replaces an axis by two: which part of `size` steps, which divides its extent, and where in it; the
/// last two of the spec's axes afterwards. False, with the spec as it was, where a subscript does not
/// allow it. In the small program are two parts, and whole ones.
bool split_axis(Spec& spec, AxisId axis, int64_t size);

/// Splits each axis h that is read as h / c or h % c, where c divides its extent, into the axes h / c
/// and h % c, as often as there is one: what h / c alone reads is then shared along the other. Heads
/// that share keys become one product. Says in words what was split, "" if nothing was.
std::string factor_axes(Spec& spec);

/// Makes one product of two that share an operand and are summed over the same axes: their other
/// operands lie side by side along a new axis of two. Says in words what was joined, "" if nothing
/// was.
std::string join_products(Spec& spec);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_AXIS_H_
