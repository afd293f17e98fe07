// Operators of ONNX Runtime's own domain: what they become, and what of them is refused. Their numbers: contrib_cases_test.cc.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::onnx {
namespace {

constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7, kF16 = 10;

/// An operand: its shape and type. No type: it is not given.
struct Port {
  std::vector<int64_t> shape;
  int type = kF32;
};
constexpr int kNotGiven = 0;

// A model of one node of the domain, whose inputs are x0, x1, ...
ModelBuilder model_of(const std::string& op, const std::vector<Port>& ports,
                      const std::vector<std::string>& outputs = {"y"}) {
  ModelBuilder model;
  std::vector<std::string> inputs;
  for (const Port& port : ports) {
    inputs.push_back(port.type == kNotGiven ? "" : "x" + std::to_string(inputs.size()));
    if (port.type != kNotGiven) model.input(inputs.back(), port.shape, port.type);
  }
  for (const std::string& output : outputs) {
    if (!output.empty()) model.output(output);
  }
  ::onnx::NodeProto& node = model.node(op, inputs, outputs);
  node.set_name("n");
  node.set_domain("com.microsoft");
  return model;
}

::onnx::NodeProto& node_of(ModelBuilder& model) { return *model.graph().mutable_node(0); }

const Port kNone = {{}, kNotGiven};

TEST_CASE("sums of 16 bits stay wide until they are normalised") {
  const ModelBuilder model =
      model_of("SkipLayerNormalization",
               {{{2, 3, 8}, kF16}, {{3, 8}, kF16}, {{8}, kF16}, {{8}, kF16}, {{8}, kF16}},
               {"y", "", "", "sum"});
  const std::string text = text_of(model);
  INFO(text);
  CHECK(has(text, "Y[i0,i1,i2] = f32(X[i0,i1,i2]) + f32(S[i1,i2]) + f32(b[i2]);"));
  CHECK(has(text, "-> (Y: f16[2,3,8])"));
}

TEST_CASE("mean and deviation are outputs 1 and 2, the sum is output 3") {
  const std::string text =
      text_of(model_of("SkipLayerNormalization", {{{2, 3, 8}}, {{2, 3, 8}}, {{8}}},
                       {"y", "mean", "inverse", "sum"}));
  INFO(text);
  CHECK(has(text, "mean: f32[2,3,1], inverse: f32[2,3,1], sum_: f32[2,3,8]"));
}

TEST_CASE("normalisations that do not fit are refused") {
  const auto refusal = [](const std::string& op, const std::vector<Port>& ports,
                          const std::vector<std::string>& outputs = {"y"}) {
    return refusal_of(model_of(op, ports, outputs));
  };
  const std::string skip = "SkipLayerNormalization", rms = "SkipSimplifiedLayerNormalization";
  CHECK(has(refusal(skip, {{{2, 3, 8}}, {{2, 3, 8}}}), "input 2 is missing"));
  CHECK(has(refusal(skip, {{{2, 3, 8}}, {{2, 1, 8}}, {{8}}}), "a second operand of another shape"));
  CHECK(has(refusal(skip, {{{2, 3, 8}}, {{2, 3, 8}}, {{1}}}), "parameters of another shape"));
  CHECK(has(refusal(skip, {{{2, 3, 8}}, {{2, 3, 8}}, {{8}, kF16}}), "parameters of another type"));
  CHECK(has(refusal(skip, {{{8}}, {{8}}, {{8}}}), "operands of these shapes or types"));
  CHECK(has(refusal(rms, {{{3, 8}}, {{3, 8}}, {{8}}}, {"y", "mean"}),
            "mean and deviation as outputs"));
}

std::vector<Port> embedding() {
  return {{{2, 4}, kI32}, {{2, 4}, kI32}, {{9, 8}}, {{6, 8}},
          {{2, 8}},       {{8}},          {{8}},    {{2, 4}, kI32}};
}

TEST_CASE("an embedding sums words, places and segments") {
  const std::string text =
      text_of(model_of("EmbedLayerNormalization", embedding(), {"y", "lengths", "sum"}));
  INFO(text);
  CHECK(has(text, "(W[I[i0,i1],i2] or 0) + P[i1 + 0,i2] + (S[G[i0,i1],i2] or 0)"));
  CHECK(has(text, "lengths: i32[2]"));
}

TEST_CASE("embeddings that do not fit are refused") {
  const auto without = [](std::size_t i, const Port& port) {
    std::vector<Port> ports = embedding();
    ports[i] = port;
    return refusal_of(model_of("EmbedLayerNormalization", ports, {"y", "lengths"}));
  };
  CHECK(has(without(1, kNone), "segments without their embedding"));
  CHECK(has(without(2, {{9, 7}}), "embeddings of these shapes or types"));
  CHECK(has(without(3, {{3, 8}}), "more tokens than positions"));
  CHECK(has(without(5, {{7}}), "parameters of another shape"));
  CHECK(has(without(7, {{2, 3}, kI32}), "a mask of another shape or type"));
  CHECK(has(without(0, {{2, 4}}), "ids of this shape or type"));
}

TEST_CASE("activations have a bias for their last axis") {
  const std::string text = text_of(model_of("FastGelu", {{{2, 8}}, {{8}}}));
  INFO(text);
  CHECK(has(text, "let v[i0,i1] = X[i0,i1] + b[i1];"));
  CHECK(has(text_of(model_of("QuickGelu", {{{2, 8}}})), "sigmoid(1.702"));
  CHECK(has(text_of(model_of("Gelu", {{{2, 8}}})), "erf("));
  CHECK(has(refusal_of(model_of("BiasGelu", {{{2, 8}}})), "input 1 is missing"));
  CHECK(has(refusal_of(model_of("BiasGelu", {{{2, 8}}, {{1}}})), "a bias of another shape"));
  CHECK(has(refusal_of(model_of("FastGelu", {{{2, 8}}, {{8}, kF16}})), "operands of these types"));
}

TEST_CASE("matrices lie turned, their rows before the batch") {
  ModelBuilder model = model_of("FusedMatMul", {{{4, 2, 3, 6}}, {{2, 3, 6, 5}}});
  add_int(node_of(model), "transBatchA", 1);
  add_float(node_of(model), "alpha", 0.5F);
  CHECK(has(text_of(model), "sum[k] A[i,b0,b1,k] * B[b0,b1,k,j]"));
  CHECK(has(text_of(model), "0.5 * acc[b0,b1,i,j]"));
  ModelBuilder both = model_of("FusedMatMul", {{{6, 2, 3, 4}}, {{5, 2, 3, 6}}});
  for (const char* name : {"transBatchA", "transA", "transBatchB", "transB"})
    add_int(node_of(both), name, 1);
  CHECK(has(text_of(both), "sum[k] A[k,b0,b1,i] * B[j,b0,b1,k]"));
  ModelBuilder vector = model_of("FusedMatMul", {{{6}}, {{6, 5}}});
  add_int(node_of(vector), "transA", 1);
  CHECK(has(text_of(vector), "sum[k] A[k] * B[k,j]"));
  CHECK(has(refusal_of(model_of("FusedMatMul", {{{4, 6}}, {{5, 6}}})),
            "matrices that do not fit together"));
  CHECK(has(refusal_of(model_of("FusedMatMul", {{{4, 6}, kI32}, {{6, 5}, kI32}})),
            "operands of these types"));
}

ModelBuilder packed(int64_t bits, int64_t k, int64_t block, const std::vector<Port>& ports) {
  ModelBuilder model = model_of("MatMulNBits", ports);
  add_int(node_of(model), "N", 7);
  add_int(node_of(model), "K", k);
  add_int(node_of(model), "bits", bits);
  add_int(node_of(model), "block_size", block);
  return model;
}

TEST_CASE("weights of few bits are counted from their zero points, K need not fill its blocks") {
  const std::string text =
      text_of(packed(4, 70, 32, {{{2, 3, 70}}, {{7, 3, 16}, kU8}, {{7, 3}}, {{7, 2}, kU8}}));
  INFO(text);
  CHECK(has(text, "if k%2 == 0 then i32(B[j,k/32,k%32/2]) else i32(B[j,k/32,k%32/2])/16) % 16"));
  CHECK(has(text, "if k/32%2 == 0 then i32(Z[j,k/32/2])"));
  const std::string bytes = text_of(packed(8, 40, 16, {{{40}}, {{7, 3, 16}, kU8}, {{21}}}));
  INFO(bytes);
  CHECK(has(bytes, "(f32(i32(B[j,k/16,k%16])) - 128) * f32(s[j*3 + k/16])"));
}

TEST_CASE("packed weights that do not fit are refused") {
  const std::vector<Port> good = {{{2, 70}}, {{7, 3, 16}, kU8}, {{7, 3}}};
  const auto refusal = [&](std::size_t i, const Port& port) {
    std::vector<Port> ports = good;
    ports.resize(std::max(ports.size(), i + 1), kNone);
    ports[i] = port;
    return refusal_of(packed(4, 70, 32, ports));
  };
  CHECK(has(refusal(0, {{2, 69}}), "an operand that does not fit K and N"));
  CHECK(has(refusal(1, {{7, 3, 15}, kU8}), "weights of another shape or type"));
  CHECK(has(refusal(2, {{7, 2}}), "scales or zero points of another shape"));
  CHECK(has(refusal(3, {{7, 3}, kI8}), "zero points of another type"));
  CHECK(has(refusal(3, {{7, 3}, kU8}), "scales or zero points of another shape"));
  CHECK(has(refusal(4, {{70}, kI32}), "groups by an index (g_idx)"));
  CHECK(has(refusal(5, {{6}}), "a bias of another shape or type"));
  CHECK(has(refusal_of(packed(3, 70, 32, good)), "weights of 3 bits"));
  CHECK(has(refusal_of(packed(4, 70, 24, good)), "blocks of 24 weights"));
  ModelBuilder prepacked = packed(4, 70, 32, good);
  add_int(node_of(prepacked), "weight_prepacked", 1);
  CHECK(has(refusal_of(prepacked), "packed for one machine"));
}

ModelBuilder fused_conv(const std::string& activation, const std::vector<float>& by,
                        const std::vector<Port>& more = {}) {
  std::vector<Port> ports = {{{1, 3, 5, 5}}, {{2, 3, 3, 3}}};
  ports.insert(ports.end(), more.begin(), more.end());
  ModelBuilder model = model_of("FusedConv", ports);
  add_text(node_of(model), "activation", activation);
  ::onnx::AttributeProto& parameters = *node_of(model).add_attribute();
  parameters.set_name("activation_params");
  parameters.set_type(::onnx::AttributeProto::FLOATS);
  for (const float value : by) parameters.add_floats(value);
  return model;
}

TEST_CASE("a convolution adds its fourth operand and takes the activation") {
  const std::string text = text_of(fused_conv("Relu", {}, {{{2}}, {{1, 2, 3, 3}}}));
  INFO(text);
  CHECK(has(text, "let v[n,co,o0,o1] = acc[n,co,o0,o1] + b[co] + Z[n,co,o0,o1];"));
  CHECK(has(text, "Y[n,co,o0,o1] = max(v[n,co,o0,o1], 0);"));
  CHECK(has(text_of(fused_conv("LeakyRelu", {0.25F})), "0.25 * v["));
  CHECK(has(text_of(fused_conv("Clip", {-1, 2})), "min(max(v[n,co,o0,o1], (-1)), 2)"));
  CHECK(has(text_of(fused_conv("HardSigmoid", {0.25F, 0.5F})), "clamp(0.25 * v["));
  CHECK(has(text_of(fused_conv("HardSwish", {})), "clamp(v["));
  CHECK(has(refusal_of(fused_conv("Elu", {1})), "'Elu' as its activation"));
  CHECK(has(refusal_of(fused_conv("Clip", {1})), "Clip with 1 parameters"));
  CHECK(has(refusal_of(fused_conv("Relu", {}, {kNone, {{1, 2, 3, 4}}})),
            "what is added has another shape or type"));
}

}  // namespace
}  // namespace prunerc::onnx
