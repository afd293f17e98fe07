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

constexpr int kF64FractionBits = 52;
constexpr int kF64Bias = 1023;
constexpr int kF16FractionBits = 10;
constexpr int kBF16FractionBits = 7;

/// Drops `count` low bits, to the nearest, ties to even.
uint64_t drop_bits(uint64_t bits, int count) {
  const uint64_t half = uint64_t{1} << (count - 1);
  return (bits + (half - 1) + ((bits >> count) & 1)) >> count;
}

/// The pattern of a format of 16 bits; no NaN. A carry out of the fraction counts the exponent up,
/// which is what rounding up to a power of two does, and to infinity.
uint16_t round_to_bits(double value, int fraction_bits, int bias) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 48) & 0x8000);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const uint64_t infinity = ((uint64_t{1} << (15 - fraction_bits)) - 1) << fraction_bits;
  const int exponent = static_cast<int>(magnitude >> kF64FractionBits) - kF64Bias + bias;
  const int dropped = kF64FractionBits - fraction_bits;
  uint64_t rounded = 0;
  if (exponent > 0) {
    const uint64_t rebased =
        magnitude - (static_cast<uint64_t>(kF64Bias - bias) << kF64FractionBits);
    rounded = std::min(infinity, drop_bits(rebased, dropped));
  } else if (exponent > -fraction_bits - 1) {
    const uint64_t one = uint64_t{1} << kF64FractionBits;
    rounded = drop_bits((magnitude & (one - 1)) | one, dropped + 1 - exponent);
  }
  return static_cast<uint16_t>(sign | rounded);
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

double float_of(DType t, int64_t value) {
  if (t == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return round_to(t, static_cast<double>(value));
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
  if (!std::isnan(value)) return round_to_bits(value, kBF16FractionBits, 127);
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits >> 16) | 0x40);
}

double bf16_value(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

uint16_t f16_bits(double value) {
  if (!std::isnan(value)) return round_to_bits(value, kF16FractionBits, 15);
  return std::signbit(value) ? 0xFE00 : 0x7E00;
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
