#include "tests/bench/algebra/programs.h"

#include "ir/lang/lang.h"

#include <fmt/format.h>

namespace prunerc::bench {
namespace {

using search::algebra::NumericClass;

// Weights are constants, so that what depends on them alone is computed ahead.
AlgebraCase convolution(int channels, int size) {
  return {.name = fmt::format("conv3x3_{}ch_{}", channels, size),
          .op = "conv",
          .least_gain = 1.5,
          .speed_aim = 1.5,
          .numerics = NumericClass::kLoose,
          .text = fmt::format(
              "op conv(X: f32[1,{0},{1},{1}], const F: f32[{0},{0},3,3]) -> (Y: "
              "f32[1,{0},{1},{1}]) {{\n"
              "  Y[n,o,h,w] = sum[c,kh,kw] (X[n,c,h+kh-1,w+kw-1] or 0) * F[o,c,kh,kw];\n}}\n",
              channels, size)};
}

}  // namespace

const std::vector<AlgebraCase>& algebra_cases() {
  static const std::vector<AlgebraCase> cases = [] {
    const std::string file = "std/algebra.prn";
    std::vector<AlgebraCase> out = {
        {"lora_merged", file, "lora_merged", {}, 100, 20},
        {"chain3", file, "chain3", {}, 500, 20},
        {"product_row_sums", file, "product_row_sums", {}, 500, 20},
        {"linear_attention", file, "linear_attention", {}, 30, 20},
        {"outer_then_sum", file, "outer_then_sum", {}, 50, 20},
        {"lora_added", file, "lora_added", {}, 1.05, 1.05, NumericClass::kNormal},
        {"grouped_decode_4096", file, "grouped_decode", {{"S", "4096"}}, 1, 2},
        {"grouped_decode_65536", file, "grouped_decode", {{"S", "65536"}}, 1, 4},
        {"rmsnorm_linear", file, "rmsnorm_linear", {}, 1, 0.98},
        {"layernorm_linear", file, "layernorm_linear", {}, 1, 0.98, NumericClass::kLoose},
        {"raw_attention", file, "raw_attention", {}, 1, 0.98},
        {"qk_norm", file, "qk_norm", {}, 1, 0.98},
        {"gated_mlp", file, "gated_mlp", {}, 1, 0.98},
        {"relu_between", file, "relu_between", {}, 0},
        {"half_between", file, "half_between", {}, 0},
        {"argmax_between", file, "argmax_between", {}, 0},
        {"saturated_between", file, "saturated_between", {}, 0},
    };
    // Its form gains memory, not operations.
    out.push_back({.name = "attention_keys_16384",
                   .file = "std/attention.prn",
                   .op = "attention",
                   .bindings = {{"H", "4"}, {"T", "256"}, {"S", "16384"}},
                   .least_gain = 0.9,
                   .speed_aim = 1.25,
                   .words = "each with its own maximum"});
    out.push_back(convolution(64, 56));
    out.push_back(convolution(128, 28));
    return out;
  }();
  return cases;
}

Operator load_case(const AlgebraCase& c) {
  OperatorRequest request;
  request.file = c.name + ".prn";
  request.text = c.file.empty() ? c.text : *lang::import_std(c.file);
  request.op = c.op;
  request.bindings = c.bindings;
  Result<Operator> op = load_operator(request);
  PRUNERC_CHECK(op.ok(), "a case of the benchmark compiles");
  op->name = c.name;
  return std::move(*op);
}

}  // namespace prunerc::bench
