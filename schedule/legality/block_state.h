// What primitives rely on, as values: which blocks are affine, covered, complete, reductions,
// dominant, and which scopes are stage pipelines. Kept up to date across edits.
#ifndef PRUNERC_SCHEDULE_LEGALITY_BLOCK_STATE_H_
#define PRUNERC_SCHEDULE_LEGALITY_BLOCK_STATE_H_

#include "ir/analysis/dependence.h"
#include "ir/program.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// Properties of one block; kNone means that it has the property, anything else why not. The terms
/// are TensorIR's (Feng et al. 2023, section 3), defined in ir/analysis/dependence.h.
struct BlockState {
  ir::BlockId block;
  ir::BlockId scope;         // the block around; invalid: the program itself
  ir::BlockFault affine;     // bindings are an affine map of the loops around
  ir::BlockFault cover;      // what it reads is written before it
  ir::BlockFault dominant;   // sole writer of its buffers in its scope
  ir::BlockFault complete;   // spatial, dominant, reads nothing that it writes
  ir::BlockFault reduction;  // init, affine, dominant, outputs free of reduction variables
  ir::BlockFault output;     // writes a parameter of the program
  bool operator==(const BlockState&) const = default;
};

struct ScopeState {
  ir::BlockId scope;        // invalid: the program itself
  ir::BlockFault pipeline;  // stage pipeline
  bool operator==(const ScopeState&) const = default;
};

/// The properties of one version of a program, as of the moment when it was made. A value: it keeps
/// its program alive and never changes.
class State {
 public:
  /// Analyses everything. Cost: one iteration map a block, one region comparison per read and level
  /// of producers.
  explicit State(ir::Program program);
  /// The state of an edited version. Facts whose grounds (the loops around a block, the block, its
  /// producers, the shapes of its buffers) are the same nodes are taken over; debug builds compare
  /// the result with a new analysis.
  State after(ir::Program edited) const;

  const ir::Program& program() const { return program_; }
  /// In execution order, an outer block before those inside it.
  std::span<const BlockState> blocks() const { return blocks_; }
  /// The program's own scope first, then one per block that holds blocks.
  std::span<const ScopeState> scopes() const { return scopes_; }
  /// Null if there is no such block.
  const BlockState* block(ir::BlockId id) const;
  /// Analyses that were run to make this state: what `after` saves shows here.
  int64_t num_analyses() const { return num_analyses_; }

  /// The same facts (the programs are not compared).
  bool same_facts(const State& other) const {
    return blocks_ == other.blocks_ && scopes_ == other.scopes_;
  }

 private:
  /// The identities of the nodes that a fact depends on.
  using Grounds = std::vector<uint64_t>;
  struct Kept {
    Grounds own;    // of `affine`
    Grounds cover;  // of `cover`
  };

  State(ir::Program program, const State* before);
  const Kept* kept(ir::BlockId id) const;

  ir::Program program_;
  std::vector<BlockState> blocks_;
  std::vector<Kept> kept_;  // beside blocks_
  std::vector<ScopeState> scopes_;
  int64_t num_analyses_ = 0;
};

/// One line per scope and block: "C @B0: affine yes; covered yes; dominant yes; complete no (an
/// iteration is not spatial); reduction yes; output yes".
std::string print(const State& state);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_BLOCK_STATE_H_
