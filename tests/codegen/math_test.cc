// The inline mathematical functions against glibc in the next wider type.
#include "codegen/cpu/vector_math.h"
#include "ir/parser.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

constexpr int64_t kBatch = 4096;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Y[i] = f(X[i]) (or f(X[i], Z[i])) in vectors, or without if lanes is 1.
Result<codegen::Artifact> function_code(const std::string& name, const std::string& type,
                                        int num_args, int lanes, const Target& target) {
  const std::string shape = type + "[" + std::to_string(kBatch) + "]";
  const std::string call = num_args == 1 ? name + "(X[v])" : name + "(X[v], Z[v])";
  const std::string text =
      "program f(X: " + shape + (num_args == 1 ? "" : ", Z: " + shape) + ") -> (Y: " + shape +
      ") { for i in " + std::to_string(kBatch / lanes) + " @L0 { for j in " +
      std::to_string(lanes) + " @L1 vectorized { block \"Y\" @B0 [v: S(4096) = i*" +
      std::to_string(lanes) + " + j] { reads X[v]" + (num_args == 1 ? "" : ", Z[v]") +
      " writes Y[v] Y[v] = " + call + " } } } }";
  return codegen::compile_cpu(parse_or_die(text), target);
}

// Without a target: for the host.
LoadedKernel function_kernel(const std::string& name, const std::string& type, int num_args,
                             int lanes, const Target& target = {}) {
  const Result<codegen::Artifact> artifact = function_code(name, type, num_args, lanes, target);
  REQUIRE_OK(artifact);
  Result<LoadedKernel> kernel = LoadedKernel::load(*artifact);
  REQUIRE_OK(kernel);
  return *kernel;
}

Program fma_program(DType dtype, int lanes) {
  const std::string width = std::to_string(lanes), batch = std::to_string(kBatch);
  const std::string shape = std::string(to_string(dtype)) + "[" + batch + "]";
  return parse_or_die(
      "program f(A: " + shape + ", B: " + shape + ", C: " + shape + ") -> (Y: " + shape +
      ") { for i in " + std::to_string(kBatch / lanes) + " @L0 { for j in " + width +
      " @L1 vectorized { block \"Y\" @B0 [v: S(" + batch + ") = i*" + width +
      " + j] { reads A[v], B[v], C[v] writes Y[v] Y[v] = fma(A[v], B[v], C[v]) } } } }");
}

LoadedKernel fma_kernel(int lanes, const Target& target) {
  const Result<codegen::Artifact> artifact =
      codegen::compile_cpu(fma_program(DType::kF32, lanes), target);
  REQUIRE_OK(artifact);
  Result<LoadedKernel> kernel = LoadedKernel::load(*artifact);
  REQUIRE_OK(kernel);
  return *kernel;
}

// Distance in units of the last place of `want` rounded to the type; 0 for two NaNs or equal
// infinities.
template <typename T, typename Wide>
double ulps(T got, Wide want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  if (rounded == 0 && got == 0) return std::signbit(rounded) == std::signbit(got) ? 0 : 1e9;
  constexpr int kDigits = std::numeric_limits<T>::digits;
  int exponent = 0;
  (void)std::frexp(static_cast<double>(rounded), &exponent);
  exponent = std::max(exponent - kDigits, std::numeric_limits<T>::min_exponent - kDigits);
  return static_cast<double>(std::fabs(static_cast<double>(static_cast<Wide>(got) - want))) /
         std::ldexp(1.0, exponent);
}

struct Function {
  Intrinsic intrinsic;
  double (*f64)(double);
  long double (*wide)(long double);
};
const Function kFunctions[] = {
    {Intrinsic::kExp, std::exp, std::exp},
    {Intrinsic::kLog, std::log, std::log},
    {Intrinsic::kTanh, std::tanh, std::tanh},
    {Intrinsic::kErf, std::erf, std::erf},
    {Intrinsic::kSin, std::sin, std::sin},
    {Intrinsic::kCos, std::cos, std::cos},
    {Intrinsic::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); },
     [](long double x) { return 1 / (1 + std::exp(-x)); }},
    {Intrinsic::kRsqrt, [](double x) { return 1 / std::sqrt(x); },
     [](long double x) { return 1 / std::sqrt(x); }},
};

double allowed(Intrinsic intrinsic, DType dtype) {
  for (const codegen::MathAccuracy& row : codegen::math_accuracy()) {
    if (row.intrinsic == intrinsic) return dtype == DType::kF32 ? row.max_ulp_f32 : row.max_ulp_f64;
  }
  FAIL("no row of the accuracy table");
  return 0;
}

template <typename T>
std::vector<Tensor> call(const LoadedKernel& kernel, const std::vector<std::vector<T>>& args) {
  std::vector<Tensor> inputs;
  for (const std::vector<T>& values : args) {
    Tensor t(sizeof(T) == 4 ? DType::kF32 : DType::kF64, {kBatch});
    std::memcpy(t.data.data(), values.data(), t.data.size());
    inputs.push_back(std::move(t));
  }
  return kernel.run(inputs, 1);
}

template <typename T>
T element(const Tensor& t, std::size_t i) {
  T v;
  std::memcpy(&v, t.data.data() + i * sizeof(T), sizeof(T));
  return v;
}

// Largest error over the bit patterns 0, stride, 2 * stride, ...
void check_f32(const Function& f, uint64_t stride, int lanes, const Target& target = {}) {
  const LoadedKernel kernel =
      function_kernel(std::string(to_string(f.intrinsic)), "f32", 1, lanes, target);
  double worst = 0;
  float worst_at = 0;
  std::vector<float> x(kBatch);
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32);) {
    for (float& v : x) {
      v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      bits += stride;
    }
    const std::vector<Tensor> y = call<float>(kernel, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(element<float>(y[0], i), f.f64(static_cast<double>(x[i])));
      if (error > worst) worst_at = x[i];
      worst = std::max(worst, error);
    }
  }
  INFO(to_string(f.intrinsic) << " at " << worst_at);
  CHECK(worst <= allowed(f.intrinsic, DType::kF32));
}

}  // namespace

TEST_CASE("f32 functions keep the accuracy of their table over sampled arguments") {
  for (const Function& f : kFunctions) check_f32(f, 60013, 16);
}

TEST_CASE("scalar and odd-sized code of a function agrees with its vectors") {
  for (const Function& f : kFunctions) {
    for (const int lanes : {1, 4, 64}) check_f32(f, 2000003, lanes);
  }
}

TEST_CASE("without fused multiply-adds f32 functions are as accurate, other types are refused") {
  const Target sse4 = *target_from_string("cpu:x86-64-v2");
  for (const Function& f : kFunctions) {
    // These reduce their argument in f64.
    if (f.intrinsic == Intrinsic::kSin || f.intrinsic == Intrinsic::kCos) continue;
    check_f32(f, 500009, 4, sse4);
  }
  CHECK_DIAG(function_code("sin", "f32", 1, 4, sse4), Unsupported);
  CHECK_DIAG(function_code("exp", "f64", 1, 2, sse4), Unsupported);
  CHECK_DIAG(function_code("pow", "f32", 2, 4, sse4), Unsupported);
  CHECK_DIAG(function_code("exp", "f16", 1, 4, sse4), Unsupported);
  CHECK(function_code("exp", "bf16", 1, 4, sse4).ok());
}

TEST_CASE("an fma rounds once, also on a CPU without the instruction") {
  // In f64 the sums of the first are the middle of two f32, which their second rounding takes to even.
  const float odd = 1 + 0x1p-12F, least = std::numeric_limits<float>::denorm_min();
  const float hard[][3] = {{odd, odd, 0x1p-60F},   {odd, odd, -0x1p-60F},
                           {-odd, odd, -0x1p-60F}, {-odd, odd, 0x1p-60F},
                           {odd, odd, 0x1p-149F},  {odd, odd, 0},
                           {least, 0.5F, least},   {0x1p-75F, 0x1p-75F, least},
                           {-0.0F, 1, -0.0F},      {1, 1, -1},
                           {3e38F, 3e38F, -1},     {0x1p100F, 0x1p28F, 1},
                           {HUGE_VALF, 0, 1},      {HUGE_VALF, 1, -HUGE_VALF}};
  for (const char* name : {"cpu:x86-64-v2", "cpu:x86-64-v3"}) {
    for (const int lanes : {1, 4}) {
      INFO(name << ", lanes " << lanes);
      const LoadedKernel kernel = fma_kernel(lanes, *target_from_string(name));
      Rng rng(11);
      std::vector<std::vector<float>> args(3, std::vector<float>(kBatch));
      for (std::size_t i = 0; i < args[0].size(); ++i) {
        for (std::size_t k = 0; k < 3; ++k) {
          const auto any = std::bit_cast<float>(static_cast<uint32_t>(rng.next()));
          args[k][i] = i < std::size(hard) ? hard[i][k] : any;
        }
        // Half of them where the sum cancels, or is near the middle.
        if (i % 2 == 1 && i >= std::size(hard))
          args[2][i] = -args[0][i] * args[1][i] * (i % 4 == 1 ? 1 : 0x1p-24F);
      }
      const std::vector<Tensor> y = call<float>(kernel, args);
      for (std::size_t i = 0; i < args[0].size(); ++i) {
        INFO(args[0][i] << " * " << args[1][i] << " + " << args[2][i]);
        const float want = std::fma(args[0][i], args[1][i], args[2][i]);
        REQUIRE(ulps(element<float>(y[0], i), static_cast<double>(want)) == 0);
      }
    }
  }
}

// Of any bits, and sums that cancel or whose product is near the middle of two numbers.
std::vector<Tensor> narrow_fma_inputs(DType dtype) {
  const auto value = [&](uint64_t bits) {
    const auto half = static_cast<uint16_t>(bits);
    return dtype == DType::kF16 ? f16_value(half) : bf16_value(half);
  };
  const double hard[][3] = {{3, 683, 0x1p-14}, {7, 37, -0x1p-20}, {7, 37, -0x1p-100},
                            {7, 37, 0x1p-100}, {1, 1, -1},        {-0.0, 1, -0.0},
                            {kInf, 0, 1},      {kInf, 1, -kInf},  {60000, 60000, -1}};
  std::vector<Tensor> inputs(3, Tensor(dtype, {kBatch}));
  Rng rng(13);
  for (int64_t i = 0; i < kBatch; ++i) {
    double args[3] = {value(rng.next()), value(rng.next()), value(rng.next())};
    if (i % 2 == 1) args[2] = -args[0] * args[1] * (i % 4 == 1 ? 1 : 0x1p-9);
    if (i < std::ssize(hard)) std::copy_n(hard[i], 3, args);
    for (std::size_t k = 0; k < 3; ++k) inputs[k].set(i, args[k]);
  }
  return inputs;
}

TEST_CASE("an fma of 16 bits rounds once") {
  const std::pair<const char*, DType> cases[] = {{"cpu:x86-64-v2", DType::kBF16},
                                                 {"cpu:x86-64-v3", DType::kBF16},
                                                 {"cpu:x86-64-v3", DType::kF16}};
  for (const auto& [name, dtype] : cases) {
    for (const int lanes : {1, 4}) {
      INFO(name << ", " << to_string(dtype) << ", lanes " << lanes);
      const Program program = fma_program(dtype, lanes);
      const std::vector<Tensor> inputs = narrow_fma_inputs(dtype);
      const std::vector<Tensor> want = interpret_or_die(program, inputs);
      const Result<std::vector<Tensor>> got =
          compile_and_run(program, inputs, {.target = *target_from_string(name), .compile = {}});
      REQUIRE_OK(got);
      for (int64_t i = 0; i < kBatch; ++i) {
        INFO(inputs[0].get(i) << " * " << inputs[1].get(i) << " + " << inputs[2].get(i));
        const double found = (*got)[0].get(i), right = want[0].get(i);
        const bool is_same = found == right && std::signbit(found) == std::signbit(right);
        REQUIRE((std::isnan(right) ? std::isnan(found) : is_same));
      }
    }
  }
}

TEST_CASE("f32 functions keep the accuracy of their table over all arguments", "[.slow]") {
  for (const Function& f : kFunctions) check_f32(f, 1, 16);
}

TEST_CASE("f64 functions keep the accuracy of their table") {
  Rng rng(7);
  for (const Function& f : kFunctions) {
    const LoadedKernel kernel = function_kernel(std::string(to_string(f.intrinsic)), "f64", 1, 8);
    const bool periodic = f.intrinsic == Intrinsic::kSin || f.intrinsic == Intrinsic::kCos;
    double worst = 0, worst_at = 0;
    for (int round = 0; round < 4; ++round) {
      std::vector<double> x;
      for (int64_t i = 0; i < kBatch; ++i) {
        const double unit = static_cast<double>(static_cast<int64_t>(rng.next())) / 9.3e18;
        const double any = std::bit_cast<double>(rng.next());
        x.push_back(round == 0 ? unit * 10 : round == 1 ? unit * 700 : periodic ? unit * 1e5 : any);
      }
      const double special[] = {0.0,     -0.0, kInf, -kInf, kNan,  5e-324,
                                -5e-324, 1.0,  -1.0, 710.0, -746.0};
      std::copy(std::begin(special), std::end(special), x.begin());
      const std::vector<Tensor> y = call<double>(kernel, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(element<double>(y[0], i), f.wide(static_cast<long double>(x[i])));
        if (error > worst) worst_at = x[i];
        worst = std::max(worst, error);
      }
    }
    INFO(to_string(f.intrinsic) << " at " << worst_at);
    CHECK(worst <= allowed(f.intrinsic, DType::kF64));
  }
}

TEST_CASE("powers are accurate and follow C in their special cases") {
  const double special[] = {0.0,   -0.0, 1, -1, 2,     -2,   0.5,   -0.5, kInf,
                            -kInf, kNan, 3, -3, 1e-45, 3e38, -3e38, 1.5,  33};
  const LoadedKernel f32 = function_kernel("pow", "f32", 2, 16);
  const LoadedKernel f64 = function_kernel("pow", "f64", 2, 8);
  Rng rng(3);
  for (int round = 0; round < 6; ++round) {
    std::vector<float> x, y;
    std::vector<double> wide_x, wide_y;
    for (int64_t i = 0; i < kBatch; ++i) {
      const auto n = static_cast<std::size_t>(i);
      const bool is_special = round == 0 && n < std::size(special) * std::size(special);
      const double base = is_special ? special[n / std::size(special)]
                                     : static_cast<double>(rng.below(1000000)) / 1e3;
      const double power = is_special ? special[n % std::size(special)]
                                      : static_cast<double>(rng.between(-1000, 1000)) / 50;
      x.push_back(static_cast<float>(base));
      y.push_back(static_cast<float>(power));
      wide_x.push_back(base);
      wide_y.push_back(power);
    }
    const std::vector<Tensor> narrow = call<float>(f32, {x, y});
    const std::vector<Tensor> wide = call<double>(f64, {wide_x, wide_y});
    double worst_f32 = 0, worst_f64 = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
      worst_f32 = std::max(worst_f32, ulps(element<float>(narrow[0], i), want));
      worst_f64 = std::max(worst_f64, ulps(element<double>(wide[0], i),
                                           std::pow(static_cast<long double>(wide_x[i]),
                                                    static_cast<long double>(wide_y[i]))));
    }
    CHECK(worst_f32 <= allowed(Intrinsic::kPow, DType::kF32));
    CHECK(worst_f64 <= allowed(Intrinsic::kPow, DType::kF64));
  }
}

TEST_CASE("f16 and bf16 functions are those of f32, rounded once more") {
  for (const std::string type : {"f16", "bf16"}) {
    const DType dtype = type == "f16" ? DType::kF16 : DType::kBF16;
    const LoadedKernel kernel = function_kernel("exp", type, 1, 16);
    for (int part = 0; part < 16; ++part) {
      Tensor x(dtype, {kBatch});
      for (int64_t i = 0; i < kBatch; ++i) {
        const auto bits = static_cast<uint16_t>(part * kBatch + i);
        std::memcpy(x.data.data() + 2 * i, &bits, 2);
      }
      const std::vector<Tensor> y = kernel.run({x}, 1);
      int64_t num_wrong = 0;
      for (int64_t i = 0; i < kBatch; ++i) {
        const double want = round_to(dtype, std::exp(x.get(i)));
        const double got = y[0].get(i);
        const bool same = std::isnan(want)
                              ? std::isnan(got)
                              : std::fabs(got - want) <= 1e-2 * std::fabs(want) || got == want;
        num_wrong += same ? 0 : 1;
      }
      CHECK(num_wrong == 0);
    }
  }
}

}  // namespace prunerc
