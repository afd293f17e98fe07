#include "costmodel/symbol/code.h"

#include <algorithm>
#include <unordered_map>

namespace prunerc::costmodel {
namespace {

constexpr std::size_t kLine = kKernelAlignment / sizeof(double);

constexpr std::size_t whole_lines(std::size_t doubles) {
  return (doubles + kLine - 1) / kLine * kLine;
}

// The first double of a cache line, up to kLine - 1 further on.
double* on_line(double* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory) / sizeof(double);
  return memory + (whole_lines(at) - at);
}

}  // namespace

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
    std::vector<Operand> from;
    for (const Sym s : outputs) {
      from.push_back(s.is_constant() ? constant(s.value()) : operand(s.node()));
    }
    link(from);
  }

 private:
  enum class Place : uint8_t { kScalar, kColumn, kBuffer };
  struct Operand {
    Place place = Place::kScalar;
    int32_t index = 0;  // of the scalar, ParamId, of the buffer
  };
  struct Step {
    SymOp op = SymOp::kAdd;
    Operand result, a, b, c;
  };

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
      const Step s = step(n, operand(id));
      code_.uniform_.push_back({s.op, s.result.index, s.a.index, s.b.index, s.c.index});
    }
  }

  Step step(const SymNode& n, Operand result) {
    Step out{n.op, result, operand(n.a), {}, {}};
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
    steps_.push_back(step(graph_->node(id), operand(id)));
    for_each_operand(id, [&](int32_t o) {
      if (--uses_[static_cast<std::size_t>(o)] == 0 && in_block(o)) {
        free_.push_back(operand(o).index);
      }
    });
  }

  // Where things are is known when all of them are.
  SymbolCode::Offset offset(Operand o) const {
    if (o.place == Place::kScalar) return o.index;
    auto at = static_cast<std::size_t>(o.index);
    if (o.place == Place::kColumn) {
      const auto found = std::lower_bound(code_.params_.begin(), code_.params_.end(), o.index);
      at = static_cast<std::size_t>(found - code_.params_.begin());
    } else {
      at += code_.params_.size();
    }
    return code_.first_block() + static_cast<SymbolCode::Offset>(at * SymbolCode::kBlock);
  }

  void link(std::span<const Operand> outputs) {
    const auto is_uniform = [](Operand o) { return o.place == Place::kScalar; };
    for (const Step& s : steps_) {
      const Uniform uniform{is_uniform(s.a), is_uniform(s.b), is_uniform(s.c)};
      code_.code_.push_back(
          {kernel_of(s.op, uniform), offset(s.result), offset(s.a), offset(s.b), offset(s.c)});
    }
    for (const Operand o : outputs) code_.outputs_.push_back({offset(o), is_uniform(o)});
  }

  SymbolCode& code_;
  const SymGraph* graph_ = nullptr;
  std::vector<Step> steps_;  // of code_
  std::vector<int32_t> order_;
  std::vector<bool> done_, uniform_;
  std::vector<Operand> operand_;
  std::vector<int32_t> uses_;
  std::vector<int32_t> free_;
  std::unordered_map<uint64_t, Operand> constants_;
};

SymbolCode::SymbolCode(std::span<const Sym> outputs) { SymbolCompiler(this, outputs); }

SymbolCode::Offset SymbolCode::first_block() const {
  return static_cast<Offset>(whole_lines(scalars_.size()));
}

bool SymbolCode::reads(ir::ParamId param) const {
  return std::binary_search(params_.begin(), params_.end(), param.value);
}

static_assert(SymbolCode::kBlock % kKernelStep == 0);
static_assert(SymbolCode::kBlock % kLine == 0);

void SymbolCode::evaluate(std::span<const double* const> columns, std::size_t n,
                          std::span<double* const> outputs, SymbolScratch& scratch,
                          std::span<const double> coefficients) const {
  const auto blocks = static_cast<std::size_t>(first_block());
  const std::size_t needed = kLine + blocks + (params_.size() + num_buffers_) * kBlock;
  if (scratch.memory.size() < needed) scratch.memory.resize(needed);
  double* const memory = on_line(scratch.memory.data());
  std::copy(scalars_.begin(), scalars_.end(), memory);
  if (coefficients.empty()) coefficients = defaults_;
  for (const Setting& s : settings_) {
    const auto slot = static_cast<std::size_t>(s.slot);
    memory[s.scalar] = slot < coefficients.size() ? coefficients[slot] : 0;
  }
  for (const ScalarInstruction& i : uniform_) {
    const double a = memory[i.a], b = memory[i.b];
    memory[i.result] = i.op == SymOp::kSelect ? (a != 0 ? b : memory[i.c]) : apply(i.op, a, b);
  }
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t size = std::min(kBlock, n - first);
    const std::size_t run = (size + kKernelStep - 1) / kKernelStep * kKernelStep;
    for (std::size_t p = 0; p < params_.size(); ++p) {
      const double* const from = columns[static_cast<std::size_t>(params_[p])] + first;
      double* const block = memory + blocks + p * kBlock;
      std::copy_n(from, size, block);
      // The last candidate again, so that nothing runs on numbers that are none.
      std::fill(block + size, block + run, from[size - 1]);
    }
    for (const Instruction& i : code_) {
      i.run(memory + i.result, memory + i.a, memory + i.b, memory + i.c, run);
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs[o] == nullptr) continue;
      const double* const from = memory + outputs_[o].from;
      if (outputs_[o].is_scalar) {
        std::fill_n(outputs[o] + first, size, *from);
      } else {
        std::copy_n(from, size, outputs[o] + first);
      }
    }
  }
}

}  // namespace prunerc::costmodel
