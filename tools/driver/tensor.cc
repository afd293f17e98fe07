#include "tools/driver/tensor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "ir/support/rng.h"

namespace prunerc {
namespace {

template <typename T>
T load_as(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
void store_as(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

// What a fill description says after its kind: numbers in parentheses and a seed.
struct FillArgs {
  std::vector<double> numbers;
  uint64_t seed = 0;
};

std::optional<FillArgs> fill_args(std::string_view text) {
  FillArgs args;
  if (!text.empty() && text[0] == '(') {
    const std::size_t close = text.find(')');
    if (close == std::string_view::npos) return std::nullopt;
    const char* p = text.data() + 1;
    const char* const end = text.data() + close;
    while (p < end) {
      double value = 0;
      const auto [stop, code] = std::from_chars(p, end, value);
      if (code != std::errc() || (stop != end && *stop != ',')) return std::nullopt;
      args.numbers.push_back(value);
      p = stop + 1;
    }
    text.remove_prefix(close + 1);
  }
  if (text.empty()) return args;
  constexpr std::string_view kSeed = ":seed=";
  if (text.substr(0, kSeed.size()) != kSeed) return std::nullopt;
  text.remove_prefix(kSeed.size());
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), args.seed);
  if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return args;
}

double normal(Rng& rng) {
  const double u = 1.0 - rng.uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * rng.uniform());
}

bool is_prefix(std::string_view prefix, std::string_view text) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

Tensor::Tensor(ir::DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), num_elems_(1) {
  for (int64_t extent : shape_) num_elems_ *= extent;
  const auto wanted = static_cast<std::size_t>(num_elems_ * ir::byte_size(dtype));
  const std::size_t rounded = (wanted / 64 + 1) * 64;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
  PRUNERC_CHECK(data_ != nullptr, "out of memory for a tensor");
  std::memset(data_.get(), 0, rounded);
}

double Tensor::get(int64_t i) const {
  const std::byte* p = data_.get() + i * ir::byte_size(dtype_);
  switch (dtype_) {
    case ir::DType::kF64: return load_as<double>(p);
    case ir::DType::kF32: return static_cast<double>(load_as<float>(p));
    case ir::DType::kF16: return ir::f16_value(load_as<uint16_t>(p));
    case ir::DType::kBF16: return ir::bf16_value(load_as<uint16_t>(p));
    case ir::DType::kI64: return static_cast<double>(load_as<int64_t>(p));
    case ir::DType::kI32: return load_as<int32_t>(p);
    case ir::DType::kI8: return load_as<int8_t>(p);
    case ir::DType::kU8:
    case ir::DType::kBool: return load_as<uint8_t>(p);
  }
  PRUNERC_UNREACHABLE("dtype");
}

void Tensor::set(int64_t i, double value) {
  std::byte* p = data_.get() + i * ir::byte_size(dtype_);
  switch (dtype_) {
    case ir::DType::kF64: return store_as(p, value);
    case ir::DType::kF32: return store_as(p, static_cast<float>(value));
    case ir::DType::kF16: return store_as(p, ir::f16_bits(value));
    case ir::DType::kBF16: return store_as(p, ir::bf16_bits(value));
    case ir::DType::kI64: return store_as(p, ir::saturate_to(dtype_, value));
    case ir::DType::kI32: return store_as(p, static_cast<int32_t>(ir::saturate_to(dtype_, value)));
    case ir::DType::kI8: return store_as(p, static_cast<int8_t>(ir::saturate_to(dtype_, value)));
    case ir::DType::kU8: return store_as(p, static_cast<uint8_t>(ir::saturate_to(dtype_, value)));
    case ir::DType::kBool: return store_as(p, static_cast<uint8_t>(value != 0 ? 1 : 0));
  }
}

Result<void> fill(Tensor& tensor, std::string_view description) {
  const Error unknown = error(Diag::kFillUnknown, std::string(description.substr(0, 60)));
  const int64_t n = tensor.num_elems();
  if (description == "zeros" || description == "ones") {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, description == "ones" ? 1 : 0);
    return {};
  }
  if (description == "arange") {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, static_cast<double>(i));
    return {};
  }
  const bool is_float = ir::is_float(tensor.dtype());
  for (const std::string_view kind : {"rand:uniform", "rand:normal", "rand:int"}) {
    if (!is_prefix(kind, description)) continue;
    const std::optional<FillArgs> args = fill_args(description.substr(kind.size()));
    if (!args || (!args->numbers.empty() && args->numbers.size() != 2)) return unknown;
    const double low = args->numbers.empty() ? (kind == "rand:int" ? -4 : -1) : args->numbers[0];
    const double high = args->numbers.empty() ? (kind == "rand:int" ? 4 : 1) : args->numbers[1];
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) return unknown;
    if (std::fabs(low) > 1e18 || std::fabs(high) > 1e18) return unknown;
    Rng rng(args->seed, 0x66696C6C);
    for (int64_t i = 0; i < n; ++i) {
      if (kind == "rand:normal") {
        const double value = args->numbers.empty() ? normal(rng) : low + high * normal(rng);
        tensor.set(i, is_float ? value : std::nearbyint(value));
      } else if (kind == "rand:int" || !is_float) {
        tensor.set(i, static_cast<double>(rng.between(static_cast<int64_t>(std::ceil(low)),
                                                      static_cast<int64_t>(std::floor(high)))));
      } else {
        tensor.set(i, low + (high - low) * rng.uniform());
      }
    }
    return {};
  }
  return unknown;
}

}  // namespace prunerc
