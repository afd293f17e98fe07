// A sketch's analyzer, ready for batches: derived once, then a column of scores for columns of
// parameters.
#ifndef PRUNERC_COSTMODEL_LATENCY_PROGRAM_H_
#define PRUNERC_COSTMODEL_LATENCY_PROGRAM_H_

#include "costmodel/latency/coefficients.h"
#include "costmodel/latency/poly.h"
#include "costmodel/symbol/code.h"
#include "ir/program.h"
#include "ir/target.h"

#include <span>
#include <string>
#include <vector>

namespace prunerc::costmodel {

/// Holds no handles of the sketch. Threads: may be read by several at once, with a scratch each.
///
///     const SymbolProgram program = derive(sketch, target);
///     program.score.evaluate(columns, n, {{total_ns, is_feasible}}, scratch, coefficients);
struct SymbolProgram {
  /// Outputs: total ns; 1 if the domain's constraints hold and the device's limits are met, else 0.
  SymbolCode score;
  /// Outputs: as score's, then launches in ns, then for each term its parts by TermPart. For
  /// calibration and for explaining.
  SymbolCode parts;
  static constexpr std::size_t kLaunchOutput = 2;
  struct Term {
    std::string name;
    std::size_t first = 0;  // output of its first part
    std::size_t num_parts = 0;
  };
  std::vector<Term> terms;
  double derive_ms = 0;
};

struct DeriveOptions {
  /// Statement instances in the code that are too many to be built; 0: any number.
  double max_code_size = 0;
  /// Attributes that are parameters.
  std::span<const OpenAttr> attrs = {};
};

/// Evaluations that bring no coefficients use the hand values.
SymbolProgram derive(const ir::Program& sketch, const ir::Target& target,
                     const DeriveOptions& options = {});

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_PROGRAM_H_
