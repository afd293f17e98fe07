// Operators of ONNX Runtime's own domain: what they become, and what of them is refused. Their numbers: contrib_cases_test.cc.
#include "tests/onnx/contrib_model.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

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

TEST_CASE("an embedding of bytes has a scale and a zero point for each table") {
  std::vector<Port> ports = embedding();
  for (std::size_t i = 2; i < 7; ++i) ports[i].type = kU8;
  ports[7] = kNone;
  for (std::size_t i = 0; i < 10; ++i) ports.push_back(i < 5 ? Port{{}} : Port{{}, kU8});
  const auto model = [&] { return model_of("QEmbedLayerNormalization", ports, {"y", "lengths"}); };
  const std::string text = text_of(model());
  INFO(text);
  CHECK(has(text,
            "f32(i32((W[I[i0,i1],i2] or 0)) - i32(z2)) * s2 + f32(i32(P[i1 + 0,i2]) - "
            "i32(z3)) * s3 + f32(i32((S[G[i0,i1],i2] or 0)) - i32(z4)) * s4;"));
  CHECK(has(text, "Y[c] = f32(i32(X[c]) - i32(z5)) * s5;"));
  // Without a mask a constant, and a copy of it.
  CHECK(has(text, "y: f32[2,4,8], lengths_2: i32[2]"));
  ports[16].type = kI8;
  CHECK(has(refusal_of(model()), "a scale or zero point of another shape or type"));
  ports[5].shape = {8, 1};
  CHECK(has(refusal_of(model()), "parameters of another shape"));
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
      text_of(packed(4, 72, 16, {{{2, 3, 72}}, {{7, 5, 8}, kU8}, {{7, 5}}, {{7, 3}, kU8}}));
  INFO(text);
  // Parts of 8, which divides 72 and 16: 2 of them are a block.
  CHECK(has(text, "Y[b,q,j] = i8((if (b%2*8 + q)%2 == 0 then i32(B[j,b/2,(b%2*8 + q)/2]) else "));
  CHECK(has(text, " - ((if b/2%2 == 0 then i32(Z[j,b/2/2])"));
  CHECK(has(text, "W: i8[9,8,7]"));
  CHECK(has(text, "sum[b,q] A[i0,i1,b*8 + q] * (f32(W[b,q,j]) * S[b,j])"));
  const std::string bytes = text_of(packed(8, 40, 16, {{{40}}, {{7, 3, 16}, kU8}, {{21}}}));
  INFO(bytes);
  CHECK(has(bytes, "Y[b,q,j] = i8(i32(B[j,b/2,(b%2*8 + q)]) - (128));"));
  CHECK(has(bytes, "Y[b,j] = f32(s[j*3 + b/2]);"));
  const std::string whole =
      text_of(packed(8, 64, 16, {{{64}}, {{7, 4, 16}, kU8}, {{7, 4}}, {{7, 4}, kU8}}));
  INFO(whole);
  CHECK(has(whole, "Y[b,q,j] = u8(i32(B[j,b,q]));"));
  CHECK(has(whole, "sum[b,q] A[b*16 + q] * ((f32(W[b,q,j]) - Z[b,j]) * S[b,j])"));
}

TEST_CASE("weights of few bits are floats where parts are short or rows many") {
  // Parts of 2.
  const std::string parts =
      text_of(packed(4, 70, 32, {{{2, 3, 70}}, {{7, 3, 16}, kU8}, {{7, 3}}, {{7, 2}, kU8}}));
  INFO(parts);
  CHECK(has(parts, "= (f32((if (b%16*2 + q)%2 == 0 then i32(B[j,b/16,(b%16*2 + q)/2]) else "));
  CHECK(has(parts, " - f32((if b/16%2 == 0 then i32(Z[j,b/16/2])"));
  CHECK(has(parts, "W: f32[35,2,7]"));
  CHECK(has(parts, "sum[b,q] A[i0,i1,b*2 + q] * W[b,q,j];"));
  const auto rows = [](int64_t count, int type) {
    return text_of(
        packed(8, 64, 16, {{{count, 64}, type}, {{7, 4, 16}, kU8}, {{7, 4}, type}, {{28}, type}}));
  };
  CHECK(has(rows(16, kF32), "A[i0,b*16 + q] * ((f32(W[b,q,j]) - Z[b,j]) * S[b,j])"));
  for (const int type : {kF32, kF16}) {
    const std::string many = rows(17, type);
    INFO(many);
    CHECK(has(many, "Y[b,q,j] = (f32(i32(B[j,b,q])) - f32(Z[j*4 + b])) * f32(s[j,b]);"));
    CHECK(has(many, "[b,q] A[i0,b*16 + q] * W[b,q,j];"));
  }
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
  CHECK(has(text, "Y[n,co,o0,o1] = max(0, v[n,co,o0,o1]);"));
  CHECK(has(text_of(fused_conv("LeakyRelu", {0.25F})), "0.25 * v["));
  CHECK(has(text_of(fused_conv("Clip", {-1, 2})), "min(2, max((-1), v[n,co,o0,o1]))"));
  CHECK(has(text_of(fused_conv("HardSigmoid", {0.25F, 0.5F})), "max(0, 0.25 * v["));
  CHECK(has(text_of(fused_conv("HardSwish", {})), "clamp(v["));
  CHECK(has(refusal_of(fused_conv("Elu", {1})), "'Elu' as its activation"));
  CHECK(has(refusal_of(fused_conv("Clip", {1})), "Clip with 1 parameters"));
  CHECK(has(refusal_of(fused_conv("LeakyRelu", {std::nanf("")})),
            "an activation parameter that is not a number"));
  CHECK(has(refusal_of(fused_conv("Relu", {}, {kNone, {{1, 2, 3, 4}}})),
            "what is added has another shape or type"));
}

TEST_CASE("a matrix product takes the activation of its sum") {
  const auto fused = [](const std::string& activation) {
    ModelBuilder model = model_of("FusedGemm", {{{4, 6}}, {{5, 6}}, {{5}}});
    add_text(node_of(model), "activation", activation);
    add_int(node_of(model), "transB", 1);
    return model;
  };
  const std::string text = text_of(fused("Relu"));
  INFO(text);
  CHECK(has(text, "let v[i,j] = acc[i,j] + C[j];"));
  CHECK(has(text, "Y[i,j] = max(0, v[i,j]);"));
  ModelBuilder leaky = fused("LeakyRelu");
  CHECK(has(refusal_of(leaky), "LeakyRelu with 0 parameters"));
  add_float(node_of(leaky), "activation_alpha", 0.25F);
  CHECK(has(text_of(leaky), "0.25 * v[i,j]"));
  CHECK(has(refusal_of(fused("Erf")), "'Erf' as its activation"));
  CHECK(has(refusal_of(model_of("FusedGemm", {{{4, 6}}, {{5, 6}}})),
            "matrices that do not fit together"));
}

const Port kScale = {{}}, kZero = {{}, kU8};

// Two operands of 8 bits and a result, each with a scale and a zero point.
std::vector<Port> two_bytes() {
  return {{{2, 3}, kU8}, kScale, kZero, {{3}, kU8}, kScale, kZero, kScale, kZero};
}

TEST_CASE("sums and products of 8 bits take the zero point before they round") {
  const std::string sum = text_of(model_of("QLinearAdd", two_bytes()));
  INFO(sum);
  CHECK(has(sum, "R = f32(zc) - fma(P, f32(za), Q * f32(zb));"));
  CHECK(has(sum, "u8(clamp(round(fma(f32(A[i0,i1]), C, fma(f32(B[i1]), D, E))), 0, 255))"));
  const std::string product = text_of(model_of("QLinearMul", two_bytes()));
  INFO(product);
  CHECK(has(product, "f32((i32(A[i0,i1]) - i32(D)) * (i32(B[i1]) - i32(E))) * C + f32(F)"));
}

TEST_CASE("a zero point that is not given is 0") {
  std::vector<Port> ports = two_bytes();
  for (const std::size_t i : {2, 5, 7}) ports[i] = kNone;
  CHECK(has(text_of(model_of("QLinearMul", ports)), "round(f32(i32(A[i0,i1]) * i32(B[i1])) * C)"));
  CHECK(has(text_of(model_of("QLinearAdd", ports)), "R = f32(0) - fma(P, f32(0), Q * f32(0));"));
}

TEST_CASE("operands of 8 bits that do not fit are refused") {
  for (const char* op : {"QLinearAdd", "QLinearMul"}) {
    const auto with = [&](std::size_t i, const Port& port) {
      std::vector<Port> ports = two_bytes();
      ports[i] = port;
      return refusal_of(model_of(op, ports));
    };
    INFO(op);
    CHECK(has(with(1, kNone), "input 1 is missing"));
    CHECK(has(with(0, {{2, 3}}), "an operand of this shape or type"));
    CHECK(has(with(2, {{}, kI8}), "a scale or zero point of another type"));
    CHECK(has(with(4, {{3}}), "several scales or zero points"));
    CHECK(has(with(6, {{}, kF16}), "a scale or zero point of another type"));
    CHECK(has(with(3, {{2}, kU8}), "shapes that do not fit together"));
  }
  std::vector<Port> two = two_bytes();
  two[3].type = two[5].type = kI8;
  CHECK(has(refusal_of(model_of("QLinearAdd", two)), "operands of two types"));
}

TEST_CASE("functions of 8 bits go through the numbers they stand for") {
  const std::vector<Port> ports = {{{2, 3}, kI8}, kScale, {{}, kI8}, kScale, {{}, kI8}};
  CHECK(has(text_of(model_of("QLinearSigmoid", ports)),
            "round((sigmoid((f32((i32(A[i0,i1]) - i32(D))) * B))) / C) + f32(E)"));
  ModelBuilder leaky = model_of("QLinearLeakyRelu", ports);
  add_float(node_of(leaky), "alpha", 0.25F);
  CHECK(has(text_of(leaky), "then 0.25 * (f32("));
  CHECK(has(refusal_of(model_of("QLinearSigmoid", {{{2, 3}, kI8}, kScale})), "input 3 is missing"));
}

TEST_CASE("parts of 8 bits with other scales are made to fit") {
  const std::vector<Port> ports = {kScale, kZero,         {{2, 3}, kU8}, kScale,
                                   kZero,  {{2, 1}, kU8}, kScale,        kZero};
  ModelBuilder model = model_of("QLinearConcat", ports);
  CHECK(has(refusal_of(model), "no axis"));
  add_int(node_of(model), "axis", -1);
  CHECK(count_of(text_of(model), "op requantize") == 2);
  node_of(model).mutable_input()->RemoveLast();
  CHECK(has(refusal_of(model), "parts without a scale and a zero point each"));
}

TEST_CASE("averages of 8 bits") {
  const std::vector<Port> ports = {{{1, 2, 5, 5}, kU8}, kScale, kZero, kScale, kZero};
  const std::string global = text_of(model_of("QLinearGlobalAveragePool", ports));
  INFO(global);
  CHECK(has(global, "sum:i32[k2,k3] (i32(X[i0,i1,k2,k3]) - i32(zx))"));
  CHECK(has(global, "Y = sx / (sy * 25);"));
  ModelBuilder last = model_of("QLinearGlobalAveragePool", ports);
  add_int(node_of(last), "channels_last", 1);
  CHECK(has(text_of(last), "sum:i32[k1,k2] (i32(X[i0,k1,k2,i3]) - i32(zx))"));
  ModelBuilder windows = model_of("QLinearAveragePool", ports);
  add_ints(node_of(windows), "kernel_shape", {3, 3});
  add_ints(node_of(windows), "pads", {1, 1, 1, 1});
  const std::string text = text_of(windows);
  INFO(text);
  // Written out, the last one in the corner.
  CHECK(count_of(text, "or zx)) - i32(zx))) * sx)") == 9);
  CHECK(has(text, "X[n,c,o0 + 2 - 1,o1 + 2 - 1] or zx)) - i32(zx))) * sx);"));
  ModelBuilder large =
      model_of("QLinearAveragePool", {{{1, 2, 9, 20}, kU8}, kScale, kZero, kScale, kZero});
  add_ints(node_of(large), "kernel_shape", {9, 9});
  CHECK(has(text_of(large), "sum[k0 in 0..9,k1 in 0..9] (f32("));
  ModelBuilder whole =
      model_of("QLinearAveragePool", {{{1, 2, 9, 9}, kU8}, kScale, kZero, kScale, kZero});
  add_ints(node_of(whole), "kernel_shape", {8, 8});
  CHECK(count_of(text_of(whole), "* sx)") == 64);
  ModelBuilder padded = model_of("QLinearAveragePool", ports);
  add_ints(node_of(padded), "kernel_shape", {2, 5});
  add_ints(node_of(padded), "pads", {0, 1, 0, 1});
  CHECK(has(text_of(padded), "sum[k0 in 0..2,k1 in 0..5] (f32("));
  for (const char* name : {"channels_last", "ceil_mode"}) {
    ModelBuilder refused = windows;
    add_int(node_of(refused), name, 1);
    CHECK(has(refusal_of(refused), name));
  }
  CHECK(has(refusal_of(model_of("QLinearGlobalAveragePool",
                                {{{2, 5}, kU8}, kScale, kZero, kScale, kZero})),
            "an operand without axes to average over"));
  CHECK(has(refusal_of(model_of("QLinearGlobalAveragePool",
                                {{{1, 2, 5, 1684301}, kU8}, kScale, kZero, kScale, kZero})),
            "sums that may leave 32 bits"));
}

std::vector<Port> gemm_ports() {
  return {{{4, 6}, kU8}, kScale,      kZero,  {{5, 6}, kI8}, {{5}},
          {{5}, kI8},    {{5}, kI32}, kScale, kZero};
}

ModelBuilder qgemm(const std::vector<Port>& ports) {
  ModelBuilder model = model_of("QGemm", ports);
  add_int(node_of(model), "transB", 1);
  add_float(node_of(model), "alpha", 0.5F);
  return model;
}

TEST_CASE("a product of 8 bits is one of 8 bits, or of f32 without a scale of its own") {
  const std::string text = text_of(qgemm(gemm_ports()));
  INFO(text);
  CHECK(has(text, "Y[j] = (0.5 * f32(sa) * f32(sb[j]) / f32(sy));"));
  CHECK(has(text, "u8(clamp(round(f32(acc[i,j] + c[j]) * m[j]) + f32(ZY), 0, 255))"));
  std::vector<Port> wide = gemm_ports();
  wide.resize(7);
  wide[6] = {{4, 1}, kI32};
  CHECK(has(text_of(qgemm(wide)), "Y[i,j] = f32(acc[i,j] + C[i,0]) * m[j];"));
}

TEST_CASE("products of 8 bits that do not fit are refused") {
  const auto with = [&](std::size_t i, const Port& port) {
    std::vector<Port> ports = gemm_ports();
    ports[i] = port;
    return refusal_of(qgemm(ports));
  };
  CHECK(has(with(0, {{4, 6}}), "operands that are no matrices of 8 bits"));
  CHECK(has(with(1, {{4}}), "several scales or zero points of the left matrix or the result"));
  CHECK(has(with(2, {{}, kI8}), "a zero point of another type"));
  CHECK(has(with(3, {{6, 5}, kI8}), "matrices that do not fit together"));
  CHECK(has(with(4, {{4}}), "scales or zero points of another shape"));
  CHECK(has(with(4, {{}, kF16}), "scales of another type than f32"));
  CHECK(has(with(6, {{4}, kI32}), "a bias of another shape or type"));
  CHECK(has(with(8, kNone), "a scale of the result without its zero point"));
}

TEST_CASE("products of 8 bits as numbers") {
  const std::vector<Port> known = {{{2, 5, 6}, kU8}, {{6, 5}, kI8}, kScale, {{5}}, kZero,
                                   {{5}, kI8},       {{5}}};
  const std::string text = text_of(model_of("MatMulIntegerToFloat", known));
  INFO(text);
  // What zero points bring is taken off by sums of either operand.
  CHECK(has(text,
            "= f32(acc[b0,i,j] + (0 - i32(ZA)) * kb[j] + (0 - i32(ZB[j])) * ka[b0,i] + "
            "6 * i32(ZA) * i32(ZB[j])) * m[j] + d[j];"));
  const std::string dynamic =
      text_of(model_of("DynamicQuantizeMatMul", {{{2, 5, 6}}, {{6, 5}, kI8}, {{5}}}));
  INFO(dynamic);
  CHECK(has(dynamic, "op dynamic_scale"));
  CHECK(has(dynamic, "= f32(acc[b0,i,j] + (0 - i32(ZA)) * kb[j]) * m[j];"));
  const auto with = [&](std::size_t i, const Port& port) {
    std::vector<Port> ports = known;
    ports[i] = port;
    return refusal_of(model_of("MatMulIntegerToFloat", ports));
  };
  CHECK(has(with(2, {{4}}), "several scales or zero points of the left matrix"));
  CHECK(has(with(4, {{}, kI8}), "a zero point of another type"));
  CHECK(has(with(5, {{5}, kU8}), "a zero point of another type"));
  CHECK(has(with(3, {{4}}), "scales or zero points of another shape"));
  CHECK(has(with(6, {{4}}), "a bias of another shape or type"));
  CHECK(has(with(2, {{}, kF16}), "scales of another type than f32"));
  CHECK(has(refusal_of(model_of("DynamicQuantizeMatMul", {{{4, 6}, kF16}, {{6, 5}, kI8}, {{5}}})),
            "an operand of this type"));
}

TEST_CASE("a right matrix that changes is read once for few rows") {
  const std::string text =
      text_of(model_of("DynamicQuantizeMatMul", {{{2, 4, 6}}, {{6, 5}, kI8}, {{5}}}));
  INFO(text);
  CHECK(has(text, "sum:i32[k] (i32(A[b0,i,k]) - i32(ZA)) * B[k,j];"));
  CHECK_FALSE(has(text, "op depth_sums"));
  // Each matrix of a batch is read by its own rows.
  const auto batched = [](int64_t rows) {
    return text_of(model_of("MatMulIntegerToFloat",
                            {{{4, rows, 6}, kU8}, {{4, 6, 5}, kI8}, kScale, kScale, kZero}));
  };
  CHECK(has(batched(8), "sum:i32[k] (i32(A[b0,i,k]) - i32(ZA)) * B[b0,k,j];"));
  CHECK(has(batched(9), "sum:i32[k] A[b0,i,k] * B[b0,k,j];"));
  // One that serves the whole batch, by the rows of all.
  CHECK(has(text_of(model_of("MatMulIntegerToFloat",
                             {{{4, 3, 6}, kU8}, {{1, 6, 5}, kI8}, kScale, kScale, kZero})),
            "sum:i32[k] A[b0,i,k] * B[0,k,j];"));
}

TEST_CASE("a sum so long that its length leaves 32 bits wraps as it does") {
  const int64_t depth = int64_t{1} << 31;
  CHECK(has(text_of(model_of("MatMulIntegerToFloat",
                             {{{9, depth}, kU8}, {{depth, 2}, kU8}, kScale, kScale, kZero, kZero})),
            "(-2147483648) * i32(ZA) * i32(ZB)"));
}

TEST_CASE("zero points have the type of their operand") {
  const auto refusal = [](const std::string& op, const std::vector<int64_t>& x,
                          const std::vector<int64_t>& w, std::size_t other) {
    std::vector<Port> ports = {{x, kU8}, kScale, kZero, {w, kU8}, kScale, kZero, kScale, kZero};
    ports[other].type = kI8;
    ModelBuilder model = model_of(op, ports);
    node_of(model).clear_domain();
    return refusal_of(model);
  };
  for (const std::size_t other : {2, 5}) {
    CHECK(has(refusal("QLinearMatMul", {4, 6}, {6, 5}, other), "a zero point of another type"));
    CHECK(has(refusal("QLinearConv", {1, 2, 3, 3}, {4, 2, 1, 1}, other),
              "a zero point of another type"));
  }
}

std::vector<Port> lstm_of_bytes() {
  return {
      {{4, 2, 5}}, {{1, 5, 12}, kI8}, {{1, 3, 12}, kI8}, {{1, 24}},     kNone, kNone, kNone, kNone,
      {{1}},       {{1}, kI8},        {{1, 12}},         {{1, 12}, kI8}};
}

TEST_CASE("a recurrent network of bytes makes bytes of its state in each step") {
  const std::string text = text_of(model_of("DynamicQuantizeLSTM", lstm_of_bytes()));
  INFO(text);
  CHECK(has(text, "Y[i0,i1] = X[0,i0,i1];"));
  CHECK(has(text, "Y[b, g] = G[b, g] + P[b, g];"));
  CHECK(count_of(text, "op lstm_cell") == 1);
  // Weights that are no constants are not summed beside the product.
  CHECK_FALSE(has(text, "column_sums"));
  // The operator and its calls: the first state is zero.
  CHECK(count_of(text, "dynamic_scale_2(") == 4);
}

TEST_CASE("recurrent networks of bytes that do not fit are refused") {
  const auto with = [](std::size_t i, const Port& port) {
    std::vector<Port> ports = lstm_of_bytes();
    ports[i] = port;
    return refusal_of(model_of("DynamicQuantizeLSTM", ports));
  };
  CHECK(has(with(0, {{4, 2, 5}, kF16}), "operands of these shapes or types"));
  CHECK(has(with(1, {{1, 5, 12}}), "operands of these shapes or types"));
  CHECK(has(with(1, {{1, 12, 5}, kI8}), "operands that do not fit together"));
  CHECK(has(with(3, {{1, 24}, kF16}), "operands of these shapes or types"));
  CHECK(has(with(4, {{2}, kI32}), "sequences of different lengths"));
  CHECK(has(with(7, {{1, 8}}), "peepholes of another shape or type"));
  CHECK(has(with(8, {{1}, kF16}), "a scale or zero point of another type"));
  CHECK(has(with(9, {{1}, kU8}), "a scale or zero point of another type"));
  CHECK(has(with(9, kNone), "input 9 is missing"));
  CHECK(has(with(10, {{12}}), "scales or zero points of another shape"));
  ModelBuilder turned = model_of("DynamicQuantizeLSTM", lstm_of_bytes());
  add_int(node_of(turned), "layout", 1);
  CHECK(has(refusal_of(turned), "the attribute layout"));
}

}  // namespace
}  // namespace prunerc::onnx
