#include "costmodel/model/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace prunerc::costmodel::model {
namespace {

/// Of the release: how slowly the running mean of the loss follows.
constexpr double kLossMemory = 0.95;
/// Sums of floats in another order differ by as much.
constexpr double kLeastFall = 1e-6;
/// Epochs from which the release lowers the rate.
constexpr int kLongTraining = 70;
constexpr double kPublishedRate = 7e-4, kPublishedSquaresRate = 1e-3;
constexpr double kPublishedClip = 0.5;

/// Of a Huber loss that is a square.
constexpr double kNoKnee = std::numeric_limits<double>::infinity();

// Streams of the generator.
enum Stream : uint64_t { kSplitStream, kOrderStream };

// What all members train on.
struct Task {
  const Dataset* data = nullptr;
  const TrainOptions* options = nullptr;
  ThreadPool* pool = nullptr;
  Batch<float> inputs;  // normalised
  Targets targets;
  std::vector<int> train, held_out;
};

// Programs of one step, and where its lists begin.
struct Step {
  std::vector<int> programs;
  std::vector<int> list_begin = {0};

  void add(std::span<const int> list) {
    programs.insert(programs.end(), list.begin(), list.end());
    list_begin.push_back(static_cast<int>(programs.size()));
  }
};

// A part of each group is held out, but never more than half of it.
void split(const Dataset& data, double part, uint64_t seed, std::vector<int>* train,
           std::vector<int>* held_out) {
  Rng rng(seed, kSplitStream);
  for (std::vector<int> group : groups_of(data)) {
    for (std::size_t i = group.size(); i > 1; --i) {
      std::swap(group[i - 1], group[static_cast<std::size_t>(rng.below(i))]);
    }
    const auto size = static_cast<double>(group.size());
    const auto out = static_cast<std::ptrdiff_t>(std::min(part * size, size / 2));
    held_out->insert(held_out->end(), group.begin(), group.begin() + out);
    train->insert(train->end(), group.begin() + out, group.end());
  }
  std::sort(train->begin(), train->end());
  std::sort(held_out->begin(), held_out->end());
}

std::vector<Step> published_steps(const Task& task, Rng& rng) {
  std::vector<int> order = task.train;
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(rng.below(i))]);
  }
  std::vector<Step> steps;
  const auto batch = static_cast<std::size_t>(task.options->batch);
  for (std::size_t first = 0; first < order.size(); first += batch) {
    steps.emplace_back().add(
        std::span(order).subspan(first, std::min(batch, order.size() - first)));
  }
  return steps;
}

std::vector<Step> list_steps(const Task& task, Rng& rng) {
  std::vector<Step> steps;
  for (const std::vector<int>& list : draw_lists(*task.data, task.train, task.options->list, rng)) {
    const std::size_t most = static_cast<std::size_t>(task.options->batch);
    if (steps.empty() || steps.back().programs.size() + list.size() > most) steps.emplace_back();
    steps.back().add(list);
  }
  return steps;
}

std::vector<Step> draw_steps(const Task& task, Rng& rng) {
  return task.options->loss == LossKind::kLists ? list_steps(task, rng)
                                                : published_steps(task, rng);
}

std::vector<float> column(const nn::Matrix<float>& m, int c) {
  std::vector<float> result;
  for (int r = 0; r < m.rows(); ++r) result.push_back(m(r, c));
  return result;
}

void set_column(int c, float factor, std::span<const float> values, nn::View<float> m) {
  for (int r = 0; r < m.rows; ++r) m(r, c) = factor * values[static_cast<std::size_t>(r)];
}

std::vector<float> pick(const std::vector<float>& values, std::span<const int> which) {
  std::vector<float> result;
  for (const int i : which) result.push_back(values[static_cast<std::size_t>(i)]);
  return result;
}

// Loss of the step's scores; d_out becomes its gradient.
double loss_of(const Task& task, const Step& step, const nn::Matrix<float>& out,
               nn::Matrix<float>* d_out) {
  const TrainOptions& o = *task.options;
  d_out->resize(out.rows(), out.cols());
  d_out->fill(0);
  const std::size_t lists = step.list_begin.size() - 1;
  const auto share = 1 / static_cast<double>(lists);
  const std::vector<float> scores = column(out, 0);
  const std::vector<float> labels = pick(task.targets.label, step.programs);
  std::vector<double> losses(lists, 0);
  nn::run_shards(task.pool, lists, [&](std::size_t i) {
    const int first = step.list_begin[i], count = step.list_begin[i + 1] - first;
    const auto part = [&](const std::vector<float>& all) {
      return std::span<const float>(all).subspan(static_cast<std::size_t>(first),
                                                 static_cast<std::size_t>(count));
    };
    const nn::View<float> d = d_out->view().row_range(first, count);
    std::vector<float> slope(static_cast<std::size_t>(count));
    if (o.loss != LossKind::kLists) {
      losses[i] = o.loss == LossKind::kPublished
                      ? nn::lambda_rank_published<float>(part(scores), part(labels), slope)
                      : nn::huber<float>(part(scores), part(labels), kNoKnee, slope);
      set_column(0, 1, slope, d);
      return;
    }
    losses[i] = share * nn::lambda_rank<float>(part(scores), part(labels), o.rank, slope);
    set_column(0, static_cast<float>(share), slope, d);
    if (out.cols() < 2 || o.latency_weight == 0) return;
    std::vector<float> predicted;
    for (int r = 0; r < count; ++r) predicted.push_back(out(first + r, 1));
    const std::vector<float> target =
        pick(task.targets.log_latency,
             std::span(step.programs)
                 .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    const double weight = share * o.latency_weight;
    losses[i] += weight * nn::huber<float>(predicted, target, o.latency_knee, slope);
    set_column(1, static_cast<float>(weight), slope, d);
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

double held_out_accuracy(const Task& task, const Batch<float>& held_out,
                         const Network<float>& network) {
  if (held_out.programs == 0) return std::numeric_limits<double>::quiet_NaN();
  const std::unique_ptr<Tape> tape = network.make_tape();
  nn::Matrix<float> out;
  network.forward(held_out, Pass::kInfer, task.pool, tape.get(), &out);
  return pairwise_accuracy(*task.data, task.held_out, column(out, 0));
}

// One network's training, epoch by epoch.
class Trainer {
 public:
  Trainer(const Task& task, uint64_t seed, Network<float>* network)
      : task_(task),
        network_(*network),
        tape_(network->make_tape()),
        rng_(seed, kOrderStream),
        held_out_(gather(task.inputs, task.held_out)) {
    if (task.options->start == Start::kWarm) return;
    network_.parameters.initialise(seed);
    network_.buffers.initialise(seed);
  }

  EpochStats run_epoch(int epoch) {
    const std::vector<Step> steps = draw_steps(task_, rng_);
    EpochStats stats;
    const auto share = 1 / static_cast<double>(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto per_epoch = static_cast<int64_t>(steps.size());
      const int epochs = task_.options->epochs;
      const double factor =
          nn::learning_factor(task_.options->schedule, epoch * per_epoch + static_cast<int64_t>(i),
                              epochs * per_epoch, epochs);
      run_step(steps[i], factor * task_.options->lr, share, &stats);
    }
    stats.pairwise = held_out_accuracy(task_, held_out_, network_);
    return stats;
  }

 private:
  void run_step(const Step& step, double lr, double share, EpochStats* stats) {
    const Batch<float> batch = gather(task_.inputs, step.programs);
    network_.forward(batch, Pass::kTrain, task_.pool, tape_.get(), &out_);
    stats->loss += share * loss_of(task_, step, out_, &d_out_);
    network_.backward(batch, task_.pool, tape_.get(), d_out_, &gradient_);
    nn::clip_norm<float>(task_.options->clip, gradient_);
    nn::optimizer_step<float>(task_.options->optimizer, lr, gradient_, &state_,
                              network_.parameters.values);
    network_.update_buffers(*tape_);
  }

  const Task& task_;
  Network<float>& network_;
  std::unique_ptr<Tape> tape_;
  Rng rng_;
  Batch<float> held_out_;
  nn::Matrix<float> out_, d_out_;
  nn::Vector<float> gradient_;
  nn::OptimizerState<float> state_;
};

// Whether the running mean of the loss still falls.
class Patience {
 public:
  explicit Patience(int epochs) : epochs_(epochs) {}

  bool is_over(double loss) {
    mean_ = has_mean_ ? kLossMemory * mean_ + (1 - kLossMemory) * loss : loss;
    stale_ = !has_mean_ || mean_ < best_ - kLeastFall * std::abs(best_) ? 0 : stale_ + 1;
    best_ = has_mean_ ? std::min(best_, mean_) : mean_;
    has_mean_ = true;
    return epochs_ > 0 && stale_ >= epochs_;
  }

 private:
  int epochs_;
  int stale_ = 0;
  bool has_mean_ = false;
  double mean_ = 0, best_ = 0;
};

NormaliserKind normaliser_of(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kPacmPaper:
    case NetworkKind::kTensetMlp:
    case NetworkKind::kTlp: return NormaliserKind::kColumnMax;
    case NetworkKind::kPacm: return NormaliserKind::kStandard;
  }
  return NormaliserKind::kNone;
}

}  // namespace

TrainOptions published_training(int epochs) {
  TrainOptions options;
  options.loss = LossKind::kPublished;
  options.epochs = epochs;
  options.lr = kPublishedRate;
  options.schedule = {};
  if (epochs >= kLongTraining) {
    options.schedule = {
        .kind = nn::ScheduleKind::kStep, .factor = 0.5, .period = std::max(1, epochs / 3)};
  }
  options.clip = kPublishedClip;
  options.patience = epochs >= kLongTraining ? 30 : std::max(1, epochs / 3);
  options.refit = Refit::kRefit;
  return options;
}

TrainOptions published_squares(int epochs) {
  TrainOptions options = published_training(epochs);
  options.loss = LossKind::kSquares;
  options.lr = kPublishedSquaresRate;
  return options;
}

TrainOptions published_fine_tuning(int epochs) {
  TrainOptions options;
  options.loss = LossKind::kPublished;
  options.epochs = epochs;
  options.lr = kPublishedRate;
  options.optimizer = {.kind = nn::OptimizerKind::kSgd};
  options.schedule = {};
  options.clip = 0;
  options.start = Start::kWarm;
  return options;
}

TrainOptions warm_update(int epochs) {
  TrainOptions options;
  options.epochs = epochs;
  options.lr = 5e-4;
  options.schedule = {.kind = nn::ScheduleKind::kCosine, .factor = 0.2};
  options.start = Start::kWarm;
  return options;
}

Result<TrainReport> train(const Dataset& data, const TrainOptions& options, ThreadPool* pool,
                          Model* model, const Progress& progress) {
  if (!fits(model->options, data.inputs)) {
    return error(Diag::kModelData, std::string("features of other widths than the model's"));
  }
  Task task;
  task.data = &data;
  task.options = &options;
  task.pool = pool;
  task.inputs = data.inputs;
  task.targets = targets_of(data);
  split(data, options.validation, options.seed, &task.train, &task.held_out);
  Rng probe(options.seed);
  if (draw_lists(data, task.train, options.list, probe).empty()) {
    return error(Diag::kModelData, std::string("no task has two programs"));
  }
  if (!model->has_normalisers || options.refit == Refit::kRefit) {
    model->normalisers =
        fit_normalisers(normaliser_of(model->options.kind), gather(data.inputs, task.train));
    model->has_normalisers = true;
  }
  model->normalisers.apply(&task.inputs);
  TrainReport report;
  report.train_programs = static_cast<int>(task.train.size());
  report.held_out = static_cast<int>(task.held_out.size());
  for (std::size_t i = 0; i < model->members.size(); ++i) {
    Trainer trainer(task, options.seed + i, model->members[i].get());
    Patience patience(options.patience);
    std::vector<EpochStats>& curve = report.members.emplace_back();
    for (int epoch = 0; epoch < options.epochs; ++epoch) {
      curve.push_back(trainer.run_epoch(epoch));
      if (progress) progress(static_cast<int>(i), epoch, curve.back());
      if (patience.is_over(curve.back().loss)) break;
    }
  }
  for (const std::unique_ptr<Network<float>>& member : model->members) {
    for (const float value : member->parameters.values) {
      if (!std::isfinite(value)) {
        return error(Diag::kModelData, std::string("training diverged: a parameter is not finite"));
      }
    }
  }
  return report;
}

}  // namespace prunerc::costmodel::model
