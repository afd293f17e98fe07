#include "ir/dtype.h"

#include "ir/support/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace prunerc::ir {
namespace {

struct DTypeRow {
  std::string_view name;
  int64_t num_bytes;
  int64_t low;
  int64_t high;
};

constexpr DTypeRow kRows[kNumDTypes] = {
    {"f64", 8, 0, 0},
    {"f32", 4, 0, 0},
    {"f16", 2, 0, 0},
    {"bf16", 2, 0, 0},
    {"i64", 8, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()},
    {"i32", 4, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()},
    {"i8", 1, -128, 127},
    {"u8", 1, 0, 255},
    {"bool", 1, 0, 1},
};

const DTypeRow& row(DType t) { return kRows[static_cast<std::size_t>(t)]; }

// Rounds to a format with `precision` significant bits, least exponent `min_exponent` of a normal
// number.
double round_to_format(double value, int precision, int min_exponent, double largest) {
  if (!std::isfinite(value) || value == 0.0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int unit = std::max(exponent - 1, min_exponent) - (precision - 1);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::fabs(rounded) > largest) return std::copysign(HUGE_VAL, value);
  return rounded;
}

}  // namespace

int64_t byte_size(DType t) { return row(t).num_bytes; }
std::string_view to_string(DType t) { return row(t).name; }
int64_t min_int(DType t) { return row(t).low; }
int64_t max_int(DType t) { return row(t).high; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

double max_finite(DType t) {
  switch (t) {
    case DType::kF64: return std::numeric_limits<double>::max();
    case DType::kF32: return static_cast<double>(std::numeric_limits<float>::max());
    case DType::kF16: return 65504.0;
    case DType::kBF16: return 0x1.FEp127;
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: break;
  }
  PRUNERC_UNREACHABLE("max_finite of a type that is no float");
}

double round_to(DType t, double value) {
  switch (t) {
    case DType::kF64: return value;
    case DType::kF32: return static_cast<double>(static_cast<float>(value));
    case DType::kF16: return round_to_format(value, 11, -14, 65504.0);
    case DType::kBF16: return round_to_format(value, 8, -126, 0x1.FEp127);
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: break;
  }
  PRUNERC_UNREACHABLE("round_to a type that is no float");
}

int64_t wrap_to(DType t, int64_t value) {
  switch (t) {
    case DType::kI64: return value;
    case DType::kI32: return static_cast<int32_t>(static_cast<uint32_t>(value));
    case DType::kI8: return static_cast<int8_t>(static_cast<uint8_t>(value));
    case DType::kU8: return static_cast<uint8_t>(value);
    case DType::kBool: return value != 0 ? 1 : 0;
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: break;
  }
  PRUNERC_UNREACHABLE("wrap_to a float type");
}

int64_t saturate_to(DType t, double value) {
  if (std::isnan(value)) return 0;
  const double cut = std::trunc(value);
  if (cut <= static_cast<double>(min_int(t))) return min_int(t);
  if (cut >= static_cast<double>(max_int(t))) return max_int(t);
  return static_cast<int64_t>(cut);
}

uint16_t bf16_bits(double value) {
  const float f = static_cast<float>(round_to(DType::kBF16, value));
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>(bits >> 16);
}

double bf16_value(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

uint16_t f16_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00);
  const double r = std::fabs(round_to(DType::kF16, value));
  if (std::isinf(r)) return static_cast<uint16_t>(sign | 0x7C00);
  if (r < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(r * 0x1p24));
  int exponent = 0;
  const double mantissa = std::frexp(r, &exponent);  // in [0.5, 1)
  const auto fraction = static_cast<uint16_t>((mantissa * 2.0 - 1.0) * 1024.0);
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) | fraction);
}

double f16_value(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace prunerc::ir
