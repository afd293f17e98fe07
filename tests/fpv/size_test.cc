// Bits of coefficients, against the numbers that they are of.
#include "ir/fpv/size.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace prunerc::ir {
namespace {

const FpSize kInput = {};

TEST_CASE("constants that are exact stay known") {
  CHECK(sum(size_of(3), size_of(-3)) == size_of(0));
  CHECK(sum(size_of(0), kInput) == kInput);
  CHECK(product(size_of(3), size_of(0.5)) == size_of(1.5));
  CHECK(product(size_of(0), kInput) == size_of(0));
  CHECK(quotient(size_of(6), size_of(3)) == size_of(2));
  CHECK(sum_of(64, size_of(1)) == size_of(64));
  CHECK(quotient(size_of(1), size_of(3)).constant == 0);
  CHECK(sum(size_of(0x1p60), size_of(1)).constant == 0);
  CHECK(join(size_of(3), size_of(3)) == size_of(3));
  CHECK(join(size_of(3), size_of(5)).constant == 0);
}

TEST_CASE("differences of fractions are over a common denominator") {
  const FpSize third = quotient(size_of(1), size_of(3));
  const FpSize fifth = quotient(size_of(1), size_of(5));
  CHECK(bits_of(third) == Approx(0).margin(1e-9));
  // 1/3 + 1/5 = 8/15.
  CHECK(bits_of_difference(third, fifth) == Approx(3));
  CHECK(bits_of_difference(size_of(0x1p30), size_of(0x1p-30)) == Approx(60));
}

TEST_CASE("what one number divides is summed over that number") {
  const FpSize mean = quotient(sum_of(768, kInput), size_of(768));
  CHECK(mean.low == -8);
  CHECK(mean.high == Approx(0).margin(1e-9));
  CHECK(bits_of(mean) == Approx(8 + std::log2(3)));
  CHECK(bits_of(sum(mean, mean)) == Approx(9 + std::log2(3)));
  CHECK(bits_of(product(mean, mean)) == Approx(16 + 2 * std::log2(3)));
}

TEST_CASE("sums over many numbers have their least common multiple, or little more") {
  // Of 1 to 300: 424 bits beside 2^8.
  FpSize harmonic = size_of(0);
  for (int k = 1; k <= 300; ++k) harmonic = sum(harmonic, quotient(kInput, size_of(k)));
  CHECK(bits_of(harmonic) >= 424 + 8);
  CHECK(bits_of(harmonic) < 600);
  // Large ones have but what they multiply to.
  FpSize mixed = size_of(0);
  for (const float c : {0.3F, 0.7F, 0.9F, 0.11F}) {
    mixed = sum(mixed, quotient(kInput, size_of(double{c})));
  }
  CHECK(bits_of(mixed) < 128);
  CHECK(bits_of(mixed) >= 68);
}

TEST_CASE("joins with the same numbers again add nothing") {
  const auto cycle = [](FpSize all, int times) {
    for (int i = 0; i < times; ++i) {
      for (const float c : {0.3F, 0.7F, 0.9F, 0.11F}) {
        all = join(all, quotient(kInput, size_of(double{c})));
      }
    }
    return all;
  };
  CHECK(bits_of_difference(cycle(kInput, 1), kInput) <= 128);
  CHECK(cycle(kInput, 100) == cycle(kInput, 2));
}

TEST_CASE("a mean that a counter divides has the factorial, however it is written") {
  double factorial = 0;
  for (int k = 1; k <= 256; ++k) factorial += std::log2(k);
  FpSize divided = size_of(0), scaled = size_of(0);
  for (int k = 1; k <= 256; ++k) {
    divided = sum(divided, quotient(sum(kInput, divided), size_of(k)));
    scaled = sum(scaled, product(sum(kInput, scaled), quotient(size_of(1), size_of(k))));
  }
  for (const FpSize& mean : {divided, scaled}) {
    CHECK(bits_of(mean) >= factorial);
    CHECK(bits_of(mean) < 2 * factorial);
  }
}

TEST_CASE("an input in one term of a sum has that term's coefficient") {
  const FpSize score = product(sum_of(128, product(kInput, kInput)), size_of(0.0883883476F));
  CHECK(bits_of(score) == Approx(7 - std::log2(0x1p-27 / 0.0883883476)).epsilon(1e-6));
  CHECK(bits_of_term_difference(score) == Approx(bits_of(score) - 7 + 1));
  // An input of either beside all terms of the other.
  const FpSize pair = sum(kInput, product(kInput, size_of(4)));
  CHECK(pair.term == 2);
  CHECK(product(pair, pair).term == Approx(2 + std::log2(5)));
  CHECK(sum_of(8, pair).term == 2);
  CHECK(join(pair, kInput).term == 2);
  CHECK(product_of(2, pair).term == product(pair, pair).term);
  CHECK(quotient(pair, size_of(8)).term == -1);
  CHECK(sum(size_of(3), size_of(5)).term == 3);
}

TEST_CASE("bits of other denominators add up") {
  // 1 / (x + y).
  const FpSize ratio = quotient(kInput, sum(kInput, kInput));
  CHECK(ratio.den == 1);
  CHECK(sum(ratio, ratio).den == 2);
  CHECK(sum_of(64, ratio).den == 64);
  CHECK(bits_of(sum(ratio, ratio)) == Approx(2));
  CHECK(quotient(size_of(0.25), sum(kInput, size_of(0.125))).den == Approx(std::log2(9)));
}

TEST_CASE("a difference has no more bits than both shares and 1") {
  const std::vector<FpSize> all = {
      kInput,
      size_of(0.3),
      size_of(0x1p-40),
      size_of(50176),
      size_below(256),
      quotient(sum_of(7, kInput), size_of(7)),
      product(size_of(0.125), sum_of(64, kInput)),
      sum_of(9, quotient(sum_of(3, kInput), sum(kInput, size_of(0.7)))),
  };
  for (const FpSize& a : all) {
    for (const FpSize& b : all) {
      const double bits = bits_of_difference(a, b);
      CHECK(bits <= bits_in_differences(a) + bits_in_differences(b) + 1 + 1e-9);
      // Of which each has its share of primes: cone.cc.
      const auto primes = [](const FpSize& x) {
        return primes_in(bits_in_differences(x) + 15, 29);
      };
      CHECK(primes_in(bits, 29) <= primes(a) + primes(b));
    }
  }
  CHECK(primes_in(28.9, 29) == 0);
  CHECK(primes_in(29, 29) == 1);
}

TEST_CASE("what is too large for a double has no bound") {
  FpSize square = size_of(0.3);
  for (int k = 0; k < 1100; ++k) square = product(square, square);
  CHECK(std::isinf(bits_of(square)));
  CHECK(std::isinf(bits_of(sum(kInput, square))));
  CHECK(std::isinf(bits_of(quotient(kInput, square))));
  CHECK(std::isinf(bits_of(quotient(square, square))));
  CHECK(std::isinf(bits_in_differences(square)));
}

}  // namespace
}  // namespace prunerc::ir
