// DraftSpace: the search space as the draft sees it: genes, parameters, and the analyzer's symbols
// of each sketch.
#ifndef PRUNERC_SEARCH_SPACE_DRAFT_SPACE_H_
#define PRUNERC_SEARCH_SPACE_DRAFT_SPACE_H_

#include "costmodel/latency/program.h"
#include "costmodel/pruner/analyzer.h"
#include "ir/support/parallel.h"
#include "schedule/parametric/parametric.h"
#include "search/space/gene_table.h"
#include "search/space/sampler.h"
#include "search/space/space.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::search {

/// Which analyzer scores the draft.
enum class Analyzer : uint8_t { kPrunerc, kPruner, kPrunerRelease };

/// One sketch of which candidates can be scored without making their programs.
struct DraftSketch {
  int sketch = 0;                 // of the SearchSpace
  std::vector<GeneTable> tables;  // by decision
  /// By decision and level of its table: the parameter it sets; invalid where the program has none.
  std::vector<std::vector<ir::ParamId>> params;
  std::size_t num_params = 0;
  /// Its parts are there for our analyzer only.
  costmodel::SymbolProgram symbols;
};

/// What the analyzer reads of attributes that are parameters: those of loops.
std::vector<costmodel::OpenAttr> open_attrs(const schedule::Parametric& sketch);

/// By decision; empty if one of them does not belong to the sketch. New neighbours are added.
std::vector<int32_t> genes_of(DraftSketch& sketch, std::span<const schedule::Decision> decisions);

/// What the symbols read of these candidates: a column for each ParamId.
std::vector<std::vector<double>> columns_of(const DraftSketch& sketch,
                                            std::span<const std::vector<int32_t>> genes);

struct DraftSpace {
  std::vector<DraftSketch> sketches;
  /// Sketches that have no parametric form, with the reason: these are drawn and replayed.
  struct NotParametric {
    int sketch = 0;
    std::string why;
  };
  std::vector<NotParametric> not_parametric;
  double derive_ms = 0;
};

/// Parametrizes every sketch and derives its symbols, by all threads of the pool if there is one.
/// Cost: some ms a sketch. `penalties`: of the published analyzers, which of them count.
DraftSpace make_draft_space(const Task& task, const SearchSpace& space, Analyzer analyzer,
                            uint64_t seed, const costmodel::PrunerOptions& penalties = {},
                            ThreadPool* pool = nullptr);

/// What the symbols say of a candidate.
struct SymbolicScore {
  bool is_known = false;  // not of sketches without symbols
  bool fits = false;
  double latency = 0;  // in the analyzer's unit: ns of ours, ms of the published ones
};
/// In blocks for each sketch, whose tables get new neighbours. `coefficients`: of our analyzer.
std::vector<SymbolicScore> score_genomes(DraftSpace& space, std::span<const Genome> genomes,
                                         std::span<const double> coefficients = {});
/// What a published analyzer says of one program of the task, as its symbols would.
double published_latency_ms(const ir::Program& program, const Task& task, Analyzer analyzer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_DRAFT_SPACE_H_
