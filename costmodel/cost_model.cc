#include "costmodel/cost_model.h"

#include "costmodel/latency/roofline.h"
#include "ir/equal.h"
#include "ir/support/rng.h"

#include <cmath>

namespace prunerc::costmodel {
namespace {

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}
  void predict(std::span<const ModelInput> inputs, std::span<Score> scores) const override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Fingerprint print = ir::fingerprint(*inputs[i].program);
      scores[i] = {.mean = Rng(seed_, print.high, print.low).uniform()};
    }
  }
  Result<std::unique_ptr<CostModel>> updated(std::span<const Sample>,
                                             const FitOptions&) const override {
    return std::unique_ptr<CostModel>();
  }

 private:
  uint64_t seed_;
};

class RooflineModel final : public CostModel {
 public:
  void predict(std::span<const ModelInput> inputs, std::span<Score> scores) const override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double ns = estimate_latency(*inputs[i].program, *inputs[i].target).total_ns;
      scores[i] = {.mean = -std::log(std::max(ns, 1e-3)), .stddev = 0, .predicted_ns = ns};
    }
  }
  Result<std::unique_ptr<CostModel>> updated(std::span<const Sample>,
                                             const FitOptions&) const override {
    return std::unique_ptr<CostModel>();
  }
};

}  // namespace

std::unique_ptr<CostModel> make_random_model(uint64_t seed) {
  return std::make_unique<RandomModel>(seed);
}

std::unique_ptr<CostModel> make_roofline_model() { return std::make_unique<RooflineModel>(); }

}  // namespace prunerc::costmodel
