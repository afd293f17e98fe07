// Random index maps in text form.
#ifndef PRUNERC_TESTS_PROPERTY_RANDOM_INDEX_MAP_H_
#define PRUNERC_TESTS_PROPERTY_RANDOM_INDEX_MAP_H_

#include "ir/support/rng.h"

#include <cstdint>
#include <span>
#include <string>

namespace prunerc::testing {

/// "(i0, i1, i2) -> (...)": the indices in a random order, some cut in two, sometimes two fused.
std::string random_index_map(std::span<const int64_t> shape, Rng& rng);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_PROPERTY_RANDOM_INDEX_MAP_H_
