#include "costmodel/symbol/code.h"

#include "costmodel/symbol/kernels.h"

#include <algorithm>
#include <unordered_map>

namespace prunerc::costmodel {

/// Orders what the outputs need, tells what is the same for all candidates from what is not, and
/// gives blocks to values while they live.
class SymbolCompiler {
 public:
  SymbolCompiler(SymbolCode* code, std::span<const Sym> outputs) : code_(*code) {
    for (const Sym s : outputs) {
      if (!s.is_constant()) graph_ = s.graph();
    }
    if (graph_ != nullptr) order(outputs);
    for (const int32_t id : order_) {
      const SymNode& n = graph_->node(id);
      if (n.op == SymOp::kParam) code_.params_.push_back(n.a);
      place_uniform(id);
    }
    std::sort(code_.params_.begin(), code_.params_.end());
    count_uses(outputs);
    for (const int32_t id : order_) emit(id);
    for (const Sym s : outputs) {
      code_.outputs_.push_back(s.is_constant() ? constant(s.value()) : operand(s.node()));
    }
  }

 private:
  using Place = SymbolCode::Place;
  using Operand = SymbolCode::Operand;

  // Operands first, the deeper side first: few values wait for others.
  void order(std::span<const Sym> outputs) {
    done_.assign(graph_->size(), false);
    operand_.assign(graph_->size(), {});
    uniform_.assign(graph_->size(), false);
    uses_.assign(graph_->size(), 0);
    std::vector<std::pair<int32_t, bool>> stack;
    for (std::size_t i = outputs.size(); i-- > 0;) {
      if (!outputs[i].is_constant()) stack.push_back({outputs[i].node(), false});
    }
    while (!stack.empty()) {
      const auto [id, is_ready] = stack.back();
      stack.pop_back();
      if (done_[static_cast<std::size_t>(id)]) continue;
      if (is_ready) {
        done_[static_cast<std::size_t>(id)] = true;
        order_.push_back(id);
        continue;
      }
      stack.push_back({id, true});
      for_each_operand(id, [&](int32_t operand) { stack.push_back({operand, false}); });
    }
  }

  template <typename F>
  void for_each_operand(int32_t id, F&& f) const {
    const SymNode& n = graph_->node(id);
    if (is_leaf(n.op)) return;
    f(n.a);
    if (is_unary(n.op)) return;
    f(n.b);
    if (n.op == SymOp::kSelect) f(n.c);
  }

  Operand scalar(double value) {
    code_.scalars_.push_back(value);
    return {Place::kScalar, static_cast<int32_t>(code_.scalars_.size() - 1)};
  }
  Operand constant(double value) {
    const auto [at, is_new] = constants_.try_emplace(std::bit_cast<uint64_t>(value));
    if (is_new) at->second = scalar(value);
    return at->second;
  }
  Operand& operand(int32_t id) { return operand_[static_cast<std::size_t>(id)]; }

  void place_uniform(int32_t id) {
    const SymNode& n = graph_->node(id);
    if (n.op == SymOp::kParam) {
      operand(id) = {Place::kColumn, n.a};
      return;
    }
    bool uniform = true;
    for_each_operand(
        id, [&](int32_t o) { uniform = uniform && uniform_[static_cast<std::size_t>(o)]; });
    uniform_[static_cast<std::size_t>(id)] = uniform;
    if (!uniform) return;
    operand(id) = n.op == SymOp::kConstant ? constant(n.value) : scalar(0);
    if (n.op == SymOp::kCoefficient) {
      code_.settings_.push_back({operand(id).index, n.a});
    } else if (n.op != SymOp::kConstant) {
      code_.uniform_.push_back(instruction(n, operand(id).index));
    }
  }

  SymbolCode::Instruction instruction(const SymNode& n, int32_t result) {
    SymbolCode::Instruction out;
    out.op = n.op;
    out.result = result;
    out.a = operand(n.a);
    if (!is_unary(n.op)) out.b = operand(n.b);
    if (n.op == SymOp::kSelect) out.c = operand(n.c);
    return out;
  }

  bool in_block(int32_t id) const {
    return !uniform_[static_cast<std::size_t>(id)] && graph_->node(id).op != SymOp::kParam;
  }

  void count_uses(std::span<const Sym> outputs) {
    for (const int32_t id : order_) {
      if (!in_block(id)) continue;
      for_each_operand(id, [&](int32_t o) { ++uses_[static_cast<std::size_t>(o)]; });
    }
    for (const Sym s : outputs) {
      if (!s.is_constant()) ++uses_[static_cast<std::size_t>(s.node())];
    }
  }

  // The result's block is taken before those of the operands are free: no kernel works in place.
  void emit(int32_t id) {
    if (!in_block(id)) return;
    int32_t block = static_cast<int32_t>(code_.num_buffers_);
    if (free_.empty()) {
      ++code_.num_buffers_;
    } else {
      block = free_.back();
      free_.pop_back();
    }
    operand(id) = {Place::kBuffer, block};
    code_.code_.push_back(instruction(graph_->node(id), block));
    for_each_operand(id, [&](int32_t o) {
      if (--uses_[static_cast<std::size_t>(o)] == 0 && in_block(o)) {
        free_.push_back(operand(o).index);
      }
    });
  }

  SymbolCode& code_;
  const SymGraph* graph_ = nullptr;
  std::vector<int32_t> order_;
  std::vector<bool> done_, uniform_;
  std::vector<Operand> operand_;
  std::vector<int32_t> uses_;
  std::vector<int32_t> free_;
  std::unordered_map<uint64_t, Operand> constants_;
};

SymbolCode::SymbolCode(std::span<const Sym> outputs) { SymbolCompiler(this, outputs); }

bool SymbolCode::reads(ir::ParamId param) const {
  return std::binary_search(params_.begin(), params_.end(), param.value);
}

static_assert(SymbolCode::kBlock % kKernelStep == 0);

void SymbolCode::evaluate(std::span<const double* const> columns, std::size_t n,
                          std::span<double* const> outputs, SymbolScratch& scratch,
                          std::span<const double> coefficients) const {
  const std::size_t num_columns =
      params_.empty() ? 0 : static_cast<std::size_t>(params_.back()) + 1;
  // Scalars, blocks of intermediate values, and padded columns of the last block.
  const std::size_t rounded = (scalars_.size() + 7) / 8 * 8;
  scratch.memory.resize(rounded + (num_buffers_ + params_.size()) * kBlock);
  double* const scalars = scratch.memory.data();
  double* const buffers = scalars + rounded;
  double* const padded = buffers + num_buffers_ * kBlock;
  std::copy(scalars_.begin(), scalars_.end(), scalars);
  if (coefficients.empty()) coefficients = defaults_;
  for (const Setting& s : settings_) {
    const auto slot = static_cast<std::size_t>(s.slot);
    scalars[s.scalar] = slot < coefficients.size() ? coefficients[slot] : 0;
  }
  for (const Instruction& i : uniform_) {
    const double a = scalars[i.a.index], b = scalars[i.b.index];
    scalars[i.result] =
        i.op == SymOp::kSelect ? (a != 0 ? b : scalars[i.c.index]) : apply(i.op, a, b);
  }
  std::vector<const double*> block(num_columns, nullptr);
  const auto address = [&](Operand o) -> BlockOperand {
    switch (o.place) {
      case Place::kScalar: return {scalars + o.index, true};
      case Place::kColumn: return {block[static_cast<std::size_t>(o.index)], false};
      case Place::kBuffer: break;
    }
    return {buffers + static_cast<std::size_t>(o.index) * kBlock, false};
  };
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t size = std::min(kBlock, n - first);
    const std::size_t run = (size + kKernelStep - 1) / kKernelStep * kKernelStep;
    for (std::size_t p = 0; p < params_.size(); ++p) {
      const auto id = static_cast<std::size_t>(params_[p]);
      block[id] = columns[id] + first;
      if (size == run) continue;
      // The last candidate again, so that nothing runs on numbers that are none.
      double* const copy = padded + p * kBlock;
      std::copy_n(columns[id] + first, size, copy);
      std::fill(copy + size, copy + run, copy[size - 1]);
      block[id] = copy;
    }
    for (const Instruction& i : code_) {
      run_operation(i.op, buffers + static_cast<std::size_t>(i.result) * kBlock, address(i.a),
                    address(i.b), address(i.c), run);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs[o] == nullptr) continue;
      const BlockOperand from = address(outputs_[o]);
      if (from.is_scalar) {
        std::fill_n(outputs[o] + first, size, *from.data);
      } else {
        std::copy_n(from.data, size, outputs[o] + first);
      }
    }
  }
}

}  // namespace prunerc::costmodel
