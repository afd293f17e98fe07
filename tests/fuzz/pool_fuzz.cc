// Bytes as a pool: as a file whose checksum is made to fit, and as what is inside of one before it
// is packed. What is read is written and read back as the same.
#include "ir/support/hash.h"
#include "search/record/pool.h"
#include "tests/fuzz/fuzz.h"

#include <zstd.h>

namespace {

using namespace prunerc;        // NOLINT: a program of its own
using namespace prunerc::fuzz;  // NOLINT: a program of its own

constexpr size_t kSizeAt = 12, kChecksumAt = 20, kPreamble = 28;

void check(const std::string& bytes) {
  const auto pool = search::parse_pool(bytes, "fuzz.pool");
  require_reason(pool, "");
  if (!pool.ok()) return;
  const auto again = search::parse_pool(search::serialize(*pool), "fuzz.pool");
  require(again.ok() && again->rows == pool->rows && again->op_text == pool->op_text,
          "a pool changes");
  require_reason(pool->task(), "");
  static_cast<void>(pool->best());
}

void check_file(std::string bytes) {
  if (bytes.size() > kPreamble) {
    uint64_t size = 0;
    for (int i = 7; i >= 0; --i)
      size = size << 8 | static_cast<unsigned char>(bytes[kSizeAt + static_cast<size_t>(i)]);
    put_number(&bytes, kChecksumAt, hash_bytes(std::string_view(bytes).substr(kPreamble), size));
  }
  check(bytes);
}

void check_inside(std::string_view raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const size_t length = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1);
  require(ZSTD_isError(length) == 0, "cannot pack");
  std::string bytes = "PRNPOOL\n" + std::string(kPreamble - 8, '\0') + packed.substr(0, length);
  bytes[8] = static_cast<char>(search::kPoolFormat);
  put_number(&bytes, kSizeAt, raw.size());
  check_file(std::move(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = as_text(data, size);
  check_file(std::string(bytes));
  // A file is no use unpacked twice.
  if (bytes.substr(0, 4) != "PRNP") check_inside(bytes);
  return 0;
}
