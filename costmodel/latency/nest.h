// Nests: a scheduled program as a list of innermost blocks with the loops around each, and how far
// its subscripts reach.
#ifndef PRUNERC_COSTMODEL_LATENCY_NEST_H_
#define PRUNERC_COSTMODEL_LATENCY_NEST_H_

#include "ir/program.h"

#include <cstdint>
#include <vector>

namespace prunerc::costmodel {

struct NestLoop {
  ir::LoopId id;
  ir::VarId var;
  int64_t extent = 1;
  ir::LoopKind kind = ir::LoopKind::kSerial;
};

/// One load or store. Equal subscripts of one buffer are one access that may be both.
struct NestAccess {
  ir::BufferId buffer;
  std::vector<ir::Expr> indices;  // over iteration and loop variables
  int64_t element_bytes = 4;
  bool is_read = false;
  bool is_write = false;
  bool is_masked = false;  // guarded by a select
};

/// Operations of one instance, by what they cost a core.
struct NestOps {
  double add = 0, mul = 0;  // float; pairs of them become multiply-adds
  double simple = 0;        // compare, select, min, max, cast, integer
  double divide = 0;        // divisions and square roots
  double special = 0;       // exp, erf, ... as inline polynomials: in simple operations
};

/// A condition of a select and what evaluating it costs in simple operations.
struct NestCondition {
  ir::Expr condition;
  double cost = 0;
};

/// An innermost block (or a store outside any block) and its surroundings, outermost loop first.
struct Nest {
  const ir::Block* block = nullptr;
  std::vector<NestLoop> loops;
  std::vector<NestAccess> accesses;
  NestOps ops;
  std::vector<NestCondition> conditions;
  int64_t widest_bytes = 4;  // of the elements accessed
  bool is_init = false;      // the block's init: runs once per output element
};

/// All nests of one program, in execution order, and what variables stand for.
/// Borrows from the program. Cost: O(size of the program).
class NestTable {
 public:
  explicit NestTable(const ir::Program& program);

  const std::vector<Nest>& nests() const { return nests_; }
  const ir::Program& program() const { return *program_; }

  /// Largest minus smallest value of e while the nest's loops from `depth` inwards run and the
  /// others stand still.
  double span(const Nest& nest, ir::Expr e, int depth) const;
  /// Number of different values of e under the same conditions: bounded by the span and by the
  /// number of iterations.
  double distinct(const Nest& nest, ir::Expr e, int depth) const;
  /// Change of e for one step of loop `depth`; 0 if it does not depend on it.
  double step(const Nest& nest, ir::Expr e, int depth) const;
  bool depends(const Nest& nest, ir::Expr e, int depth) const;

  /// Extents of a buffer as it will be allocated: parameters in full, intermediates compacted to
  /// what is used at once.
  const std::vector<double>& shape(ir::BufferId buffer) const {
    return shapes_[static_cast<std::size_t>(buffer.value)];
  }
  /// Loops around everything that touches an intermediate buffer: it is reused, not spread, along
  /// these.
  int home_depth(ir::BufferId buffer) const {
    return home_depth_[static_cast<std::size_t>(buffer.value)];
  }

 private:
  void collect(ir::Stmt s, const ir::Block* block);
  void collect_block(const ir::Block& block);
  void add_nest(const ir::Block* block, ir::Stmt body, bool is_init);
  void place_buffers();
  int loop_at(const Nest& nest, ir::VarId var) const;

  const ir::Program* program_;
  std::vector<Nest> nests_;
  std::vector<NestLoop> stack_;
  std::vector<ir::Expr> binding_;  // by VarId: of iteration variables
  std::vector<std::vector<double>> shapes_;
  std::vector<int> home_depth_;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_NEST_H_
