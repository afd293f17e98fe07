// bank: other ways to compute a program's outputs, found by putting together terms from the inputs up.
#ifndef PRUNERC_SEARCH_ALGEBRA_BANK_H_
#define PRUNERC_SEARCH_ALGEBRA_BANK_H_

#include "search/algebra/lift.h"
#include "search/algebra/term.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prunerc::search::algebra {

enum class BankFilter : uint8_t { kForms, kNone };

struct BankOptions {
  int max_ops = 11;     // of an output's term, what occurs twice counted once
  int capacity = 4096;  // terms that are kept
  int max_forms = 16;   // of the outputs together
  double seconds = 10;
  std::size_t max_bytes = std::size_t{100} << 20;  // of what the search holds, roughly
  BankFilter filter = BankFilter::kForms;          // none: for measurements
  uint64_t seed = 1;
};

/// A way to compute all outputs, `outputs[i]` that of spec.outputs[i].
struct BankForm {
  std::vector<TermId> outputs;
  /// Operations, and bytes of what the operations of the term graph make; what is shared counts once.
  double flops = 0, bytes = 0;
};

struct BankResult {
  std::vector<BankForm> forms;  // cheapest first; never the spec's own terms
  bool reached = false;         // the outputs were put together, if only as the spec has them
  bool complete = false;        // nothing ended it before max_ops
  int64_t tried = 0;            // operations on kept terms
  int64_t too_large = 0;        // of these, those with more elements than any term of the spec
  int64_t filtered = 0;         // of these, those that the filter turned down
  int64_t beyond = 0;           // that the filter could say nothing about
  int64_t evaluated = 0;
  int64_t kept = 0;     // different values or forms, inputs not counted
  int64_t dropped = 0;  // values that came when the bank was full
  double seconds = 0;
};

/// Enumerates terms by their number of operations: those of the spec's unary functions, + - * /, max
/// and min if it has them, its reductions over one axis, sums of products (one operation). Terms of
/// one value and form are one entry, of which eight derivations are kept: those that no other beats in both
/// operations and bytes, then the cheapest. Forms differ in what they sum: of those with the same
/// reductions there is the cheapest. `graph` holds the spec's terms and gets those of the forms.
/// Deterministic unless `seconds` ends it. Threads: one.
/// Source: bottom-up enumeration with observational equivalence (Transit, PLDI 2013; Mirage, OSDI
/// 2025).
BankResult enumerate(const Spec& spec, TermGraph& graph, const BankOptions& options = {});

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_BANK_H_
