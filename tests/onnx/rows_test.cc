// Rows on nodes that nobody would write: text that compiles, or an error.
#include "ir/lang/lang.h"
#include "ir/onnx/import.h"
#include "ir/onnx/row.h"
#include "ir/support/rng.h"
#include "tests/onnx/imported.h"
#include "tests/onnx/model_builder.h"

#include <catch2/catch.hpp>

#include <limits>
#include <utility>

namespace prunerc::onnx {
namespace {

constexpr int64_t kLow = std::numeric_limits<int64_t>::min(),
                  kHigh = std::numeric_limits<int64_t>::max();

std::string bytes_of(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

TEST_CASE("an image made twice as large by copies halves its subscripts") {
  ModelBuilder model(11);
  model.input("x", {1, 3, 4, 5}).output("y").floats("scales", {4}, {1, 1, 2, 2});
  model.node("Resize", {"x", "", "scales"}, {"y"});
  CHECK(text_of(model).find("X[i0,i1,i2/2,i3/2]") != std::string::npos);
}

TEST_CASE("all steps of a recurrent network are one operator") {
  ModelBuilder model(14);
  model.input("x", {7, 2, 3}).output("y");
  model.floats("w", {1, 8, 3}, std::vector<float>(24, 0.5F));
  model.floats("r", {1, 8, 2}, std::vector<float>(16, 0.5F));
  model.node("LSTM", {"x", "w", "r"}, {"", "y"});
  CHECK(count_of(text_of(model), "op lstm_cell") == 1);
}

TEST_CASE("nearest of set 10 goes up along an axis that becomes smaller, else down") {
  // ONNX's own case of that set: 1 2 3 4 gives 1 3.
  ModelBuilder smaller(10);
  smaller.input("x", {1, 1, 2, 4}).output("y").floats("scales", {4}, {1, 1, 0.6F, 0.6F});
  smaller.node("Resize", {"x", "scales"}, {"y"});
  CHECK(has(text_of(smaller), "X[i0,i1,i2*2,i3*2]"));
  ModelBuilder both(10);
  both.input("x", {1, 1, 2, 4}).output("y").floats("scales", {4}, {1, 1, 2, 0.6F});
  both.node("Resize", {"x", "scales"}, {"y"});
  CHECK(has(text_of(both), "X[i0,i1,i2/2,i3*2]"));
}

ModelBuilder batch_norm(int64_t opset, int type, std::size_t num_outputs) {
  ModelBuilder model(opset);
  model.input("x", {2, 3, 4}, type).output("y");
  for (const char* name : {"g", "b", "m", "v"}) model.input(name, {3}, type);
  std::vector<std::string> outputs = {"y", "mean", "var", "saved_mean", "saved_var"};
  outputs.resize(num_outputs);
  model.node("BatchNormalization", {"x", "g", "b", "m", "v"}, outputs);
  return model;
}

TEST_CASE("a batch normalisation that is asked for what training gives is refused") {
  for (const int64_t opset : {7, 9, 13}) {
    CHECK(has(text_of(batch_norm(opset, 1, 1)), "scale_channels"));
    CHECK(has(refusal_of(batch_norm(opset, 1, 5)), "training"));
    ModelBuilder last = batch_norm(opset, 1, 5);
    for (int i = 1; i < 4; ++i) last.graph().mutable_node(0)->set_output(i, "");
    CHECK(has(refusal_of(last), "training"));
  }
  CHECK(has(refusal_of(batch_norm(6, 1, 5)), "training"));
  ModelBuilder tested = batch_norm(6, 1, 5);
  add_int(*tested.graph().mutable_node(0), "is_test", 1);
  CHECK(has(text_of(tested), "scale_channels"));
}

TEST_CASE("a batch normalisation of 16 bits is rounded once") {
  for (const int type : {10, 16}) {
    const std::string name = type == 10 ? "f16" : "bf16";
    const std::string text = text_of(batch_norm(15, type, 1));
    INFO(text);
    CHECK(has(text, "v: " + name + "[3]) -> (Y: f32[3])"));
    CHECK(has(text, "Y[i0,i1,i2] = " + name + "(f32(X[i0,i1,i2]) * s[i1] + t[i1]);"));
  }
}

TEST_CASE("a word that an attribute has not is refused, not taken for another") {
  const auto refuses = [](const std::string& op, const std::string& attribute,
                          const std::vector<int64_t>& shape,
                          const std::vector<std::vector<int64_t>>& more = {}) {
    ModelBuilder model;
    model.input("x", shape).output("y");
    std::vector<std::string> inputs = {"x"};
    for (const std::vector<int64_t>& other : more) {
      inputs.push_back("w" + std::to_string(inputs.size()));
      model.input(inputs.back(), other);
    }
    if (op == "Pad") {
      model.ints("pads", {0, 1, 0, 1});
      inputs.emplace_back("pads");
    }
    ::onnx::NodeProto& node = model.node(op, inputs, {"y"});
    if (op == "MaxPool") add_ints(node, "kernel_shape", {2, 2});
    if (op == "DepthToSpace") add_int(node, "blocksize", 2);
    add_text(node, attribute, "same");
    INFO(op);
    CHECK(has(refusal_of(model), "'same' as its " + attribute));
  };
  refuses("Conv", "auto_pad", {1, 3, 8, 8}, {{4, 3, 3, 3}});
  refuses("ConvTranspose", "auto_pad", {1, 3, 8, 8}, {{3, 4, 3, 3}});
  refuses("MaxPool", "auto_pad", {1, 3, 8, 8});
  refuses("Pad", "mode", {2, 2});
  refuses("DepthToSpace", "mode", {1, 4, 2, 2});
  refuses("Gelu", "approximate", {2, 2});
  refuses("RNN", "direction", {2, 1, 3}, {{1, 4, 3}, {1, 4, 4}});
  refuses("RoiAlign", "coordinate_transformation_mode", {1, 3, 8, 8}, {{5, 4}, {5}});
}

TEST_CASE("until set 6 logic, too, says where its second operand stands") {
  for (const auto& [op, sign] :
       {std::pair("And", "&&"), std::pair("Or", "||"), std::pair("Xor", "!=")}) {
    ModelBuilder model(6);
    model.input("a", {2, 3, 4}, 9).input("b", {3}, 9).output("y", {}, 9);
    ::onnx::NodeProto& node = model.node(op, {"a", "b"}, {"y"});
    add_int(node, "broadcast", 1);
    add_int(node, "axis", 1);
    CHECK(has(text_of(model), std::string("A[i0,i1,i2] ") + sign + " B[i1,0]"));
    node.mutable_attribute(1)->set_i(2);
    CHECK(has(refusal_of(model), "shapes that do not fit together"));
    node.mutable_attribute(1)->set_i(3);
    CHECK(has(refusal_of(model), "an axis that is none"));
  }
}

TEST_CASE("more operands than a call takes are joined in groups") {
  constexpr int kOperands = 40;
  for (const char* op : {"Concat", "Sum", "Mean", "Max", "Min"}) {
    ModelBuilder model;
    std::vector<std::string> inputs;
    for (int i = 0; i < kOperands; ++i) {
      inputs.push_back("x" + std::to_string(i));
      model.input(inputs.back(), {1, 2});
    }
    model.output("y");
    ::onnx::NodeProto& node = model.node(op, inputs, {"y"});
    if (op == std::string_view("Concat")) add_int(node, "axis", 0);
    const std::string text = text_of(model);
    INFO(text);
    // 16, 16 and 8, and these three.
    CHECK(count_of(text, "\n  let ") == 3);
    CHECK(has(text, " / 40;") == (op == std::string_view("Mean")));
  }
}

TEST_CASE("groups of parts keep their order") {
  constexpr int kParts = 40;
  ModelBuilder model;
  model.input("x", {kParts}, 7).output("y");
  std::vector<std::string> inputs;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < kParts; ++i) {
    inputs.push_back("p" + std::to_string(i));
    model.ints(inputs.back(), {i * i});
    numbers.push_back(i * i);
  }
  add_int(model.node("Concat", inputs, {"whole"}), "axis", 0);
  model.node("Add", {"x", "whole"}, {"y"});
  const Result<Model> parsed = parse_model(model.bytes(), "test.onnx");
  REQUIRE(parsed.ok());
  const Result<ImportedNet> net = import_model(*parsed);
  REQUIRE(net.ok());
  const net::Weight* const whole = net->weights.find("whole");
  REQUIRE(whole != nullptr);
  CHECK(whole->bytes == bytes_of(numbers));
}

TEST_CASE("whole numbers of 64 bits stay as they are") {
  const auto fill = [](int64_t number, int64_t count) {
    ModelBuilder model;
    model.input("x", {count}, 7).output("y").ints("shape", {count});
    ::onnx::AttributeProto& value =
        *model.node("ConstantOfShape", {"shape"}, {"filled"}).add_attribute();
    value.set_name("value");
    value.set_type(::onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(7);
    value.mutable_t()->add_dims(1);
    value.mutable_t()->add_int64_data(number);
    model.node("Add", {"x", "filled"}, {"y"});
    return model;
  };
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  // So many are not computed while importing.
  constexpr int64_t kMany = 200'000;
  CHECK(has(text_of(fill(kOdd, kMany)), "Y[i0] = 9007199254740993;"));
  CHECK(has(text_of(fill(kHigh, kMany)), "Y[i0] = 9223372036854775807;"));
  CHECK(has(text_of(fill(kLow, kMany)), "Y[i0] = (-9223372036854775807 - 1);"));
  for (const int64_t number : {kOdd, kHigh, kLow}) {
    const Result<Model> parsed = parse_model(fill(number, 3).bytes(), "test.onnx");
    REQUIRE(parsed.ok());
    const Result<ImportedNet> net = import_model(*parsed);
    REQUIRE(net.ok());
    const net::Weight* const filled = net->weights.find("filled");
    REQUIRE(filled != nullptr);
    CHECK(filled->bytes == bytes_of({number, number, number}));
  }
}

TEST_CASE("ranges of whole numbers are exact, and end") {
  const auto range = [](int64_t start, int64_t limit, int64_t step) {
    ModelBuilder model;
    model.input("x", {}, 7).output("y");
    for (const auto& [name, value] :
         {std::pair("start", start), std::pair("limit", limit), std::pair("step", step)})
      model.ints(name, {value});
    model.node("Range", {"start", "limit", "step"}, {"numbers"});
    model.node("Add", {"x", "numbers"}, {"y"});
    return model;
  };
  const auto numbers = [&](int64_t start, int64_t limit, int64_t step) {
    const Result<Model> parsed = parse_model(range(start, limit, step).bytes(), "test.onnx");
    REQUIRE(parsed.ok());
    const Result<ImportedNet> net = import_model(*parsed);
    REQUIRE(net.ok());
    const net::Weight* const found = net->weights.find("numbers");
    REQUIRE(found != nullptr);
    return std::string(found->bytes);
  };
  CHECK(numbers(1, 10, 4) == bytes_of({1, 5, 9}));
  CHECK(numbers(3, -3, -3) == bytes_of({3, 0}));
  CHECK(numbers(kHigh - 2, kHigh, 1) == bytes_of({kHigh - 2, kHigh - 1}));
  CHECK(numbers(kLow, kHigh, kHigh) == bytes_of({kLow, -1, kHigh - 1}));
  CHECK(has(refusal_of(range(0, 999'999'999, 1)), "so many elements"));
  CHECK(has(refusal_of(range(kHigh, kLow, -1)), "so many elements"));
  CHECK(has(refusal_of(range(0, 1, 0)), "steps of 0"));
}

TEST_CASE("whole numbers are divided towards zero, the least one too") {
  const auto of = [](const char* op, const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                     bool is_fmod = false) {
    ModelBuilder model;
    model.output("y", {}, 7).ints("a", a).ints("b", b);
    ::onnx::NodeProto& node = model.node(op, {"a", "b"}, {"y"});
    if (is_fmod) add_int(node, "fmod", 1);
    return computed(model, "y");
  };
  const std::vector<int64_t> a = {7, -7, 7, -7, 6, -6, kLow, kLow, kHigh};
  const std::vector<int64_t> b = {2, 2, -2, -2, 3, -3, 3, -5, -1};
  std::vector<int64_t> quotients, rests, floored;
  for (std::size_t i = 0; i < a.size(); ++i) {
    quotients.push_back(a[i] / b[i]);
    rests.push_back(a[i] % b[i]);
    const bool turns = rests[i] != 0 && (rests[i] < 0) != (b[i] < 0);
    floored.push_back(turns ? rests[i] + b[i] : rests[i]);
  }
  CHECK(of("Div", a, b) == bytes_of(quotients));
  CHECK(of("Mod", a, b, true) == bytes_of(rests));
  CHECK(of("Mod", a, b) == bytes_of(floored));
}

TEST_CASE("squares and cubes of whole numbers are exact; factors of them are whole") {
  ModelBuilder power;
  power.output("y", {}, 7).ints("a", {3037000499, -5}).ints("b", {2});
  power.node("Pow", {"a", "b"}, {"y"});
  CHECK(computed(power, "y") == bytes_of({3037000499 * 3037000499, 25}));
  ModelBuilder product;
  product.input("a", {2, 3}, 6).input("b", {3, 2}, 6).output("y", {}, 6);
  ::onnx::AttributeProto& alpha = *product.node("Gemm", {"a", "b"}, {"y"}).add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(::onnx::AttributeProto::FLOAT);
  alpha.set_f(2);
  CHECK(has(text_of(product), "2 * acc[i,j]"));
  product.graph().mutable_node(0)->mutable_attribute(0)->set_f(0.5F);
  CHECK(has(refusal_of(product), "factors of whole numbers that are not whole"));
}

TEST_CASE("a zero of another sign is another number") {
  ModelBuilder model;
  model.input("x", {2}).output("y").floats("zeros", {2}, {0.0F, -0.0F});
  model.node("Div", {"x", "zeros"}, {"y"});
  CHECK(has(text_of(model), "A[i0] / B[i0]"));
}

TEST_CASE("positions of a padded pool lie in the image, also where all is as small as can be") {
  for (const auto& [type, least] : {std::pair(2, 0), std::pair(3, -128)}) {
    ModelBuilder model;
    model.output("places", {}, 7);
    ::onnx::TensorProto& x = *model.graph().add_initializer();
    x.set_name("x");
    x.set_data_type(type);
    for (const int64_t extent : {1, 1, 2, 2}) x.add_dims(extent);
    for (int i = 0; i < 4; ++i) x.add_int32_data(least);
    ::onnx::NodeProto& node = model.node("MaxPool", {"x"}, {"v", "places"});
    add_ints(node, "kernel_shape", {2, 2});
    add_ints(node, "pads", {1, 1, 1, 1});
    CHECK(computed(model, "places") == bytes_of({0, 0, 1, 0, 0, 1, 2, 2, 3}));
  }
}

TEST_CASE("parts that leave some out, and axes that are cut twice, are refused") {
  ModelBuilder parts;
  parts.input("x", {3}).output("a").output("b").ints("sizes", {1, 1});
  parts.node("Split", {"x", "sizes"}, {"a", "b"});
  CHECK(has(refusal_of(parts), "parts that do not fit"));
  ModelBuilder cut;
  cut.input("x", {5}).output("y").ints("starts", {1, 1}).ints("ends", {4, 4}).ints("axes", {0, -1});
  cut.node("Slice", {"x", "starts", "ends", "axes"}, {"y"});
  CHECK(has(refusal_of(cut), "an axis that is there twice"));
}

TEST_CASE("ids far out of range read the ends") {
  ModelBuilder model;
  model.input("x", {4}).output("y").ints("ids", {kHigh, kLow});
  model.node("Gather", {"x", "ids"}, {"y"});
  CHECK(has(text_of(model), "clamp(if I[i0] < 0"));
}

TEST_CASE("what takes long to compute is left to the network") {
  for (const int64_t n : {20, 150}) {
    ModelBuilder model;
    const auto count = static_cast<std::size_t>(n * n);
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 7));
    model.input("x", {n, n}).output("y").floats("a", {n, n}, values).floats("b", {n, n}, values);
    model.node("MatMul", {"a", "b"}, {"product"});
    model.node("Add", {"x", "product"}, {"y"});
    CHECK(has(text_of(model), "sum[") == (n == 150));
  }
}

/// Numbers as attackers and slips of the pen give them.
int64_t any_int(Rng& rng) {
  constexpr int64_t kNumbers[] = {kLow, kHigh, -(int64_t{1} << 33), int64_t{1} << 33, kHigh - 1,
                                  -100, 1000,  int64_t{1} << 62,    kLow + 1,         100000};
  if (rng.below(4) == 0) return kNumbers[rng.below(std::size(kNumbers))];
  return static_cast<int64_t>(rng.below(8)) - 3;
}

float any_float(Rng& rng) {
  constexpr float kNumbers[] = {0,      -1,     1e30F,
                                -1e30F, 1e-30F, std::numeric_limits<float>::infinity(),
                                -0.0F,  2.5F,   std::numeric_limits<float>::quiet_NaN()};
  if (rng.below(3) == 0) return kNumbers[rng.below(std::size(kNumbers))];
  return static_cast<float>(rng.below(5)) * 0.5F;
}

std::vector<int64_t> any_shape(Rng& rng) {
  constexpr int64_t kExtents[] = {1, 2, 2, 3, 4, 4, 6, 0};
  std::vector<int64_t> shape(rng.below(5));
  const bool is_square = rng.below(2) == 0;
  for (int64_t& extent : shape) extent = is_square ? 4 : kExtents[rng.below(std::size(kExtents))];
  return shape;
}

void add_attributes(Rng& rng, ::onnx::NodeProto& node) {
  constexpr std::string_view kInts[] = {"axis",
                                        "batch_axis",
                                        "time_axis",
                                        "keepdims",
                                        "blocksize",
                                        "group",
                                        "ceil_mode",
                                        "k",
                                        "largest",
                                        "batch_dims",
                                        "num_heads",
                                        "q_num_heads",
                                        "kv_num_heads",
                                        "hidden_size",
                                        "layout",
                                        "sampling_ratio",
                                        "output_height",
                                        "to",
                                        "num_outputs",
                                        "allowzero",
                                        "upper",
                                        "antialias",
                                        "exclude_outside",
                                        "is_causal",
                                        "rotary_embedding_dim",
                                        "interleaved",
                                        "qk_matmul_output_mode",
                                        "block_size",
                                        "num_groups",
                                        "linear_before_reset",
                                        "exclusive",
                                        "reverse",
                                        "align_corners",
                                        "storage_order",
                                        "transA",
                                        "transB",
                                        "transBatchA",
                                        "transBatchB",
                                        "bits",
                                        "N",
                                        "K",
                                        "unidirectional",
                                        "do_rotary",
                                        "rotary_interleaved",
                                        "local_window_size",
                                        "smooth_softmax",
                                        "causal",
                                        "channels_last",
                                        "count_include_pad",
                                        "is_packed_batching",
                                        "weight_prepacked",
                                        "past_present_share_buffer",
                                        "kv_cache_bit_width",
                                        "sliding_window_cache",
                                        "qk_output",
                                        "new_axis",
                                        "gather_axis",
                                        "quantize_axis"};
  constexpr std::string_view kLists[] = {
      "axes",   "perm", "pads",  "strides",        "dilations",    "kernel_shape",    "split",
      "starts", "ends", "shape", "output_padding", "output_shape", "qkv_hidden_sizes"};
  constexpr std::string_view kFloats[] = {"alpha",
                                          "beta",
                                          "epsilon",
                                          "scale",
                                          "softcap",
                                          "clip",
                                          "cubic_coeff_a",
                                          "extrapolation_value",
                                          "spatial_scale",
                                          "mask_filter_value",
                                          "activation_alpha",
                                          "activation_beta"};
  constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
      {"mode", "linear"},
      {"mode", "cubic"},
      {"mode", "reflect"},
      {"mode", "wrap"},
      {"mode", "edge"},
      {"mode", "max"},
      {"mode", "CRD"},
      {"mode", "nonsense"},
      {"direction", "bidirectional"},
      {"direction", "reverse"},
      {"auto_pad", "SAME_UPPER"},
      {"auto_pad", "VALID"},
      {"reduction", "add"},
      {"reduction", "max"},
      {"equation", "ij,jk->ik"},
      {"coordinate_transformation_mode", "tf_crop_and_resize"},
      {"coordinate_transformation_mode", "align_corners"},
      {"padding_mode", "reflection"},
      {"keep_aspect_ratio_policy", "not_larger"},
      {"nearest_mode", "ceil"},
      {"activation", "Relu"},
      {"activation", "Clip"}};
  const std::size_t n = rng.below(5);
  for (std::size_t i = 0; i < n; ++i) {
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    switch (rng.below(4)) {
      case 0:
        attribute.set_name(std::string(kInts[rng.below(std::size(kInts))]));
        attribute.set_type(::onnx::AttributeProto::INT);
        attribute.set_i(any_int(rng));
        break;
      case 1: {
        attribute.set_name(std::string(kLists[rng.below(std::size(kLists))]));
        attribute.set_type(::onnx::AttributeProto::INTS);
        const std::size_t length = rng.below(5);
        for (std::size_t e = 0; e < length; ++e) attribute.add_ints(any_int(rng));
        break;
      }
      case 2:
        attribute.set_name(std::string(kFloats[rng.below(std::size(kFloats))]));
        attribute.set_type(::onnx::AttributeProto::FLOAT);
        attribute.set_f(any_float(rng));
        break;
      default: {
        const auto& [name, value] = kTexts[rng.below(std::size(kTexts))];
        attribute.set_name(std::string(name));
        attribute.set_type(::onnx::AttributeProto::STRING);
        attribute.set_s(std::string(value));
      }
    }
  }
}

std::string any_operand(Rng& rng, ModelBuilder& model, std::size_t i) {
  std::string name = "x" + std::to_string(i);
  const auto shape = any_shape(rng);
  constexpr int kTypes[] = {1, 1, 1, 10, 11, 6, 7, 9, 2, 3};
  switch (rng.below(5)) {
    case 0:
      if (i > 0) return "";
      [[fallthrough]];
    case 1:
    case 2: model.input(name, shape, kTypes[rng.below(std::size(kTypes))]); return name;
    case 3: {
      std::vector<int64_t> values(rng.below(5));
      for (int64_t& value : values) value = any_int(rng);
      model.ints(name, values);
      return name;
    }
    default: {
      std::vector<float> values(rng.below(5));
      for (float& value : values) value = any_float(rng);
      model.floats(name, {static_cast<int64_t>(values.size())}, values);
      return name;
    }
  }
}

TEST_CASE("any node gives text that compiles or an error") {
  constexpr int64_t kOpsets[] = {1, 7, 9, 10, 11, 13, 16, 18, 21, 23};
  constexpr int kEach = 40;
  Rng rng(20);
  for (const std::string_view op : row_names()) {
    for (int i = 0; i < kEach; ++i) {
      ModelBuilder model(kOpsets[rng.below(std::size(kOpsets))]);
      std::vector<std::string> inputs, outputs;
      const std::size_t dot = op.rfind('.');
      const bool has_domain = dot != std::string_view::npos;
      const std::size_t num_inputs = 1 + rng.below(has_domain ? 9 : 4),
                        num_outputs = 1 + rng.below(3);
      for (std::size_t x = 0; x < num_inputs; ++x) inputs.push_back(any_operand(rng, model, x));
      for (std::size_t y = 0; y < num_outputs; ++y) outputs.push_back("y" + std::to_string(y));
      model.output("y0");
      ::onnx::NodeProto& node =
          model.node(std::string(has_domain ? op.substr(dot + 1) : op), inputs, outputs);
      if (has_domain) node.set_domain(std::string(op.substr(0, dot)));
      add_attributes(rng, node);
      const Result<Model> parsed = parse_model(model.bytes(), "test.onnx");
      if (!parsed.ok()) continue;
      const Result<ImportedNet> net = import_model(*parsed);
      if (!net.ok()) continue;
      lang::CompileInput input;
      input.text = net->text;
      const lang::NetResult compiled = lang::compile_net(input);
      INFO(op << " " << i << "\n" << compiled.rendered << net->text);
      CHECK(compiled.net.has_value());
    }
  }
}

}  // namespace
}  // namespace prunerc::onnx
