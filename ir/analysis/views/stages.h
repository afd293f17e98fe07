// An unscheduled program as a list of stages that can be edited.
#ifndef PRUNERC_IR_ANALYSIS_VIEWS_STAGES_H_
#define PRUNERC_IR_ANALYSIS_VIEWS_STAGES_H_

#include "ir/builder.h"
#include "ir/program.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// One nest: a loop for each iteration variable of the block in it.
struct Stage {
  Block block;
  std::vector<IterVar> iters;  ///< spatial ones first
  bool is_changed = false;

  bool reduces() const;
  /// Position among the iters of the only spatial variable in e; nullopt if there is none or more.
  std::optional<std::size_t> spatial_in(Expr e) const;
};

struct Stages {
  explicit Stages(const Program& program) : b(program) {}

  IrBuilder b;
  std::vector<Stage> list;
  bool is_changed = false;

  std::size_t num_writers(BufferId buffer) const;
  /// The first stage that writes it; list.size() if none does.
  std::size_t writer(BufferId buffer) const;
  bool reads(const Stage& stage, BufferId buffer) const;
};

/// Where an element of a buffer is after an edit: another buffer or other subscripts.
struct Element {
  BufferId buffer;
  std::vector<Expr> indices;
};
using MoveFn = std::function<Element(std::span<const Expr> indices, const Stage& stage)>;

/// Nullopt if the program has a statement of another form.
std::optional<Stages> stages_of(const Program& program);

/// Every load of the buffer, and every store to it, is of `move`'s element.
void move_elements(Stages& stages, BufferId buffer, const MoveFn& move);

/// The stages as a program; buffers that nobody touches are gone.
Program program_of(Stages& stages);

/// All loads of the statement.
std::vector<const Load*> loads_of(Stmt stmt);
/// All stores of the statement.
std::vector<const Store*> stores_of(Stmt stmt);

/// Lays out intermediates, and orders loops, by who reads and writes them.
void order_stages(Stages& stages);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_VIEWS_STAGES_H_
