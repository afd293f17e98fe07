// Attention of ONNX Runtime's own domain: what it becomes, and what of it is refused.
#include "tests/onnx/contrib_model.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::onnx {
namespace {

// Queries [2,3,8] of two heads, keys [2,5,8] and values [2,5,12], then what else is given.
ModelBuilder mha(std::vector<Port> more = {}, const std::vector<std::string>& outputs = {"y"}) {
  std::vector<Port> ports = {{{2, 3, 8}}, {{2, 5, 8}}, {{2, 5, 12}}};
  ports.insert(ports.end(), more.begin(), more.end());
  ModelBuilder model = model_of("MultiHeadAttention", ports, outputs);
  add_int(node_of(model), "num_heads", 2);
  return model;
}

TEST_CASE("masked keys have a number added to their scores") {
  const std::string lengths = text_of(mha({kNone, {{2}, kI32}}));
  INFO(lengths);
  CHECK(has(lengths, "(if i64(s) < i64(M[b]) then f32(0) else f32((-10000)))"));
  ModelBuilder pairs = mha({kNone, {{2, 3, 5}, kI32}, {{1, 2, 3, 5}}});
  add_float(node_of(pairs), "mask_filter_value", -5);
  const std::string text = text_of(pairs);
  INFO(text);
  CHECK(has(text, "(B[0, h, t, s] + (if M[b, t, s] > 0 then f32(0) else f32((-5))))"));
}

TEST_CASE("a bias of three projections is added to each its part") {
  const std::string text = text_of(mha({{{28}}}));
  INFO(text);
  CHECK(has(text, "X[i0,i1,i2] + b[i2 + 0];"));
  CHECK(has(text, "X[i0,i1,i2] + b[i2 + 8];"));
  CHECK(has(text, "X[i0,i1,i2] + b[i2 + 16];"));
}

TEST_CASE("a past stands in front of the keys, and what is there then is an output") {
  ModelBuilder model = model_of(
      "MultiHeadAttention",
      {{{2, 3, 8}}, {{2, 3, 8}}, {{2, 3, 8}}, kNone, kNone, kNone, {{2, 2, 4, 4}}, {{2, 2, 4, 4}}},
      {"y", "k", "v"});
  add_int(node_of(model), "num_heads", 2);
  add_int(node_of(model), "unidirectional", 1);
  const std::string text = text_of(model);
  INFO(text);
  CHECK(has(text, "k: f32[2,2,7,4]"));
  CHECK(has(text, "s <= t + 4"));
}

TEST_CASE("multi-head attention that is not supported is refused by name") {
  CHECK(has(refusal_of(mha({}, {"y", "", "", "qk"})), "the scores as an output (qk)"));
  CHECK(has(refusal_of(mha({{{27}}})), "a bias of another shape or type"));
  CHECK(has(refusal_of(mha({kNone, {{8}, kI32}})), "a mask of another shape"));
  CHECK(has(refusal_of(mha({kNone, {{2}, kI64}})), "a mask of this type"));
  CHECK(has(refusal_of(mha({kNone, kNone, {{2, 2, 3, 4}}})), "an attention_bias of another shape"));
  CHECK(has(refusal_of(mha({kNone, kNone, kNone, {{2, 2, 4, 4}}})),
            "a past of keys or values alone"));
  CHECK(has(refusal_of(mha({kNone, kNone, kNone, kNone, kNone, {{1}, kI32}})),
            "buffers that past and present share"));
  ModelBuilder across = mha();
  add_int(node_of(across), "unidirectional", 1);
  CHECK(has(refusal_of(across), "unidirectional attention to keys of another length"));
  // Longer than what is projected.
  CHECK(has(refusal_of(mha({{{40}}})), "a bias of another shape or type"));
  ModelBuilder low = model_of("MultiHeadAttention",
                              {{{2, 3, 8}}, {{2, 3, 8}}, {{2, 3, 8}}, kNone, {{2, 3}, kI32}});
  add_int(node_of(low), "num_heads", 2);
  add_int(node_of(low), "unidirectional", 1);
  CHECK(has(text_of(low), "s <= t"));
  add_float(node_of(low), "mask_filter_value", -3.4e38F);
  CHECK(has(refusal_of(low), "unidirectional attention with a mask_filter_value this low"));
  ModelBuilder endless = mha({kNone, {{2}, kI32}});
  add_float(node_of(endless), "mask_filter_value", -HUGE_VALF);
  CHECK(has(refusal_of(endless), "a mask_filter_value that is no number"));
  ModelBuilder pairs = model_of("MultiHeadAttention", {{{2, 3, 8}}, {{2, 3, 2, 2, 4}}});
  add_int(node_of(pairs), "num_heads", 2);
  CHECK(has(refusal_of(pairs), "keys and values in one operand"));
  ModelBuilder packed = model_of("MultiHeadAttention", {{{2, 3, 2, 3, 4}}});
  add_int(node_of(packed), "num_heads", 2);
  CHECK(has(refusal_of(packed), "queries, keys and values in one operand"));
  ModelBuilder odd = mha();
  node_of(odd).mutable_attribute(0)->set_i(3);
  CHECK(has(refusal_of(odd), "operands of these shapes or types"));
}

// Of two heads: [2,3,5] projected to three times 8.
const std::vector<Port> kProjected = {{{2, 3, 5}}, {{5, 24}}, {{24}}};

ModelBuilder projected(std::vector<Port> ports, const std::vector<std::string>& outputs = {"y"}) {
  ModelBuilder model = model_of("Attention", ports, outputs);
  add_int(node_of(model), "num_heads", 2);
  return model;
}

TEST_CASE("queries, keys and values are projected at once, their past is one operand") {
  std::vector<Port> ports = kProjected;
  ports.push_back({{2, 7}, kI32});
  ports.push_back({{2, 2, 2, 4, 4}});
  const std::string text = text_of(projected(ports, {"y", "present"}));
  INFO(text);
  CHECK(has(text, "Y[b0,i,j] = acc[b0,i,j] + c[j];"));
  CHECK(has(text, "X[i0,i1,i2 + 16]"));
  CHECK(has(text, "Y[i0,i1,i2,i3] = X[1,i0,i1,i2,i3];"));
  CHECK(has(text, "M[b, s] > 0"));
  CHECK(has(text, "present: f32[2,2,2,7,4]"));
}

TEST_CASE("a product of 8 bits is projected, too") {
  ModelBuilder model = model_of(
      "QAttention",
      {{{2, 3, 5}, kU8}, {{5, 24}, kI8}, {{24}}, {{}}, {{24}}, kNone, {{}, kU8}, {{24}, kI8}});
  add_int(node_of(model), "num_heads", 2);
  CHECK(has(text_of(model), "= f32(acc[b0,i,j]) * m[j] + d[j];"));
  node_of(model).set_input(2, "");
  CHECK(has(refusal_of(model), "input 2 is missing"));
}

TEST_CASE("projections that do not fit are refused") {
  const auto with = [](const char* name, int64_t value) {
    ModelBuilder model = projected(kProjected);
    add_int(node_of(model), name, value);
    return refusal_of(model);
  };
  CHECK(has(with("do_rotary", 1), "the attribute do_rotary"));
  CHECK(has(with("past_present_share_buffer", 1), "buffers that past and present share"));
  CHECK(has(refusal_of(projected({{{2, 3, 5}}, {{5, 25}}})), "projections of these widths"));
  CHECK(has(refusal_of(projected({{{2, 3, 5}}, {{4, 24}}})), "matrices that do not fit together"));
  CHECK(has(refusal_of(projected({{{2, 3, 5}}, {{5, 24}}, {{8}}})),
            "a bias of another shape or type"));
  CHECK(has(refusal_of(projected({{{2, 3, 5}}, {{5, 9}}})),
            "heads that do not divide the projections"));
  std::vector<Port> ports = kProjected;
  ports.push_back({{4}, kI32});
  CHECK(has(refusal_of(projected(ports)), "a mask of another shape"));
  ports.back() = kNone;
  ports.push_back({{2, 2, 2, 4, 5}});
  CHECK(has(refusal_of(projected(ports)), "a past of another shape or type"));
  ModelBuilder sized = projected(kProjected);
  add_ints(node_of(sized), "qkv_hidden_sizes", {8, 8, 9});
  CHECK(has(refusal_of(sized), "projections of these widths"));
}

TEST_CASE("pairs of elements turn by tables of positions or of an offset") {
  const auto rotary = [](const Port& places, const Port& table = {{10, 2}}) {
    return model_of("RotaryEmbedding", {{{2, 5, 12}}, places, table, table});
  };
  CHECK(has(text_of(rotary({{2, 5}, kI64})), "(C[P[i0, i1], "));
  CHECK(has(text_of(rotary({{1}, kI64})), "(C[P[0] + i64(i1), "));
  CHECK(has(refusal_of(rotary({{2, 4}, kI64})), "positions of another shape or type"));
  CHECK(has(refusal_of(rotary({{2, 5}, kI64}, {{10, 5}})), "the tables do not have"));
  CHECK(has(refusal_of(rotary({{2, 5}, kI64}, {{10, 7}})), "an operand of this shape or type"));
  for (const auto& [name, value] :
       {std::pair("is_packed_batching", 1), std::pair("num_heads", 2)}) {
    ModelBuilder model = rotary({{1}, kI64});
    add_int(node_of(model), name, value);
    CHECK(has(refusal_of(model), value == 1 ? "is_packed_batching" : "the tables do not have"));
  }
  ModelBuilder scaled = rotary({{1}, kI64});
  add_float(node_of(scaled), "scale", 2);
  CHECK(has(refusal_of(scaled), "a scale"));
}

/// Grouped attention of 4 heads of 8 to 2, of `fresh` new keys and a past of `earlier` places.
struct Grouped {
  int64_t batch = 2, fresh = 5, earlier = 0, total = 5;
  std::vector<int64_t> lengths = {};  ///< seqlens_k; empty: they are an input
  std::vector<Port> more = {};        ///< inputs from 7 on
  std::vector<std::string> outputs = {"y", "k", "v"};
};

ModelBuilder grouped(const Grouped& g) {
  const Port past = g.earlier > 0 ? Port{{g.batch, 2, g.earlier, 8}} : kNone;
  std::vector<Port> ports = {{{g.batch, g.fresh, 32}},
                             {{g.batch, g.fresh, 16}},
                             {{g.batch, g.fresh, 16}},
                             past,
                             past,
                             kNone,
                             kNone};
  ports.insert(ports.end(), g.more.begin(), g.more.end());
  ModelBuilder model = model_of("GroupQueryAttention", ports, g.outputs);
  const auto whole = [&](const char* name, const std::vector<int64_t>& values) {
    ::onnx::TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(kI32);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int32_data(static_cast<int32_t>(value));
  };
  if (g.lengths.empty()) model.input("lengths", {g.batch}, kI32);
  if (!g.lengths.empty()) whole("lengths", g.lengths);
  whole("total", {g.total});
  node_of(model).set_input(5, "lengths");
  node_of(model).set_input(6, "total");
  add_int(node_of(model), "num_heads", 4);
  add_int(node_of(model), "kv_num_heads", 2);
  return model;
}

TEST_CASE("sequences that are known to be full are a triangle") {
  const std::string text = text_of(grouped({.lengths = {4, 4}}));
  INFO(text);
  CHECK(has(text, "max[s | s <= t] "));
  CHECK(has(text, "K[b, s, (h/2)*8 + e]"));
  CHECK(has(text, "k: f32[2,2,5,8]"));
}

TEST_CASE("sequences of several lengths see their own keys alone") {
  const std::string first = text_of(grouped({}));
  INFO(first);
  CHECK(has(first, "if i64(s) <= i64(N[b]) && s <= t then"));
  const std::string next = text_of(grouped({.fresh = 1, .earlier = 9, .total = 7}));
  INFO(next);
  CHECK(has(next,
            "if i64(s) < i64(N[b]) then (P[b, h, s + 0, e] or 0) else "
            "(X[b, i64(s) - i64(N[b]), (h)*8 + e] or 0)"));
  CHECK(has(next, "if i64(s) <= i64(t) + i64(N[b]) then"));
  CHECK(has(next, "k: f32[2,2,9,8]"));
}

TEST_CASE("a first call into a larger buffer leaves zeros behind") {
  const std::string text = text_of(grouped({.earlier = 8}));
  INFO(text);
  CHECK(has(text, "if s < 5 then X[b, s + 0, (h)*8 + e] else 0;"));
}

TEST_CASE("windows, sinks and a softcap") {
  ModelBuilder model = grouped({.lengths = {4, 4}, .more = {kNone, kNone, kNone, kNone, {{4}}}});
  add_int(node_of(model), "local_window_size", 3);
  add_float(node_of(model), "softcap", 2);
  const std::string text = text_of(model);
  INFO(text);
  CHECK(has(text, "if s <= t && s + 3 > t then"));
  CHECK(has(text, "2 * tanh("));
  CHECK(has(text, "max(max[s] c[b, h, t, s], Z[h])"));
  CHECK(has(text, "exp(Z[h] - m[b, h, t])"));
  for (const int smooth : {-1, 0, 1}) {
    ModelBuilder written = grouped({.lengths = {4, 4}});
    add_int(node_of(written), "smooth_softmax", smooth);
    CHECK(has(text_of(written), "exp(f32(0) - m[b, h, t])") == (smooth == 1));
  }
}

TEST_CASE("queries, keys and values in one operand are taken apart") {
  ModelBuilder model = grouped({.lengths = {4, 4}});
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(2)
      ->set_dim_value(64);
  node_of(model).set_input(1, "");
  node_of(model).set_input(2, "");
  const std::string text = text_of(model);
  INFO(text);
  CHECK(has(text, "X[i0,i1,i2 + 32]"));
  CHECK(has(text, "X[i0,i1,i2 + 48]"));
}

TEST_CASE("queries and keys turn where they stand") {
  const Port table = {{16, 4}};
  ModelBuilder first = grouped({.lengths = {4, 4}, .more = {table, table}});
  add_int(node_of(first), "do_rotary", 1);
  CHECK(has(text_of(first), "(C[i1 + 0, "));
  ModelBuilder next = grouped({.fresh = 1, .earlier = 9, .total = 7, .more = {table, table}});
  add_int(node_of(next), "do_rotary", 1);
  CHECK(has(text_of(next), "(C[i64(N[i0]) + i64(i1), "));
  ModelBuilder placed = grouped({.lengths = {4, 4}, .more = {table, table, {{2, 5}, kI64}}});
  add_int(node_of(placed), "do_rotary", 1);
  CHECK(has(text_of(placed), "(C[P[0, 0] + i64(i1), "));
  ModelBuilder narrow = grouped({.lengths = {4, 4}, .more = {{{16, 5}}, {{16, 5}}}});
  add_int(node_of(narrow), "do_rotary", 1);
  CHECK(has(refusal_of(narrow), "tables of fewer or more elements than turn"));
  ModelBuilder missing = grouped({.lengths = {4, 4}});
  add_int(node_of(missing), "do_rotary", 1);
  CHECK(has(refusal_of(missing), "input 7 is missing"));
}

TEST_CASE("grouped attention that is not supported is refused by name") {
  const auto with = [](const char* name, int64_t value) {
    ModelBuilder model = grouped({});
    add_int(node_of(model), name, value);
    return refusal_of(model);
  };
  for (const char* name : {"kv_cache_bit_width", "sliding_window_cache", "qk_output"})
    CHECK(has(with(name, 1), std::string("the attribute ") + name));
  CHECK(has(with("local_window_size", 0), "a local_window_size of 0"));
  ModelBuilder quantized = grouped({});
  add_text(node_of(quantized), "k_quant_type", "PER_TENSOR");
  CHECK(has(refusal_of(quantized), "the attribute k_quant_type"));
  std::vector<Port> more(8, kNone);
  more[7] = {{8}};
  CHECK(has(refusal_of(grouped({.more = more})), "the input q_norm_weight"));
  CHECK(has(refusal_of(grouped({.outputs = {"y", "k", "v", "qk"}})), "the scores as an output"));
  CHECK(has(refusal_of(grouped({.fresh = 3, .earlier = 9, .total = 7})),
            "several new keys of several sequences behind a past"));
  CHECK(has(refusal_of(grouped({.fresh = 1, .earlier = 4, .total = 7})),
            "a total_sequence_length that does not fit"));
  CHECK(has(refusal_of(grouped({.lengths = {4}})), "seqlens_k of another shape or type"));
  ModelBuilder half = grouped({.fresh = 1, .earlier = 9, .total = 7});
  node_of(half).set_input(4, "");
  CHECK(has(refusal_of(half), "a past of keys or values alone"));
  CHECK(has(refusal_of(grouped({.more = {kNone, kNone, kNone, {{2, 4, 5, 6}}}})),
            "an attention_bias of another shape"));
  CHECK(has(refusal_of(grouped({.more = {kNone, kNone, kNone, kNone, {{3}}}})),
            "a head_sink of another shape"));
  ModelBuilder apart = grouped({});
  node_of(apart).set_input(2, "");
  CHECK(has(refusal_of(apart), "keys or values alone"));
}

}  // namespace
}  // namespace prunerc::onnx
