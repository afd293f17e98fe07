// Bytes as a .npy file, and as the description of a fill: a tensor or an error.
#include "tests/fuzz/fuzz.h"
#include "tools/driver/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc;
  using namespace prunerc::fuzz;
  const std::string_view bytes = as_text(data, size);
  const auto tensor = parse_npy(bytes);
  require_reason(tensor, "");
  if (tensor.ok()) {
    const auto again = parse_npy(npy_bytes(*tensor));
    require(again.ok() && again->shape == tensor->shape && again->data == tensor->data,
            "a tensor changes");
  }
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kI8, ir::DType::kBool}) {
    ir::Tensor small(dtype, {3, 5});
    require_reason(fill(small, bytes), bytes);
  }
  return 0;
}
