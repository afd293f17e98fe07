// Bytes as a file of weights: tensors that lie inside of it, or a refusal with a reason.
#include "ir/net/weights.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc;
  using namespace prunerc::fuzz;
  const std::string_view bytes = as_text(data, size);
  const auto file = net::WeightFile::parse(bytes, "w");
  require_reason(file, "");
  if (!file.ok()) return 0;
  for (const auto& [name, weight] : file->all()) {
    if (weight.bytes.empty()) continue;
    require(weight.bytes.data() >= bytes.data() &&
                weight.bytes.data() + weight.bytes.size() <= bytes.data() + bytes.size(),
            "a tensor lies outside", name);
  }
  return 0;
}
