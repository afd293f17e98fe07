// check_equivalent: whether two programs compute the same, decided in finite fields with a bound on
// the chance of a wrong "yes"; reports races, unwritten and out-of-range elements on the way.
#ifndef PRUNERC_IR_FPV_FPV_H_
#define PRUNERC_IR_FPV_FPV_H_

#include "ir/fpv/field.h"
#include "ir/program.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::ir {

enum class VerdictKind : uint8_t {
  kEqual,
  kNotEqual,     // an output element differs
  kInvalid,      // the candidate does what no program may: see FpvVerdict::text
  kSpecInvalid,  // what it is compared with does so: nothing can be equal to it
  kUnsupported,  // nothing is known
};
/// "equal", "not equal", "invalid", "reference invalid", "unsupported".
std::string_view to_string(VerdictKind kind);

/// On what the bound rests beside randomness; README.md says what each means.
struct FpvAssumptions {
  bool private_exponents =
      false;               // exponents of exp are more than an input, or a sum or difference of two
  bool orders = false;     // floats are compared, or integer data decides
  bool roundings = false;  // roundings to narrower floats were ignored
  bool operator==(const FpvAssumptions&) const = default;
  bool none() const { return !private_exponents && !orders && !roundings; }
  void add(const FpvAssumptions& other) {
    private_exponents |= other.private_exponents;
    orders |= other.orders;
    roundings |= other.roundings;
  }
};

struct FpvVerdict {
  VerdictKind kind = VerdictKind::kUnsupported;
  double log2_error = 0;  // Equal: a program that is not gets this verdict with chance 2^log2_error
  int tests = 0;          // worlds that were compared
  FpvAssumptions assumes;
  bool alike = false;  // Unsupported: no difference was found, but nothing bounds the chance of one
  std::string text;    // NotEqual: the element; otherwise why
  bool ok() const { return kind == VerdictKind::kEqual; }
};

/// Elements of one output: for each dimension the first and the last index.
struct FpvWindow {
  int output = 0;  // counted among the outputs
  std::vector<std::pair<int64_t, int64_t>> box;
};

struct FpvOptions {
  double log2_error = -20;  // wanted of Equal
  uint64_t seed = 1;        // of primes, keys and inputs; another seed is an independent check
  std::span<const int64_t> spec_params, candidate_params;  // of tile parameters, by ParamId
  int64_t max_steps = int64_t{1} << 32;                    // lanes of one run
  int64_t max_elements = int64_t{1} << 27;
  /// Only these elements need be written, and are compared.
  std::optional<FpvWindow> window = {};
  PrimeRange primes;  // for tests of the bound, as is `width`: of the first test
  WorldWidth width = WorldWidth::kOne;
  int max_tests = 64;  // Equal with a weaker bound if these are not enough
  /// Ignored where the candidate may round other values than the other program does (README.md).
  Roundings roundings = Roundings::kOpaque;
};

/// Compares all outputs of `candidate` with those of `spec`, which have passed verify. The two take
/// and give the same parameters. Deterministic in (programs, options).
/// Cost: about 10 ns per multiply-add and test, both programs together; half of that for one object as both.
FpvVerdict check_equivalent(const Program& spec, const Program& candidate,
                            const FpvOptions& options = {});

/// The verdict in one line: "equal (chance of error 2^-31, 1 test)".
std::string to_string(const FpvVerdict& verdict);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_FPV_H_
