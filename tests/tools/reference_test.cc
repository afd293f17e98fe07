// Values that a kernel may give where factors of products may be rounded to tf32.
#include "tools/driver/reference.h"

#include "ir/interp/tensor.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "search/space/task.h"
#include "tests/support/check.h"

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

// Gives what it was told, whatever the kernel.
class ToldDevice : public runtime::Device {
 public:
  explicit ToldDevice(std::vector<std::string> outputs) : outputs_(std::move(outputs)) {}
  runtime::JobOutcome run(const runtime::Job&) override {
    runtime::JobOutcome out;
    out.measurement.status = MeasureStatus::kOk;
    out.outputs = outputs_;
    return out;
  }
  std::vector<runtime::Measurement> compare(std::span<const runtime::Job>,
                                            const runtime::TimingOptions&) override {
    return {};
  }

 private:
  std::vector<std::string> outputs_;
};

constexpr int64_t kSize = 8;
constexpr std::string_view kTf32 = "cuda:sm_90a allow_tf32=1";
using Factor = double (*)(double);

double all_bits(double x) { return x; }
// What wgmma reads of an f32 value.
double cut(double x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & ~uint32_t{0x1fff});
}

std::vector<double> values_of(const ir::Tensor& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) out.push_back(tensor.get(i));
  return out;
}

// [kSize, kSize] of [kSize, depth] and [depth, kSize].
std::vector<double> product(const std::vector<double>& x, const std::vector<double>& y,
                            Factor factor) {
  const int64_t depth = static_cast<int64_t>(x.size()) / kSize;
  std::vector<double> out;
  for (int64_t at = 0; at < kSize * kSize; ++at) {
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sum += factor(x[static_cast<std::size_t>(at / kSize * depth + k)]) *
             factor(y[static_cast<std::size_t>(k * kSize + at % kSize)]);
    }
    out.push_back(sum);
  }
  return out;
}

std::string bytes_of(const std::vector<double>& values) {
  const std::vector<float> out(values.begin(), values.end());
  return {reinterpret_cast<const char*>(out.data()), out.size() * sizeof(float)};
}

search::Task task_of(std::string_view text, std::string_view target) {
  return search::make_task("p", testing::parse_or_die(text), *ir::target_from_string(target));
}

bool accepts(std::string_view target, Factor factor) {
  const search::Task task = task_of(R"(
program p(A: f32[8, 64], B: f32[64, 8]) -> (C: f32[8, 8]) {
  for i in 8 { for j in 8 { for k in 64 {
    block "C" [vi: S(8) = i, vj: S(8) = j, vk: R(64) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})",
                                    target);
  ToldDevice device({});
  References references(device);
  const std::vector<ir::Tensor> inputs = References::tensors(task.base, 5, Values::kReal);
  const std::string found = bytes_of(product(values_of(inputs[0]), values_of(inputs[1]), factor));
  const Result<Comparison> result = references.compare(task, 5, {found}, 0, Values::kReal);
  REQUIRE_OK(result);
  INFO(result->what);
  CHECK(result->ok == (result->num_exact == kSize * kSize));
  const bool says_tf32 = result->what.ends_with(", f32 factors within tf32");
  CHECK(says_tf32 == (result->ok && target == kTf32));
  return result->ok;
}

TEST_CASE("products of factors cut to tf32 are right where the target allows it alone") {
  CHECK(accepts("cuda:sm_90a", all_bits));
  CHECK_FALSE(accepts("cuda:sm_90a", cut));
  CHECK(accepts(kTf32, all_bits));
  CHECK(accepts(kTf32, cut));
  CHECK_FALSE(accepts("cpu allow_tf32=1", cut));
}

TEST_CASE("what is coarser than tf32 is wrong where tf32 is allowed") {
  const auto coarse = [](double x) { return x * (1 - 0x1p-6); };
  CHECK_FALSE(accepts(kTf32, coarse));
}

// T = A B in whole numbers of more than 11 bits, C = T D.
bool accepts_two(std::string_view target, Factor factor) {
  const search::Task task = task_of(R"(
program p(A: f32[8, 8192], B: f32[8192, 8], D: f32[8, 8]) -> (C: f32[8, 8]) {
  buffer T: f32[8, 8] global
  for i in 8 { for j in 8 { for k in 8192 {
    block "T" [vi: S(8) = i, vj: S(8) = j, vk: R(8192) = k] {
      init { T[vi, vj] = 0f32 }
      T[vi, vj] = T[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
  for i2 in 8 { for j2 in 8 { for k2 in 8 {
    block "C" [wi: S(8) = i2, wj: S(8) = j2, wk: R(8) = k2] {
      init { C[wi, wj] = 0f32 }
      C[wi, wj] = C[wi, wj] + T[wi, wk]*D[wk, wj]
  } } } }
})",
                                    target);
  const std::vector<ir::Tensor> inputs = References::tensors(task.base, 5);
  const std::vector<double> t = product(values_of(inputs[0]), values_of(inputs[1]), all_bits);
  ToldDevice device({bytes_of(product(t, values_of(inputs[2]), all_bits))});
  References references(device);
  const std::string found = bytes_of(product(t, values_of(inputs[2]), factor));
  const Result<Comparison> result = references.compare(task, 5, {found});
  REQUIRE_OK(result);
  INFO(result->what);
  CHECK((!result->ok || result->num_elems == kSize * kSize));
  return result->ok;
}

TEST_CASE("whole numbers that tf32 does not hold may be cut on their way into a product") {
  CHECK(accepts_two("cuda:sm_90a", all_bits));
  CHECK_FALSE(accepts_two("cuda:sm_90a", cut));
  CHECK(accepts_two(kTf32, all_bits));
  CHECK(accepts_two(kTf32, cut));
}

}  // namespace
}  // namespace prunerc
