// FpWorld: one random choice of primes, root of unity, hash keys and inputs, and what each scalar
// operation means in it.
#ifndef PRUNERC_IR_FPV_WORLD_H_
#define PRUNERC_IR_FPV_WORLD_H_

#include "ir/expr.h"
#include "ir/fpv/field.h"
#include "ir/fpv/value.h"
#include "ir/fpv/value_set.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::ir {

/// What max, min and comparisons of floats are. Sets: no order, comparisons must not occur.
/// Ordered: one random total order of all values, for programs that compare them.
enum class OrderModel : uint8_t { kSets, kOrdered };

/// Inputs of floats: all different, or few values each of which occurs often, to see what happens
/// between equals, one of them often what the program compares with. The latter prove nothing about
/// arithmetic.
enum class InputModel : uint8_t { kAllDifferent, kFewValues };

enum class Extreme : uint8_t { kMax, kMin };

/// Threads: one at a time.
class FpWorld {
 public:
  FpWorld(uint64_t seed, const PrimeRange& range, OrderModel order,
          InputModel inputs = InputModel::kAllDifferent, WorldWidth width = WorldWidth::kOne);

  const Modulus& p() const { return p_; }
  const Modulus& q() const { return q_; }
  bool is_wide() const { return primes_[2] != 0; }
  /// The second pair of a wide world.
  const Modulus& p2() const { return p2_; }
  const Modulus& q2() const { return q2_; }
  uint64_t seed() const { return seed_; }
  OrderModel order() const { return order_; }
  /// One of the few values of inputs, in place of a random one.
  void set_common(FpValue value) { common_ = value; }
  /// A quarter of integer inputs is of these.
  void set_common_ints(std::vector<int64_t> values) { common_ints_ = std::move(values); }

  // Field operations; infinities behave as in IEEE arithmetic where that does not depend on a sign.
  FpValue add(FpValue a, FpValue b);
  FpValue sub(FpValue a, FpValue b) { return add(a, negate(b)); }
  FpValue mul(FpValue a, FpValue b);
  FpValue div(FpValue a, FpValue b);
  FpValue negate(FpValue a) const;

  FpValue of_int(int64_t value) const;
  FpValue of_float(double value, DType dtype);
  /// Whether that is not the constant but a random value or an infinity.
  static bool is_opaque(double value, DType dtype);
  /// A random value that depends on (buffer, position) alone.
  FpValue input(uint64_t buffer, int64_t position) const;
  int64_t int_input(DType dtype, uint64_t buffer, int64_t position, int64_t small) const;

  FpValue call(Intrinsic intrinsic, FpValue x, FpValue y);
  FpValue exp(FpValue x);
  /// Rounding to a type that does not hold all values of the operand's.
  FpValue narrow(DType to, FpValue x);
  /// Conversion to an integer type: truncates and saturates.
  int64_t to_int(DType to, FpValue x);
  static bool is_nonzero(FpValue x) { return (x.p | x.p2) != 0 || ((x.q | x.q2) & ~kLost) != 0; }

  FpValue max(DType dtype, FpValue a, FpValue b);
  FpValue min(DType dtype, FpValue a, FpValue b);
  /// The largest (smallest) of a and the values. Cost: less than one by one.
  FpValue extreme(Extreme which, DType dtype, FpValue a, std::span<const FpValue> values);
  bool less(FpValue a, FpValue b) const;

  /// A denominator was 0: the choice of inputs decides nothing.
  bool divided_by_zero() const { return divided_by_zero_; }
  /// An operation needed the sign of an infinite result.
  bool undefined() const { return undefined_; }
  /// Whole numbers whose values some hashed functions keep.
  double num_small() const { return static_cast<double>(2 * small_limit_ + 1); }
  bool too_large() const { return max_sets_.num_nodes() + min_sets_.num_nodes() > kMaxNodes; }

 private:
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 24;
  static constexpr int kWindow = 10;  // bits of an exponent looked up at once

  using Powers = std::array<std::array<uint32_t, 1 << kWindow>, 3>;

  static void set_powers(Rng& rng, const Modulus& p, Powers* powers);
  static uint32_t power(const Powers& powers, const Modulus& p, uint32_t exponent);
  template <typename Op>
  FpValue each(FpValue a, FpValue b, const Op& op) const;
  FpValue lost(uint32_t p, uint32_t p2) const { return {p, kLost, p2, is_wide() ? kLost : 0}; }
  FpValue hash(uint64_t function, FpValue x, FpValue y) const;
  uint64_t rank(FpValue x) const;
  FpValue lowest(DType dtype) const { return lowest_[static_cast<std::size_t>(dtype)]; }
  FpValue highest(DType dtype) const { return negate(lowest(dtype)); }
  /// Whether x is a whole number of magnitude at most small_limit_, or 1 without a residue modulo q.
  bool small_int(FpValue x, int64_t* value) const;
  FpValue undefined_value() {
    undefined_ = true;
    return {};
  }

  uint64_t seed_;
  uint64_t key_;
  Modulus p_, q_, p2_, q2_;
  FpPrimes primes_;  // these; 0: there is no second pair
  OrderModel order_;
  InputModel inputs_;
  std::optional<FpValue> common_;
  std::vector<int64_t> common_ints_;
  int64_t small_limit_;
  std::array<FpValue, 4> lowest_;  // by float type
  Powers powers_, powers2_;        // omega^(i * 2^(10 j)), mod p and mod p2
  ValueSets max_sets_, min_sets_;
  bool divided_by_zero_ = false;
  bool undefined_ = false;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_WORLD_H_
