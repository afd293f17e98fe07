// SymbolCode: symbols as straight-line code that is evaluated for many candidates at once.
#ifndef PRUNERC_COSTMODEL_SYMBOL_CODE_H_
#define PRUNERC_COSTMODEL_SYMBOL_CODE_H_

#include "costmodel/symbol/kernels.h"
#include "costmodel/symbol/sym.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::costmodel {

/// What one thread needs while it evaluates; may be used for any number of codes in turn.
struct SymbolScratch {
  std::vector<double> memory;
};

/// Immutable and without handles: it may outlive the graph. Threads: evaluate may be called from
/// several threads at once, with a scratch each.
class SymbolCode {
 public:
  /// Candidates per block: every operation runs over one block at a time. Sixteen blocks fit into
  /// the smallest L1.
  static constexpr std::size_t kBlock = 256;

  SymbolCode() = default;
  /// Code of all outputs: common parts once, nothing else. The symbols are of one graph.
  explicit SymbolCode(std::span<const Sym> outputs);

  /// outputs[o][i] for i < n, from columns[p][i] where p is the ParamId; columns that the code does
  /// not read may be null. Coefficients by slot, the same for all candidates; none: the defaults.
  /// An output may be null if it is not wanted. Same values as `evaluate`, bit for bit, for every
  /// n.
  void evaluate(std::span<const double* const> columns, std::size_t n,
                std::span<double* const> outputs, SymbolScratch& scratch,
                std::span<const double> coefficients = {}) const;

  /// Coefficients of evaluations that bring none; slots beyond them are 0.
  void set_defaults(std::span<const double> coefficients) {
    defaults_.assign(coefficients.begin(), coefficients.end());
  }

  std::size_t num_outputs() const { return outputs_.size(); }
  /// Operations per candidate.
  std::size_t num_ops() const { return code_.size(); }
  /// Whether the code reads this parameter's column.
  bool reads(ir::ParamId param) const;

 private:
  /// Of one thread's memory, in doubles: scalars, then a block for each parameter that is read,
  /// then blocks of intermediate values.
  using Offset = int32_t;
  struct Instruction {
    Kernel run = nullptr;
    Offset result = 0, a = 0, b = 0, c = 0;
  };
  struct ScalarInstruction {
    SymOp op = SymOp::kAdd;
    Offset result = 0, a = 0, b = 0, c = 0;
  };
  struct Setting {
    Offset scalar = 0;
    int32_t slot = 0;  // of the coefficient
  };
  struct Output {
    Offset from = 0;
    bool is_scalar = false;
  };
  friend class SymbolCompiler;

  Offset first_block() const;

  std::vector<double> scalars_;  // constants, and room for coefficients and what depends on them
  std::vector<Setting> settings_;
  std::vector<double> defaults_;
  std::vector<ScalarInstruction> uniform_;  // the same for all candidates: once per call
  std::vector<Instruction> code_;
  std::vector<Output> outputs_;
  std::vector<int32_t> params_;  // read, ascending
  std::size_t num_buffers_ = 0;
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_CODE_H_
