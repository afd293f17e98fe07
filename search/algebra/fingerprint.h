// Fingerprints: terms evaluated in finite fields, so that equal computations get equal prints. A
// collision costs a candidate that a check refutes later; nothing rests on prints alone.
#ifndef PRUNERC_SEARCH_ALGEBRA_FINGERPRINT_H_
#define PRUNERC_SEARCH_ALGEBRA_FINGERPRINT_H_

#include "ir/fpv/field.h"
#include "ir/support/hash.h"
#include "search/algebra/term.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace prunerc::search::algebra {

/// One value: residues modulo p and q, where p = 2q + 1. After exp only the former is known.
struct Residues {
  uint32_t p = 0, q = 0;
  bool operator==(const Residues&) const = default;
};

/// The values of a term over its free axes, those of one world after those of the other; in a world
/// the last axis runs fastest.
struct TermValues {
  AxisSet free = 0;
  std::vector<Residues> values;
};

/// What the operations of terms mean in one choice of fields, inputs and keys. exp is a power of a
/// generator modulo p, by the residue modulo q; functions without laws are keyed hashes, maxima
/// keyed hashes of the set of values joined, as in ir/fpv.
class PrintWorld {
 public:
  explicit PrintWorld(uint64_t seed);

  Residues input(uint64_t name) const;
  Residues constant(double value) const;
  Residues whole(int64_t value) const { return {p_.of(value), q_.of(value)}; }
  Residues add(Residues a, Residues b);
  Residues negate(Residues a) const;
  Residues mul(Residues a, Residues b);
  /// a / b, given 1/b.
  Residues inverse(Residues a);
  Residues call(ir::Intrinsic intrinsic, std::span<const Residues> args);
  Residues hash(uint64_t function, std::span<const Residues> args) const;
  Residues power(Residues a, int64_t exponent);
  Residues extreme(bool is_max, Residues a, Residues b);
  /// Something had no value: a division by 0, infinity times something.
  bool undefined() const { return undefined_; }
  void forget_undefined() { undefined_ = false; }

 private:
  Residues exp(Residues a) const;
  Residues fail() {
    undefined_ = true;
    return {};
  }

  uint64_t key_;
  ir::Modulus p_, q_;
  std::array<std::array<uint32_t, 256>, 4> powers_;  // of the generator, by byte of the exponent
  std::array<std::unordered_map<uint32_t, std::vector<Residues>>, 2> sets_;  // of max and min
  bool undefined_ = false;
};

/// Evaluates terms. An axis of extent n > 1 has two places; a sum weighs them by whole numbers that
/// add up to n, as if each stood for so many equal elements, so that laws about extents hold as
/// well. Axes of equal extent have the same places and weights: a bound axis may be renamed.
/// Threads: one at a time.
class Fingerprints {
 public:
  Fingerprints(std::span<const Axis> axes, uint64_t seed);

  /// Nullopt: it has no value here (1/0, infinity minus infinity), or too many free axes.
  std::optional<TermValues> of(const TermGraph& graph, TermId id);
  /// Of `term`, whose args have these values; term.free must be filled in where it has no args.
  std::optional<TermValues> apply(const Term& term, std::span<const TermValues* const> args);
  /// sum over `bound` of a*b.
  std::optional<TermValues> contract(AxisSet bound, const TermValues& a, const TermValues& b);

  /// Free axes and values; q is left out, so that e^x / e^x is 1.
  static Fingerprint print(const TermValues& values);

  /// More free axes have too many values to be worth it.
  static constexpr int kMaxFreeAxes = 10;

 private:
  static constexpr int kNumWorlds = 2;
  using Places = std::vector<int64_t>;
  using Offsets = std::vector<uint16_t>;

  std::size_t size_of(AxisSet axes) const;
  const Offsets& offsets(AxisSet whole, AxisSet part);
  const std::vector<int64_t>& weights(AxisSet whole, AxisSet bound);
  std::vector<int64_t> places_at(AxisSet whole, std::size_t index) const;
  std::vector<Residues> load(const Term& term) const;
  std::vector<Residues> mask(const Term& term) const;
  template <typename F>
  TermValues map(AxisSet free, std::span<const TermValues* const> args, F f);
  TermValues reduce(const Term& term, const TermValues& arg);
  TermValues divide(const TermValues& a, const TermValues& b);
  std::optional<TermValues> checked(TermValues values);

  std::vector<Axis> axes_;
  std::vector<Places> places_, weights_of_;  // by axis
  std::vector<PrintWorld> worlds_;
  std::unordered_map<uint64_t, Offsets> offsets_;
  std::unordered_map<uint64_t, std::vector<int64_t>> weights_;
  std::unordered_map<TermId, std::optional<TermValues>> known_;
};

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_FINGERPRINT_H_
