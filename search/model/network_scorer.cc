#include "search/model/network_scorer.h"

#include "search/model/join.h"

#include <utility>

namespace prunerc::search {

NetworkScorer::NetworkScorer(const Task& task, const SearchSpace& space,
                             std::shared_ptr<OnlineModel> shared, int32_t number,
                             ThreadPool& threads)
    : source_(task, space, &threads),
      shared_(std::move(shared)),
      number_(number),
      threads_(threads) {}

void NetworkScorer::add(const Candidate& candidate, double median_ns) {
  if (candidate.sketch < 0 || shared_->is_frozen()) return;
  new_.push_back(genome_of(candidate));
  new_ns_.push_back(median_ns);
}

void NetworkScorer::learn(uint64_t) {
  if (shared_->is_frozen()) return;
  costmodel::model::Batch<float> inputs;
  const std::vector<bool> legal = source_.append(shared_->model().options, new_, threads_, &inputs);
  for (std::size_t i = 0; i < new_.size(); ++i) {
    if (!legal[i]) continue;
    const costmodel::model::BatchView<float> one = slice(inputs, {static_cast<int>(i), 1});
    shared_->records().add({one.statements, one.flow, one.context, one.tokens},
                           {new_ns_[i], number_, 0});
  }
  new_.clear();
  new_ns_.clear();
  shared_->update(threads_);
}

double NetworkScorer::head_start() const { return shared_->came_trained() ? kHeadStart : 0; }

std::vector<double> NetworkScorer::scores(std::span<const Candidate> candidates) {
  std::vector<Genome> genomes;
  for (const Candidate& c : candidates) genomes.push_back(genome_of(c));
  costmodel::model::Batch<float> inputs;
  source_.append(shared_->model().options, genomes, threads_, &inputs);
  std::vector<costmodel::model::Prediction> made(candidates.size());
  costmodel::model::predict(shared_->model(), inputs, {}, &threads_, made);
  std::vector<double> out;
  for (const costmodel::model::Prediction& p : made) out.push_back(static_cast<double>(p.score));
  return out;
}

}  // namespace prunerc::search
