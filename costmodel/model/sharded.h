// Sharded: a network whose programs have nothing to do with each other, from the struct that knows
// one shard's passes.
#ifndef PRUNERC_COSTMODEL_MODEL_SHARDED_H_
#define PRUNERC_COSTMODEL_MODEL_SHARDED_H_

#include "costmodel/model/network.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace prunerc::costmodel::model {

/// Programs of a shard: few, so that the matrices between layers stay in the second cache.
inline constexpr int kInferShard = 32;
/// Training keeps a gradient for each shard, so there are not many.
inline constexpr int kTrainShard = 32;
inline constexpr int kMostTrainShards = 8;

inline std::vector<nn::Shard> shards_for(int programs, Pass pass) {
  return pass == Pass::kTrain ? nn::make_shards(programs, kTrainShard, kMostTrainShards)
                              : nn::make_shards(programs, kInferShard, programs);
}

/// Caches of shards: one for each while training, as many as there are threads otherwise.
template <typename Cache>
class ShardCaches {
 public:
  void start(Pass pass, std::size_t shards) {
    pass_ = pass;
    if (pass == Pass::kTrain && by_shard_.size() < shards) by_shard_.resize(shards);
  }
  /// Calls f(cache).
  template <typename F>
  void with(std::size_t shard, F&& f) {
    if (pass_ == Pass::kTrain) {
      f(&by_shard_[shard]);
      return;
    }
    std::unique_ptr<Cache> cache = take();
    f(cache.get());
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(cache));
  }
  Cache& of(std::size_t shard) { return by_shard_[shard]; }

 private:
  std::unique_ptr<Cache> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Cache>();
    std::unique_ptr<Cache> cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }

  Pass pass_ = Pass::kTrain;
  std::vector<Cache> by_shard_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Cache>> free_;
};

/// Gradients of shards, added up in their order.
template <typename T>
class ShardGradients {
 public:
  /// backward(shard, gradient) adds to a gradient that starts at 0.
  template <typename F>
  void run(ThreadPool* pool, std::size_t shards, std::size_t size, nn::Vector<T>* total,
           F&& backward) {
    parts_.resize(shards);
    nn::run_shards(pool, shards, [&](std::size_t i) {
      parts_[i].assign(size, 0);
      backward(i, parts_[i].data());
    });
    total->assign(size, 0);
    nn::add_in_order(pool, parts_, total);
  }

 private:
  std::vector<nn::Vector<T>> parts_;
};

/// Body has `Cache`, `static Body make(Parameters<T>*, const NetworkOptions&)`, `int
/// num_outputs()`, `forward(p, view, cache, out)` and `backward(p, view, cache, d_out, g)`.
template <typename T, typename Body>
class Sharded final : public Network<T> {
 public:
  explicit Sharded(const NetworkOptions& options) : body_(Body::make(&this->parameters, options)) {}

  std::unique_ptr<Network<T>> clone() const override { return std::make_unique<Sharded>(*this); }
  std::unique_ptr<Tape> make_tape() const override { return std::make_unique<Record>(); }
  int num_outputs() const override { return body_.num_outputs(); }

  void forward(const Batch<T>& batch, Pass pass, ThreadPool* pool, Tape* tape,
               nn::Matrix<T>* out) const override {
    auto& record = static_cast<Record&>(*tape);
    const std::vector<nn::Shard> shards = shards_for(batch.programs, pass);
    record.caches.start(pass, shards.size());
    out->resize(batch.programs, num_outputs());
    nn::run_shards(pool, shards.size(), [&](std::size_t i) {
      record.caches.with(i, [&](typename Body::Cache* cache) {
        body_.forward(this->parameters.values.data(), slice(batch, shards[i]), cache,
                      out->view().row_range(shards[i].first, shards[i].count));
      });
    });
  }

  void backward(const Batch<T>& batch, ThreadPool* pool, Tape* tape, const nn::Matrix<T>& d_out,
                nn::Vector<T>* gradient) const override {
    auto& record = static_cast<Record&>(*tape);
    const std::vector<nn::Shard> shards = shards_for(batch.programs, Pass::kTrain);
    record.gradients.run(
        pool, shards.size(), this->parameters.values.size(), gradient, [&](std::size_t i, T* g) {
          body_.backward(this->parameters.values.data(), slice(batch, shards[i]),
                         &record.caches.of(i),
                         d_out.view().row_range(shards[i].first, shards[i].count), g);
        });
  }

 private:
  struct Record : Tape {
    ShardCaches<typename Body::Cache> caches;
    ShardGradients<T> gradients;
  };

  Body body_;
};

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_SHARDED_H_
