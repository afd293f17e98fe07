// What a worker process may send and what an artifact cache may hold: any bytes. The first byte
// picks the reader.
#include "codegen/artifact.h"
#include "runtime/worker/frame.h"
#include "runtime/worker/message.h"

#include <cstdlib>
#include <string_view>

namespace {

using namespace prunerc;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_frames(std::string_view bytes) {
  // Cut at every place that the data names: the result must not depend on it.
  runtime::FrameParser whole;
  whole.feed(bytes);
  runtime::FrameParser pieces;
  const size_t step = bytes.empty() ? 1 : 1 + static_cast<unsigned char>(bytes.back()) % 16;
  for (size_t at = 0; at < bytes.size(); at += step) {
    pieces.feed(bytes.substr(at, step));
    while (const auto frame = pieces.next()) {
      const auto expected = whole.next();
      require(expected.has_value() && *expected == *frame);
    }
  }
  require(!whole.next() && whole.is_broken() == pieces.is_broken());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: read_frames(bytes); break;
    case 1:
      if (const auto m = runtime::decode_configure(bytes)) require(encode(*m) == bytes);
      break;
    case 2:
      // NaN compares unequal to itself, so bytes are compared rather than values.
      if (const auto m = runtime::decode_job(bytes)) require(encode(*m) == bytes);
      break;
    case 3:
      if (const auto m = runtime::decode_compare(bytes)) require(encode(*m) == bytes);
      break;
    case 4:
      if (const auto m = runtime::decode_measurements(bytes)) require(encode(*m) == bytes);
      break;
    case 5:
      if (const auto a = codegen::deserialize(bytes); a.ok()) {
        require(codegen::validate(*a).ok() && codegen::serialize(*a) == bytes);
      }
      break;
  }
  return 0;
}
