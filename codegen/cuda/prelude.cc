#include "codegen/cuda/prelude.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

/// The files of this folder and runtime/cuda_host/abi.h, in the order that BUILD.bazel lists them.
constexpr std::array kTexts = {
#include "codegen/cuda/prelude_text.inc"
};
constexpr std::string_view kDevice = kTexts[0];
constexpr std::string_view kHopper = kTexts[1];
constexpr std::string_view kHostAbi = kTexts[2];
constexpr std::string_view kHost = kTexts[3];
constexpr std::string_view kTrig = kTexts[4];

constexpr int kMaxCols = 256;

/// One use of pr_wgmma<N, T, TA, TB>.
struct Shape {
  int n = 0;
  std::string type;
  int trans_a = 0;
  int trans_b = 0;
  auto operator<=>(const Shape&) const = default;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<int> to_int(std::string_view text) {
  int value = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
}

/// Reads "N, T[, TA, TB]"; nothing if it is something else, which the compiler will say.
std::optional<Shape> parse_shape(std::string_view arguments) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t comma = arguments.find(',');
    words.push_back(trim(arguments.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    arguments.remove_prefix(comma + 1);
  }
  if (words.size() < 2 || words.size() > 4) return std::nullopt;
  const std::optional<int> n = to_int(words[0]);
  const std::optional<int> trans_a = words.size() > 2 ? to_int(words[2]) : 0;
  const std::optional<int> trans_b = words.size() > 3 ? to_int(words[3]) : 0;
  if (!n || *n < 8 || *n > kMaxCols || *n % 8 != 0 || !trans_a || !trans_b) return std::nullopt;
  return Shape{*n, std::string(words[1]), *trans_a, *trans_b};
}

std::set<Shape> find_shapes(std::string_view text) {
  constexpr std::string_view kCall = "pr_wgmma<";
  std::set<Shape> shapes;
  for (size_t at = text.find(kCall); at != std::string_view::npos; at = text.find(kCall, at)) {
    at += kCall.size();
    const size_t end = text.find('>', at);
    if (end == std::string_view::npos) break;
    if (std::optional<Shape> shape = parse_shape(text.substr(at, end - at))) shapes.insert(*shape);
  }
  return shapes;
}

struct WgmmaType {
  std::string_view name;
  std::string_view ptx;  ///< k and types
  std::string_view acc;
  std::string_view constraint;
  bool can_transpose;
};
constexpr std::array kWgmmaTypes = {
    WgmmaType{"pr_f16", "k16.f32.f16.f16", "float", "+f", true},
    WgmmaType{"pr_bf16", "k16.f32.bf16.bf16", "float", "+f", true},
    WgmmaType{"pr_tf32", "k8.f32.tf32.tf32", "float", "+f", false},
    WgmmaType{"signed char", "k32.s32.s8.s8", "int", "+r", false},
};

std::string define_wgmma(const Shape& shape, const WgmmaType& type) {
  const int num_regs = shape.n / 2;
  std::string places, registers;
  for (int i = 0; i < num_regs; ++i) {
    places += fmt::format("{}%{}", i == 0 ? "" : ",", i);
    registers += fmt::format("{}\"{}\"(d[{}])", i == 0 ? "" : ", ", type.constraint, i);
  }
  // Integers are not negated: they have neither signs of operands nor orders.
  std::string tail = type.name == "signed char" ? "p" : "p, 1, 1";
  if (type.can_transpose) tail += fmt::format(", {}, {}", shape.trans_a, shape.trans_b);
  return fmt::format(
      "template <> struct pr_wgmma_op_<{0}, {1}, {2}, {3}> {{\n"
      "  PR_FN void run({4}(&d)[{5}], pr_u64 a, pr_u64 b, int scale_d) {{\n"
      "    asm volatile(\"{{ .reg .pred p; setp.ne.b32 p, %{6}, 0;"
      " wgmma.mma_async.sync.aligned.m64n{0}{7} {{{8}}}, %{5}, %{9}, {10}; }}\"\n"
      "        : {11} : \"l\"(a), \"l\"(b), \"r\"(scale_d));\n  }}\n}};\n",
      shape.n, shape.type, shape.trans_a, shape.trans_b, type.acc, num_regs, num_regs + 2, type.ptx,
      places, num_regs + 1, tail, registers);
}

}  // namespace

std::string device_text(std::string_view kernel_text, std::string_view arch) {
  std::string text(kDevice);
  text += kTrig;
  if (arch == "sm_90a") {
    text += kHopper;
    for (const Shape& shape : find_shapes(kernel_text)) {
      for (const WgmmaType& type : kWgmmaTypes) {
        if (type.name == shape.type) text += define_wgmma(shape, type);
      }
    }
  }
  text += "#line 1 \"kernel.cu\"\n";
  text += kernel_text;
  return text;
}

std::string host_text(std::string_view kernel_text, std::span<const std::string> kernels) {
  std::string text(kHostAbi);
  text += kHost;
  text += kTrig;
  text += "#line 1 \"kernel.cu\"\n";
  text += kernel_text;
  text += "\n";
  for (const std::string& kernel : std::set<std::string>(kernels.begin(), kernels.end()))
    text += fmt::format("PR_HOST_ENTRY({})\n", kernel);
  return text;
}

}  // namespace prunerc::codegen
