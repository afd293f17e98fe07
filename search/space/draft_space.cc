#include "search/space/draft_space.h"

#include "ir/analysis/prologue.h"

#include <chrono>
#include <functional>
#include <optional>

namespace prunerc::search {
namespace {

costmodel::PrunerVersion version_of(Analyzer analyzer) {
  return analyzer == Analyzer::kPruner ? costmodel::PrunerVersion::kPaper
                                       : costmodel::PrunerVersion::kRelease;
}

costmodel::SymbolProgram symbols_of(const schedule::Parametric& parametric, const Task& task,
                                    Analyzer analyzer, costmodel::PrunerOptions options) {
  const ir::Program& sketch = parametric.program;
  if (analyzer == Analyzer::kPrunerc) {
    const std::vector<costmodel::OpenAttr> attrs = open_attrs(parametric);
    return costmodel::derive(sketch, task.target, {kMaxCodeSize, attrs});
  }
  options.version = version_of(analyzer);
  costmodel::SymbolProgram out;
  out.score = costmodel::derive_pruner(ir::repeated_part(sketch, task.target),
                                       costmodel::pruner_device(task.target), options);
  return out;
}

// Where each level of a decision goes. A covering tile's outermost level may have no parameter.
std::vector<ir::ParamId> params_of(const GeneTable& table, const std::vector<ir::ParamId>& params) {
  std::vector<ir::ParamId> out(table.num_levels());
  const std::size_t skipped = out.size() - std::min(out.size(), params.size());
  for (std::size_t l = skipped; l < out.size(); ++l) out[l] = params[l - skipped];
  return out;
}

Result<DraftSketch> sketch_of(const Task& task, const SearchSpace& space, int idx,
                              Analyzer analyzer, uint64_t seed,
                              const costmodel::PrunerOptions& penalties) {
  const Sketch& sketch = space.sketches[static_cast<std::size_t>(idx)];
  PRUNERC_TRY(const schedule::Parametric parametric,
              schedule::parametrize(task.base, sketch.trace));
  DraftSketch made;
  made.sketch = idx;
  made.num_params = parametric.program.domain().names.size();
  made.symbols = symbols_of(parametric, task, analyzer, penalties);
  for (std::size_t d = 0; d < sketch.spaces.size(); ++d) {
    const std::vector<ir::ParamId>& params = parametric.params[d];
    // A decision about structure stays as recorded: other values are other sketches.
    if (params.empty()) {
      made.tables.emplace_back(sketch.trace.decisions[d]);
    } else {
      made.tables.emplace_back(sketch.spaces[d], seed);
    }
    made.params.push_back(params_of(made.tables.back(), params));
  }
  return made;
}

void for_all(std::size_t n, ThreadPool* pool, const std::function<void(std::size_t)>& work) {
  if (pool != nullptr) return pool->for_each(n, work);
  for (std::size_t i = 0; i < n; ++i) work(i);
}

}  // namespace

std::vector<costmodel::OpenAttr> open_attrs(const schedule::Parametric& sketch) {
  std::vector<costmodel::OpenAttr> out;
  for (const schedule::OpenAttr& attr : sketch.attrs) {
    out.push_back({attr.loop, attr.block, attr.key, static_cast<double>(attr.factor), attr.params,
                   static_cast<double>(attr.least), static_cast<double>(attr.offset)});
  }
  return out;
}

std::vector<int32_t> genes_of(DraftSketch& sketch, std::span<const schedule::Decision> decisions) {
  if (decisions.size() != sketch.tables.size()) return {};
  std::vector<int32_t> genes;
  for (std::size_t d = 0; d < decisions.size(); ++d) {
    genes.push_back(sketch.tables[d].find(decisions[d]));
    if (genes.back() < 0) return {};
  }
  return genes;
}

std::vector<std::vector<double>> columns_of(const DraftSketch& sketch,
                                            std::span<const std::vector<int32_t>> genes) {
  std::vector<std::vector<double>> columns(sketch.num_params, std::vector<double>(genes.size()));
  for (std::size_t d = 0; d < sketch.tables.size(); ++d) {
    for (std::size_t l = 0; l < sketch.params[d].size(); ++l) {
      const ir::ParamId param = sketch.params[d][l];
      if (!param.valid()) continue;
      const double* const from = sketch.tables[d].column(l);
      std::vector<double>& to = columns[static_cast<std::size_t>(param.value)];
      for (std::size_t i = 0; i < genes.size(); ++i) to[i] = from[genes[i][d]];
    }
  }
  return columns;
}

DraftSpace make_draft_space(const Task& task, const SearchSpace& space, Analyzer analyzer,
                            uint64_t seed, const costmodel::PrunerOptions& penalties,
                            ThreadPool* pool) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::optional<Result<DraftSketch>>> made(space.sketches.size());
  for_all(made.size(), pool, [&](std::size_t i) {
    made[i] = sketch_of(task, space, static_cast<int>(i), analyzer, seed, penalties);
  });
  DraftSpace out;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i]->ok()) {
      out.sketches.push_back(**std::move(made[i]));
    } else {
      out.not_parametric.push_back({static_cast<int>(i), made[i]->error().message()});
    }
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  out.derive_ms = spent.count();
  return out;
}

std::vector<SymbolicScore> score_genomes(DraftSpace& space, std::span<const Genome> genomes,
                                         std::span<const double> coefficients) {
  std::vector<SymbolicScore> out(genomes.size());
  costmodel::SymbolScratch scratch;
  for (DraftSketch& sketch : space.sketches) {
    std::vector<std::vector<int32_t>> genes;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < genomes.size(); ++i) {
      if (genomes[i].sketch != sketch.sketch) continue;
      std::vector<int32_t> own = genes_of(sketch, genomes[i].decisions);
      if (own.empty()) continue;
      genes.push_back(std::move(own));
      which.push_back(i);
    }
    if (which.empty()) continue;
    const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
    std::vector<const double*> pointers;
    for (const std::vector<double>& column : columns) pointers.push_back(column.data());
    std::vector<double> latency(which.size()), fits(which.size());
    double* const outputs[] = {latency.data(), fits.data()};
    sketch.symbols.score.evaluate(pointers, which.size(), outputs, scratch, coefficients);
    for (std::size_t i = 0; i < which.size(); ++i) {
      out[which[i]] = {true, fits[i] != 0, latency[i]};
    }
  }
  return out;
}

double published_latency_ms(const ir::Program& program, const Task& task, Analyzer analyzer) {
  return costmodel::pruner_latency_ms(ir::repeated_part(program, task.target),
                                      costmodel::pruner_device(task.target),
                                      {.version = version_of(analyzer)});
}

}  // namespace prunerc::search
