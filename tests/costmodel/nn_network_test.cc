#include "costmodel/model/model.h"
#include "costmodel/model/network.h"
#include "tests/costmodel/nn_programs.h"

#include <thread>

namespace prunerc {
namespace {

using namespace costmodel;         // NOLINT: a test
using namespace costmodel::model;  // NOLINT: a test
using namespace testing;           // NOLINT: a test

template <typename T>
nn::Matrix<T> converted(const nn::Matrix<float>& m) {
  nn::Matrix<T> result(m.rows(), m.cols());
  std::copy_n(m.data(), m.size(), result.data());
  return result;
}

Batch<double> in_double(const Batch<float>& b) {
  Batch<double> result;
  result.programs = b.programs;
  result.statements = converted<double>(b.statements);
  result.statement_begin = b.statement_begin;
  result.flow = converted<double>(b.flow);
  result.flow_begin = b.flow_begin;
  result.context = converted<double>(b.context);
  result.tokens = converted<double>(b.tokens);
  result.token_length = b.token_length;
  return result;
}

nn::Matrix<float> scores_of(const Network<float>& network, const Batch<float>& batch,
                            ThreadPool* pool = nullptr, Pass pass = Pass::kInfer) {
  const std::unique_ptr<Tape> tape = network.make_tape();
  nn::Matrix<float> out;
  network.forward(batch, pass, pool, tape.get(), &out);
  return out;
}

TEST_CASE("the published networks have the published numbers of parameters") {
  const auto count = [](NetworkKind kind) {
    return make_network<float>({.kind = kind}, 1)->parameters.values.size();
  };
  CHECK(count(NetworkKind::kPacmPaper) == 417409);
  // Statements, two residual blocks and the output: 44,800 + 65,792 + 131,584 + 257.
  CHECK(count(NetworkKind::kTensetMlp) == 242433);
  // Linear layers up, attention, residual blocks, linear layers down.
  CHECK(count(NetworkKind::kTlp) == (22 * 64 + 64) + (64 * 128 + 128) + (128 * 256 + 256) +
                                        (256 * 256 + 256) + (256 * 768 + 768) + (256 * 256 + 256) +
                                        2 * (256 * 256 + 256) + (256 * 128 + 128) +
                                        (128 * 64 + 64) + (64 + 1));
}

TEST_CASE("names of networks are read as they are printed") {
  for (const NetworkKind kind : kAllNetworks) {
    CHECK(network_kind_from_string(to_string(kind)) == kind);
  }
  CHECK(to_string(NetworkKind::kPacmPaper) == "pacm-paper");
  CHECK_FALSE(network_kind_from_string("mlp"));
}

TEST_CASE("gradients of whole networks are those of differences") {
  for (const NetworkKind kind : kAllNetworks) {
    INFO(to_string(kind));
    const NetworkOptions options = small_options(kind);
    const Batch<double> batch = in_double(random_programs(3, 10, 2, options).inputs);
    const auto network = make_network<double>(options, 5);
    const auto tape = network->make_tape();
    Rng rng(9);
    const auto factors = random_matrix<double>(rng, batch.programs, network->num_outputs());
    nn::Matrix<double> out;
    nn::Vector<double> gradient;
    const auto loss = [&] {
      network->forward(batch, Pass::kTrain, nullptr, tape.get(), &out);
      return weighted_sum(out, factors);
    };
    loss();
    network->backward(batch, nullptr, tape.get(), factors, &gradient);
    // Some of each tensor, so that the small ones are not missed.
    for (const nn::Tensor& tensor : network->parameters.tensors) {
      INFO(tensor.name);
      check_gradient<double>(
          rng, loss, std::span(network->parameters.values).subspan(tensor.offset, tensor.size()),
          std::span(gradient).subspan(tensor.offset, tensor.size()), 3);
    }
  }
}

TEST_CASE("passes give the same bits for any number of threads") {
  for (const NetworkKind kind : kAllNetworks) {
    INFO(to_string(kind));
    const NetworkOptions options = small_options(kind);
    const Batch<float> batch = random_programs(4, 150, 2, options).inputs;
    const auto network = make_network<float>(options, 5);
    const nn::Matrix<float> scores = scores_of(*network, batch);
    nn::Matrix<float> out;
    nn::Vector<float> gradient, alone;
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      const bool scores_same = scores_of(*network, batch, &pool) == scores;
      CHECK(scores_same);
      const auto tape = network->make_tape();
      network->forward(batch, Pass::kTrain, &pool, tape.get(), &out);
      network->backward(batch, &pool, tape.get(), out, threads == 1 ? &alone : &gradient);
      // Not a comparison that prints both: they are long.
      const bool is_same = threads == 1 || gradient == alone;
      CHECK(is_same);
    }
  }
}

TEST_CASE("one network serves several threads at once") {
  const NetworkOptions options = small_options(NetworkKind::kPacm);
  const Batch<float> batch = random_programs(4, 100, 2, options).inputs;
  const auto network = make_network<float>(options, 5);
  const nn::Matrix<float> scores = scores_of(*network, batch);
  std::vector<nn::Matrix<float>> results(3);
  std::vector<std::thread> threads;
  for (nn::Matrix<float>& result : results) {
    threads.emplace_back([&] { result = scores_of(*network, batch); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const nn::Matrix<float>& result : results) CHECK(result == scores);
}

TEST_CASE("a score depends on the other candidates only by the release's batch norm") {
  for (const NetworkKind kind : kAllNetworks) {
    for (const nn::Statistics statistics : {nn::Statistics::kBatch, nn::Statistics::kRunning}) {
      INFO(to_string(kind));
      NetworkOptions options = small_options(kind);
      options.statistics = statistics;
      const Batch<float> batch = random_programs(6, 70, 2, options).inputs;
      const auto network = make_network<float>(options, 5);
      const nn::Matrix<float> all = scores_of(*network, batch);
      const std::vector<int> some = {3, 68, 11};
      const nn::Matrix<float> few = scores_of(*network, gather(batch, some));
      double off = 0;
      for (int i = 0; i < 3; ++i) {
        const float other = all(some[static_cast<std::size_t>(i)], 0);
        off = std::max(off, std::abs(static_cast<double>(few(i, 0) - other)));
      }
      const bool depends = kind == NetworkKind::kPacmPaper && statistics == nn::Statistics::kBatch;
      if (depends) {
        CHECK(off > 1e-3);
      } else {
        CHECK(off < 1e-5);
      }
    }
  }
}

// The same batch with each program's steps the other way round.
Batch<float> reversed_flow(const Batch<float>& batch) {
  Batch<float> result = batch;
  for (int i = 0; i < batch.programs; ++i) {
    const BatchView<float> one = slice(batch, {i, 1});
    const int first = batch.flow_begin[static_cast<std::size_t>(i)];
    for (int r = 0; r < one.flow.rows; ++r) {
      std::copy_n(one.flow.row(one.flow.rows - 1 - r), one.flow.cols, result.flow.row(first + r));
    }
  }
  return result;
}

TEST_CASE("our network sees the order of the data flow, the published one does not") {
  for (const NetworkKind kind : {NetworkKind::kPacmPaper, NetworkKind::kPacm}) {
    const NetworkOptions options = small_options(kind);
    const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
    const auto network = make_network<float>(options, 5);
    const nn::Matrix<float> a = scores_of(*network, batch);
    const nn::Matrix<float> b = scores_of(*network, reversed_flow(batch));
    double off = 0;
    for (int i = 0; i < 20; ++i)
      off = std::max(off, std::abs(static_cast<double>(a(i, 0) - b(i, 0))));
    CHECK((off > 1e-4) == (kind == NetworkKind::kPacm));
  }
}

TEST_CASE("padding of the data flow that is marked changes no score") {
  NetworkOptions options = small_options(NetworkKind::kPacm);
  const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
  constexpr int kLength = 8;
  Batch<float> padded = batch;
  Rng rng(1);
  padded.flow = random_matrix<float>(rng, 20 * kLength, options.flow_inputs);
  padded.flow_begin = {0};
  padded.flow_valid.assign(20 * kLength, 0);
  for (int i = 0; i < 20; ++i) {
    const BatchView<float> one = slice(batch, {i, 1});
    for (int r = 0; r < one.flow.rows; ++r) {
      std::copy_n(one.flow.row(r), one.flow.cols, padded.flow.row(i * kLength + r));
      padded.flow_valid[static_cast<std::size_t>(i * kLength + r)] = 1;
    }
    padded.flow_begin.push_back((i + 1) * kLength);
  }
  CHECK(fits(options, padded));
  const auto network = make_network<float>(options, 5);
  const nn::Matrix<float> a = scores_of(*network, batch), b = scores_of(*network, padded);
  for (int i = 0; i < 20; ++i) CHECK(b(i, 0) == Approx(a(i, 0)).margin(1e-5));
}

TEST_CASE("batches of other widths do not fit") {
  for (const NetworkKind kind : kAllNetworks) {
    const NetworkOptions options = small_options(kind);
    const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
    CHECK(fits(options, batch));
    CHECK(fits(options, gather(batch, {})));
    NetworkOptions other = options;
    ++(kind == NetworkKind::kTlp ? other.token_inputs : other.statement_inputs);
    CHECK_FALSE(fits(other, batch));
    other = options;
    ++other.flow_inputs;
    CHECK(fits(other, batch) == (kind == NetworkKind::kTensetMlp || kind == NetworkKind::kTlp));
    other = options;
    ++other.context_inputs;
    CHECK(fits(other, batch) == (kind != NetworkKind::kPacm));
  }
}

TEST_CASE("predictions are means over members, and spreads leave out what all candidates share") {
  const NetworkOptions options = small_options(NetworkKind::kPacm);
  const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
  Model model = make_model(options, 3, 7);
  std::vector<Prediction> before(20), after(20), single(20);
  predict(model, batch, {}, nullptr, before);
  std::vector<nn::Matrix<float>> scores;
  for (const auto& member : model.members) scores.push_back(scores_of(*member, batch));
  for (int i = 0; i < 20; ++i) {
    const Prediction& p = before[static_cast<std::size_t>(i)];
    CHECK(p.score == Approx((scores[0](i, 0) + scores[1](i, 0) + scores[2](i, 0)) / 3));
    CHECK(p.log_latency == Approx((scores[0](i, 1) + scores[1](i, 1) + scores[2](i, 1)) / 3));
    CHECK(p.stddev > 0);
  }
  // The last two parameters are the offsets of the outputs.
  model.members[1]->parameters.values.end()[-2] += 30;
  predict(model, batch, {}, nullptr, after);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(after[i].score == Approx(before[i].score + 10).epsilon(1e-4));
    CHECK(after[i].stddev == Approx(before[i].stddev).margin(1e-4));
  }
  model.members.resize(1);
  predict(model, batch, {}, nullptr, single);
  for (const Prediction& p : single) CHECK(p.stddev == 0);
}

TEST_CASE("a momentum moves parameters, and normalisers and buffers if asked to") {
  const NetworkOptions options = small_options(NetworkKind::kPacmPaper);
  Model slow = make_model(options, 1, 1), fast = make_model(options, 1, 2);
  const Batch<float> batch = random_programs(6, 20, 2, options).inputs;
  slow.normalisers = fit_normalisers(NormaliserKind::kColumnMax, batch);
  fast.normalisers = slow.normalisers;
  fast.normalisers.flow.scale[0] += 1;
  fast.members[0]->buffers.values[0] = 1;
  const Model old = slow;
  blend(fast, 0.75, Momentum::kParameters, &slow);
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(slow.members[0]->parameters.values[i] ==
          Approx(0.75 * old.members[0]->parameters.values[i] +
                 0.25 * fast.members[0]->parameters.values[i])
              .margin(1e-6));
  }
  CHECK(slow.members[0]->buffers == old.members[0]->buffers);
  CHECK(slow.normalisers == old.normalisers);
  blend(fast, 0.75, Momentum::kEverything, &slow);
  CHECK(slow.members[0]->buffers.values[0] == 0.25F);
  CHECK(slow.normalisers.flow.scale[0] == Approx(old.normalisers.flow.scale[0] + 0.25F));
}

}  // namespace
}  // namespace prunerc
