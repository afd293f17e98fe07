#include "tests/runtime/cuda_host/windows.h"

#include <fmt/format.h>

namespace prunerc::testing {
namespace {

using codegen::LaunchArgKind;
using codegen::ParamRole;
using ir::DType;

constexpr int64_t kTaps = 3, kPixels = 40, kChannels = 16;
constexpr int64_t kElemBytes = 2;
constexpr int64_t kBoxBytes = kPixels * kChannels * kElemBytes;
constexpr int64_t kBarAt = kTaps * kTaps * kBoxBytes;

int64_t num_places(const Windows& w, size_t d) {
  return (w.extents[d] + 2 * w.pads[d] - w.dilations[d] * (kTaps - 1) - 1) / w.steps[d] + 1;
}

/// Where window number `n` of all stands: image, h, w.
std::array<int64_t, 3> place_of(const Windows& w, int64_t n) {
  const int64_t columns = num_places(w, 1), lines = num_places(w, 0);
  return {n / columns / lines, n / columns % lines * w.steps[0] - w.pads[0],
          n % columns * w.steps[1] - w.pads[1]};
}

void append(std::string* bytes, int64_t value) {
  *bytes += static_cast<char>(value & 0xff);
  *bytes += static_cast<char>(value >> 8 & 0xff);
}

codegen::TensorMap map_of(const Windows& w) {
  codegen::PixelBox pixels{.height = w.extents[0], .width = w.extents[1], .steps = w.steps};
  for (size_t d = 0; d < 2; ++d) {
    pixels.lower[d] = -w.pads[d];
    pixels.upper[d] = w.pads[d] - w.dilations[d] * (kTaps - 1);
  }
  return {.base = {LaunchArgKind::kParam, 0},
          .dtype = DType::kF16,
          .rows = w.images * w.extents[0] * w.extents[1],
          .cols = w.channels,
          .pitch_bytes = w.channels * kElemBytes,
          .box_rows = kPixels,
          .box_cols = kChannels,
          .swizzle_bytes = 0,
          .pixels = pixels};
}

}  // namespace

codegen::Artifact window_copy(const Windows& w) {
  const auto [n, h, column] = place_of(w, w.first);
  std::string loads;
  for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
    loads += fmt::format("    pr_tma_load_im2col(smem + {}, &m, {}, {}, {}, {}, {}, {}, bar);\n",
                         tap * kBoxBytes, w.channel, column, h, n, tap % kTaps * w.dilations[1],
                         tap / kTaps * w.dilations[0]);
  }
  codegen::Artifact artifact;
  artifact.kind = codegen::ArtifactKind::kCudaSource;
  artifact.entry = "windows";
  artifact.cpu = "sm_90a";
  artifact.bytes = fmt::format(
      "PR_KERNEL(32, 1) void windows(const PR_GRID_CONSTANT pr_tensor_map m,\n"
      "    pr_f16* PR_RESTRICT out) {{\n"
      "  PR_SHARED(smem, {0} + 8);\n"
      "  pr_u64* const bar = (pr_u64*)(smem + {0});\n"
      "  if (pr_thread_x() == 0) {{\n    pr_mbar_init(bar, 1);\n    pr_fence_mbar_init();\n"
      "    pr_mbar_expect_tx(bar, {0});\n{1}  }}\n"
      "  pr_sync();\n  pr_mbar_wait(bar, 0);\n"
      "  for (int i = pr_thread_x(); i < {2}; i += 32) out[i] = ((const pr_f16*)smem)[i];\n}}\n",
      kBarAt, loads, kBarAt / kElemBytes);
  artifact.params = {{.name = "X",
                      .dtype = DType::kF16,
                      .shape = {w.images, w.extents[0], w.extents[1], w.channels}},
                     {.name = "Y",
                      .dtype = DType::kF16,
                      .shape = {kTaps * kTaps, kPixels, kChannels},
                      .role = ParamRole::kOutput}};
  artifact.launches = {{.kernel = "windows",
                        .block = {32, 1, 1},
                        .shared_bytes = kBarAt + 8,
                        .args = {{LaunchArgKind::kTensorMap, 0}, {LaunchArgKind::kParam, 1}},
                        .tensor_maps = {map_of(w)}}};
  return artifact;
}

std::string window_input(const Windows& w) {
  std::string bytes;
  const int64_t elems = w.images * w.extents[0] * w.extents[1] * w.channels;
  for (int64_t i = 1; i <= elems; ++i) append(&bytes, i);
  return bytes;
}

std::string window_output(const Windows& w) {
  std::string bytes;
  for (int64_t tap = 0; tap < kTaps * kTaps; ++tap) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
      const auto [n, h0, w0] = place_of(w, w.first + pixel);
      const int64_t h = h0 + tap / kTaps * w.dilations[0];
      const int64_t column = w0 + tap % kTaps * w.dilations[1];
      const bool is_inside =
          n < w.images && h >= 0 && h < w.extents[0] && column >= 0 && column < w.extents[1];
      for (int64_t c = w.channel; c < w.channel + kChannels; ++c) {
        const int64_t at = ((n * w.extents[0] + h) * w.extents[1] + column) * w.channels + c;
        append(&bytes, is_inside && c < w.channels ? at + 1 : 0);
      }
    }
  }
  return bytes;
}

std::vector<Windows> all_windows() {
  return {{},
          {.first = 17, .channel = 8},
          {.first = 100, .channel = 16},
          {.pads = {0, 0}, .first = 20},
          {.pads = {0, 2}, .first = 9},
          {.pads = {-1, 0}, .first = 4},
          {.steps = {2, 2}, .first = 5},
          {.steps = {2, 3}, .first = 1},
          {.pads = {2, 1}, .steps = {1, 2}, .dilations = {2, 1}, .first = 7},
          {.images = 5, .extents = {3, 4}, .first = 3},
          {.images = 3, .extents = {5, 16}, .dilations = {1, 4}, .first = 2}};
}

}  // namespace prunerc::testing
