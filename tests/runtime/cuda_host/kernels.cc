#include "tests/runtime/cuda_host/kernels.h"

#include "ir/support/check.h"
#include "ir/support/rng.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

namespace prunerc::testing {
namespace {

using codegen::Artifact;
using codegen::LaunchArgKind;
using codegen::ParamRole;
using ir::DType;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// `count` values of type `dtype` in [-1, 1) as they are stored, and as numbers.
std::string random_matrix(DType dtype, int64_t count, uint64_t seed, std::vector<double>* values) {
  Rng rng(seed);
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const double x = ir::round_to(dtype, static_cast<double>(rng.below(2000)) / 1000.0 - 1.0);
    values->push_back(x);
    char raw[4];
    if (dtype == DType::kF16) {
      const uint16_t bits = ir::f16_bits(x);
      std::memcpy(raw, &bits, 2);
    } else {
      const auto single = static_cast<float>(x);
      std::memcpy(raw, &single, 4);
    }
    bytes.append(raw, static_cast<size_t>(ir::byte_size(dtype)));
  }
  return bytes;
}

enum class BLayout { kRows, kColumns };
enum class BValues { kRandom, kOnes };

GemmCase make_gemm(std::string_view file, const std::string& constants, DType dtype,
                   GemmShape shape, BLayout layout, BValues b_values = BValues::kRandom) {
  GemmCase gemm;
  std::vector<double> a, b;
  gemm.inputs = {random_matrix(dtype, shape.m * shape.k, 1, &a),
                 random_matrix(dtype, shape.k * shape.n, 2, &b)};
  if (b_values == BValues::kOnes) b.assign(b.size(), 1.0);
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < shape.k; ++k) {
        const int64_t at = layout == BLayout::kRows ? k * shape.n + j : j * shape.k + k;
        sum += a[static_cast<size_t>(i * shape.k + k)] * b[static_cast<size_t>(at)];
      }
      gemm.expected.push_back(static_cast<float>(sum));
    }
  }
  Artifact& artifact = gemm.artifact;
  artifact.kind = codegen::ArtifactKind::kCudaSource;
  artifact.bytes = fmt::format("constexpr int M = {}, N = {}, K = {};\n{}{}", shape.m, shape.n,
                               shape.k, constants, kernel_text(file));
  artifact.cpu = "sm_90a";
  const bool rows = layout == BLayout::kRows;
  artifact.params = {
      {.name = "A", .dtype = dtype, .shape = {shape.m, shape.k}},
      {.name = "B", .dtype = dtype, .shape = {rows ? shape.k : shape.n, rows ? shape.n : shape.k}},
      {.name = "C", .dtype = DType::kF32, .shape = {shape.m, shape.n}, .role = ParamRole::kOutput}};
  return gemm;
}

void add_launch(GemmCase& gemm, codegen::Launch launch) {
  gemm.artifact.entry = launch.kernel;
  if (launch.args.empty()) {
    launch.args = {
        {LaunchArgKind::kParam, 0}, {LaunchArgKind::kParam, 1}, {LaunchArgKind::kParam, 2}};
  }
  gemm.artifact.launches = {std::move(launch)};
  PRUNERC_CHECK(codegen::validate(gemm.artifact).ok(), "the launch is possible");
}

}  // namespace

std::string kernel_text(std::string_view name) {
  std::ifstream in(fmt::format("tests/runtime/cuda_host/kernels/{}.cu", name));
  PRUNERC_CHECK(in.good(), "kernels are data of the test");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string replace_nth(std::string text, std::string_view from, std::string_view to, int index) {
  size_t at = text.find(from);
  for (; index > 0 && at != std::string::npos; --index) at = text.find(from, at + 1);
  PRUNERC_CHECK(at != std::string::npos, "the text to replace is in the kernel");
  return text.replace(at, from.size(), to);
}

double error_of(const GemmCase& gemm, const std::string& output) {
  std::vector<float> values(gemm.expected.size());
  PRUNERC_CHECK(output.size() == values.size() * sizeof(float), "the output has the size of C");
  std::memcpy(values.data(), output.data(), output.size());
  // Terms are below 1, so K bounds the sum of their sizes.
  const auto k = static_cast<double>(gemm.artifact.params[0].shape[1]);
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(values[i]) - gemm.expected[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference / k);
  }
  return worst;
}

GemmCase sgemm_tiled(GemmShape shape) {
  GemmCase gemm = make_gemm("sgemm_tiled", "", DType::kF32, shape, BLayout::kRows);
  add_launch(gemm, {.kernel = "sgemm",
                    .grid = {ceil_div(shape.n, 64), ceil_div(shape.m, 64), 1},
                    .block = {256, 1, 1},
                    .shared_bytes = 8192,
                    .args = {},
                    .tensor_maps = {}});
  return gemm;
}

GemmCase row_sums(GemmShape shape) {
  PRUNERC_CHECK(shape.n == 1, "sums of rows are one column");
  GemmCase gemm = make_gemm("row_sums", "", DType::kF32, shape, BLayout::kRows, BValues::kOnes);
  add_launch(gemm, {.kernel = "row_sums",
                    .grid = {shape.m, 1, 1},
                    .block = {1024, 1, 1},
                    .shared_bytes = 128,
                    .args = {},
                    .tensor_maps = {}});
  return gemm;
}

GemmCase hgemm_mma(GemmShape shape) {
  GemmCase gemm = make_gemm("hgemm_mma", "", DType::kF16, shape, BLayout::kRows);
  add_launch(gemm, {.kernel = "hgemm",
                    .grid = {shape.n / 64, ceil_div(shape.m, 64), 1},
                    .block = {128, 1, 1},
                    .shared_bytes = 3 * 8192,
                    .args = {},
                    .tensor_maps = {}});
  return gemm;
}

GemmCase hgemm_tma(GemmShape shape, int64_t num_blocks) {
  GemmCase gemm = make_gemm("hgemm_tma", fmt::format("constexpr int BLOCKS = {};\n", num_blocks),
                            DType::kF16, shape, BLayout::kColumns);
  const auto map = [&](int64_t param, DType dtype, int64_t box_rows, int64_t box_cols,
                       int64_t swizzle) {
    const std::vector<int64_t>& extents = gemm.artifact.params[static_cast<size_t>(param)].shape;
    return codegen::TensorMap{.base = {LaunchArgKind::kParam, param},
                              .dtype = dtype,
                              .rows = extents[0],
                              .cols = extents[1],
                              .pitch_bytes = extents[1] * ir::byte_size(dtype),
                              .box_rows = box_rows,
                              .box_cols = box_cols,
                              .swizzle_bytes = swizzle};
  };
  add_launch(gemm,
             {.kernel = "hgemm",
              .grid = {num_blocks, 1, 1},
              .block = {384, 1, 1},
              .shared_bytes = 4 * (16384 + 8192) + 2 * 16384 + 4 * 16,
              .args = {{LaunchArgKind::kTensorMap, 0},
                       {LaunchArgKind::kTensorMap, 1},
                       {LaunchArgKind::kTensorMap, 2}},
              .tensor_maps = {map(0, DType::kF16, 128, 64, 128), map(1, DType::kF16, 64, 64, 128),
                              map(2, DType::kF32, 64, 64, 0)}});
  return gemm;
}

}  // namespace prunerc::testing
