// The latency of a program, or of every candidate of a sketch at once, as symbols.
#ifndef PRUNERC_COSTMODEL_LATENCY_SYMBOLS_H_
#define PRUNERC_COSTMODEL_LATENCY_SYMBOLS_H_

#include "costmodel/latency/coefficients.h"
#include "costmodel/latency/poly.h"
#include "costmodel/symbol/sym.h"
#include "ir/program.h"
#include "ir/target.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace prunerc::costmodel {

/// One nest, or one kernel of a GPU, beside the others: what each unit would take alone.
struct LatencyTerm {
  std::string name;           // of the block
  std::vector<Sym> parts_ns;  // by TermPart
  Sym total_ns;
};

/// Something that must not exceed a limit for the candidate to run.
struct LatencyLimit {
  std::string what;
  Sym have;
  double most = 0;
};

/// Units: ns of the whole program. Symbols over the program's tile parameters, numbers if it has
/// none. Holds the graph of its symbols.
struct LatencySymbols {
  std::shared_ptr<SymGraph> graph;
  Sym total_ns;
  Sym core_ns;    // CPU: instructions, had every access hit L1; GPU: the slowest unit of the SMs
  Sym l2_ns;      // traffic between L1 and L2
  Sym l3_ns;      // traffic between L2 and L3; none on a GPU
  Sym memory_ns;  // traffic to memory
  Sym latency_ns = 0;  // CPU: lines that no prefetcher brought; a GPU counts it in core_ns
  Sym launch_ns;       // starting parallel loops or kernels
  Sym code_size;       // statement instances in the code
  Sym max_tile_registers;
  std::vector<LatencyTerm> terms;
  std::vector<LatencyLimit> limits;
  /// Truth: the domain's constraints hold and no limit is exceeded.
  Sym is_feasible = 1;
};

/// Symbols of a scheduled program or a parametric sketch. With `coefficients`, what calibration
/// may change are slots of the graph (Coefficient); without, its hand values are constants.
/// `attrs`: those of a sketch that are parameters.
/// Cost: some ms for a sketch, tens of us for a program without parameters.
LatencySymbols latency_symbols(const ir::Program& program, const ir::Target& target,
                               Coefficients coefficients = Coefficients::kConstant,
                               std::span<const OpenAttr> attrs = {});

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_SYMBOLS_H_
