#include "search/sampler.h"

#include "schedule/schedule.h"

namespace prunerc::search {

Genome random_genome(const SearchSpace& space, int sketch, Rng& rng) {
  Genome genome;
  genome.sketch = sketch;
  for (const schedule::DecisionSpace& s : space.sketches[static_cast<std::size_t>(sketch)].spaces) {
    genome.decisions.push_back(schedule::random_decision(s, rng));
  }
  return genome;
}

Genome default_genome(const SearchSpace& space, int sketch) {
  return {sketch, space.sketches[static_cast<std::size_t>(sketch)].trace.decisions};
}

std::vector<std::optional<Candidate>> realize(const Task& task, const SearchSpace& space,
                                              std::span<const Genome> genomes,
                                              const costmodel::CostModel& model, ThreadPool& pool) {
  return pool.map<std::optional<Candidate>>(
      genomes.size(), [&](std::size_t i) -> std::optional<Candidate> {
        Result<Candidate> made = instantiate(task, space, genomes[i].sketch, genomes[i].decisions);
        if (!made) return std::nullopt;
        const costmodel::ModelInput input = {&made->program, &task.target};
        costmodel::Score score;
        model.predict(std::span(&input, 1), std::span(&score, 1));
        made->score = score.mean;
        made->predicted_ns = score.predicted_ns;
        return std::move(made).value();
      });
}

}  // namespace prunerc::search
