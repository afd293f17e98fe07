// Products between DequantizeLinear and QuantizeLinear, which are imported as products of whole numbers.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

constexpr int kU8 = 2, kI8 = 3, kI32 = 6;

struct Case {
  std::string op = "Conv";
  std::vector<int64_t> x_shape = {1, 1, 2, 2}, w_shape = {2, 1, 1, 1};
  std::vector<int> x = {0, 255, 7, 100}, w = {3, -4};
  std::vector<float> w_scale = {0.25F, 0.5F};
  std::vector<int> w_zero = {0, 0};
  int64_t w_axis = 0;
  int x_zero = 10;
  int type = kU8;  // of x and y
  std::vector<int> bias;
  std::vector<float> bias_scale;
  bool has_relu = false;
  int y_zero = 5;
  float x_scale = 0.5F, y_scale = 4;
  bool makes_bytes = true;
  bool is_seen = false;   // the product's floats are an output, too
  bool is_apart = false;  // from the left quantiser
  bool scale_is_input = false;
  bool transposes = false;
  float alpha = 1;
  int64_t group = 1, pad = 0;
};

// y = op(dequantised x, dequantised w, dequantised bias), quantised.
ModelBuilder model_of(const Case& c) {
  ModelBuilder model;
  const auto dequantise = [&](const std::string& name, const std::vector<std::string>& inputs,
                              int64_t axis) {
    ::onnx::NodeProto& node = model.node("DequantizeLinear", inputs, {name});
    if (axis >= 0) add_int(node, "axis", axis);
  };
  model.output("y", {}, c.makes_bytes ? c.type : 1);
  if (c.scale_is_input) model.input("sx", {});
  model.floats("sx", {}, {c.x_scale}).floats("sy", {}, {c.y_scale});
  model.numbers("zx", c.type, {}, {c.x_zero});
  model.numbers("zy", c.type, {}, {c.y_zero});
  model.numbers("x", c.type, c.x_shape, c.x);
  model.numbers("w", kI8, c.w_shape, c.w);
  const auto places = static_cast<int64_t>(c.w_scale.size());
  const bool is_one = places == 1;
  const std::vector<int64_t> by_place = is_one ? std::vector<int64_t>{} : std::vector{places};
  model.floats("sw", by_place, c.w_scale);
  model.numbers("zw", kI8, by_place, c.w_zero);
  dequantise("xf", {"x", "sx", "zx"}, -1);
  dequantise("wf", {"w", "sw", "zw"}, is_one ? -1 : c.w_axis);
  if (c.is_apart) model.node("Identity", {"xf"}, {"same"});
  std::vector<std::string> inputs = {c.is_apart ? "same" : "xf", "wf"};
  if (!c.bias.empty()) {
    const auto count = static_cast<int64_t>(c.bias.size());
    model.numbers("b", kI32, {count}, c.bias);
    model.floats("sb", {static_cast<int64_t>(c.bias_scale.size())}, c.bias_scale);
    model.numbers("zb", kI32, {static_cast<int64_t>(c.bias_scale.size())},
                  std::vector<int>(c.bias_scale.size(), 0));
    dequantise("bf", {"b", "sb", "zb"}, 0);
    inputs.emplace_back("bf");
  }
  std::string last = c.makes_bytes ? "f" : "y";
  ::onnx::NodeProto& product = model.node(c.op, inputs, {last});
  if (c.transposes) add_int(product, "transB", 1);
  if (c.alpha != 1) add_float(product, "alpha", c.alpha);
  if (c.group != 1) add_int(product, "group", c.group);
  if (c.pad != 0) add_ints(product, "pads", std::vector<int64_t>(4, c.pad));
  if (c.is_seen) model.output("f");
  if (c.has_relu) model.node("Relu", {last}, {"r"});
  if (c.makes_bytes) model.node("QuantizeLinear", {c.has_relu ? "r" : "f", "sy", "zy"}, {"y"});
  return model;
}

// The text where x is not known, so that calls remain.
std::string text_of_case(const Case& c) {
  ModelBuilder model = model_of(c);
  auto& constants = *model.graph().mutable_initializer();
  for (int i = 0; i < constants.size(); ++i) {
    if (constants.Get(i).name() != "x") continue;
    constants.DeleteSubrange(i, 1);
    break;
  }
  model.input("x", c.x_shape, c.type);
  return text_of(model);
}

// Joined, and with the same bytes as in floats.
void check_joined(const Case& c, const std::string& op) {
  INFO(c.op);
  CHECK(has(text_of_case(c), "op " + op));
  CHECK_FALSE(has(text_of_case(c), "op dequantize"));
  Case in_floats = c;
  in_floats.is_apart = true;
  CHECK_FALSE(has(text_of_case(in_floats), "op " + op));
  CHECK(computed(model_of(c), "y") == computed(model_of(in_floats), "y"));
}

bool is_joined(const Case& c) { return is_joined(model_of(c)); }

Case with_bias() {
  Case c;
  c.bias = {100, -300};
  c.bias_scale = {0.125F, 0.25F};
  return c;
}

Case gemm() {
  Case c = with_bias();
  c.op = "Gemm";
  c.x_shape = {2, 2};
  c.w_shape = {2, 2};
  c.w = {3, -4, 100, 27};
  c.w_axis = 1;
  c.y_scale = 32;
  return c;
}

TEST_CASE("convolutions between quantisers are convolutions of whole numbers") {
  check_joined({}, "qlinear_conv");
  check_joined(with_bias(), "qlinear_conv");
  Case c = with_bias();
  c.w_scale = {0.25F};
  c.w_zero = {3};
  c.bias_scale = {0.125F};
  check_joined(c, "qlinear_conv");
  // Two groups, an image with a border, zero points of every kind.
  c = {};
  c.x_shape = {1, 2, 2, 3};
  c.x = {1, 200, 33, 44, 5, 96, 17, 8, 99, 10, 111, 12};
  c.type = kI8;
  for (int& number : c.x) number -= 100;
  c.x_zero = -7;
  c.w_shape = {2, 1, 2, 2};
  c.w = {3, -4, 50, 6, -7, 8, 9, -100};
  c.w_zero = {-2, 5};
  c.group = 2;
  c.pad = 1;
  c.y_scale = 2;
  check_joined(c, "qlinear_conv");
}

TEST_CASE("a Relu that saturation does goes, another stays") {
  Case c = with_bias();
  c.has_relu = true;
  CHECK_FALSE(is_joined(c));
  c.y_zero = 0;
  check_joined(c, "qlinear_conv");
  c.y_scale = -4;
  CHECK_FALSE(is_joined(c));
  c.y_scale = 4;
  c.type = kI8;
  c.x = {0, 127, -7, 100};
  CHECK_FALSE(is_joined(c));
  c.y_zero = -128;
  check_joined(c, "qlinear_conv");
}

TEST_CASE("products of matrices between quantisers are products of whole numbers") {
  Case c = gemm();
  check_joined(c, "qgemm");
  c.transposes = true;
  CHECK_FALSE(is_joined(c));
  c.w_axis = 0;
  check_joined(c, "qgemm");
  c = gemm();
  c.op = "MatMul";
  c.bias = {};
  check_joined(c, "qlinear_matmul");
}

TEST_CASE("a product whose floats go on is one of whole numbers with its scale") {
  Case c = gemm();
  c.makes_bytes = false;
  CHECK(has(text_of_case(c), "op qgemm"));
  CHECK(numbers_of<float>(model_of(c), "y") ==
        std::vector<float>{3071.25F, 1588.75F, 1136.375F, 535.5F});
  c.op = "MatMul";
  c.bias = {};
  CHECK(has(text_of_case(c), "op matmul_integer_to_float"));
  CHECK(numbers_of<float>(model_of(c), "y") ==
        std::vector<float>{3058.75F, 1663.75F, 1123.875F, 610.5F});
}

TEST_CASE("what is not the same in whole numbers stays in floats") {
  Case c = with_bias();
  CHECK(is_joined(c));
  c.bias_scale[1] = 0.25F * (1 + 0x1p-20F);
  CHECK_FALSE(is_joined(c));
  c = with_bias();
  c.bias_scale = {0.125F, 0.25F, 0.25F};
  CHECK_FALSE(is_joined(c));
  c = with_bias();
  c.bias = {};
  c.bias_scale = {};
  c.w_scale = {1e-38F, 1};
  CHECK_FALSE(is_joined(c));
  c = {};
  c.x_scale = 8;
  c.y_scale = 1e-38F;
  CHECK_FALSE(is_joined(c));
  c = {};
  c.is_seen = true;
  CHECK_FALSE(is_joined(c));
  c = {};
  c.scale_is_input = true;
  CHECK_FALSE(is_joined(c));
  c = {};
  c.makes_bytes = false;
  CHECK_FALSE(is_joined(c));
  // Scales for rows of the matrix.
  c = gemm();
  c.w_axis = 0;
  CHECK_FALSE(is_joined(c));
  c = gemm();
  c.alpha = 2;
  CHECK_FALSE(is_joined(c));
  // Each of these is what a caller may give.
  for (const char* name : {"w", "sw", "zw", "sx", "zx", "b", "sb", "sy", "zy"}) {
    ModelBuilder model = model_of(with_bias());
    CHECK(is_joined(model));
    model.input(name, {});
    CHECK_FALSE(is_joined(model));
  }
}

TEST_CASE("a product between quantisers that stays in floats is told with its reason") {
  Case c = with_bias();
  CHECK(in_floats_of(model_of(c)).empty());
  const auto reason = [](const Case& of) { return in_floats_of(model_of(of)); };
  const std::string head = "Conv (1 node: 'node_f'): ";
  c.bias_scale[1] = 1;
  CHECK(reason(c) == std::vector<std::string>{
                         head + "a bias that is no constant of 32 bits with the sum's scale"});
  c = {};
  c.is_seen = true;
  CHECK(reason(c) ==
        std::vector<std::string>{
            head + "a result that goes on in floats, or is quantised with several scales"});
  c = {};
  c.w_scale = {1e-38F, 1};
  CHECK(reason(c) == std::vector<std::string>{head + "scales whose products f32 does not hold"});
  c = gemm();
  c.alpha = 2;
  CHECK(reason(c) == std::vector<std::string>{"Gemm (1 node: 'node_f'): alpha or beta"});
  // None is between quantisers.
  c.is_apart = true;
  CHECK(reason(c).empty());
}

TEST_CASE("a model that calls something else so is left as it is written") {
  ModelBuilder model = model_of({});
  CHECK(is_joined(model));
  ::onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("QuantizeLinear");
  function.set_domain("com.microsoft");
  CHECK_FALSE(is_joined(model));
  for (const int node : {0, 1, 2, 3}) {
    model = model_of({});
    model.graph().mutable_node(node)->set_domain("another");
    CHECK_FALSE(is_joined(model));
  }
  for (const int node : {0, 1, 3}) {
    model = model_of({});
    add_int(*model.graph().mutable_node(node), node == 3 ? "output_dtype" : "block_size", 2);
    CHECK_FALSE(is_joined(model));
  }
  // Given twice, or read before it is given.
  model = model_of({});
  model.node("Identity", {"xf"}, {"f"});
  CHECK_FALSE(is_joined(model));
  model = model_of({});
  model.graph().mutable_node()->SwapElements(2, 3);
  CHECK_FALSE(is_joined(model));
}

TEST_CASE("a constant without a name is none") {
  ModelBuilder model = model_of({});
  for (::onnx::TensorProto& item : *model.graph().mutable_initializer()) {
    if (item.name() == "zx") item.set_name("");
  }
  model.graph().mutable_node(0)->set_input(2, "");
  CHECK_FALSE(is_joined(model));
}

TEST_CASE("what a branch reads stays") {
  ModelBuilder model = model_of({});
  ::onnx::NodeProto& choice = model.node("If", {"is"}, {"z"});
  for (const char* name : {"then_branch", "else_branch"}) {
    ::onnx::AttributeProto& branch = *choice.add_attribute();
    branch.set_name(name);
    branch.set_type(::onnx::AttributeProto::GRAPH);
    ::onnx::NodeProto& node = *branch.mutable_g()->add_node();
    node.set_op_type("Identity");
    node.add_input("sw");
    node.add_output("inner");
    branch.mutable_g()->add_output()->set_name("inner");
  }
  model.input("is", {}, 9);
  CHECK(is_joined(model));
  choice.mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "f");
  CHECK_FALSE(is_joined(model));
}

TEST_CASE("weights and biases of no elements are left alone") {
  Case c = gemm();
  c.w_shape = {2, 0};
  c.w = {};
  c.w_scale = {};
  c.w_zero = {};
  c.bias = {};
  CHECK_FALSE(is_joined(c));
}

TEST_CASE("sums that may leave 32 bits stay in floats") {
  Case c = gemm();
  c.op = "MatMul";
  c.bias = {};
  for (const int64_t k : {33025, 33026}) {
    c.x_shape = {1, k};
    c.x.assign(static_cast<size_t>(k), 1);
    c.w_shape = {k, 1};
    c.w.assign(static_cast<size_t>(k), 1);
    c.w_scale = {0.25F};
    c.w_zero = {0};
    CHECK(is_joined(c) == (k == 33025));
  }
  c = gemm();
  CHECK(is_joined(c));
  c.bias[1] = 2147483647 - 2 * 255 * 255;
  CHECK(is_joined(c));
  ++c.bias[1];
  CHECK_FALSE(is_joined(c));
}

}  // namespace
}  // namespace prunerc::onnx
