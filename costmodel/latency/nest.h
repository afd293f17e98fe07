// Nests: a scheduled program as a list of innermost blocks with the loops around each, and how far
// its subscripts reach. Numbers are symbols over the program's tile parameters, if it has any.
#ifndef PRUNERC_COSTMODEL_LATENCY_NEST_H_
#define PRUNERC_COSTMODEL_LATENCY_NEST_H_

#include "costmodel/latency/index.h"
#include "ir/program.h"
#include "ir/tensor/intrinsic.h"

#include <cstdint>
#include <vector>

namespace prunerc::costmodel {

/// One load or store. Equal subscripts of one buffer are one access that may be both.
struct NestAccess {
  ir::BufferId buffer;
  std::vector<ir::Expr> indices;  // over iteration and loop variables
  std::vector<IndexFacts> facts;  // of each index
  std::vector<Sym> moves;         // truth, by loop: whether it changes any index
  int64_t element_bytes = 4;
  bool is_read = false;
  bool is_write = false;
  bool is_masked = false;  // guarded by a select
  int slice = 0;           // of a buffer: equal where all variables at 0 mean the same element
};

/// Operations of one instance, by what they cost a core.
struct NestOps {
  double add = 0, mul = 0;  // float; pairs of them become multiply-adds
  double simple = 0;        // compare, select, min, max, cast, integer
  double divide = 0;        // divisions and square roots
  double special = 0;       // exp, erf, ... as inline polynomials: in simple operations
  double calls = 0;         // the same: their number
};

/// Operations that read the same variables: what no loop inside changes moves out of it, and
/// unrolled copies that agree are one.
struct NestWork {
  NestOps ops;
  std::vector<ir::Expr> variables;
  bool is_carried = false;  // reads what the body stores: done anew by every instance
  std::vector<Sym> moves;   // truth, by loop
};

/// A condition of a select and what evaluating it costs in simple operations.
struct NestCondition {
  ir::Expr condition;
  double cost = 0;
  std::vector<Sym> moves;  // truth, by loop
};

/// An innermost block (or a store outside any block) and its surroundings, outermost loop first.
struct Nest {
  const ir::Block* block = nullptr;
  ir::Stmt body;  // what it runs: stores, perhaps under conditions
  std::vector<NestLoop> loops;
  std::vector<NestAccess> accesses;
  NestOps ops;
  std::vector<NestWork> work;  // the same by what they read, but for what conditions count
  std::vector<NestCondition> conditions;
  int64_t widest_bytes = 4;  // of the elements accessed
  /// The CPU's instruction that an instance is; its lanes, or its rows, are a vectorized loop.
  const ir::TensorIntrinsic* tensor = nullptr;
  Sym is_guarded = 0;    // truth: some instances do not run
  Sym masked = 0;        // share of the vectors of which some lanes do not run
  Sym active = 1;        // share of the instances that run
  bool is_init = false;  // the block's init: runs once per output element
};

/// All nests of one program, in execution order, and what variables stand for.
/// Borrows from the program and the space. Cost: O(size of the program times its depth).
class NestTable {
 public:
  NestTable(const ir::Program& program, ParamSpace& space);

  const std::vector<Nest>& nests() const { return nests_; }
  const ir::Program& program() const { return *program_; }
  ParamSpace& space() const { return *space_; }

  /// Extents of the box that an access touches while the loops that are kept run and the others
  /// stand still, within the buffer. Cost: that of reading the subscripts again.
  std::vector<Sym> box(const Nest& nest, const NestAccess& a,
                       const std::vector<bool>& is_kept) const;
  /// The same while each loop makes so many iterations; `trips` by loop.
  std::vector<Sym> box_within(const Nest& nest, const NestAccess& a,
                              const std::vector<Sym>& trips) const;

  /// Reads all subscripts of a nest anew, after what is known of its loops has changed.
  void read_subscripts(Nest* nest) const;

  /// Elements between neighbours along a loop in the buffer as allocated.
  Sym address_step(const NestAccess& a, std::size_t depth) const;

  /// Extents of a buffer as it will be allocated: parameters in full, intermediates compacted to
  /// what is used at once.
  const std::vector<Sym>& shape(ir::BufferId buffer) const {
    return shapes_[static_cast<std::size_t>(buffer.value)];
  }
  /// Extents of a buffer as it is declared.
  const std::vector<Sym>& declared_shape(ir::BufferId buffer) const {
    return declared_shapes_[static_cast<std::size_t>(buffer.value)];
  }
  /// Elements between neighbours along each dimension, alignment of rows included.
  const std::vector<Sym>& strides(ir::BufferId buffer) const {
    return strides_[static_cast<std::size_t>(buffer.value)];
  }
  /// Of a buffer whose rows are swizzled: bytes of the panels that they are cut into. Of others 0.
  Sym panel(ir::BufferId buffer) const { return panels_[static_cast<std::size_t>(buffer.value)]; }
  /// Loops around everything that touches an intermediate buffer: it is reused, not spread, along
  /// these.
  int alloc_depth(ir::BufferId buffer) const {
    return alloc_depth_[static_cast<std::size_t>(buffer.value)];
  }
  /// Truth: wherever the written buffer is touched, unrolled code names its elements, so that the
  /// compiler keeps them in registers.
  Sym in_registers(ir::BufferId buffer) const {
    return in_registers_[static_cast<std::size_t>(buffer.value)];
  }
  /// Whether a later nest writes the buffer; `nest` is one of nests(), no copy.
  bool is_written_after(const Nest& nest, ir::BufferId buffer) const;
  /// Whether it holds what a nest has summed up there, or what was made of such.
  bool holds_reduction(ir::BufferId buffer) const {
    return holds_reduction_[static_cast<std::size_t>(buffer.value)];
  }

 private:
  struct RowAlignment {
    ir::BufferId buffer;
    std::size_t axis;
    int64_t factor = 1, offset = 0;
  };

  void collect(ir::Stmt s, const ir::Block* block);
  void collect_loop(const ir::Loop& loop, const ir::Block* block);
  void collect_block(const ir::Block& block);
  void add_nest(const ir::Block* block, ir::Stmt body, bool is_init);
  void read_guard(ir::Expr condition, IndexReader* reader, Nest* nest) const;
  void read_alignment(const ir::Block& block);
  void read_swizzles(const ir::Block& block);
  void find_alloc_depths();
  void compute_shapes();
  void compute_strides();
  void find_registers();
  void number_slices();
  void find_reductions();

  const ir::Program* program_;
  ParamSpace* space_;
  std::vector<Nest> nests_;
  std::vector<NestLoop> stack_;
  const ir::TensorIntrinsic* tensor_ = nullptr;  // inside of which collect is
  std::vector<ir::Expr> binding_;                // by VarId: of iteration variables
  std::vector<RowAlignment> alignments_;
  std::vector<Sym> panels_;
  std::vector<std::vector<Sym>> declared_shapes_, shapes_, strides_;
  std::vector<int> alloc_depth_, access_depth_;  // common: the same, of parameters as well
  std::vector<Sym> in_registers_;
  std::vector<bool> holds_reduction_;
};

/// Loops around both, outermost first.
int common_depth(const Nest& a, const Nest& b);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_NEST_H_
