#include "search/model/scorer.h"

#include "search/model/inputs.h"
#include "search/model/join.h"
#include "search/space/sampler.h"

#include <utility>

namespace prunerc::search {
namespace {

/// New data, as a part of the old, that make training worth its time.
constexpr double kGrowth = 0.05;

class ProgramModel final : public CandidateModel {
 public:
  ProgramModel(const Task& task, const costmodel::CostModel& model) : task_(task), model_(model) {}

  void add(const Candidate& candidate, double median_ns) override {
    programs_.push_back(candidate.program);
    median_ns_.push_back(median_ns);
  }

  void learn(uint64_t seed) override {
    const auto least = static_cast<double>(num_trained_) * (1 + kGrowth);
    if (programs_.empty() || static_cast<double>(programs_.size()) <= least) return;
    std::vector<costmodel::Sample> samples;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      samples.push_back({{&programs_[i], &task_.target}, 0, median_ns_[i]});
    }
    Result<std::unique_ptr<costmodel::CostModel>> made = model_.updated(samples, {seed});
    if (made.ok() && *made != nullptr) learned_ = std::move(made).value();
    num_trained_ = programs_.size();
  }

  bool is_trained() const override { return learned_ != nullptr; }

  std::vector<double> scores(std::span<const Candidate> candidates) const override {
    std::vector<costmodel::ModelInput> inputs;
    for (const Candidate& c : candidates) inputs.push_back({&c.program, &task_.target});
    std::vector<costmodel::Score> made(candidates.size());
    learned_->predict(inputs, made);
    std::vector<double> out;
    for (const costmodel::Score& s : made) out.push_back(s.mean);
    return out;
  }

 private:
  const Task& task_;
  const costmodel::CostModel& model_;
  std::unique_ptr<costmodel::CostModel> learned_;
  std::vector<ir::Program> programs_;
  std::vector<double> median_ns_;
  std::size_t num_trained_ = 0;
};

class NetworkModel final : public CandidateModel {
 public:
  NetworkModel(const Task& task, const SearchSpace& space, std::shared_ptr<OnlineModel> shared,
               int32_t number, ThreadPool& threads)
      : source_(task, space, &threads),
        shared_(std::move(shared)),
        number_(number),
        threads_(threads) {}

  void add(const Candidate& candidate, double median_ns) override {
    if (candidate.sketch < 0) return;
    new_.push_back(genome_of(candidate));
    new_ns_.push_back(median_ns);
  }

  void learn(uint64_t) override {
    costmodel::model::Batch<float> inputs;
    const std::vector<bool> legal =
        source_.append(shared_->model().options, new_, threads_, &inputs);
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

  bool is_trained() const override { return shared_->is_trained(); }
  bool needs_programs() const override { return false; }
  double head_start() const override { return shared_->came_trained() ? kHeadStart : 0; }

  std::vector<double> scores(std::span<const Candidate> candidates) const override {
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

 private:
  InputSource source_;
  std::shared_ptr<OnlineModel> shared_;
  int32_t number_;
  ThreadPool& threads_;
  std::vector<Genome> new_;  // not handed on yet
  std::vector<double> new_ns_;
};

}  // namespace

std::unique_ptr<CandidateModel> make_program_model(const Task& task,
                                                   const costmodel::CostModel& model) {
  return std::make_unique<ProgramModel>(task, model);
}

std::unique_ptr<CandidateModel> make_network_model(const Task& task, const SearchSpace& space,
                                                   std::shared_ptr<OnlineModel> shared,
                                                   int32_t number, ThreadPool& threads) {
  return std::make_unique<NetworkModel>(task, space, std::move(shared), number, threads);
}

}  // namespace prunerc::search
