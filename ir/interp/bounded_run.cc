#include "ir/interp/bounded_run.h"

#include "ir/interp/bounded_eval.h"
#include "ir/interp/producers.h"
#include "ir/visit.h"

#include <cmath>
#include <unordered_map>

namespace prunerc::ir {
namespace {

// An element; `magnitudes` and `num_terms` are of a sum that is being accumulated, whose rounding
// is counted when the element is read.
struct Cell {
  Bounded value;
  double magnitudes = 0;
  int64_t num_terms = 0;
  bool is_written = false;
  bool is_whole = true;  // all terms and the start are whole numbers without error
};

class Run : public BoundedEval {
 public:
  Run(const Program& program, const BoundedRunOptions& options)
      : BoundedEval(program, options.factor_error), options_(options) {}

  Result<void> prepare(std::span<const Tensor> inputs);
  Result<std::vector<std::vector<Reference>>> run();

 private:
  struct Memory {
    std::vector<int64_t> shape;
    std::vector<Cell> cells;
  };

  Memory& memory(BufferId id) { return memory_[static_cast<std::size_t>(id.value)]; }
  Bounded load(const Load& n) override;
  Bounded settled(BufferId buffer, const Cell& cell) const;
  void exec(Stmt s);
  void loop(const Loop& n);
  void block(const Block& n);
  void store(const Store& n);
  void add(Cell& cell, const Bounded& term);
  Expr term_of(const Store& n);
  bool step() {
    if (failure_.has_value()) return false;
    if (++steps_ > options_.max_steps) fail(error(Diag::kInterpStepBudget, options_.max_steps));
    return !failure_.has_value();
  }

  const BoundedRunOptions options_;
  std::vector<Memory> memory_;
  std::unordered_map<const Store*, Expr> terms_;
  int64_t steps_ = 0;
};

Result<void> Run::prepare(std::span<const Tensor> inputs) {
  if (!program_.domain().empty()) return error(Diag::kUnsupported, std::string("running a sketch"));
  int64_t total = 0;
  for (const Buffer& buffer : program_.buffers()) {
    Memory m;
    m.shape = shape_of(buffer);
    int64_t elements = 1;
    for (const int64_t extent : m.shape)
      elements = std::min(elements * extent, options_.max_elements + 1);
    total += elements;
    if (total > options_.max_elements) {
      return error(Diag::kInterpTooLarge, std::string(buffer.name), options_.max_elements);
    }
    m.cells.resize(static_cast<std::size_t>(elements));
    memory_.push_back(std::move(m));
  }
  std::size_t next = 0;
  for (const BufferId id : program_.params()) {
    const Buffer& buffer = program_.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    if (next >= inputs.size() || inputs[next].dtype != buffer.dtype ||
        inputs[next].shape != memory(id).shape) {
      return error(Diag::kInterpInput, std::string(buffer.name),
                   std::string("a tensor of its type and shape"), std::string("another"));
    }
    const Tensor& tensor = inputs[next++];
    std::vector<Cell>& cells = memory(id).cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      cells[i].value =
          is_float(tensor.dtype) ? Bounded{tensor.get(at), 0, 0} : whole(tensor.get_int(at));
      cells[i].is_written = true;
    }
  }
  return {};
}

// With the rounding of a sum in whatever order. Whole numbers below 2^p are added without error.
Bounded Run::settled(BufferId buffer, const Cell& cell) const {
  if (cell.num_terms == 0) return cell.value;
  const DType dtype = program_.buffer(buffer).dtype;
  if (cell.is_whole && cell.magnitudes * unit_roundoff(dtype) <= 1) return cell.value;
  Bounded out = cell.value;
  out.error += sum_error(dtype, cell.num_terms + 1, cell.magnitudes);
  return rounded(dtype, out);
}

Bounded Run::load(const Load& n) {
  Memory& m = memory(n.buffer);
  const int64_t at = position(n.buffer, n.indices, m.shape);
  if (at < 0) return {};
  const Cell& cell = m.cells[static_cast<std::size_t>(at)];
  if (!cell.is_written) {
    fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(n.buffer).name), at));
  }
  return settled(n.buffer, cell);
}

void Run::exec(Stmt s) {
  if (!s.defined() || failure_.has_value()) return;
  visit(s, Overload{
               [&](const Seq& n) {
                 for (const Stmt child : n.stmts) exec(child);
               },
               [&](const Loop& n) { loop(n); },
               [&](const Block& n) { block(n); },
               [&](const Store& n) { store(n); },
               [&](const If& n) { exec(index(n.condition) != 0 ? n.then_body : n.else_body); },
               [&](const Alloc& n) {
                 for (Cell& cell : memory(n.buffer).cells) cell = {};
                 exec(n.body);
               },
           });
}

void Run::loop(const Loop& n) {
  const int64_t extent = index(n.extent);
  for (int64_t i = 0; i < extent && step(); ++i) {
    var(n.var->id.value) = i;
    exec(n.body);
  }
}

void Run::block(const Block& n) {
  if (!step() || (n.guard.defined() && index(n.guard) == 0)) return;
  bool at_start = true;
  for (const IterVar& iter : n.iters) {
    const int64_t value = index(iter.binding);
    if (value < 0 || value >= index(iter.extent)) {
      return fail(error(Diag::kInterpIterRange, std::string(iter.var->name), n.id, value));
    }
    var(iter.var->id.value) = value;
    at_start = at_start && (iter.kind != IterKind::kReduce || value == 0);
  }
  if (n.init.defined() && at_start) exec(n.init);
  exec(n.body);
}

// What a store adds to its element; null if it does something else.
Expr Run::term_of(const Store& n) {
  const auto [at, is_new] = terms_.try_emplace(&n);
  if (is_new) at->second = added_term(n);
  return at->second;
}

void Run::add(Cell& cell, const Bounded& term) {
  if (cell.num_terms == 0) {
    cell.magnitudes = std::fabs(cell.value.value);
    cell.is_whole = cell.value.error == 0 && cell.value.value == std::trunc(cell.value.value);
  }
  cell.value.value += term.value;
  cell.value.error += term.error;
  cell.magnitudes += std::fabs(term.value);
  cell.is_whole = cell.is_whole && term.error == 0 && term.value == std::trunc(term.value);
  ++cell.num_terms;
}

void Run::store(const Store& n) {
  if (!step()) return;
  Memory& m = memory(n.buffer);
  const Expr term = term_of(n);
  const Bounded value = term.defined() ? eval_term(term) : eval(n.value);
  const int64_t at = position(n.buffer, n.indices, m.shape);
  if (failure_.has_value()) return;
  Cell& cell = m.cells[static_cast<std::size_t>(at)];
  if (!term.defined()) {
    cell = {};
    cell.value = value;
    cell.is_written = true;
    return;
  }
  if (!cell.is_written) {
    return fail(error(Diag::kInterpUninitialised, std::string(program_.buffer(n.buffer).name), at));
  }
  add(cell, value);
}

Result<std::vector<std::vector<Reference>>> Run::run() {
  exec(program_.root());
  if (failure_.has_value()) return *failure_;
  std::vector<std::vector<Reference>> outputs;
  for (const BufferId id : program_.params()) {
    const Buffer& buffer = program_.buffer(id);
    if (buffer.role != BufferRole::kOutput) continue;
    std::vector<Reference> out;
    for (const Cell& cell : memory(id).cells) {
      if (!cell.is_written) {
        return error(Diag::kInterpUnwrittenOutput, static_cast<int64_t>(out.size()),
                     std::string(buffer.name));
      }
      const Bounded value = settled(id, cell);
      out.push_back({value.value, value.integer, value.error});
    }
    outputs.push_back(std::move(out));
  }
  return outputs;
}

}  // namespace

Result<std::vector<std::vector<Reference>>> run_bounded(const Program& program,
                                                        std::span<const Tensor> inputs,
                                                        const BoundedRunOptions& options) {
  Run run(program, options);
  PRUNERC_TRY_VOID(run.prepare(inputs));
  return run.run();
}

}  // namespace prunerc::ir
