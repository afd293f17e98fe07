#include "ir/support/rng.h"
#include "tools/driver/npy.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace prunerc {
namespace {

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

Result<void> fill(ir::Tensor& tensor, std::string_view description) {
  const Error unknown = error(Diag::kFillUnknown, std::string(description.substr(0, 60)));
  const int64_t n = tensor.num_elements();
  if (description == "zeros" || description == "ones") {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, description == "ones" ? 1 : 0);
    return {};
  }
  if (description == "arange") {
    for (int64_t i = 0; i < n; ++i) tensor.set(i, static_cast<double>(i));
    return {};
  }
  const bool is_float = ir::is_float(tensor.dtype);
  for (const std::string_view kind : {"rand:uniform", "rand:normal", "rand:int"}) {
    if (!is_prefix(kind, description)) continue;
    const std::optional<FillArgs> args = fill_args(description.substr(kind.size()));
    if (!args || (!args->numbers.empty() && args->numbers.size() != 2)) return unknown;
    const double low = args->numbers.empty() ? (kind == "rand:int" ? -4 : -1) : args->numbers[0];
    const double high = args->numbers.empty() ? (kind == "rand:int" ? 4 : 1) : args->numbers[1];
    // Of a normal fill the numbers are mean and deviation, of the others the ends of a range.
    const bool ordered = kind == "rand:normal" ? high >= 0 : low <= high;
    if (!ordered || !std::isfinite(low) || !std::isfinite(high)) return unknown;
    if (std::fabs(low) > 1e18 || std::fabs(high) > 1e18) return unknown;
    const auto first = static_cast<int64_t>(std::ceil(low));
    const auto last = static_cast<int64_t>(std::floor(high));
    const bool whole = kind == "rand:int" || (kind == "rand:uniform" && !is_float);
    if (whole && first > last) return unknown;
    Rng rng(args->seed, 0x66696C6C);
    for (int64_t i = 0; i < n; ++i) {
      if (kind == "rand:normal") {
        const double value = args->numbers.empty() ? normal(rng) : low + high * normal(rng);
        tensor.set(i, is_float ? value : std::nearbyint(value));
      } else if (whole) {
        tensor.set(i, static_cast<double>(rng.between(first, last)));
      } else {
        tensor.set(i, low + (high - low) * rng.uniform());
      }
    }
    return {};
  }
  return unknown;
}

}  // namespace prunerc
