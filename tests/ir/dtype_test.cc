// Scalar types: every 16-bit pattern, rounding against the processor's own conversion, saturation.
#include "ir/dtype.h"

#include "ir/support/rng.h"

#include <catch2/catch.hpp>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>

namespace prunerc::ir {
namespace {

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// Floats worth trying: random patterns, and the neighbourhood of every 16-bit value.
template <typename F>
void for_each_interesting_float(F&& f) {
  Rng rng(1);
  for (int i = 0; i < 300000; ++i) f(float_of(static_cast<uint32_t>(rng.next())));
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x7FFFu, 0x8000u, 0x8001u}) {
      f(float_of(high << 16 | low));
    }
  }
}

TEST_CASE("every f16 and bf16 pattern survives the way to double and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const double half = f16_value(pattern);
    if (!std::isnan(half)) {
      REQUIRE(f16_bits(half) == pattern);
      REQUIRE(round_to(DType::kF16, half) == half);
    }
    const double brain = bf16_value(pattern);
    if (!std::isnan(brain)) {
      REQUIRE(bf16_bits(brain) == pattern);
      REQUIRE(round_to(DType::kBF16, brain) == brain);
    }
  }
  CHECK(std::isnan(f16_value(f16_bits(std::nan("")))));
  CHECK(std::isnan(bf16_value(bf16_bits(std::nan("")))));
}

TEST_CASE("f16 values agree with the processor for every pattern") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float hardware = _cvtsh_ss(static_cast<uint16_t>(bits));
    const double ours = f16_value(static_cast<uint16_t>(bits));
    if (std::isnan(hardware)) {
      REQUIRE(std::isnan(ours));
    } else {
      REQUIRE(ours == static_cast<double>(hardware));
    }
  }
}

TEST_CASE("f16 rounding agrees with the processor") {
  for_each_interesting_float([](float value) {
    if (std::isnan(value)) return;
    const auto hardware = static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
    if (f16_bits(static_cast<double>(value)) != hardware) {
      FAIL("value " << value << ": " << f16_bits(static_cast<double>(value)) << " " << hardware);
    }
  });
}

TEST_CASE("bf16 rounding is to the nearest, ties to even") {
  for_each_interesting_float([](float value) {
    if (std::isnan(value)) return;
    // Adding half a unit, less one for an even result, carries exactly when the value rounds up.
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto expected = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    if (bf16_bits(static_cast<double>(value)) != expected) {
      FAIL("value " << value << ": " << bf16_bits(static_cast<double>(value)) << " " << expected);
    }
  });
}

TEST_CASE("a double between two f16 values rounds once") {
  // 1 + 2^-11 + 2^-40 lies above the tie, which a detour over f32 would lose.
  CHECK(round_to(DType::kF16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
  CHECK(round_to(DType::kF16, 1 + 0x1p-11) == 1);
  CHECK(round_to(DType::kBF16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  CHECK(round_to(DType::kF16, 65519.99) == 65504);
  CHECK(std::isinf(round_to(DType::kF16, 65520)));
  CHECK(std::signbit(round_to(DType::kF16, -1e-30)));
}

TEST_CASE("an integer becomes an f32 by one rounding") {
  // Just above the middle between two f32: by way of a double it is the middle, which is rounded to even.
  constexpr int64_t kMiddle = (int64_t{1} << 60) + (int64_t{1} << 36);
  CHECK(float_of(DType::kF32, kMiddle + 1) == 0x1p60 + 0x1p37);
  CHECK(float_of(DType::kF32, -kMiddle - 1) == -0x1p60 - 0x1p37);
  CHECK(float_of(DType::kF32, kMiddle) == 0x1p60);
  CHECK(float_of(DType::kF64, kMiddle + 1) == 0x1p60 + 0x1p36);
  CHECK(float_of(DType::kBF16, 257) == 256);
  CHECK(std::isinf(float_of(DType::kF16, 65520)));
}

TEST_CASE("integers wrap and floats saturate") {
  CHECK(wrap_to(DType::kI8, 128) == -128);
  CHECK(wrap_to(DType::kU8, -1) == 255);
  CHECK(wrap_to(DType::kI32, int64_t{1} << 31) == -(int64_t{1} << 31));
  CHECK(wrap_to(DType::kBool, 6) == 1);
  CHECK(saturate_to(DType::kI8, 1e9) == 127);
  CHECK(saturate_to(DType::kI8, -128.9) == -128);
  CHECK(saturate_to(DType::kU8, -0.9) == 0);
  CHECK(saturate_to(DType::kI32, -2.9) == -2);
  CHECK(saturate_to(DType::kI32, std::nan("")) == 0);
  CHECK(saturate_to(DType::kI64, HUGE_VAL) == std::numeric_limits<int64_t>::max());
  CHECK(saturate_to(DType::kI64, -0x1p63) == std::numeric_limits<int64_t>::min());
}

TEST_CASE("type names read back and unknown ones do not") {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    CHECK(dtype_from_string(to_string(type)) == type);
    CHECK(byte_size(type) >= 1);
  }
  for (const char* name : {"", "f", "f31", "F32", "int", "f32 ", "u16"}) {
    CHECK_FALSE(dtype_from_string(name).has_value());
  }
}

}  // namespace
}  // namespace prunerc::ir
