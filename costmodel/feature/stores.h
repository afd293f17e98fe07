// Stores: a scheduled program as its innermost stores, each with the loops around it, what one
// iteration computes, and what its subscripts touch while some of the loops run.
#ifndef PRUNERC_COSTMODEL_FEATURE_STORES_H_
#define PRUNERC_COSTMODEL_FEATURE_STORES_H_

#include "ir/program.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace prunerc::costmodel {

struct StoreLoop {
  ir::LoopId id;
  ir::VarId var;
  double extent = 1;
  ir::LoopKind kind = ir::LoopKind::kSerial;
};

/// One place that a store touches: the written element, or one that its value or subscripts read.
struct StoreAccess {
  ir::BufferId buffer;
  std::vector<ir::Expr> indices;
  bool is_write = false;
};

/// Operations of one iteration, by type and kind.
struct StoreOps {
  struct ByType {
    double mad = 0, add_sub = 0, mul = 0, div_mod = 0, compare = 0, math = 0, other = 0;
  };
  ByType of_float, of_int;
  double of_bool = 0;
  double select = 0;
  double sum() const;
};

struct StoreNest {
  const ir::Store* store = nullptr;
  std::vector<StoreLoop> loops;  // outermost first; an init has no reduction loops
  std::vector<StoreAccess> accesses;
  StoreOps ops;
};

/// Borrows from the program.
class StoreTable {
 public:
  explicit StoreTable(const ir::Program& program);

  const std::vector<StoreNest>& nests() const { return nests_; }
  const ir::Program& program() const { return *program_; }

  /// Elements of each dimension that an access can touch while the loops from `depth` inwards run:
  /// the largest subscript minus the smallest plus one, within the buffer. Exact for affine
  /// subscripts without common terms, else an upper bound.
  std::vector<double> region(const StoreNest& nest, const StoreAccess& access,
                             std::size_t depth) const;
  /// Distance in elements of the row-major buffer between two neighbours along a loop.
  double stride(const StoreNest& nest, const StoreAccess& access, std::size_t depth) const;
  bool moves(const StoreNest& nest, const StoreAccess& access, std::size_t depth) const;
  /// Loops around everything that touches a buffer.
  std::size_t home_depth(ir::BufferId buffer) const;
  std::vector<double> shape(ir::BufferId buffer) const;

 private:
  void collect(ir::Stmt s);
  void collect_block(const ir::Block& block);
  void add(const ir::Store& store, bool is_init);
  double reach(const StoreNest& nest, ir::Expr e, std::size_t depth) const;
  double step(ir::Expr e, ir::VarId var) const;
  bool uses(ir::Expr e, ir::VarId var) const;

  const ir::Program* program_;
  std::vector<StoreNest> nests_;
  std::vector<StoreLoop> stack_;
  std::vector<ir::VarId> reduced_;                  // loops that the block at hand reduces over
  std::unordered_map<int32_t, ir::Expr> bindings_;  // of iteration variables, by id
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_STORES_H_
