// The cases of the CPU benchmark, and the interface of the libraries that run them.
#ifndef PRUNERC_TESTS_BENCH_CPU_PEER_H_
#define PRUNERC_TESTS_BENCH_CPU_PEER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::bench {

enum class Kind : uint8_t { kGemm, kDenseRelu, kConv, kDepthwise, kSoftmax, kLayerNorm };

/// One operator at one size. `dims` means: GEMM and dense layer M, N, K; convolutions channels in,
/// channels out, height and width in, kernel, stride, pad; softmax and layer norm rows, columns.
struct Case {
  std::string_view name;
  Kind kind;
  std::array<int64_t, 7> dims;

  /// Height and width of a convolution's output; 1 for the others.
  int64_t out_size() const {
    return dims[5] == 0 ? 1 : (dims[2] + 2 * dims[6] - dims[4]) / dims[5] + 1;
  }
  double flops() const;
  /// Each input and output once. Units: bytes.
  double traffic_bytes() const;
};

const std::vector<Case>& cases();

/// Memory aligned to 64 bytes, filled as kernels under test are: uniform, with the position of the
/// input as the seed.
class Data {
 public:
  Data(int64_t num_elems, uint64_t seed);
  float* get() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float, Free> data_;
  int64_t size_;
};

/// The inputs of a case, in order, and its output.
struct Tensors {
  std::vector<Data> inputs;
  Data output;
};
Tensors make_tensors(const Case& which);

/// A library's way to run a case: `run` does it once, `finish` then puts the result into the output
/// in plain layout.
struct Peer {
  std::function<void()> run;
  std::function<void()> finish = [] {};
};

/// Each returns nothing if the library has no such operator. The tensors must outlive the peer.
std::optional<Peer> make_openblas(const Case& which, Tensors& tensors, int num_threads);
std::optional<Peer> make_onednn(const Case& which, Tensors& tensors, int num_threads);
std::optional<Peer> make_eigen(const Case& which, Tensors& tensors, int num_threads);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_CPU_PEER_H_
