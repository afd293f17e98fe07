// Bytes as a model's checkpoint, with a checksum that is made to fit: refused with a reason, or
// written and read back as the same.
#include "costmodel/model/checkpoint.h"
#include "ir/support/hash.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc;
  using namespace prunerc::fuzz;
  constexpr size_t kHeaderSizeAt = 12, kChecksumAt = 20, kPreamble = 28;
  std::string bytes(as_text(data, size));
  if (bytes.size() > kPreamble) {
    uint64_t header_size = 0;
    for (size_t i = 8; i-- > 0;)
      header_size = header_size << 8 | static_cast<unsigned char>(bytes[kHeaderSizeAt + i]);
    const uint64_t body = hash_bytes(std::string_view(bytes).substr(kPreamble));
    put_number(&bytes, kChecksumAt, hash_combine(header_size, body));
  }
  const auto model = costmodel::model::parse_checkpoint(bytes, "fuzz.model");
  require_reason(model, "");
  if (!model.ok()) return 0;
  const std::string written = costmodel::model::serialize(*model, "fuzz");
  const auto again = costmodel::model::parse_checkpoint(written, "fuzz.model");
  require(again.ok() && costmodel::model::serialize(*again, "fuzz") == written, "a model changes");
  return 0;
}
