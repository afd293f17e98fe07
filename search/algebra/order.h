// Rule "order": sums of products in the order that costs least.
#ifndef PRUNERC_SEARCH_ALGEBRA_ORDER_H_
#define PRUNERC_SEARCH_ALGEBRA_ORDER_H_

#include "search/algebra/lift.h"

#include <string>

namespace prunerc::search::algebra {

/// What a plan may do beside choosing an order.
struct OrderOptions {
  double bytes_per_flop = 0.25;  // a byte that is moved costs as much as so many operations
  bool through_shared = false;   // take apart sums that others read as well
  bool distribute = false;       // multiply sums out: (W + A*B)*x becomes W*x + A*(B*x)
};

/// Beyond so many factors a product stays as it is: the search takes 3^n steps.
inline constexpr int kMaxFactors = 12;

/// Rewrites each maximal sum of products below the outputs: divisions and factors that do not depend
/// on a summed axis move outwards, sums through products move inwards, contractions come in the
/// cheapest order of all binary trees (dynamic programming over subsets of factors, each axis
/// summed as soon as no other factor has it). Sets each output's value; says in words what changed,
/// "" if nothing did. Cost: 3^n steps for n factors, at most 50 ms each.
/// Source: as opt_einsum's "optimal" (Smith and Gray, JOSS 2018).
std::string reorder(Spec& spec, const OrderOptions& options = {});

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_ORDER_H_
