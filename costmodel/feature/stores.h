// Stores: a scheduled program, or a sketch, as its innermost stores, each with the loops around it,
// what one iteration computes, and the places that it touches.
#ifndef PRUNERC_COSTMODEL_FEATURE_STORES_H_
#define PRUNERC_COSTMODEL_FEATURE_STORES_H_

#include "costmodel/latency/nest.h"

#include <deque>
#include <vector>

namespace prunerc::costmodel {

/// One place that a store touches: the written element, or one that its value or subscripts read.
/// Reads of equal subscripts count each time.
struct StoreAccess {
  const NestAccess* access = nullptr;
  bool is_write = false;
};

/// Operations of one iteration, by type and kind. Index arithmetic counts as its linear form, so
/// that it does not matter how far it has been simplified: factors other than 1, and terms but for
/// one; of a comparison the constant is free.
struct StoreOps {
  struct ByType {
    Sym mad, add_sub, mul, div_mod, compare, math, other;
    Sym sum() const { return mad + add_sub + mul + div_mod + compare + math + other; }
  };
  ByType of_float, of_int;
  Sym of_bool;
  Sym select;
  Sym sum() const { return of_float.sum() + of_int.sum() + of_bool + select; }
};

struct StoreNest {
  const ir::Store* store = nullptr;
  const Nest* nest = nullptr;         // its loops; those that an init leaves out make one iteration
  std::vector<StoreAccess> accesses;  // what is written, then what is read, as written
  StoreOps ops;
};

/// All stores in program order, an init before the body of its block. Borrows from the table.
/// A loop whose first iteration alone passes the guard moves nothing: in programs, whose simplifier
/// knows that, its variable is gone.
class StoreTable {
 public:
  explicit StoreTable(const NestTable& table);
  const std::vector<StoreNest>& stores() const { return stores_; }
  const NestTable& table() const { return *table_; }

 private:
  const NestTable* table_;
  std::deque<Nest> guarded_;  // those that know more than the table's
  std::vector<StoreNest> stores_;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_STORES_H_
