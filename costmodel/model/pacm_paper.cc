#include "costmodel/model/pacm_paper.h"

#include "costmodel/model/sharded.h"
#include "costmodel/nn/relu.h"

#include <string>
#include <vector>

namespace prunerc::costmodel::model {
namespace {

using nn::Matrix;
using nn::View;

constexpr int kFlowHidden = 64;
constexpr int kFlowWidth = 128;
constexpr int kHeads = 4;

}  // namespace

template <typename T>
PaperEncoder<T> PaperEncoder<T>::make(nn::Parameters<T>* parameters,
                                      const NetworkOptions& options) {
  PaperEncoder encoder;
  encoder.statements =
      StatementTower<T>::make(parameters, "statement", options.statement_inputs, kPaperWidth);
  encoder.flow1 = nn::Linear<T>::make(parameters, "flow.0", options.flow_inputs, kFlowHidden);
  encoder.flow2 = nn::Linear<T>::make(parameters, "flow.1", kFlowHidden, kFlowWidth);
  encoder.attention = nn::Attention<T>::make(parameters, "flow.attention", kFlowWidth, kHeads);
  encoder.join = nn::Linear<T>::make(parameters, "join", kPaperWidth + kFlowWidth, kPaperWidth);
  return encoder;
}

template <typename T>
void PaperEncoder<T>::forward(const T* p, const BatchView<T>& in, Cache* cache,
                              View<T> encoded) const {
  cache->joined.resize(in.programs, join.in);
  const View<T> joined = cache->joined;
  statements.forward(p, in.statement_segments, in.statements, &cache->statements,
                     joined.column_range(0, kPaperWidth));
  const int steps = in.flow.rows;
  cache->flow1.resize(steps, kFlowHidden);
  flow1.forward(p, in.flow, cache->flow1);
  nn::relu(cache->flow1.view());
  cache->flow2.resize(steps, kFlowWidth);
  flow2.forward(p, cache->flow1, cache->flow2);
  nn::relu(cache->flow2.view());
  cache->attended.resize(steps, kFlowWidth);
  attention.forward(p, in.flow_segments, cache->flow2, &cache->attention, cache->attended);
  for (std::size_t i = 0; i < cache->attended.size(); ++i) {
    cache->attended.data()[i] += cache->flow2.data()[i];
  }
  nn::sum_pool(in.flow_segments, cache->attended, joined.column_range(kPaperWidth, kFlowWidth));
  join.forward(p, cache->joined, encoded);
  nn::relu(encoded);
}

template <typename T>
void PaperEncoder<T>::backward(const T* p, const BatchView<T>& in, Cache* cache,
                               View<const T> encoded, View<const T> d_encoded, T* g) const {
  Matrix<T> d_join;
  d_join.append(d_encoded);
  nn::relu_backward(encoded, d_join.view());
  Matrix<T> d_joined(in.programs, join.in);
  join.backward(p, cache->joined, d_join, d_joined, g);
  const View<T> joined = d_joined;
  statements.backward(p, in.statement_segments, in.statements, cache->statements,
                      joined.column_range(0, kPaperWidth), g);
  const int steps = in.flow.rows;
  Matrix<T> d_attended(steps, kFlowWidth), d_flow2(steps, kFlowWidth), d_flow1(steps, kFlowHidden);
  d_attended.fill(0);
  nn::sum_pool_backward(in.flow_segments, joined.column_range(kPaperWidth, kFlowWidth),
                        d_attended.view());
  attention.backward(p, in.flow_segments, cache->flow2, cache->attention, d_attended, d_flow2, g);
  for (std::size_t i = 0; i < d_flow2.size(); ++i) d_flow2.data()[i] += d_attended.data()[i];
  nn::relu_backward(cache->flow2, d_flow2.view());
  flow2.backward(p, cache->flow1, d_flow2, d_flow1, g);
  nn::relu_backward(cache->flow1, d_flow1.view());
  flow1.backward(p, in.flow, d_flow1, {}, g);
}

template <typename T>
PaperHead<T> PaperHead<T>::make(nn::Parameters<T>* parameters) {
  PaperHead head;
  for (int i = 0; i < kBlocks; ++i) {
    head.blocks[static_cast<std::size_t>(i)] = nn::Residual<T>::make(
        parameters, "block." + std::to_string(i), kPaperWidth, nn::Norm::kNone);
  }
  head.out = nn::Linear<T>::make(parameters, "head", kPaperWidth, 1);
  return head;
}

template <typename T>
void PaperHead<T>::forward(const T* p, View<const T> x, Cache* cache, View<T> y) const {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    cache->hidden[i].resize(x.rows, kPaperWidth);
    blocks[i].forward(p, x, &cache->blocks[i], cache->hidden[i]);
    x = cache->hidden[i];
  }
  out.forward(p, x, y);
}

template <typename T>
void PaperHead<T>::backward(const T* p, View<const T> x, const Cache& cache, View<const T> dy,
                            View<T> dx, T* g) const {
  Matrix<T> after(x.rows, kPaperWidth), middle(x.rows, kPaperWidth);
  out.backward(p, cache.hidden[1], dy, after, g);
  blocks[1].backward(p, cache.hidden[0], cache.blocks[1], after, middle, g);
  blocks[0].backward(p, x, cache.blocks[0], middle, dx, g);
}

template <typename T>
TensetMlp<T> TensetMlp<T>::make(nn::Parameters<T>* parameters, const NetworkOptions& options) {
  TensetMlp net;
  net.statements =
      StatementTower<T>::make(parameters, "statement", options.statement_inputs, kPaperWidth);
  net.head = PaperHead<T>::make(parameters);
  return net;
}

template <typename T>
void TensetMlp<T>::forward(const T* p, const BatchView<T>& in, Cache* cache, View<T> out) const {
  cache->sums.resize(in.programs, kPaperWidth);
  statements.forward(p, in.statement_segments, in.statements, &cache->statements, cache->sums);
  head.forward(p, cache->sums, &cache->head, out);
}

template <typename T>
void TensetMlp<T>::backward(const T* p, const BatchView<T>& in, Cache* cache, View<const T> d_out,
                            T* g) const {
  Matrix<T> d_sums(in.programs, kPaperWidth);
  head.backward(p, cache->sums, cache->head, d_out, d_sums, g);
  statements.backward(p, in.statement_segments, in.statements, cache->statements, d_sums, g);
}

namespace {

// The norm looks at all programs of a batch, so a pass is two runs over the shards with the norm
// between.
template <typename T>
class PacmPaper final : public Network<T> {
 public:
  explicit PacmPaper(const NetworkOptions& options) : infer_(options.statistics) {
    encoder_ = PaperEncoder<T>::make(&this->parameters, options);
    norm_ = nn::BatchNorm<T>::make(&this->parameters, &this->buffers, "norm", kPaperWidth);
    head_ = PaperHead<T>::make(&this->parameters);
  }

  std::unique_ptr<Network<T>> clone() const override { return std::make_unique<PacmPaper>(*this); }
  std::unique_ptr<Tape> make_tape() const override { return std::make_unique<Record>(); }
  int num_outputs() const override { return 1; }

  void forward(const Batch<T>& batch, Pass pass, ThreadPool* pool, Tape* tape,
               Matrix<T>* out) const override {
    auto& record = static_cast<Record&>(*tape);
    const T* const p = this->parameters.values.data();
    const std::vector<nn::Shard> shards = shards_for(batch.programs, pass);
    record.encoders.start(pass, shards.size());
    record.heads.start(pass, shards.size());
    record.encoded.resize(batch.programs, kPaperWidth);
    record.normed.resize(batch.programs, kPaperWidth);
    out->resize(batch.programs, 1);
    const auto rows = [&](Matrix<T>& m, std::size_t i) {
      return m.view().row_range(shards[i].first, shards[i].count);
    };
    nn::run_shards(pool, shards.size(), [&](std::size_t i) {
      record.encoders.with(i, [&](typename PaperEncoder<T>::Cache* cache) {
        encoder_.forward(p, slice(batch, shards[i]), cache, rows(record.encoded, i));
      });
    });
    norm_.forward(p, this->buffers.values.data(),
                  pass == Pass::kTrain ? nn::Statistics::kBatch : infer_, record.encoded,
                  &record.norm, record.normed);
    nn::run_shards(pool, shards.size(), [&](std::size_t i) {
      record.heads.with(i, [&](typename PaperHead<T>::Cache* cache) {
        head_.forward(p, rows(record.normed, i), cache, rows(*out, i));
      });
    });
  }

  void backward(const Batch<T>& batch, ThreadPool* pool, Tape* tape, const Matrix<T>& d_out,
                nn::Vector<T>* gradient) const override {
    auto& record = static_cast<Record&>(*tape);
    const T* const p = this->parameters.values.data();
    const std::size_t size = this->parameters.values.size();
    const std::vector<nn::Shard> shards = shards_for(batch.programs, Pass::kTrain);
    const auto rows = [&](auto& m, std::size_t i) {
      return m.view().row_range(shards[i].first, shards[i].count);
    };
    Matrix<T> d(batch.programs, kPaperWidth);
    nn::Vector<T> head_gradient;
    record.gradients.run(pool, shards.size(), size, &head_gradient, [&](std::size_t i, T* g) {
      head_.backward(p, rows(record.normed, i), record.heads.of(i), rows(d_out, i), rows(d, i), g);
    });
    norm_.backward(p, record.norm, d, d, head_gradient.data());
    record.gradients.run(pool, shards.size(), size, gradient, [&](std::size_t i, T* g) {
      encoder_.backward(p, slice(batch, shards[i]), &record.encoders.of(i), rows(record.encoded, i),
                        rows(d, i), g);
    });
    for (std::size_t k = 0; k < size; ++k) (*gradient)[k] += head_gradient[k];
  }

  void update_buffers(const Tape& tape) override {
    norm_.update_running(static_cast<const Record&>(tape).norm, this->buffers.values.data());
  }

 private:
  struct Record : Tape {
    ShardCaches<typename PaperEncoder<T>::Cache> encoders;
    ShardCaches<typename PaperHead<T>::Cache> heads;
    nn::BatchNormCache<T> norm;
    Matrix<T> encoded, normed;  // [programs, 256]: around the norm
    ShardGradients<T> gradients;
  };

  nn::Statistics infer_;
  PaperEncoder<T> encoder_;
  nn::BatchNorm<T> norm_;
  PaperHead<T> head_;
};

}  // namespace

template <typename T>
std::unique_ptr<Network<T>> make_pacm_paper(const NetworkOptions& options) {
  return std::make_unique<PacmPaper<T>>(options);
}

#define PRUNERC_INSTANTIATE(T)     \
  template struct PaperEncoder<T>; \
  template struct PaperHead<T>;    \
  template struct TensetMlp<T>;    \
  template std::unique_ptr<Network<T>> make_pacm_paper<T>(const NetworkOptions&);
PRUNERC_INSTANTIATE(float)
PRUNERC_INSTANTIATE(double)
#undef PRUNERC_INSTANTIATE

}  // namespace prunerc::costmodel::model
