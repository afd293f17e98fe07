// Mutants: a program with one fault of a named kind at a random place, to see who notices.
#ifndef PRUNERC_TESTS_SUPPORT_MUTANTS_H_
#define PRUNERC_TESTS_SUPPORT_MUTANTS_H_

#include "ir/program.h"
#include "ir/support/rng.h"

#include <optional>
#include <string_view>

namespace prunerc::testing {

enum class MutantKind {
  kLostGuard,        // a block's guard, or one condition of it, is gone
  kShiftedGuard,     // ... is off by one
  kShiftedLoad,      // one index of one load is off by one
  kShiftedStore,     // one index of one store is off by one
  kWrongInit,        // a reduction starts from another value
  kLostInit,         // ... from nothing
  kLostFactor,       // x * f becomes x: a missing scale or rescale
  kLostTerm,         // x + y becomes x: a dropped epilogue
  kLostCall,         // f(x) becomes x: a dropped activation
  kSwappedOperands,  // of - / and comparisons
  kSwappedBranches,  // of select
  kShortLoop,        // a loop ends one iteration early
  kWrongLaneMap,     // a binding takes another loop's variable, or another stride
  kLostBlock,        // a block is gone
  kWrongOperator,    // + for -, max for min, * for +
  kWrongConstant,    // a constant of the body is another
};
inline constexpr int kNumMutantKinds = 16;
std::string_view to_string(MutantKind kind);

/// A mutant at a random one of the places that the kind fits; nullopt if there is none or the
/// result is not well-formed. It may still compute the same.
std::optional<ir::Program> mutate(const ir::Program& program, MutantKind kind, Rng& rng);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_MUTANTS_H_
