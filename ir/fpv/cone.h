// FpCone: what one value is made of, for the bound on missed differences: its degrees, its coefficients, and the
// arguments that were hashed on the way. Internal.
#ifndef PRUNERC_IR_FPV_CONE_H_
#define PRUNERC_IR_FPV_CONE_H_

#include "ir/fpv/size.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace prunerc::ir {

/// Which there may be among several values: some with a residue modulo q, some without.
struct FpKinds {
  bool kept = true, lost = false;
};

/// Hashed arguments, each as often as it is used. Two without residues modulo q are equal by chance with
/// (weight + weight) / p at most: DESIGN.md, D13 and D15.
struct FpPoints {
  double hashed = 0, squares = 0;  // of all: their number; (degree + 1)^2, added up
  double lost = 0;                 // of those without a residue modulo q: their number;
  double weight = 0, weight2 = 0;  // their weights, and the squares of these, added up
  FpSize kept = {};                // of any of those that have one
  double whole = 0;                // whole numbers that they may be taken for, by other primes each
  double powers = 0;               // exponents, each as often as it is used
  FpSize exponent = {};            // of any of these
  double degree = 0;               // the largest of a hashed argument
  bool operator==(const FpPoints&) const = default;
};
FpPoints operator+(const FpPoints& a, const FpPoints& b);
FpPoints operator*(double n, const FpPoints& a);
/// What both bound.
FpPoints at_most(const FpPoints& a, const FpPoints& b);

/// Upper bounds for one value, or for several.
struct FpCone {
  double num = 0,
         den = 0;        // degrees of numerator and denominator in inputs, exponentials and hashes
  bool is_term = false;  // a constant times one of these
  FpPoints points;
  FpSize size = {};
  bool operator==(const FpCone&) const = default;
};
inline constexpr FpCone kAtomCone = {1, 0, true, {}};
/// Of a constant that a world has a random value for, or none as it is infinite.
FpCone opaque_cone();
/// Of another constant.
FpCone cone_of(double constant);

/// One of both.
FpCone join(const FpCone& a, const FpCone& b);
FpCone sum(const FpCone& a, const FpCone& b);
FpCone product(const FpCone& a, const FpCone& b);
FpCone quotient(const FpCone& a, const FpCone& b);
/// Of n such values.
FpCone sum_of(double n, const FpCone& each);
FpCone product_of(double n, const FpCone& each);
/// The largest or smallest of `a` and n values `b`: one of them, or a hash that `made` is of.
FpCone extreme_of(const FpCone& a, double n, const FpCone& b, const FpPoints& made);
/// An argument that is hashed.
FpPoints point(const FpCone& argument, FpKinds kinds);
/// The same of a function that may keep small whole numbers.
FpPoints call_point(const FpCone& argument, FpKinds kinds);
/// Primes that may divide the difference of two multiples of exponents, by less than this degree.
double primes_of_exponents(const FpPoints& a, double degree);
/// An exponent that has a residue modulo q.
FpPoints exponent_point(const FpCone& exponent);

enum class FpConeOp : uint8_t { kJoin, kSum, kDifference, kProduct, kQuotient, kSumOf, kProductOf };

/// Numbers in place of cones, of which a program makes few: those of equal sums are the same, term by term. Beyond
/// `most` cones the last number is one for all others, and stands for what bounds them all.
class FpCones {
 public:
  explicit FpCones(std::size_t most = std::size_t{1} << 18) : most_(most) {}
  uint32_t id_of(const FpCone& cone);
  /// Of two cones, or of b values of one (kSumOf, kProductOf); what was made lately is remembered.
  uint32_t made_of(FpConeOp op, uint32_t a, uint32_t b);
  /// Not to be kept: the next new cone moves all.
  const FpCone& at(uint32_t id) const { return all_[id]; }

 private:
  static constexpr std::size_t kMade = 4096;
  struct Hash {
    std::size_t operator()(const FpCone& cone) const;
  };
  struct Made {
    FpConeOp op = FpConeOp::kJoin;
    uint32_t a = 0, b = 0, out = 0;  // the default holds
  };
  FpCone make(FpConeOp op, uint32_t a, uint32_t b) const;

  std::vector<Made> made_ = std::vector<Made>(kMade);
  std::vector<FpCone> all_ = {FpCone{}};  // 0: of a constant
  std::unordered_map<FpCone, uint32_t, Hash> ids_;
  uint32_t last_ = 0;
  std::size_t most_;
  bool is_full_ = false;  // the last one stands for several
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_CONE_H_
