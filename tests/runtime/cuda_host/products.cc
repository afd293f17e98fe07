#include "tests/runtime/cuda_host/products.h"

#include "ir/support/rng.h"

#include <fmt/format.h>

#include <cstring>

namespace prunerc::testing {
namespace {

using codegen::Artifact;
using codegen::LaunchArgKind;
using codegen::ParamRole;
using codegen::TensorMap;
using ir::DType;

std::string encode(DType dtype, int value) {
  char raw[4] = {};
  const uint16_t half = dtype == DType::kBF16 ? ir::bf16_bits(value) : ir::f16_bits(value);
  const auto single = static_cast<float>(value);
  const auto byte = static_cast<signed char>(value);
  switch (ir::byte_size(dtype)) {
    case 4: std::memcpy(raw, &single, 4); break;
    case 2: std::memcpy(raw, &half, 2); break;
    default: std::memcpy(raw, &byte, 1); break;
  }
  return {raw, static_cast<size_t>(ir::byte_size(dtype))};
}

/// How an operand lies in shared memory: boxes of all outer rows by one swizzle, one after the
/// other.
struct Layout {
  int64_t outer, inner, box_cols, num_boxes, box_bytes;
};

Layout layout_of(const Product& p, int64_t rows, bool k_major) {
  const int64_t elem = ir::byte_size(p.dtype);
  const int64_t outer = k_major ? rows : p.k, inner = k_major ? p.k : rows;
  const int64_t box_cols = p.swizzle / elem;
  return {outer, inner, box_cols, inner / box_cols, outer * p.swizzle};
}

TensorMap map_of(const Product& p, const Layout& layout, int64_t param) {
  return {.base = {LaunchArgKind::kParam, param},
          .dtype = p.dtype,
          .rows = layout.outer,
          .cols = layout.inner,
          .pitch_bytes = layout.inner * ir::byte_size(p.dtype),
          .box_rows = layout.outer,
          .box_cols = layout.box_cols,
          .swizzle_bytes = p.swizzle};
}

std::string loads(const Layout& layout, const char* map, const char* to) {
  std::string text;
  for (int64_t box = 0; box < layout.num_boxes; ++box)
    text += fmt::format("    pr_tma_load_2d({} + {}, &{}, {}, 0, bar);\n", to,
                        box * layout.box_bytes, map, box * layout.box_cols);
  return text;
}

/// The descriptor of the part of an operand that starts at element `k` along K.
std::string descriptor(const Product& p, const Layout& layout, bool k_major, const char* at,
                       int64_t k) {
  const int64_t elem = ir::byte_size(p.dtype);
  if (k_major) {
    const int64_t box = k / layout.box_cols, within = k % layout.box_cols * elem;
    return fmt::format("pr_wgmma_desc({} + {}, 16, {}, {})", at, box * layout.box_bytes + within,
                       8 * p.swizzle, p.swizzle);
  }
  return fmt::format("pr_wgmma_desc({} + {}, {}, {}, {})", at, k * p.swizzle, layout.box_bytes,
                     8 * p.swizzle, p.swizzle);
}

}  // namespace

Operand make_operand(const Product& p, int64_t rows, bool k_major, uint64_t seed) {
  Operand operand;
  Rng rng(seed);
  for (int64_t i = 0; i < rows * p.k; ++i)
    operand.values.push_back(static_cast<int>(rng.below(9)) - 4);
  const int64_t outer = k_major ? rows : p.k, inner = k_major ? p.k : rows;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t at = k_major ? o * p.k + i : i * p.k + o;
      operand.bytes += encode(p.dtype, operand.values[static_cast<size_t>(at)]);
    }
  }
  return operand;
}

Artifact make_product(const Product& p) {
  const Layout a = layout_of(p, 64, p.a_k_major), b = layout_of(p, p.n, p.b_k_major);
  const int64_t b_at = (a.num_boxes * a.box_bytes + 1023) / 1024 * 1024;
  const int64_t bar_at = b_at + (b.num_boxes * b.box_bytes + 1023) / 1024 * 1024;
  const int64_t step = 32 / ir::byte_size(p.dtype);
  const char* const acc = p.dtype == DType::kI8 ? "int" : "float";
  std::string products;
  for (int64_t k = 0; k < p.k; k += step) {
    products += fmt::format("  pr_wgmma<{}, {}, {}, {}>(d, {}, {}, {});\n", p.n, p.type,
                            p.a_k_major ? 0 : 1, p.b_k_major ? 0 : 1,
                            descriptor(p, a, p.a_k_major, "smem", k),
                            descriptor(p, b, p.b_k_major, "bs", k), k > 0 ? 1 : 0);
  }
  Artifact artifact;
  artifact.kind = codegen::ArtifactKind::kCudaSource;
  artifact.entry = "product";
  artifact.cpu = "sm_90a";
  artifact.bytes = fmt::format(
      "PR_KERNEL(128, 1) void product(const PR_GRID_CONSTANT pr_tensor_map ma,\n"
      "    const PR_GRID_CONSTANT pr_tensor_map mb, {0}* PR_RESTRICT c) {{\n"
      "  PR_SHARED(smem, {1} + 8);\n"
      "  unsigned char* const bs = smem + {2};\n"
      "  pr_u64* const bar = (pr_u64*)(smem + {1});\n"
      "  const int t = pr_thread_x();\n"
      "  if (t == 0) {{\n    pr_mbar_init(bar, 1);\n    pr_fence_mbar_init();\n"
      "    pr_mbar_expect_tx(bar, {3});\n{4}{5}  }}\n"
      "  pr_sync();\n  pr_mbar_wait(bar, 0);\n"
      "  {0} d[{6} / 2];\n  pr_wgmma_fence();\n{7}"
      "  pr_wgmma_commit();\n  pr_wgmma_wait<0>();\n"
      "  for (int j = 0; j < {6} / 8; ++j)\n    for (int e = 0; e < 4; ++e)\n"
      "      c[(t / 32 * 16 + t % 32 / 4 + e / 2 * 8) * {6} + j * 8 + t % 4 * 2 + e % 2] ="
      " d[j * 4 + e];\n}}\n",
      acc, bar_at, b_at, a.num_boxes * a.box_bytes + b.num_boxes * b.box_bytes,
      loads(a, "ma", "smem"), loads(b, "mb", "bs"), p.n, products);
  artifact.params = {{.name = "A", .dtype = p.dtype, .shape = {a.outer, a.inner}},
                     {.name = "B", .dtype = p.dtype, .shape = {b.outer, b.inner}},
                     {.name = "C",
                      .dtype = p.dtype == DType::kI8 ? DType::kI32 : DType::kF32,
                      .shape = {64, p.n},
                      .role = ParamRole::kOutput}};
  artifact.launches = {{.kernel = "product",
                        .block = {128, 1, 1},
                        .shared_bytes = bar_at + 8,
                        .args = {{LaunchArgKind::kTensorMap, 0},
                                 {LaunchArgKind::kTensorMap, 1},
                                 {LaunchArgKind::kParam, 2}},
                        .tensor_maps = {map_of(p, a, 0), map_of(p, b, 1)}}};
  return artifact;
}

std::vector<Product> all_products() {
  std::vector<Product> all;
  for (const int64_t swizzle : {32, 64, 128}) {
    // K-major operands of every type.
    all.push_back({.n = 32, .k = 64, .swizzle = swizzle});
    all.push_back(
        {.dtype = DType::kBF16, .type = "pr_bf16", .n = 32, .k = 128, .swizzle = swizzle});
    all.push_back({.dtype = DType::kF32, .type = "pr_tf32", .n = 32, .k = 32, .swizzle = swizzle});
    all.push_back(
        {.dtype = DType::kI8, .type = "signed char", .n = 32, .k = 128, .swizzle = swizzle});
    // 16-bit operands with rows next to each other.
    all.push_back({.n = 64, .k = 128, .swizzle = swizzle, .b_k_major = false});
    all.push_back({.n = 128, .k = 64, .swizzle = swizzle, .a_k_major = false});
    all.push_back({.dtype = DType::kBF16,
                   .type = "pr_bf16",
                   .n = 192,
                   .k = 48,
                   .swizzle = swizzle,
                   .a_k_major = false,
                   .b_k_major = false});
  }
  for (const int64_t n : {8, 24, 256}) all.push_back({.n = n});
  return all;
}

std::vector<int> multiply(const Product& p, const Operand& a, const Operand& b) {
  std::vector<int> result;
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      int sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum +=
            a.values[static_cast<size_t>(i * p.k + k)] * b.values[static_cast<size_t>(j * p.k + k)];
      result.push_back(sum);
    }
  }
  return result;
}

std::vector<int> decode_result(const Product& p, const std::string& bytes) {
  std::vector<int> result;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    int whole = 0;
    float single = 0;
    std::memcpy(&whole, bytes.data() + at, 4);
    std::memcpy(&single, bytes.data() + at, 4);
    result.push_back(p.dtype == DType::kI8 ? whole : static_cast<int>(single));
  }
  return result;
}

}  // namespace prunerc::testing
