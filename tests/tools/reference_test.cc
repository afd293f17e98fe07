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
#include <vector>

namespace prunerc {
namespace {

class NoDevice : public runtime::Device {
 public:
  runtime::JobOutcome run(const runtime::Job&) override { return {}; }
  std::vector<runtime::Measurement> compare(std::span<const runtime::Job>,
                                            const runtime::TimingOptions&) override {
    return {};
  }
};

constexpr int64_t kSize = 8, kDepth = 64;
constexpr std::string_view kProduct = R"(
program p(A: f32[8, 64], B: f32[64, 8]) -> (C: f32[8, 8]) {
  for i in 8 { for j in 8 { for k in 64 {
    block "C" [vi: S(8) = i, vj: S(8) = j, vk: R(64) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";

double all_bits(double x) { return x; }
// What wgmma reads of an f32 value.
double cut(double x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & ~uint32_t{0x1fff});
}

std::string product_of(const std::vector<ir::Tensor>& inputs, double (*factor)(double)) {
  ir::Tensor out(ir::DType::kF32, {kSize, kSize});
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += factor(inputs[0].get(i * kDepth + k)) * factor(inputs[1].get(k * kSize + j));
      }
      out.set(i * kSize + j, sum);
    }
  }
  return {reinterpret_cast<const char*>(out.data.data()), out.data.size()};
}

bool accepts(std::string_view target, double (*factor)(double)) {
  NoDevice device;
  References references(device);
  const search::Task task =
      search::make_task("p", testing::parse_or_die(kProduct), *ir::target_from_string(target));
  const std::vector<ir::Tensor> inputs = References::tensors(task.base, 5, Values::kReal);
  const Result<Comparison> found =
      references.compare(task, 5, {product_of(inputs, factor)}, 0, Values::kReal);
  REQUIRE_OK(found);
  INFO(found->what);
  CHECK(found->ok == (found->num_exact == kSize * kSize));
  const bool says_tf32 = found->what.ends_with(", f32 factors within tf32");
  CHECK(says_tf32 == (found->ok && target == "cuda:sm_90a allow_tf32=1"));
  return found->ok;
}

TEST_CASE("products of factors cut to tf32 are right where the target allows it alone") {
  CHECK(accepts("cuda:sm_90a", all_bits));
  CHECK_FALSE(accepts("cuda:sm_90a", cut));
  CHECK(accepts("cuda:sm_90a allow_tf32=1", all_bits));
  CHECK(accepts("cuda:sm_90a allow_tf32=1", cut));
  CHECK_FALSE(accepts("cpu allow_tf32=1", cut));
}

TEST_CASE("what is coarser than tf32 is wrong where tf32 is allowed") {
  const auto coarse = [](double x) { return x * (1 - 0x1p-6); };
  CHECK_FALSE(accepts("cuda:sm_90a allow_tf32=1", coarse));
}

}  // namespace
}  // namespace prunerc
