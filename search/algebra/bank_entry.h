// What the bank holds: values, each with the ways to compute it.
#ifndef PRUNERC_SEARCH_ALGEBRA_BANK_ENTRY_H_
#define PRUNERC_SEARCH_ALGEBRA_BANK_ENTRY_H_

#include "search/algebra/bank.h"
#include "search/algebra/fingerprint.h"
#include "search/algebra/normal_form.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search::algebra {

/// How an entry comes from others.
struct Derivation {
  enum class Op : uint8_t { kBinary, kReduce, kContract, kPattern };
  Op op = Op::kBinary;
  ir::ExprKind kind = ir::ExprKind::kAdd;  // of kBinary and kReduce
  int16_t pattern = -1;                    // of kPattern
  AxisSet bound = 0;
  int32_t a = -1, b = -1;  // entries; b of kBinary and kContract
};

/// A term of the spec with one arg left open; its others are constants or masks.
struct Pattern {
  TermId term = 0;
  std::size_t hole = 0;
};

/// What operations cost. Bytes are those of results, each once.
struct OpCost {
  double flops = 0, bytes = 0;
  bool operator==(const OpCost&) const = default;
  /// Units: operations. A byte counts as in OrderOptions.
  double total() const { return flops + 0.25 * bytes; }
};

struct BankEntry {
  TermId leaf = -1;  // of the spec, where there are no derivations
  ir::DType dtype = ir::DType::kF32;
  AxisSet free = 0;
  TermValues values;
  NfId form = 0, inverse = 0;
  std::vector<int32_t> ops;  // entries that it takes, itself included; ascending
  std::vector<Derivation> derivations;
  std::vector<OpCost> costs;  // of the derivations, what they take included
  OpCost own;                 // of the last of `ops`
};

/// Of one operation; `free` is of its result.
OpCost cost_of(std::span<const Axis> axes, const TermGraph& graph,
               std::span<const Pattern> patterns, const Derivation& d, AxisSet free,
               ir::DType dtype);

/// The at most `max_forms` cheapest ways to compute one entry of each output at once.
std::vector<BankForm> extract(std::span<const BankEntry> entries,
                              std::span<const std::vector<int32_t>> outputs,
                              std::span<const Axis> axes, std::span<const Pattern> patterns,
                              TermGraph& graph, int max_forms);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_BANK_ENTRY_H_
