#include "ir/tensor/intrinsic.h"
#include "schedule/mapping/mapping.h"
#include "tests/property/random_step.h"

#include <vector>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;        // NOLINT: a source file of tests
using namespace prunerc::schedule;  // NOLINT: a source file of tests

template <typename T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(rng.below(i))]);
  }
}

}  // namespace

bool random_mapping(Schedule& s, Rng& rng) {
  std::vector<BlockId> blocks = s.blocks();
  std::vector<std::string> names;
  for (const TensorIntrinsic& one : tensor_intrinsics()) {
    // Small programs padded to the tiles of a warpgroup take seconds to interpret. Tile registers have
    // an intrinsic for each number of rows: with all of them little else would be drawn.
    const bool is_usual = !one.uses_tiles() || one.name.find("_4x16x") != one.name.npos;
    if (one.lanes <= 32 && is_usual) names.push_back(one.name);
  }
  shuffle(blocks, rng);
  shuffle(names, rng);
  for (BlockId block : blocks) {
    for (const std::string& name : names) {
      const Result<std::vector<TensorMapping>> all = tensor_mappings(s.program(), block, name);
      if (!all.ok()) continue;
      const auto chosen = static_cast<std::size_t>(rng.below(all->size()));
      if (apply_mapping(s, block, (*all)[chosen]).ok()) return true;
    }
  }
  return false;
}

}  // namespace prunerc::testing
