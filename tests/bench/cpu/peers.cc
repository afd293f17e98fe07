// Times one library on one case and prints one line of JSON; cpu.py starts one process for each.
//
// usage: peers PEER CASE THREADS      PEER: openblas onednn eigen limit
//        peers list                   the cases, one line of JSON each
#include "runtime/clock.h"
#include "runtime/cpu/limits.h"
#include "runtime/fill.h"
#include "runtime/measure.h"
#include "tests/bench/cpu/peer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace prunerc::bench {
namespace {

const std::vector<Case> kCases = {
    {"gemm_512", Kind::kGemm, {512, 512, 512}},
    {"gemm_1024", Kind::kGemm, {1024, 1024, 1024}},
    {"gemm_128x768x3072", Kind::kGemm, {128, 768, 3072}},
    {"conv2d_64x56_3x3", Kind::kConv, {64, 64, 56, 56, 3, 1, 1}},
    {"dw_96x112_3x3s2", Kind::kDepthwise, {96, 96, 112, 112, 3, 2, 1}},
    {"softmax_1536x128", Kind::kSoftmax, {1536, 128}},
    {"layernorm_128x768", Kind::kLayerNorm, {128, 768}},
    {"dense_relu", Kind::kDenseRelu, {512, 512, 512}},
};

double num_elems_moved(const Case& c) {
  const auto d = [&](size_t i) { return static_cast<double>(c.dims[i]); };
  const auto out = static_cast<double>(c.out_size());
  switch (c.kind) {
    case Kind::kGemm: return d(0) * d(2) + d(2) * d(1) + d(0) * d(1);
    case Kind::kDenseRelu: return d(0) * d(2) + d(2) * d(1) + d(0) * d(1) + d(1);
    case Kind::kConv: return d(0) * d(2) * d(3) + d(1) * d(0) * d(4) * d(4) + d(1) * out * out;
    case Kind::kDepthwise: return d(0) * d(2) * d(3) + d(0) * d(4) * d(4) + d(1) * out * out;
    case Kind::kSoftmax: return 2 * d(0) * d(1);
    case Kind::kLayerNorm: return 2 * d(0) * d(1) + 2 * d(1);
  }
  return 0;
}

bool is_memory_bound(Kind kind) { return kind == Kind::kSoftmax || kind == Kind::kLayerNorm; }

/// The larger of the two times that the machine needs at least: for the arithmetic, and for the
/// compulsory traffic at the copy bandwidth of a working set of that size.
double limit_ns(const Case& which, int num_threads) {
  constexpr int64_t kSampleNs = 1'000'000;  // short, to fit between other work
  const double compute_ns = which.flops() / runtime::measure_fma_gflops(num_threads, kSampleNs);
  const auto footprint = static_cast<int64_t>(which.traffic_bytes()) / num_threads;
  const double copy_gbps = runtime::measure_copy_gbps(num_threads, footprint, kSampleNs);
  const double memory_ns = which.traffic_bytes() / copy_gbps;
  return is_memory_bound(which.kind) ? memory_ns : std::max(compute_ns, memory_ns);
}

void print_row(const Case& which, std::string_view peer, int num_threads,
               const runtime::Measurement& m, double checksum) {
  std::printf(
      "{\"case\":\"%s\",\"peer\":\"%s\",\"threads\":%d,\"ns\":%.1f,\"min_ns\":%.1f,\"spread\":%.4f,"
      "\"status\":\"%s\",\"checksum\":%.6g}\n",
      which.name.data(), peer.data(), num_threads, m.median_ns, m.min_ns, m.spread,
      m.disturbed ? "noisy" : to_string(m.status).data(), checksum);
}

int time_peer(const Case& which, std::string_view name, int num_threads) {
  Tensors tensors = make_tensors(which);
  const auto make = name == "openblas" ? make_openblas
                    : name == "onednn" ? make_onednn
                                       : make_eigen;
  const std::optional<Peer> peer = make(which, tensors, num_threads);
  if (!peer) return 0;
  runtime::TimingOptions options;
  options.max_time_ns = 600'000'000;
  options.min_samples = 15;
  const runtime::Measurement measurement = runtime::time_kernel(
      [&](int64_t runs) {
        const int64_t cpu = runtime::thread_cpu_ns();
        const int64_t started = runtime::now_ns();
        for (int64_t i = 0; i < runs; ++i) peer->run();
        const int64_t wall = runtime::now_ns() - started;
        const int64_t lost = std::max<int64_t>(0, wall - (runtime::thread_cpu_ns() - cpu));
        return runtime::RawSample{.wall_ns = wall, .lost_ns = lost, .caller_lost_ns = lost};
      },
      options);
  peer->finish();
  double checksum = 0;
  for (int64_t i = 0; i < tensors.output.size(); ++i) checksum += std::abs(tensors.output.get()[i]);
  print_row(which, name, num_threads, measurement, checksum);
  return 0;
}

int list_cases() {
  for (const Case& which : kCases) {
    std::printf("{\"case\":\"%s\",\"flops\":%.0f,\"bytes\":%.0f,\"memory_bound\":%s}\n",
                which.name.data(), which.flops(), which.traffic_bytes(),
                is_memory_bound(which.kind) ? "true" : "false");
  }
  return 0;
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "list") return list_cases();
  if (argc != 4) {
    std::fprintf(stderr, "usage: peers PEER CASE THREADS\n");
    return 2;
  }
  const int num_threads = std::atoi(argv[3]);
  for (const Case& which : kCases) {
    if (which.name != argv[2]) continue;
    if (std::string_view(argv[1]) != "limit") return time_peer(which, argv[1], num_threads);
    runtime::Measurement limit;
    limit.status = MeasureStatus::kOk;
    limit.median_ns = limit.min_ns = limit_ns(which, num_threads);
    print_row(which, "limit", num_threads, limit, 0);
    return 0;
  }
  std::fprintf(stderr, "no such case: %s\n", argv[2]);
  return 2;
}

}  // namespace

double Case::flops() const {
  const auto d = [&](size_t i) { return static_cast<double>(dims[i]); };
  const auto outs = static_cast<double>(out_size() * out_size());
  switch (kind) {
    case Kind::kGemm:
    case Kind::kDenseRelu: return 2 * d(0) * d(1) * d(2);
    case Kind::kConv: return 2 * d(0) * d(1) * outs * d(4) * d(4);
    case Kind::kDepthwise: return 2 * d(0) * outs * d(4) * d(4);
    case Kind::kSoftmax: return 4 * d(0) * d(1);
    case Kind::kLayerNorm: return 8 * d(0) * d(1);
  }
  return 0;
}

double Case::traffic_bytes() const { return 4 * num_elems_moved(*this); }

const std::vector<Case>& cases() { return kCases; }

Data::Data(int64_t num_elems, uint64_t seed)
    : data_(static_cast<float*>(
          ::operator new (static_cast<size_t>(num_elems) * sizeof(float), std::align_val_t{64}))),
      size_(num_elems) {
  runtime::fill_tensor(runtime::Fill::kUniform, seed, ir::DType::kF32, num_elems, data_.get());
}

void Data::Free::operator()(float* data) const { ::operator delete (data, std::align_val_t{64}); }

Tensors make_tensors(const Case& c) {
  const int64_t out = c.out_size();
  std::vector<int64_t> inputs;
  int64_t output = 0;
  switch (c.kind) {
    case Kind::kGemm:
    case Kind::kDenseRelu:
      inputs = {c.dims[0] * c.dims[2], c.dims[2] * c.dims[1]};
      if (c.kind == Kind::kDenseRelu) inputs.push_back(c.dims[1]);
      output = c.dims[0] * c.dims[1];
      break;
    case Kind::kConv:
    case Kind::kDepthwise:
      inputs = {c.dims[0] * c.dims[2] * c.dims[3],
                c.dims[1] * (c.kind == Kind::kConv ? c.dims[0] : 1) * c.dims[4] * c.dims[4]};
      output = c.dims[1] * out * out;
      break;
    case Kind::kSoftmax:
      inputs = {c.dims[0] * c.dims[1]};
      output = inputs[0];
      break;
    case Kind::kLayerNorm:
      inputs = {c.dims[0] * c.dims[1], c.dims[1], c.dims[1]};
      output = inputs[0];
      break;
  }
  Tensors tensors{.inputs = {}, .output = Data(output, 0)};
  for (size_t i = 0; i < inputs.size(); ++i) tensors.inputs.emplace_back(inputs[i], i + 1);
  return tensors;
}

}  // namespace prunerc::bench

int main(int argc, char** argv) { return prunerc::bench::run(argc, argv); }
