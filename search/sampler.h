// Drawing candidates: random decisions of a sketch, instantiated and scored in parallel with
// results in a fixed order.
#ifndef PRUNERC_SEARCH_SAMPLER_H_
#define PRUNERC_SEARCH_SAMPLER_H_

#include "costmodel/cost_model.h"
#include "ir/support/parallel.h"
#include "ir/support/rng.h"
#include "search/space.h"

#include <optional>
#include <span>
#include <vector>

namespace prunerc::search {

/// A candidate before it has a program.
struct Genome {
  int sketch = 0;
  std::vector<schedule::Decision> decisions;
  bool operator==(const Genome&) const = default;
};

/// Uniform over the sketch's decisions.
Genome random_genome(const SearchSpace& space, int sketch, Rng& rng);

/// The sketch's heuristic decisions.
Genome default_genome(const SearchSpace& space, int sketch);

/// Instantiates and scores; entry i belongs to genomes[i] and is empty where the decisions give no
/// legal program.
std::vector<std::optional<Candidate>> realize(const Task& task, const SearchSpace& space,
                                              std::span<const Genome> genomes,
                                              const costmodel::CostModel& model, ThreadPool& pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SAMPLER_H_
