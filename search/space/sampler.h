// Drawing candidates: random decisions of a sketch, instantiated in parallel with results in a fixed
// order.
#ifndef PRUNERC_SEARCH_SPACE_SAMPLER_H_
#define PRUNERC_SEARCH_SPACE_SAMPLER_H_

#include "ir/support/parallel.h"
#include "ir/support/rng.h"
#include "search/space/candidate.h"
#include "search/space/space.h"

#include <optional>
#include <span>
#include <vector>

namespace prunerc::search {

/// Uniform over the sketches that have candidates.
int random_sketch(const SearchSpace& space, Rng& rng);

/// Uniform over the sketch's decisions, or over its members if the space has some.
Genome random_genome(const SearchSpace& space, int sketch, Rng& rng);

/// The sketch's heuristic decisions, or the member nearest to them.
Genome default_genome(const SearchSpace& space, int sketch);

/// The member nearest in decisions; the genome itself in a space without members.
Genome nearest_member(const SearchSpace& space, Genome genome);

/// Entry i belongs to genomes[i] and is empty where the decisions give no legal program.
std::vector<std::optional<Candidate>> instantiate_all(const Task& task, const SearchSpace& space,
                                                      std::span<const Genome> genomes,
                                                      ThreadPool& pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SAMPLER_H_
