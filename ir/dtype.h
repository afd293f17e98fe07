// The scalar types of programs, their sizes, names and rounding.
#ifndef PRUNERC_IR_DTYPE_H_
#define PRUNERC_IR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace prunerc::ir {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8, kBool };
inline constexpr int kNumDTypes = 9;

constexpr bool is_float(DType t) { return t <= DType::kBF16; }
constexpr bool is_int(DType t) { return t >= DType::kI64 && t <= DType::kU8; }
constexpr bool is_bool(DType t) { return t == DType::kBool; }

/// Size of one element in bytes; bool takes one.
int64_t byte_size(DType t);
/// "f32".
std::string_view to_string(DType t);
std::optional<DType> dtype_from_string(std::string_view name);

/// Smallest and largest value of an integer type or bool.
int64_t min_int(DType t);
int64_t max_int(DType t);
/// Largest finite value of a float type.
double max_finite(DType t);

/// Rounds a double to the nearest value of float type `t` (ties to even; overflow gives infinity).
double round_to(DType t, double value);
/// The nearest value of float type `t` to an integer: an f32 at once, as a double that is rounded again may be the
/// one beside it; f16 and bf16 by way of a double.
double float_of(DType t, int64_t value);
/// Wraps to the range of integer type `t` (two's complement); bool gives value != 0.
int64_t wrap_to(DType t, int64_t value);
/// Float to integer as the language defines it: truncate, saturate, NaN gives 0.
int64_t saturate_to(DType t, double value);

/// Bit conversions for the 16-bit floats.
uint16_t f16_bits(double value);
double f16_value(uint16_t bits);
uint16_t bf16_bits(double value);
double bf16_value(uint16_t bits);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_DTYPE_H_
