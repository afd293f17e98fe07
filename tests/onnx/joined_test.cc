// Operators between quantisers that are no products with weights: on 8 bits, with the values that they have in floats.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

constexpr int kU8 = 2, kI8 = 3, kI32 = 6;

struct Operand {
  std::vector<int64_t> shape;
  std::vector<int> values;
  float scale = 0.5F;
  int zero = 3;
};

struct Case {
  std::string op;
  std::vector<Operand> operands;
  float y_scale = 0.5F;
  int y_zero = 3;
  int type = kU8;
  std::vector<std::string> more;  // inputs behind the operands
  std::function<void(ModelBuilder&, ::onnx::NodeProto&)> finish;
  std::string after;  // a Relu or Clip
  bool makes_bytes = true;
  bool is_apart = false;  // from the left quantiser
  bool is_known = true;
};

// y = op(dequantised operands, more), quantised.
ModelBuilder model_of(const Case& c) {
  ModelBuilder model;
  std::vector<std::string> inputs;
  for (const Operand& operand : c.operands) {
    const std::string i = std::to_string(inputs.size());
    model.floats("s" + i, {}, {operand.scale}).numbers("z" + i, c.type, {}, {operand.zero});
    if (c.is_known) {
      model.numbers("x" + i, c.type, operand.shape, operand.values);
    } else {
      model.input("x" + i, operand.shape, c.type);
    }
    model.node("DequantizeLinear", {"x" + i, "s" + i, "z" + i}, {"f" + i});
    inputs.push_back("f" + i);
  }
  if (c.is_apart) {
    model.node("Identity", {"f0"}, {"same"});
    inputs[0] = "same";
  }
  inputs.insert(inputs.end(), c.more.begin(), c.more.end());
  const std::string result = c.makes_bytes ? "f" : "y";
  ::onnx::NodeProto& node = model.node(c.op, inputs, {result});
  if (c.finish) c.finish(model, node);
  model.floats("sy", {}, {c.y_scale}).numbers("zy", c.type, {}, {c.y_zero});
  model.output("y", {}, c.makes_bytes ? c.type : 1);
  if (!c.makes_bytes) return model;
  model.floats("low", {}, {0}).floats("high", {}, {63.75F});
  if (c.after == "Relu") model.node("Relu", {"f"}, {"g"});
  if (c.after == "Clip") model.node("Clip", {"f", "low", "high"}, {"g"});
  model.node("QuantizeLinear", {c.after.empty() ? "f" : "g", "sy", "zy"}, {"y"});
  return model;
}

std::string text_of_case(Case c) {
  c.is_known = false;
  return text_of(model_of(c));
}

// On 8 bits, by an operator that is written so, and with the bytes that floats give.
void check_joined(const Case& c, const std::string& what) {
  INFO(c.op);
  CHECK(has(text_of_case(c), what));
  CHECK_FALSE(has(text_of_case(c), "op dequantize"));
  Case in_floats = c;
  in_floats.is_apart = true;
  CHECK(has(text_of_case(in_floats), "op dequantize"));
  CHECK(computed(model_of(c), "y") == computed(model_of(in_floats), "y"));
}

void check_in_floats(const Case& c) {
  INFO(c.op);
  CHECK(has(text_of_case(c), "op dequantize"));
}

Case sum_of_two() {
  Case c;
  c.op = "Add";
  c.operands = {{{4}, {0, 255, 7, 100}}, {{4}, {9, 1, 250, 33}, 0.25F, 10}};
  c.y_scale = 2;
  c.y_zero = 5;
  return c;
}

TEST_CASE("sums and products of two tensors between quantisers are of 8 bits") {
  check_joined(sum_of_two(), "op qlinear_add");
  Case c = sum_of_two();
  c.type = kI8;
  c.operands[0].values = {0, 127, -7, 100};
  c.operands[1].values = {9, 1, -128, 33};
  check_joined(c, "op qlinear_add");
  c = sum_of_two();
  c.op = "Mul";
  c.operands = {{{2, 1}, {13, 250}, 0.5F, 10}, {{2, 3}, {1, 2, 3, 200, 9, 77}, 0.25F, 4}};
  c.y_scale = 8;
  c.y_zero = 100;
  check_joined(c, "op qlinear_mul");
}

TEST_CASE("a scale that f32 does not carry through stays in floats") {
  Case c = sum_of_two();
  c.y_scale = 0x1p-41F;
  check_in_floats(c);
  c.y_scale = -2;
  check_in_floats(c);
  c = sum_of_two();
  c.operands[1].scale = 0x1p41F;
  check_in_floats(c);
}

TEST_CASE("a sum whose operands are far above the result stays in floats") {
  Case c = sum_of_two();
  c.operands = {{{2}, {128, 100}, 1, 128}, {{2}, {128, 157}, 1, 128}};
  for (const float y_scale : {0x1p-8F, 0x1p-9F, 0x1p-20F}) {
    c.op = "Add";
    c.y_scale = y_scale;
    if (y_scale == 0x1p-8F) {
      check_joined(c, "op qlinear_add");
    } else {
      check_in_floats(c);
    }
    c.op = "Mul";
    check_joined(c, "op qlinear_mul");
  }
}

TEST_CASE("what saturation does as well goes, Clip as Relu") {
  Case c = sum_of_two();
  c.after = "Relu";
  check_in_floats(c);
  c.y_zero = 0;
  check_joined(c, "op qlinear_add");
  c.after = "Clip";
  check_in_floats(c);
  c.y_scale = 0.25F;
  check_joined(c, "op qlinear_add");
  c.y_scale = 0.2512F;
  check_in_floats(c);
  c.y_scale = 0.25F;
  c.y_zero = 1;
  check_in_floats(c);
}

TEST_CASE("averages of whole images and parts put together are of 8 bits") {
  Case c;
  c.op = "GlobalAveragePool";
  c.operands = {{{1, 2, 2, 2}, {1, 2, 3, 6, 200, 100, 50, 26}}};
  c.y_scale = 0.25F;
  c.y_zero = 7;
  check_joined(c, "op qlinear_global_average_pool");
  c = {};
  c.op = "Concat";
  c.operands = {{{2}, {0, 255}}, {{3}, {10, 2, 250}, 0.25F, 10}};
  c.finish = [](ModelBuilder&, ::onnx::NodeProto& node) { add_int(node, "axis", 0); };
  check_joined(c, "op requantize");
}

TEST_CASE("so many parts are not put together") {
  Case c;
  c.op = "Concat";
  c.operands = {{{1}, {7}}};
  c.finish = [](ModelBuilder&, ::onnx::NodeProto& node) { add_int(node, "axis", 0); };
  ModelBuilder model = model_of(c);
  ::onnx::NodeProto& parts = *model.graph().mutable_node(1);
  while (parts.input_size() < 1 << 16) parts.add_input("f0");
  CHECK(is_joined(model));
  parts.add_input("f0");
  CHECK_FALSE(is_joined(model));
}

TEST_CASE("what moves elements moves bytes if both sides have one scale") {
  Case c;
  c.op = "MaxPool";
  c.operands = {{{1, 1, 3, 3}, {1, 2, 3, 4, 255, 0, 7, 8, 9}}};
  c.finish = [](ModelBuilder&, ::onnx::NodeProto& node) {
    add_ints(node, "kernel_shape", {2, 2});
    add_ints(node, "pads", {1, 1, 0, 0});
  };
  check_joined(c, "op max_pool(X: u8[1,1,3,3])");
  c.y_scale = 0.25F;
  check_in_floats(c);
  c.y_scale = 0.5F;
  c.y_zero = 4;
  check_in_floats(c);
  c = {};
  c.op = "Transpose";
  c.operands = {{{2, 3}, {1, 2, 3, 4, 255, 0}}};
  check_joined(c, "op transpose(X: u8[2,3])");
  c.op = "Reshape";
  c.more = {"shape"};
  c.finish = [](ModelBuilder& model, ::onnx::NodeProto&) { model.ints("shape", {6}); };
  check_joined(c, "op reshape(X: u8[2,3])");
}

TEST_CASE("images are resized as bytes where elements are the nearest ones") {
  Case c;
  c.op = "Resize";
  c.operands = {{{1, 1, 2, 2}, {1, 200, 3, 4}}};
  c.more = {"", "scales"};
  std::string mode = "nearest";
  c.finish = [&](ModelBuilder& model, ::onnx::NodeProto& node) {
    model.floats("scales", {4}, {1, 1, 2, 2});
    add_text(node, "mode", mode);
  };
  check_joined(c, "op resize(X: u8[1,1,2,2])");
  mode = "linear";
  check_in_floats(c);
}

TEST_CASE("bytes of another type than their zero point are not moved") {
  Case c;
  c.op = "Transpose";
  c.operands = {{{2, 3}, {}}};
  c.is_known = false;
  ModelBuilder model = model_of(c);
  model.input("v", {2}).output("w");
  model.node("Relu", {"v"}, {"w"});
  CHECK(has(part_of(model).text, "op transpose"));
  model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(kI8);
  const ImportedNet net = part_of(model);
  CHECK_FALSE(has(net.text, "op transpose"));
  REQUIRE(net.left_out.size() == 1);
  CHECK(has(net.left_out[0], "DequantizeLinear (1 node"));
}

Case product_of_two(int64_t rows = 9) {
  Case c;
  c.op = "MatMul";
  c.operands = {{{2, rows, 3}, {}},
                {{2, 3, 2}, {9, 1, 250, 33, 8, 77, 100, 30, 4, 5, 255, 0}, 0.25F, 10}};
  for (int i = 0; i < 6 * rows; ++i) c.operands[0].values.push_back((i * 37 + 11) % 256);
  c.y_scale = 4;
  c.y_zero = 9;
  return c;
}

TEST_CASE("products of two tensors that change are of bytes as they are") {
  const std::string product = "sum:i32[k] A[b0,i,k] * B[b0,k,j]";
  check_joined(product_of_two(), product);
  for (const std::size_t which : {0, 1}) {
    Case c = product_of_two();
    c.operands[which].zero = 0;
    check_joined(c, product);
  }
  Case c = product_of_two();
  c.operands[0].shape = {3};
  c.operands[0].values = {0, 255, 7};
  check_joined(c, "op qlinear_matmul");
  c = product_of_two();
  c.makes_bytes = false;
  CHECK(has(text_of_case(c), "op matmul_integer_to_float"));
  Case in_floats = c;
  in_floats.is_apart = true;
  CHECK(numbers_of<float>(model_of(c)) == numbers_of<float>(model_of(in_floats)));
}

TEST_CASE("few rows of two tensors that change read the right one once") {
  Case c = product_of_two(8);
  check_joined(c, "sum:i32[k] (i32(A[b0,i,k]) - i32(");
  CHECK_FALSE(has(text_of_case(c), "op depth_sums"));
  c.operands[0].zero = 0;
  check_joined(c, "sum:i32[k] A[b0,i,k] * B[b0,k,j]");
}

TEST_CASE("why a product of two tensors that change stays in floats") {
  const auto reason = [](const std::string& op, int right_type) {
    Case c = product_of_two();
    c.op = op;
    c.operands[0].shape = {2, 3};
    c.operands[1].shape = {3, 2};
    c.is_known = false;
    ModelBuilder model = model_of(c);
    model.graph().mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(
        right_type);
    for (::onnx::TensorProto& item : *model.graph().mutable_initializer()) {
      if (item.name() == "z1") item.set_data_type(right_type);
    }
    return import_of(model, false).in_floats;
  };
  CHECK(reason("MatMul", kU8).empty());
  CHECK(reason("MatMul", kI32) ==
        std::vector<std::string>{"MatMul (1 node: 'node_f'): a right operand of other than 8 bits, "
                                 "or of several scales"});
  CHECK(reason("Gemm", kU8) ==
        std::vector<std::string>{"Gemm (1 node: 'node_f'): a right operand that is no constant"});
}

TEST_CASE("what does not work in floats either is left out, and nothing else is told of it") {
  Case c = sum_of_two();
  c.operands[1].shape = {3};
  c.is_known = false;
  const ImportedNet sum = part_of(model_of(c));
  REQUIRE(sum.left_out.size() == 1);
  CHECK(has(sum.left_out[0], "Add (1 node: 'node_f')"));
  CHECK(sum.in_floats.empty());
  c = product_of_two();
  c.op = "Gemm";
  c.operands[0].shape = {2, 3};
  c.operands[1].shape = {2, 3};
  c.is_known = false;
  const ImportedNet product = part_of(model_of(c));
  REQUIRE(product.left_out.size() == 1);
  CHECK(has(product.left_out[0], "Gemm (1 node: 'node_f')"));
  CHECK(product.in_floats.empty());
}

TEST_CASE("a refusal names the operators that the model has") {
  Case c = sum_of_two();
  c.is_known = false;
  ModelBuilder model = model_of(c);
  model.model().mutable_opset_import(0)->set_version(99);
  const std::string refusal = refusal_of(model);
  INFO(refusal);
  CHECK(has(refusal, "DequantizeLinear (2 nodes"));
  CHECK(has(refusal, "operator set 99: export the model"));
  CHECK_FALSE(has(refusal, "QLinearAdd"));
}

TEST_CASE("what cannot be of 8 bits stays in floats alone, and is told") {
  Case c = sum_of_two();
  c.operands = {{{}, {7}}, {{}, {9}}};
  c.is_known = false;
  ModelBuilder model = model_of(c);
  model.input("u", {4}, kU8);
  model.node("DequantizeLinear", {"u", "s0", "z0"}, {"uf"});
  model.node("Add", {"uf", "uf"}, {"sum"});
  model.node("QuantizeLinear", {"sum", "sy", "zy"}, {"v"});
  model.output("v", {}, kU8);
  const ImportedNet net = import_of(model, false);
  CHECK(count_of(net.text, "op qlinear_add") == 1);
  CHECK(has(net.text, "op dequantize"));
  CHECK(net.in_floats ==
        std::vector<std::string>{"Add (1 node: 'node_f'): an operand of this shape or type"});
}

TEST_CASE("a product of so many elements that sums may leave 32 bits stays in floats") {
  for (const int64_t k : {33025, 33026}) {
    Case c = product_of_two();
    c.operands[0].shape = {1, k};
    c.operands[1].shape = {k, 1};
    c.is_known = false;
    const ImportedNet net = import_of(model_of(c), false);
    CHECK(has(net.text, "op qlinear_matmul") == (k == 33025));
    CHECK(net.in_floats == (k == 33025
                                ? std::vector<std::string>{}
                                : std::vector<std::string>{
                                      "MatMul (1 node: 'node_f'): sums that may leave 32 bits"}));
  }
}

TEST_CASE("an average of so many elements that sums may leave 32 bits stays in floats") {
  for (const int64_t count : {8421504, 8421505}) {
    Case c;
    c.op = "GlobalAveragePool";
    c.operands = {{{1, 1, 1, count}, {}}};
    c.is_known = false;
    const ImportedNet net = import_of(model_of(c), false);
    CHECK(has(net.text, "op qlinear_global_average_pool") == (count == 8421504));
    CHECK(net.in_floats.size() == (count == 8421504 ? 0 : 1));
  }
}

}  // namespace
}  // namespace prunerc::onnx
