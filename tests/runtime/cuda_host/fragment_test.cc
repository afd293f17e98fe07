// What the host does with fragments against what the registry of tensor intrinsics says of them:
// the compiler plans with the registry's maps, so the two must be one truth.
#include "ir/support/rng.h"
#include "ir/tensor/intrinsic.h"
#include "runtime/cuda_host/options.h"
#include "tests/support/cuda_host.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstring>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::Artifact;
using codegen::LaunchArgKind;
using codegen::ParamRole;
using ir::DType;
using ir::TensorIntrinsic;
using ir::TensorOperand;

constexpr int kLanes = 32;

/// A matrix of small integers, exact in every type of operands.
struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<int> values;
  int& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
};

Matrix random_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix m{rows, cols, {}};
  Rng rng(seed);
  for (int64_t i = 0; i < rows * cols; ++i) m.values.push_back(static_cast<int>(rng.below(15)) - 7);
  return m;
}

/// One element as it lies in a register or in memory.
std::string encode(DType dtype, int value) {
  char raw[4] = {};
  if (dtype == DType::kF16) {
    const uint16_t bits = ir::f16_bits(value);
    std::memcpy(raw, &bits, 2);
  } else if (dtype == DType::kBF16) {
    const uint16_t bits = ir::bf16_bits(value);
    std::memcpy(raw, &bits, 2);
  } else if (dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(raw, &single, 4);
  } else if (dtype == DType::kI32) {
    std::memcpy(raw, &value, 4);
  } else {
    raw[0] = static_cast<char>(value);
  }
  return {raw, static_cast<size_t>(ir::byte_size(dtype))};
}

int decode(DType dtype, const char* raw) {
  if (dtype == DType::kF32) {
    float single;
    std::memcpy(&single, raw, 4);
    return static_cast<int>(single);
  }
  if (dtype == DType::kF16) {
    uint16_t bits;
    std::memcpy(&bits, raw, 2);
    return static_cast<int>(ir::f16_value(bits));
  }
  int value;
  std::memcpy(&value, raw, 4);
  return value;
}

/// The registers of all lanes, one lane after the other, as the registry's map fills them.
std::string pack(const TensorOperand& operand, DType dtype, Matrix& m) {
  std::string bytes;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t reg = 0; reg < operand.registers; ++reg) {
      const std::vector<int64_t> at = operand.fragment.at(std::vector<int64_t>{lane, reg});
      bytes += encode(dtype, m.at(at[0], at[1]));
    }
  }
  return bytes;
}

Matrix unpack(const TensorOperand& operand, DType dtype, int64_t rows, int64_t cols,
              const std::string& bytes) {
  Matrix m{rows, cols, std::vector<int>(static_cast<size_t>(rows * cols), 0x7fffffff)};
  const char* next = bytes.data();
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t reg = 0; reg < operand.registers; ++reg, next += ir::byte_size(dtype)) {
      const std::vector<int64_t> at = operand.fragment.at(std::vector<int64_t>{lane, reg});
      m.at(at[0], at[1]) = decode(dtype, next);
    }
  }
  return m;
}

/// One warp that runs `body` on the byte buffers p0, p1 and p2, the last of which it writes.
Result<std::vector<std::string>> run_warp(const std::string& body, const std::string& in0,
                                          const std::string& in1, size_t out_bytes) {
  Artifact artifact;
  artifact.kind = codegen::ArtifactKind::kCudaSource;
  artifact.entry = "one_warp";
  artifact.bytes = fmt::format(
      "PR_KERNEL(32, 1) void one_warp(const unsigned char* PR_RESTRICT p0,\n"
      "    const unsigned char* PR_RESTRICT p1, unsigned char* PR_RESTRICT p2) {{\n"
      "  const int lane = pr_thread_x();\n{}}}\n",
      body);
  const auto bytes_of = [](const std::string& bytes) {
    return std::vector<int64_t>{static_cast<int64_t>(bytes.size())};
  };
  artifact.params = {{.name = "p0", .dtype = DType::kU8, .shape = bytes_of(in0)},
                     {.name = "p1", .dtype = DType::kU8, .shape = bytes_of(in1)},
                     {.name = "p2",
                      .dtype = DType::kU8,
                      .shape = {static_cast<int64_t>(out_bytes)},
                      .role = ParamRole::kOutput}};
  artifact.launches = {
      {.kernel = "one_warp",
       .block = {32, 1, 1},
       .shared_bytes = 2048,
       .args = {{LaunchArgKind::kParam, 0}, {LaunchArgKind::kParam, 1}, {LaunchArgKind::kParam, 2}},
       .tensor_maps = {}}};
  const std::vector<std::string_view> inputs{in0, in1};
  return testing::run_source_on_host(artifact, inputs, {});
}

const TensorOperand& operand_of(const TensorIntrinsic& intrinsic, std::string_view name) {
  for (const TensorOperand& operand : intrinsic.operands) {
    if (operand.name == name) return operand;
  }
  FAIL("no operand " << name);
  return intrinsic.operands[0];
}

struct MmaCase {
  const char* intrinsic;
  const char* wrapper;
  DType in, out;
  int64_t n, k;
};

constexpr MmaCase kMmaCases[] = {
    {"mma_m16n8k16_f16", "pr_mma_m16n8k16_f16", DType::kF16, DType::kF32, 8, 16},
    {"mma_m16n8k16_bf16", "pr_mma_m16n8k16_bf16", DType::kBF16, DType::kF32, 8, 16},
    {"mma_m16n8k8_tf32", "pr_mma_m16n8k8_tf32", DType::kF32, DType::kF32, 8, 8},
    {"mma_m16n8k32_s8", "pr_mma_m16n8k32_s8", DType::kI8, DType::kI32, 8, 32},
    {"wmma_16x16x16_f16", "pr_wmma_mma<pr_f16>", DType::kF16, DType::kF32, 16, 16},
    {"wmma_16x16x16_bf16", "pr_wmma_mma<pr_bf16>", DType::kBF16, DType::kF32, 16, 16},
    {"wmma_16x16x16_s8", "pr_wmma_mma<signed char>", DType::kI8, DType::kI32, 16, 16},
};

TEST_CASE("products of fragments hold elements where the registry says") {
  for (const MmaCase& mma : kMmaCases) {
    INFO(mma.intrinsic);
    const Result<const TensorIntrinsic*> found = ir::find_tensor(mma.intrinsic);
    REQUIRE(found.ok());
    const TensorOperand& a = operand_of(**found, "A");
    const TensorOperand& b = operand_of(**found, "B");
    const TensorOperand& c = operand_of(**found, "C");
    Matrix ma = random_matrix(16, mma.k, 1), mb = random_matrix(mma.k, mma.n, 2);
    const int64_t elem = ir::byte_size(mma.in);
    const int64_t a_regs = a.registers * elem / 4, b_regs = b.registers * elem / 4;
    // NVRTC's f16 fragments of wmma are twice as large as what they hold.
    const bool padded = std::string_view(mma.intrinsic) == "wmma_16x16x16_f16";
    const std::string body = fmt::format(
        "  unsigned a[{2}] = {{}}, b[{3}] = {{}};\n  {5} d[{4}];\n"
        "  for (int i = 0; i < {0}; ++i) a[i] = ((const unsigned*)p0)[lane * {0} + i];\n"
        "  for (int i = 0; i < {1}; ++i) b[i] = ((const unsigned*)p1)[lane * {1} + i];\n"
        "  for (int i = 0; i < {4}; ++i) d[i] = 0;\n"
        "  {6}(d, a, b);\n  {6}(d, a, b);\n"
        "  for (int i = 0; i < {4}; ++i) (({5}*)p2)[lane * {4} + i] = d[i];\n",
        a_regs, b_regs, padded ? 8 : a_regs, padded ? 8 : b_regs, c.registers,
        mma.out == DType::kF32 ? "float" : "int", mma.wrapper);
    const auto out = run_warp(body, pack(a, mma.in, ma), pack(b, mma.in, mb),
                              static_cast<size_t>(16 * mma.n * 4));
    if (!out.ok()) FAIL(out.error().message());
    Matrix mc = unpack(c, mma.out, 16, mma.n, out->front());
    Matrix expected{16, mma.n, std::vector<int>(static_cast<size_t>(16 * mma.n), 0)};
    for (int64_t i = 0; i < 16; ++i) {
      for (int64_t j = 0; j < mma.n; ++j) {
        for (int64_t k = 0; k < mma.k; ++k) expected.at(i, j) += 2 * ma.at(i, k) * mb.at(k, j);
      }
    }
    CHECK(mc.values == expected.values);
  }
}

TEST_CASE("ldmatrix gives each lane what the registry says, and stmatrix puts it back") {
  const Result<const TensorIntrinsic*> found = ir::find_tensor("ldmatrix_x4_f16");
  REQUIRE(found.ok());
  const TensorOperand& fragment = operand_of(**found, "D");
  Matrix m = random_matrix(16, 16, 3);
  std::string memory;
  for (const int value : m.values) memory += encode(DType::kF16, value);
  const std::string body =
      "  PR_SHARED(smem, 1024);\n"
      "  pr_copy<16>(smem + lane * 16, p0 + lane * 16);\n"
      "  pr_sync_warp();\n"
      "  unsigned r[4];\n"
      // Rows 0 to 7 and 8 to 15 of the left half, then of the right half.
      "  pr_ldmatrix_x4(r, smem + lane % 16 * 32 + lane / 16 * 16);\n"
      "  for (int i = 0; i < 4; ++i) ((unsigned*)p2)[lane * 4 + i] = r[i];\n"
      "  pr_stmatrix_x4(smem + 512 + lane % 16 * 32 + lane / 16 * 16, r);\n"
      "  pr_sync_warp();\n"
      "  pr_copy<16>(p2 + 512 + lane * 16, smem + 512 + lane * 16);\n";
  const auto out = run_warp(body, memory, "", 1024);
  if (!out.ok()) FAIL(out.error().message());
  CHECK(unpack(fragment, DType::kF16, 16, 16, out->front()).values == m.values);
  CHECK(out->front().substr(512) == memory);
}

TEST_CASE("ldmatrix reads rows at an address that is XORed, and then added to") {
  Matrix m = random_matrix(16, 16, 7);
  std::string memory;
  for (const int value : m.values) memory += encode(DType::kF16, value);
  const std::string body =
      "  PR_SHARED(smem, 1024);\n"
      "  pr_copy<16>(smem + 512 + lane * 16, p0 + lane * 16);\n"
      "  pr_sync_warp();\n"
      "  unsigned r[4];\n"
      // The right half first.
      "  pr_ldmatrix_x4(r, smem + lane % 16 * 32 + lane / 16 * 16, 16, 512);\n"
      "  for (int i = 0; i < 4; ++i) ((unsigned*)p2)[lane * 4 + (i ^ 2)] = r[i];\n";
  const auto out = run_warp(body, memory, "", 512);
  if (!out.ok()) FAIL(out.error().message());
  const Result<const TensorIntrinsic*> found = ir::find_tensor("ldmatrix_x4_f16");
  REQUIRE(found.ok());
  CHECK(unpack(operand_of(**found, "D"), DType::kF16, 16, 16, out->front()).values == m.values);
}

TEST_CASE("ldmatrix.trans gives a row-major B what mma wants of it") {
  const Result<const TensorIntrinsic*> found = ir::find_tensor("mma_m16n8k16_f16");
  REQUIRE(found.ok());
  const TensorOperand& b = operand_of(**found, "B");
  Matrix m = random_matrix(16, 8, 4);
  std::string memory;
  for (const int value : m.values) memory += encode(DType::kF16, value);
  const std::string body =
      "  PR_SHARED(smem, 1024);\n"
      "  if (lane < 16) pr_copy<16>(smem + lane * 16, p0 + lane * 16);\n"
      "  pr_sync_warp();\n"
      "  unsigned r[2];\n"
      "  pr_ldmatrix_x2_trans(r, smem + lane % 16 * 16);\n"
      "  for (int i = 0; i < 2; ++i) ((unsigned*)p2)[lane * 2 + i] = r[i];\n";
  const auto out = run_warp(body, memory, "", 256);
  if (!out.ok()) FAIL(out.error().message());
  CHECK(unpack(b, DType::kF16, 16, 8, out->front()).values == m.values);
}

TEST_CASE("wmma loads, multiplies and stores matrices in memory") {
  Matrix ma = random_matrix(16, 16, 5), mb = random_matrix(16, 16, 6);
  std::string a, b, b_cols;
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      a += encode(DType::kI8, ma.at(i, j));
      b += encode(DType::kI8, mb.at(i, j));
      b_cols += encode(DType::kI8, mb.at(j, i));
    }
  }
  std::vector<int> expected;
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      int sum = 0;
      for (int64_t k = 0; k < 16; ++k) sum += ma.at(i, k) * mb.at(k, j);
      expected.push_back(sum);
    }
  }
  for (const bool by_columns : {false, true}) {
    const std::string suffix = by_columns ? "_col" : "";
    const std::string body = fmt::format(
        "  PR_SHARED(smem, 512);\n"
        "  if (lane < 16) pr_copy<16>(smem + lane * 16, p0 + lane * 16);\n"
        "  if (lane < 16) pr_copy<16>(smem + 256 + lane * 16, p1 + lane * 16);\n"
        "  pr_sync_warp();\n"
        "  unsigned a[2], b[2];\n  int d[8] = {{0, 0, 0, 0, 0, 0, 0, 0}};\n"
        "  pr_wmma_load_a(a, (const signed char*)smem, 16);\n"
        "  pr_wmma_load_b{0}(b, (const signed char*)(smem + 256), 16);\n"
        "  pr_wmma_mma{0}<signed char>(d, a, b);\n"
        "  pr_wmma_store((int*)p2, d, 16);\n",
        suffix);
    const auto out = run_warp(body, a, by_columns ? b_cols : b, 1024);
    if (!out.ok()) FAIL(out.error().message());
    std::vector<int> got(256);
    std::memcpy(got.data(), out->front().data(), 1024);
    CHECK(got == expected);
  }
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host
