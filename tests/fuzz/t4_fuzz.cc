// Bytes as what another autotuner measured; what is read of it is imported as far as it is small.
#include "tests/fuzz/fuzz.h"
#include "tools/driver/t4/t4.h"

namespace {

using namespace prunerc;        // NOLINT: a program of its own
using namespace prunerc::fuzz;  // NOLINT: a program of its own

/// A replay of each takes a millisecond.
constexpr size_t kMostRows = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = as_text(data, size);
  const auto file = parse_t4(bytes, "fuzz.json");
  require_reason(file, bytes);
  if (!file.ok() || file->rows.size() > kMostRows) return 0;
  const auto pool = import_t4(*file, "fuzz.json", "cuda:a100-40");
  require_reason(pool, bytes);
  if (!pool.ok()) return 0;
  const auto again = search::parse_pool(search::serialize(*pool), "fuzz.pool");
  require(again.ok() && again->rows.size() == file->rows.size(), "an imported pool changes", bytes);
  return 0;
}
