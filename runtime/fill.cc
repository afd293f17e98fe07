#include "runtime/fill.h"

#include "ir/support/hash.h"

#include <cstring>

namespace prunerc::runtime {
namespace {

constexpr int64_t kSmallLimit = 8;
/// A prime, so that rows of usual lengths differ.
constexpr int64_t kIotaPeriod = 251;

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

double float_value(Fill fill, uint64_t bits, int64_t index) {
  switch (fill) {
    case Fill::kUniform: return 2 * unit(bits) - 1;
    case Fill::kPositive: return unit(bits);
    case Fill::kSmallInt:
      return static_cast<double>(static_cast<int64_t>(bits % (2 * kSmallLimit + 1)) - kSmallLimit);
    case Fill::kOne: return 1;
    case Fill::kIota: return static_cast<double>(index % kIotaPeriod);
    case Fill::kZero:
    case Fill::kBytes: break;
  }
  return 0;
}

int64_t int_value(Fill fill, uint64_t bits, int64_t index, ir::DType dtype) {
  if (fill == Fill::kOne) return 1;
  if (fill == Fill::kIota) return index % kIotaPeriod;
  if (fill == Fill::kZero || fill == Fill::kBytes) return 0;
  if (ir::is_bool(dtype)) return static_cast<int64_t>(bits & 1);
  const int64_t low = dtype == ir::DType::kU8 ? 0 : -kSmallLimit;
  return low + static_cast<int64_t>(bits % static_cast<uint64_t>(kSmallLimit - low + 1));
}

template <typename T, typename F>
void write_all(int64_t num_elems, void* data, F&& value_at) {
  auto* out = static_cast<unsigned char*>(data);
  for (int64_t i = 0; i < num_elems; ++i) {
    const T value = static_cast<T>(value_at(i));
    std::memcpy(out + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

}  // namespace

void fill_tensor(Fill fill, uint64_t seed, ir::DType dtype, int64_t num_elems, void* data) {
  const uint64_t key = mix64(seed ^ 0x66696c6cU);
  const auto bits = [key](int64_t i) {
    return mix64(key + static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ULL);
  };
  const auto as_float = [&](int64_t i) { return float_value(fill, bits(i), i); };
  const auto as_int = [&](int64_t i) { return int_value(fill, bits(i), i, dtype); };
  switch (dtype) {
    case ir::DType::kF64: return write_all<double>(num_elems, data, as_float);
    case ir::DType::kF32: return write_all<float>(num_elems, data, as_float);
    case ir::DType::kF16:
      return write_all<uint16_t>(num_elems, data,
                                 [&](int64_t i) { return ir::f16_bits(as_float(i)); });
    case ir::DType::kBF16:
      return write_all<uint16_t>(num_elems, data,
                                 [&](int64_t i) { return ir::bf16_bits(as_float(i)); });
    case ir::DType::kI64: return write_all<int64_t>(num_elems, data, as_int);
    case ir::DType::kI32: return write_all<int32_t>(num_elems, data, as_int);
    case ir::DType::kI8: return write_all<int8_t>(num_elems, data, as_int);
    case ir::DType::kU8: return write_all<uint8_t>(num_elems, data, as_int);
    case ir::DType::kBool: return write_all<uint8_t>(num_elems, data, as_int);
  }
}

}  // namespace prunerc::runtime
