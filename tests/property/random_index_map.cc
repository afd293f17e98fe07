#include "tests/property/random_index_map.h"

#include <utility>
#include <vector>

namespace prunerc::testing {

std::string random_index_map(std::span<const int64_t> shape, Rng& rng) {
  std::vector<std::string> outputs;
  std::string inputs;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string name = "i" + std::to_string(d);
    inputs += (d > 0 ? ", " : "") + name;
    const std::string by = std::to_string(rng.between(2, 5));
    const int form = static_cast<int>(rng.below(8));
    if (form < 3) {
      outputs.push_back(name + " // " + by);
      outputs.push_back(name + " % " + by);
    } else if (form == 3) {
      outputs.push_back(name + "*" + by + " + 1");
    } else {
      outputs.push_back(name);
    }
    if (outputs.size() >= 2 && rng.chance(0.15)) {
      const std::string last = outputs.back();
      outputs.pop_back();
      outputs.back() = "(" + outputs.back() + ")*" + std::to_string(shape[d]) + " + " + last;
    }
  }
  std::string out = "(" + inputs + ") -> (";
  for (std::size_t i = outputs.size(); i > 0; --i) {
    std::swap(outputs[i - 1], outputs[static_cast<std::size_t>(rng.below(i))]);
    out += (i < outputs.size() ? ", " : "") + outputs[i - 1];
  }
  return out + ")";
}

}  // namespace prunerc::testing
