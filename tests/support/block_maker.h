// Makes one loop nest with one block from extents and a formula: what most tests that build
// programs need.
#ifndef PRUNERC_TESTS_SUPPORT_BLOCK_MAKER_H_
#define PRUNERC_TESTS_SUPPORT_BLOCK_MAKER_H_

#include "ir/builder.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prunerc::testing {

using Exprs = std::vector<ir::Expr>;

/// for s.. { for r.. { block: init { out[store_at(s)] = init }  out[store_at(s)] = value(s, r) } }
struct BlockSpec {
  std::string name;
  ir::BufferId out;
  std::vector<int64_t> spatial;
  std::vector<int64_t> reduce;
  std::function<ir::Expr(const Exprs& s, const Exprs& r)> value;
  ir::Expr init;                                       // null: none
  std::function<Exprs(const Exprs& s)> store_at;       // empty: s itself
  std::vector<int> loop_order;                         // empty: spatial loops, then reduce loops
  ir::IterKind spatial_kind = ir::IterKind::kSpatial;  // opaque for scans
};

/// Reads and writes are the points that the formula touches; the whole buffer where an index loads
/// something.
ir::Stmt make_block_nest(ir::IrBuilder& b, const BlockSpec& spec);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_BLOCK_MAKER_H_
