#include "search/tune/recorder.h"

#include "ir/support/parallel.h"
#include "search/record/restore.h"
#include "search/space/sampler.h"
#include "search/strategy/strategies.h"
#include "search/tune/inbox.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>

namespace prunerc::search {
namespace {

using Clock = std::chrono::steady_clock;

/// One batch is built while the other is timed.
constexpr std::size_t kBatchesInFlight = 2;
/// Draws of a sketch in a row without anything new before it counts as exhausted.
constexpr int kMaxDrawsWithoutNew = 64;

struct Drawn {
  Candidate candidate;
  PoolOrigin origin = PoolOrigin::kUniform;
  std::optional<Measurement> answer;
};

struct Batch {
  std::vector<Drawn> drawn;
  std::size_t num_answers = 0;
  bool complete() const { return num_answers == drawn.size(); }
};

class Recorder {
 public:
  Recorder(const Task& task, Measurer& measurer, const RecordOptions& options, Pool* pool)
      : task_(task),
        inbox_(measurer, options.cancel),
        options_(options),
        pool_(*pool),
        space_(pool->space()),
        threads_(options.num_threads),
        draws_without_new_(pool->sketches.size()),
        start_(Clock::now()) {}

  Result<RecordEnd> run() {
    PRUNERC_TRY_VOID(restore());
    while (!inbox_.has_ended()) {
      while (in_flight_.size() < kBatchesInFlight && submit_batch()) {
      }
      if (in_flight_.empty()) break;
      inbox_.wait_until([this] { return in_flight_.front().complete(); });
      PRUNERC_TRY_VOID(settle(in_flight_.front()));
      in_flight_.pop_front();
    }
    for (Batch& batch : in_flight_) PRUNERC_TRY_VOID(settle(batch));
    in_flight_.clear();
    const bool complete = num_wanted() <= 0 || exhausted_;
    if (complete && !inbox_.has_ended()) PRUNERC_TRY_VOID(measure_finals());
    if (inbox_.has_lost_device()) return RecordEnd::kDeviceLost;
    if (inbox_.is_cancelled()) return RecordEnd::kCancelled;
    if (!complete) return RecordEnd::kTime;
    return exhausted_ ? RecordEnd::kExhausted : RecordEnd::kComplete;
  }

 private:
  bool out_of_time() const {
    return options_.time_s > 0 &&
           std::chrono::duration<double>(Clock::now() - start_).count() >= options_.time_s;
  }
  int64_t num_wanted() const {
    return options_.candidates - static_cast<int64_t>(pool_.rows.size()) - num_submitted_;
  }

  // What the rows say is known again: programs that are there, and what the strategy had learned.
  Result<void> restore() {
    StrategyContext context = {task_, space_, threads_};
    context.seed = pool_.seed;
    // A search that goes on must not draw what the one before it drew.
    context.stream = static_cast<uint64_t>(pool_.num_batches);
    PRUNERC_TRY(strategy_, make_strategy(StrategyKind::kEvolution, context));
    std::vector<Candidate> candidates;
    std::vector<Measurement> measurements;
    std::vector<std::optional<Candidate>> restored = restore_rows(pool_, task_, threads_);
    for (std::size_t i = 0; i < restored.size(); ++i) {
      if (!restored[i]) return error(Diag::kPoolStale, pool_.op);
      seen_.insert(restored[i]->fingerprint);
      Measurement m;
      m.status = pool_.rows[i].status;
      m.median_ns = pool_.rows[i].median_ns;
      candidates.push_back(*std::move(restored[i]));
      measurements.push_back(std::move(m));
    }
    strategy_->tell(candidates, measurements);
    return {};
  }

  // Whole batches belong to the search, spread evenly over the uniform ones: asking it is dear.
  bool is_searched(int64_t batch) const {
    const auto before = static_cast<int64_t>(static_cast<double>(batch) * pool_.share_searched);
    return static_cast<int64_t>(static_cast<double>(batch + 1) * pool_.share_searched) > before;
  }

  bool submit_batch() {
    const int64_t wanted = std::min<int64_t>(options_.batch, num_wanted());
    if (wanted <= 0 || exhausted_ || out_of_time()) return false;
    Batch batch;
    const auto size = static_cast<std::size_t>(wanted);
    const int64_t number = pool_.num_batches++;
    if (is_searched(number)) add_searched(size, &batch);
    if (batch.drawn.empty()) add_uniform(size, static_cast<uint64_t>(number), &batch);
    if (batch.drawn.empty()) {
      exhausted_ = true;
      return false;
    }
    num_submitted_ += static_cast<int64_t>(batch.drawn.size());
    in_flight_.push_back(std::move(batch));
    refute(in_flight_.back());
    for (std::size_t i = 0; i < in_flight_.back().drawn.size(); ++i) {
      if (!in_flight_.back().drawn[i].answer) submit(&in_flight_.back(), i);
    }
    return true;
  }

  void add_searched(std::size_t size, Batch* batch) {
    for (Candidate& candidate : strategy_->ask(size)) {
      // Uniform candidates in flight were not told yet.
      if (!seen_.insert(candidate.fingerprint).second) continue;
      batch->drawn.push_back({std::move(candidate), PoolOrigin::kSearched, {}});
    }
  }

  // Every sketch in turn, so that each has its share however many decisions it has.
  void add_uniform(std::size_t size, uint64_t number, Batch* batch) {
    Rng rng(pool_.seed, /*stream=*/number, /*index=*/1);
    std::size_t sketch = rng.below(space_.sketches.size());
    while (batch->drawn.size() < size) {
      std::vector<Genome> genomes;
      const std::size_t wanted = size - batch->drawn.size();
      for (std::size_t skipped = 0;
           genomes.size() < wanted && skipped < draws_without_new_.size();) {
        sketch = (sketch + 1) % draws_without_new_.size();
        if (draws_without_new_[sketch] >= kMaxDrawsWithoutNew) {
          ++skipped;
          continue;
        }
        skipped = 0;
        genomes.push_back(random_genome(space_, static_cast<int>(sketch), rng));
      }
      if (genomes.empty()) return;
      take_uniform(genomes, batch);
    }
  }

  void take_uniform(std::span<const Genome> genomes, Batch* batch) {
    std::vector<std::optional<Candidate>> made = instantiate_all(task_, space_, genomes, threads_);
    for (std::size_t i = 0; i < genomes.size(); ++i) {
      const auto sketch = static_cast<std::size_t>(genomes[i].sketch);
      SketchDraws& draws = pool_.draws[sketch];
      ++draws.drawn;
      ++draws_without_new_[sketch];
      if (!made[i]) {
        ++draws.rejected;
      } else if (!seen_.insert(made[i]->fingerprint).second) {
        ++draws.repeated;
      } else {
        draws_without_new_[sketch] = 0;
        batch->drawn.push_back({*std::move(made[i]), PoolOrigin::kUniform, {}});
      }
    }
  }

  void refute(Batch& batch) {
    if (!options_.check) return;
    std::vector<Candidate> candidates;
    for (const Drawn& d : batch.drawn) candidates.push_back(d.candidate);
    std::vector<EqualityQuestion> questions;
    for (std::size_t i = 0; i < candidates.size(); ++i) questions.push_back({i, kDraftLog2Error});
    const std::vector<EqualityResult> results = check_candidates(
        options_.check, task_, candidates, questions, /*round=*/0, pool_.seed, threads_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!is_refuted(results[i].verdict)) continue;
      Measurement m;
      m.status = MeasureStatus::kNotEqual;
      m.detail = ir::to_string(results[i].verdict);
      answer(batch, i, std::move(m));
    }
  }

  void submit(Batch* batch, std::size_t idx) {
    const Candidate& candidate = batch->drawn[idx].candidate;
    MeasureInput input;
    input.task = &task_;
    input.program = candidate.program;
    input.trace = candidate.trace;
    input.seed = pool_.seed;
    const int best = pool_.best();
    if (best >= 0) input.best_ns = pool_.rows[static_cast<std::size_t>(best)].median_ns;
    inbox_.submit(std::move(input),
                  [batch, idx](Measurement m) { answer(*batch, idx, std::move(m)); });
  }

  static void answer(Batch& batch, std::size_t idx, Measurement measurement) {
    if (batch.drawn[idx].answer) return;
    batch.drawn[idx].answer = std::move(measurement);
    ++batch.num_answers;
  }

  Result<void> settle(Batch& batch) {
    std::vector<Candidate> candidates;
    std::vector<Measurement> answers;
    for (Drawn& d : batch.drawn) {
      // A device that went away says nothing about the candidate.
      if (!d.answer || d.answer->status == MeasureStatus::kDeviceLost) continue;
      add_row(d);
      candidates.push_back(std::move(d.candidate));
      answers.push_back(*std::move(d.answer));
    }
    num_submitted_ -= static_cast<int64_t>(batch.drawn.size());
    strategy_->tell(candidates, answers);
    return save();
  }

  void add_row(const Drawn& drawn) {
    const Measurement& m = *drawn.answer;
    PoolRow row;
    row.sketch = drawn.candidate.sketch;
    row.decisions = drawn.candidate.trace.decisions;
    row.fingerprint = low_bits(drawn.candidate.fingerprint);
    row.status = m.status;
    row.origin = drawn.origin;
    row.disturbed = m.disturbed;
    row.num_samples = static_cast<int>(m.samples_ns.size());
    row.median_ns = m.ok() ? m.median_ns : 0;
    row.spread = m.spread;
    row.build_s = m.build_s;
    row.measure_s = m.measure_s;
    pool_.rows.push_back(rounded(std::move(row)));
    std::string& example = pool_.examples[static_cast<std::size_t>(m.status)];
    if (!m.ok() && example.empty()) example = m.detail;
  }

  Result<void> save() { return options_.save ? options_.save(pool_) : Result<void>(); }

  // The best once more, in turns, unless they have been: then those at the margin may have changed
  // places with others, the first half has not.
  Result<void> measure_finals() {
    const RemeasureOptions core{.best = (options_.finals.best + 1) / 2, .within = 0};
    const std::vector<std::size_t> rows = contenders(pool_, core);
    const auto is_final = [&](std::size_t i) { return pool_.rows[i].is_final; };
    if (!std::all_of(rows.begin(), rows.end(), is_final)) {
      PRUNERC_TRY_VOID(remeasure(task_, inbox_, options_.finals, &pool_));
    }
    return save();
  }

  const Task& task_;
  Inbox inbox_;
  const RecordOptions& options_;
  Pool& pool_;
  const SearchSpace space_;
  ThreadPool threads_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<int> draws_without_new_;  // by sketch: draws in a row that gave nothing new
  Clock::time_point start_;
  std::set<Fingerprint> seen_;
  std::deque<Batch> in_flight_;  // a deque: what waits for answers refers to its batch
  int64_t num_submitted_ = 0;    // and not yet rows
  bool exhausted_ = false;
};

}  // namespace

Result<RecordEnd> record_pool(const Task& task, Measurer& measurer, const RecordOptions& options,
                              Pool* pool) {
  return Recorder(task, measurer, options, pool).run();
}

}  // namespace prunerc::search
