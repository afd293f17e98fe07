// Abstract expressions: what a term is made of, whatever the order of its operations. Subscripts are
// forgotten, so that a form says which terms can be a part of which.
#ifndef PRUNERC_SEARCH_ALGEBRA_NORMAL_FORM_H_
#define PRUNERC_SEARCH_ALGEBRA_NORMAL_FORM_H_

#include "search/algebra/term.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::search::algebra {

using NfId = int32_t;
using FactorId = int32_t;

/// What monomials are products of. Two factors that differ in axes alone have one hash.
struct Factor {
  enum class Kind : uint8_t {
    kInput,        // an element of a buffer
    kConst,        // a number other than 0, 1 and -1, without its sign
    kExtent,       // [k]: what a sum over axis k multiplies by
    kMask,         // 1 where a condition holds
    kExp,          // exp of the one monomial of forms[0], or of minus it
    kInverse,      // 1 / base
    kInverseForm,  // 1 / forms[0], a sum
    kFunction,     // another function of forms
    kExtreme,      // the largest (smallest) of forms
  };
  Kind kind = Kind::kInput;
  bool negative = false;  // of kExp: exp(-forms[0]); of kMask: where the condition does not hold
  bool closed = false;    // of kExp: a sum over one of its axes is around it
  AxisSet axes = 0;       // of kExp
  FactorId base = -1;     // of kInverse; of kMask the one that is not negated
  uint64_t hash = 0;
  std::vector<NfId> forms;
};

/// count times a product. Hashes of products are sums of hashes; a sign adds kSignHash.
struct Monomial {
  std::vector<std::pair<FactorId, int>> factors;  // ascending; exponents are positive
  bool negative = false;
  int count = 1;
  AxisSet axes = 0;
  uint64_t hash = 0;
  bool operator==(const Monomial&) const = default;
};
inline constexpr uint64_t kSignHash = uint64_t{1} << 63;

/// A multiset of monomials, ascending by hash, each hash once. Nothing cancels: x - x is two
/// monomials, x / x a product of two factors.
struct Form {
  std::vector<Monomial> monomials;
  bool beyond = false;  // more than kMaxMonomials: nothing is known of it
  static constexpr std::size_t kMaxMonomials = 64;
};

/// A form as hashes and counts alone, if it has at most kMaxParts monomials.
struct HashedForm {
  static constexpr int kMaxParts = 8;
  struct Part {
    uint64_t hash = 0;
    int count = 0;
  };
  std::array<Part, kMaxParts> parts;
  int size = 0;
  bool beyond = false;

  void add(uint64_t hash, int count);
};
HashedForm product(const HashedForm& a, const HashedForm& b);
HashedForm sum(const HashedForm& a, const HashedForm& b);
/// a - b.
HashedForm difference(const HashedForm& a, const HashedForm& b);
/// `a` times what has this hash.
HashedForm scaled(const HashedForm& a, uint64_t hash);

struct FormOptions {
  /// e^a e^-a is 1 where neither depends on an axis that is summed over: a factor that both sides of
  /// a ratio have vanishes, so raw and shifted softmax are one form.
  bool gauge = false;
};

/// Forms of the terms of one graph, each kept once.
/// Threads: one at a time.
class NormalForms {
 public:
  explicit NormalForms(FormOptions options = {});

  /// Cost: O(terms below that are new).
  NfId of(const TermGraph& graph, TermId id);
  /// Of `term`, whose args have these forms; term.free must be filled in where it has no args.
  NfId apply(const Term& term, std::span<const NfId> args);
  NfId inverse(NfId id);
  NfId product(NfId a, NfId b);
  NfId sum(NfId a, NfId b) { return sum(a, b, false); }
  NfId summed(AxisSet bound, NfId id);
  /// The form of these monomials.
  NfId make(Form form);
  NfId make_factor(FactorId factor);
  NfId make_extreme(bool is_max, std::vector<NfId> members, AxisSet axes);
  /// exp(-x) of a factor that is exp(x).
  FactorId opposite(FactorId exp);

  const Form& form(NfId id) const { return forms_[static_cast<std::size_t>(id)].form; }
  const HashedForm& hashed(NfId id) const { return forms_[static_cast<std::size_t>(id)].hashed; }
  /// Equal for forms that differ in axes alone.
  uint64_t hash(NfId id) const { return forms_[static_cast<std::size_t>(id)].hash; }
  const Factor& factor(FactorId id) const { return factors_[static_cast<std::size_t>(id)]; }
  /// What a sum over these axes adds to hashes.
  uint64_t extent_hash(AxisSet bound) const;

 private:
  struct Entry {
    Form form;
    HashedForm hashed;
    uint64_t hash = 0;
  };

  NfId sum(NfId a, NfId b, bool negate_b);
  NfId constant(double value);
  NfId mask(const Term& term);
  NfId select(std::span<const NfId> args);
  NfId call(const Term& term, std::span<const NfId> args);
  NfId exponential(NfId id);
  NfId function(uint64_t name, std::span<const NfId> args, AxisSet bound);
  NfId extreme(bool is_max, std::span<const NfId> args, AxisSet bound);
  NfId inverse_of_sum(Form rest, AxisSet axes);
  NfId primitive(Form rest);
  void note_divisor(NfId id);
  bool is_beyond(NfId id) const { return form(id).beyond; }
  AxisSet axes_of(NfId id) const;

  FactorId intern(Factor factor);
  Monomial single(FactorId factor, AxisSet axes) const;
  Monomial times(const Monomial& a, const Monomial& b) const;
  void cancel(Monomial& m) const;
  FactorId inverse_factor(FactorId id);
  std::optional<Form> divide(Form whole, const Form& by) const;

  FormOptions options_;
  std::vector<Entry> forms_;
  std::unordered_map<uint64_t, std::vector<NfId>> by_hash_;
  std::vector<Factor> factors_;
  std::unordered_map<uint64_t, FactorId> factor_ids_;
  std::unordered_map<TermId, NfId> of_term_;
  std::unordered_map<NfId, NfId> inverses_;
  std::vector<NfId> divisors_;  // sums that may be factors of denominators
};

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_NORMAL_FORM_H_
