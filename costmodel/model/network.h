// Network: parameters and their forward and backward passes over a batch.
#ifndef PRUNERC_COSTMODEL_MODEL_NETWORK_H_
#define PRUNERC_COSTMODEL_MODEL_NETWORK_H_

#include "costmodel/model/batch.h"
#include "costmodel/model/options.h"
#include "costmodel/nn/parameters.h"
#include "ir/support/parallel.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace prunerc::costmodel::model {

enum class Pass : uint8_t {
  kTrain,  // keeps what the backward pass needs
  kInfer,
};

/// What a pass leaves behind. One pass at a time may use it; reused, it saves allocations.
class Tape {
 public:
  virtual ~Tape() = default;
};

/// Scores are higher for faster programs. Results do not depend on the number of threads; a null
/// pool stands for the caller's alone. Threads: forward may run on several threads at once, each
/// with a tape of its own.
template <typename T>
class Network {
 public:
  virtual ~Network() = default;
  virtual std::unique_ptr<Network> clone() const = 0;
  virtual std::unique_ptr<Tape> make_tape() const = 0;
  /// Columns of the output: the score, and where there is a second one the logarithm of the latency
  /// over a latency that is the same for all candidates of a task.
  virtual int num_outputs() const = 0;
  /// out: [programs, outputs].
  virtual void forward(const Batch<T>& batch, Pass pass, ThreadPool* pool, Tape* tape,
                       nn::Matrix<T>* out) const = 0;
  /// After a forward pass of kTrain with the same batch and tape. Writes the gradient, which is as
  /// long as the parameters.
  virtual void backward(const Batch<T>& batch, ThreadPool* pool, Tape* tape,
                        const nn::Matrix<T>& d_out, nn::Vector<T>* gradient) const = 0;
  /// After a step of training: statistics of the batch go into the buffers.
  virtual void update_buffers(const Tape& /*tape*/) {}

  nn::Parameters<T> parameters;
  nn::Parameters<T> buffers;  // not trained
};

/// Whether the batch has the inputs that a network of these options reads, in their widths.
bool fits(const NetworkOptions& options, const Batch<float>& batch);

/// All parameters are drawn by the seed.
template <typename T>
std::unique_ptr<Network<T>> make_network(const NetworkOptions& options, uint64_t seed);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_NETWORK_H_
