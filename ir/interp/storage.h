// One element in memory, by type: what tensors and the interpreter share.
#ifndef PRUNERC_IR_INTERP_STORAGE_H_
#define PRUNERC_IR_INTERP_STORAGE_H_

#include "ir/dtype.h"
#include "ir/support/check.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace prunerc::ir {

template <typename T>
T load_raw(const std::byte* data, int64_t position) {
  T value;
  std::memcpy(&value, data + position * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store_raw(std::byte* data, int64_t position, T value) {
  std::memcpy(data + position * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

inline double load_float(const std::byte* data, DType dtype, int64_t position) {
  switch (dtype) {
    case DType::kF64: return load_raw<double>(data, position);
    case DType::kF32: return static_cast<double>(load_raw<float>(data, position));
    case DType::kF16: return f16_value(load_raw<uint16_t>(data, position));
    case DType::kBF16: return bf16_value(load_raw<uint16_t>(data, position));
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: break;
  }
  PRUNERC_UNREACHABLE("load_float of an integer type");
}

/// Rounds to the type.
inline void store_float(std::byte* data, DType dtype, int64_t position, double value) {
  switch (dtype) {
    case DType::kF64: return store_raw(data, position, value);
    case DType::kF32: return store_raw(data, position, static_cast<float>(value));
    case DType::kF16: return store_raw(data, position, f16_bits(value));
    case DType::kBF16: return store_raw(data, position, bf16_bits(value));
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: break;
  }
  PRUNERC_UNREACHABLE("store_float of an integer type");
}

inline int64_t load_int(const std::byte* data, DType dtype, int64_t position) {
  switch (dtype) {
    case DType::kI64: return load_raw<int64_t>(data, position);
    case DType::kI32: return load_raw<int32_t>(data, position);
    case DType::kI8: return load_raw<int8_t>(data, position);
    case DType::kU8: return load_raw<uint8_t>(data, position);
    case DType::kBool: return load_raw<uint8_t>(data, position) != 0 ? 1 : 0;
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: break;
  }
  PRUNERC_UNREACHABLE("load_int of a float type");
}

/// The value is already in the type's range.
inline void store_int(std::byte* data, DType dtype, int64_t position, int64_t value) {
  switch (dtype) {
    case DType::kI64: return store_raw(data, position, value);
    case DType::kI32: return store_raw(data, position, static_cast<int32_t>(value));
    case DType::kI8: return store_raw(data, position, static_cast<int8_t>(value));
    case DType::kU8:
    case DType::kBool: return store_raw(data, position, static_cast<uint8_t>(value));
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: break;
  }
  PRUNERC_UNREACHABLE("store_int of a float type");
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_STORAGE_H_
