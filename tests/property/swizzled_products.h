// Products of f16 matrices by tensor instructions of a warp that read swizzled tiles: each sketch that has such, with
// each width of panels.
#ifndef PRUNERC_TESTS_PROPERTY_SWIZZLED_PRODUCTS_H_
#define PRUNERC_TESTS_PROPERTY_SWIZZLED_PRODUCTS_H_

#include "ir/program.h"
#include "ir/target.h"
#include "search/space/candidate.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::testing {

struct SwizzledProduct {
  std::string name;  // "gpu+tensor+split k rows=64"
  search::Candidate candidate;
};

/// Rows of A along K, of B along N, no tile divides them.
ir::Program swizzled_product();
/// Candidates for it with rows of 32, 64 and 128 bytes, drawn at random.
std::vector<SwizzledProduct> swizzled_products(const ir::Target& target, uint64_t seed);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_PROPERTY_SWIZZLED_PRODUCTS_H_
