#include "search/space/sampler.h"

#include "schedule/schedule.h"
#include "search/space/members.h"

namespace prunerc::search {

int random_sketch(const SearchSpace& space, Rng& rng) {
  if (space.members == nullptr) return static_cast<int>(rng.below(space.sketches.size()));
  const std::span<const int> sketches = space.members->sketches();
  return sketches[static_cast<std::size_t>(rng.below(sketches.size()))];
}

Genome random_genome(const SearchSpace& space, int sketch, Rng& rng) {
  Genome genome;
  genome.sketch = sketch;
  if (space.members != nullptr) {
    const std::span<const int> members = space.members->of_sketch(sketch);
    if (members.empty()) return default_genome(space, sketch);
    const int member = members[static_cast<std::size_t>(rng.below(members.size()))];
    genome.decisions = space.members->candidate(member).trace.decisions;
    return genome;
  }
  for (const schedule::DecisionSpace& s : space.sketches[static_cast<std::size_t>(sketch)].spaces) {
    genome.decisions.push_back(schedule::random_decision(s, rng));
  }
  return genome;
}

Genome default_genome(const SearchSpace& space, int sketch) {
  return nearest_member(space,
                        {sketch, space.sketches[static_cast<std::size_t>(sketch)].trace.decisions});
}

Genome nearest_member(const SearchSpace& space, Genome genome) {
  if (space.members == nullptr) return genome;
  const int member = space.members->nearest(genome.sketch, genome.decisions);
  if (member >= 0) genome.decisions = space.members->candidate(member).trace.decisions;
  return genome;
}

std::vector<std::optional<Candidate>> instantiate_all(const Task& task, const SearchSpace& space,
                                                      std::span<const Genome> genomes,
                                                      ThreadPool& pool) {
  return pool.map<std::optional<Candidate>>(
      genomes.size(), [&](std::size_t i) -> std::optional<Candidate> {
        Result<Candidate> made = instantiate(task, space, genomes[i].sketch, genomes[i].decisions);
        if (!made) return std::nullopt;
        return std::move(made).value();
      });
}

}  // namespace prunerc::search
