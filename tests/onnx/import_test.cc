// What becomes of models: text that compiles, or an error that says all at once.
#include "ir/onnx/import.h"

#include "ir/lang/lang.h"
#include "ir/onnx/importer.h"
#include "tests/onnx/model_builder.h"

#include <catch2/catch.hpp>

#include <limits>

namespace prunerc::onnx {
namespace {

Result<ImportedNet> import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
  PRUNERC_TRY(const Model model, parse_model(bytes, "test.onnx"));
  return import_model(model, options);
}

std::string text_of(const ModelBuilder& builder, const ImportOptions& options = {}) {
  const Result<ImportedNet> net = import_bytes(builder.bytes(), options);
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  lang::CompileInput input;
  input.text = net->text;
  input.max_bytes = lang::kMaxNetBytes;
  const lang::NetResult compiled = lang::compile_net(input);
  INFO(compiled.rendered << net->text);
  REQUIRE(compiled.net.has_value());
  return net->text;
}

Error error_of(const ModelBuilder& builder, Diag id, const ImportOptions& options = {}) {
  const Result<ImportedNet> net = import_bytes(builder.bytes(), options);
  REQUIRE_FALSE(net.ok());
  INFO(net.error().message());
  REQUIRE(net.error().id() == id);
  return net.error();
}

TEST_CASE("a node becomes a call, equal operators are written once") {
  ModelBuilder model;
  model.input("x.1", {2, 3}).output("y").floats("w", {3}, {1, 2, 3});
  model.node("Relu", {"x.1"}, {"a"});
  model.node("Add", {"a", "w"}, {"b"});
  model.node("Relu", {"b"}, {"y"});
  CHECK(text_of(model) == R"(op relu(A: f32[2,3]) -> (Y: f32[2,3]) {
  Y[i0,i1] = max(0, A[i0,i1]);
}
op add(A: f32[2,3], B: f32[3]) -> (Y: f32[2,3]) {
  Y[i0,i1] = A[i0,i1] + B[i1];
}
net test(x_1: f32[2,3]) -> (y: f32[2,3]) {
  const w: f32[3];
  let a = relu(x_1);
  let b = add(a, w);
  y = relu(b);
}
)");
}

TEST_CASE("what follows from constants is computed, what nobody reads is left out") {
  ModelBuilder model;
  model.input("x", {2}).output("y").floats("w", {2}, {4, 9});
  model.node("Sqrt", {"w"}, {"s"});
  model.node("Exp", {"x"}, {"unread"});
  model.node("Mul", {"x", "s"}, {"y"});
  const Result<ImportedNet> net = import_bytes(model.bytes());
  REQUIRE(net.ok());
  CHECK(net->text.find("sqrt") == std::string::npos);
  CHECK(net->text.find("exp") == std::string::npos);
  const net::Weight* const folded = net->weights.find("s");
  REQUIRE(folded != nullptr);
  CHECK(folded->bytes == std::string("\0\0\0\x40\0\0\x40\x40", 8));
}

TEST_CASE("one number for all elements stands in the text") {
  ModelBuilder model;
  model.input("x", {2, 2}).output("y").floats("half", {}, {0.5F});
  model.node("Mul", {"x", "half"}, {"y"});
  CHECK(text_of(model).find("A[i0,i1] * f32(0.5)") != std::string::npos);
}

TEST_CASE("outputs that are inputs, constants or each other are copied") {
  ModelBuilder model;
  model.input("x", {2}).output("y").output("z").output("c").floats("w", {2}, {4, 9});
  model.node("Identity", {"x"}, {"y"});
  model.node("Identity", {"y"}, {"z"});
  model.node("Identity", {"w"}, {"c"});
  const std::string text = text_of(model);
  CHECK(text.find("y = copy(x);") != std::string::npos);
  CHECK(text.find("z = copy(x);") != std::string::npos);
  CHECK(text.find("c = copy(w);") != std::string::npos);
}

TEST_CASE("names that are words of the language, or none at all") {
  ModelBuilder model;
  model.input("sum", {2}).output("0").output("net/max");
  model.node("Relu", {"sum"}, {"0"});
  model.node("Neg", {"0"}, {"net/max"});
  const std::string text = text_of(model);
  CHECK(text.find("net test(sum_: f32[2]) -> (t0: f32[2], net_max: f32[2])") != std::string::npos);
}

TEST_CASE("named dimensions are bound, all that are not are listed") {
  ModelBuilder model;
  model.input("x", {-1, 3}).input("z", {-1, -2}).output("y");
  model.node("Relu", {"x"}, {"y"});
  CHECK(error_of(model, Diag::kOnnxDims).message() ==
        "the model 'test.onnx' has dimensions without a value: n, z.1; give -D n=N,z.1=N");
  ImportOptions options;
  options.dims = {{"n", 4}, {"z.1", 2}};
  CHECK(text_of(model, options).find("x: f32[4,3]") != std::string::npos);
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("?");
  options.dims["x.1"] = 3;
  CHECK(text_of(model, options).find("x: f32[4,3]") != std::string::npos);
  options.dims["m"] = 1;
  CHECK(error_of(model, Diag::kOnnxDimUnknown, options).message() ==
        "the model 'test.onnx' has no dimension 'm' to bind; it has n, x.1, z.1");
}

TEST_CASE("everything that is not supported is listed at once") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  model.node("Frobnicate", {"x"}, {"a"});
  model.node("Frobnicate", {"x"}, {"b"});
  model.node("Relu", {"a"}, {"c"});
  model.node("Twist", {"c"}, {"y"});
  CHECK(error_of(model, Diag::kOnnxUnsupported).message() ==
        "the model 'test.onnx' needs what is not supported:\n"
        "  Frobnicate (2 nodes: 'node_a', 'node_b'): there is no such operator here\n"
        "  Twist (1 node: 'node_y'): there is no such operator here");
  // A node without a name is called by what it gives.
  for (::onnx::NodeProto& node : *model.graph().mutable_node()) node.clear_name();
  CHECK(error_of(model, Diag::kOnnxUnsupported).message().find("(2 nodes: 'a', 'b')") !=
        std::string::npos);
}

TEST_CASE("the rest is imported if that is asked for") {
  ModelBuilder model;
  model.input("x", {2}).output("y").output("z");
  model.node("Relu", {"x"}, {"a"});
  model.node("Neg", {"x"}, {"z"});
  model.node("Frobnicate", {"a"}, {"y"});
  ImportOptions options;
  options.partial = true;
  const Result<ImportedNet> net = import_bytes(model.bytes(), options);
  REQUIRE(net.ok());
  CHECK(net->output_names == std::vector<std::string>{"z", "a"});
  REQUIRE(net->left_out.size() == 1);
  CHECK(net->left_out[0] == "Frobnicate (1 node: 'node_y'): there is no such operator here");
  model.graph().clear_node();
  model.node("Frobnicate", {"x"}, {"y"});
  model.node("Frobnicate", {"x"}, {"z"});
  CHECK_FALSE(error_of(model, Diag::kOnnxUnsupported, options).message().empty());
}

TEST_CASE("an operand that must be known names the input that gives it") {
  ModelBuilder model;
  model.input("x", {2}).input("shape", {1}, 7).output("y");
  model.node("ConstantOfShape", {"shape"}, {"y"});
  CHECK(error_of(model, Diag::kOnnxOperand).message() ==
        "ConstantOfShape (node 'node_y') needs the values of 'shape' at compile time, which are "
        "known only at run time");
  ImportOptions options;
  ir::Tensor shape(ir::DType::kI64, {1});
  shape.set_int(0, 5);
  options.constants.emplace("shape", shape);
  CHECK(text_of(model, options).find("y: f32[5]") != std::string::npos);
  options.constants.emplace("other", shape);
  CHECK(error_of(model, Diag::kUsageUnknownTensor, options).message() ==
        "'test.onnx' has no input 'other'; it has 'x', 'shape'");
}

TEST_CASE("what is given for an input goes before the model's own constant") {
  ModelBuilder model;
  model.input("x", {2}).input("w", {2}).output("y").floats("w", {2}, {1, 2});
  model.node("Add", {"x", "w"}, {"y"});
  ImportOptions options;
  ir::Tensor given(ir::DType::kF32, {2});
  given.set(0, 2);
  given.set(1, 3);
  options.constants.emplace("w", given);
  const Result<ImportedNet> net = import_bytes(model.bytes(), options);
  REQUIRE(net.ok());
  CHECK(net->fed_names == std::vector<std::string>{"x"});
  const net::Weight* const weight = net->weights.find("w");
  REQUIRE(weight != nullptr);
  CHECK(weight->bytes == std::string("\0\0\0\x40\0\0\x40\x40", 8));
  options.constants["w"] = ir::Tensor(ir::DType::kF32, {3});
  CHECK(error_of(model, Diag::kUsageShape, options).message() == "'w' needs f32[2], found f32[3]");
  options.constants["w"] = ir::Tensor(ir::DType::kI64, {2});
  CHECK(error_of(model, Diag::kUsageShape, options).message() == "'w' needs f32[2], found i64[2]");
}

TEST_CASE("a number alone is given for a tensor of one element, bound dimensions hold") {
  ModelBuilder model;
  model.input("x", {-1}).input("shape", {1}, 7).input("by", {-1}).output("y").output("z");
  model.node("ConstantOfShape", {"shape"}, {"y"});
  model.node("Add", {"x", "by"}, {"z"});
  ImportOptions options;
  options.dims = {{"n", 3}};
  ir::Tensor five(ir::DType::kI64, {});
  five.set_int(0, 5);
  options.constants.emplace("shape", five);
  options.constants.emplace("by", ir::Tensor(ir::DType::kF32, {3}));
  CHECK(text_of(model, options).find("y: f32[5]") != std::string::npos);
  options.constants["by"] = ir::Tensor(ir::DType::kF32, {4});
  CHECK(error_of(model, Diag::kUsageShape, options).message() == "'by' needs f32[3], found f32[4]");
}

TEST_CASE("a net of more text than a file may have") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  constexpr int kNodes = 10'000;
  std::string last = "x";
  for (int i = 0; i < kNodes; ++i) {
    const std::string number = std::to_string(i);
    const std::string next = "v" + std::string(45 - number.size(), '0') + number;
    model.node(i % 2 == 0 ? "Relu" : "Neg", {last}, {next});
    last = next;
  }
  model.node("Relu", {last}, {"y"});
  CHECK(text_of(model).size() > lang::kMaxFileBytes);
}

TEST_CASE("types without a row of ours, sets that are newer than the rows") {
  ModelBuilder model;
  model.input("x", {2}, 12).output("y");
  model.node("Relu", {"x"}, {"y"});
  CHECK(error_of(model, Diag::kOnnxUnsupported).message() ==
        "the model 'test.onnx' needs what is not supported:\n"
        "  an input (1 node: 'x'): there is no type uint32 here");
  ModelBuilder newer(99);
  newer.input("x", {2}).output("y");
  newer.node("Relu", {"x"}, {"y"});
  CHECK(
      error_of(newer, Diag::kOnnxUnsupported).message().find("operator set 99: export the model") !=
      std::string::npos);
}

TEST_CASE("a constant of a type that there is not is no matter until it is read") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  ::onnx::TensorProto& words = *model.graph().add_initializer();
  words.set_name("words");
  words.set_data_type(8);
  words.add_string_data("word");
  model.node("Relu", {"x"}, {"y"});
  CHECK_FALSE(text_of(model).empty());
  model.output("words");
  CHECK(error_of(model, Diag::kOnnxUnsupported).message().find("its output 'words' is of string") !=
        std::string::npos);
  model.graph().mutable_output()->RemoveLast();
  model.graph().mutable_node(0)->set_input(0, "words");
  CHECK(error_of(model, Diag::kOnnxUnsupported).message() ==
        "the model 'test.onnx' needs what is not supported:\n"
        "  Relu (1 node: 'node_y'): an operand of string");
}

TEST_CASE("functions of the model are written in place, with their attributes") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  model.model().add_opset_import()->set_domain("own");
  auto& function = *model.model().add_functions();
  function.set_name("Soft");
  function.set_domain("own");
  function.add_input("v");
  function.add_output("w");
  function.add_opset_import()->set_version(17);
  auto& inner = *function.add_node();
  inner.set_op_type("LeakyRelu");
  inner.add_input("v");
  inner.add_output("w");
  auto& attribute = *inner.add_attribute();
  attribute.set_name("alpha");
  attribute.set_ref_attr_name("slope");
  attribute.set_type(::onnx::AttributeProto::FLOAT);
  auto& node = model.node("Soft", {"x"}, {"y"});
  node.set_domain("own");
  auto& slope = *node.add_attribute();
  slope.set_name("slope");
  slope.set_type(::onnx::AttributeProto::FLOAT);
  slope.set_f(0.25F);
  CHECK(text_of(model).find("0.25 * A[i0]") != std::string::npos);
}

// A field that the packaged schema has not, of fewer than 128 bytes.
void add_field(std::string* unknown, int number, const std::string& bytes) {
  *unknown += static_cast<char>(number << 3 | 2);
  *unknown += static_cast<char>(bytes.size());
  *unknown += bytes;
}

constexpr int kNodeOverload = 8, kFunctionDefault = 11, kFunctionOverload = 13;

::onnx::FunctionProto& add_function(ModelBuilder& model, const std::string& name,
                                    const std::vector<std::string>& inputs) {
  ::onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name(name);
  function.set_domain("own");
  for (const std::string& input : inputs) function.add_input(input);
  function.add_output("w");
  function.add_opset_import()->set_version(17);
  return function;
}

// w = LeakyRelu(v) with the call's "slope", which is `otherwise` where a call does not say it.
::onnx::FunctionProto& add_soft(ModelBuilder& model, float otherwise) {
  ::onnx::FunctionProto& function = add_function(model, "Soft", {"v"});
  ::onnx::NodeProto& inner = *function.add_node();
  inner.set_op_type("LeakyRelu");
  inner.add_input("v");
  inner.add_output("w");
  ::onnx::AttributeProto& alpha = *inner.add_attribute();
  alpha.set_name("alpha");
  alpha.set_ref_attr_name("slope");
  alpha.set_type(::onnx::AttributeProto::FLOAT);
  ::onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(::onnx::AttributeProto::FLOAT);
  slope.set_f(otherwise);
  add_field(function.mutable_unknown_fields(), kFunctionDefault, slope.SerializeAsString());
  return function;
}

TEST_CASE("attributes that a call leaves out have the function's defaults") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  add_soft(model, 0.25F);
  ::onnx::NodeProto& node = model.node("Soft", {"x"}, {"y"});
  node.set_domain("own");
  CHECK(text_of(model).find("0.25 * A[i0]") != std::string::npos);
  ::onnx::AttributeProto& slope = *node.add_attribute();
  slope.set_name("slope");
  slope.set_type(::onnx::AttributeProto::FLOAT);
  slope.set_f(0.5F);
  CHECK(text_of(model).find("0.5 * A[i0]") != std::string::npos);
  model.model().mutable_functions(0)->clear_node();
  add_field(model.model().mutable_functions(0)->mutable_unknown_fields(), kFunctionDefault, "\xff");
  CHECK_FALSE(error_of(model, Diag::kOnnxMalformed).message().empty());
}

TEST_CASE("a default that is a tensor keeps its bytes") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  ::onnx::FunctionProto& function = add_function(model, "Shifted", {"v"});
  ::onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("shift");
  ::onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value");
  value.set_ref_attr_name("by");
  value.set_type(::onnx::AttributeProto::TENSOR);
  ::onnx::NodeProto& add = *function.add_node();
  add.set_op_type("Add");
  add.add_input("v");
  add.add_input("shift");
  add.add_output("w");
  ::onnx::AttributeProto by;
  by.set_name("by");
  by.set_type(::onnx::AttributeProto::TENSOR);
  by.mutable_t()->set_data_type(1);
  by.mutable_t()->add_dims(2);
  const std::string bytes("\0\0\0\x40\0\0\x40\x40", 8);
  by.mutable_t()->set_raw_data(bytes);
  add_field(function.mutable_unknown_fields(), kFunctionDefault, by.SerializeAsString());
  model.node("Shifted", {"x"}, {"y"}).set_domain("own");
  const Result<ImportedNet> net = import_bytes(model.bytes());
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  const net::Weight* const shift = net->weights.find("shift");
  REQUIRE(shift != nullptr);
  CHECK(shift->bytes == bytes);
}

TEST_CASE("functions of one name have overloads, and are not defined twice") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  add_field(add_soft(model, 0.25F).mutable_unknown_fields(), kFunctionOverload, "a");
  add_field(add_soft(model, 0.5F).mutable_unknown_fields(), kFunctionOverload, "b");
  ::onnx::NodeProto& node = model.node("Soft", {"x"}, {"y"});
  node.set_domain("own");
  CHECK_FALSE(error_of(model, Diag::kOnnxUnsupported).message().empty());
  add_field(node.mutable_unknown_fields(), kNodeOverload, "b");
  CHECK(text_of(model).find("0.5 * A[i0]") != std::string::npos);
  add_field(node.mutable_unknown_fields(), kNodeOverload, "c");
  CHECK_FALSE(error_of(model, Diag::kOnnxUnsupported).message().empty());
  ModelBuilder twice;
  twice.input("x", {2}).output("y");
  add_soft(twice, 0.25F);
  add_soft(twice, 0.5F);
  twice.node("Soft", {"x"}, {"y"}).set_domain("own");
  CHECK(error_of(twice, Diag::kOnnxMalformed).message() ==
        "'test.onnx' is not a readable ONNX model: it defines the function 'Soft' twice");
}

TEST_CASE("inputs that a function's call leaves out are not given within it") {
  for (const bool gives_last : {false, true}) {
    ModelBuilder model;
    model.input("x", {2}).input("top", {}).output("y");
    ::onnx::NodeProto& inner = *add_function(model, "Bound", {"v", "low", "high"}).add_node();
    inner.set_op_type("Clip");
    for (const char* name : {"v", "low", "high"}) inner.add_input(name);
    inner.add_output("w");
    ::onnx::NodeProto& node = model.node("Bound", {"x"}, {"y"});
    node.set_domain("own");
    if (gives_last) {
      node.add_input("");
      node.add_input("top");
    }
    const std::string text = text_of(model);
    INFO(text);
    CHECK(text.find("max(") == std::string::npos);
    CHECK((text.find("min(B, A[i0])") != std::string::npos) == gives_last);
    inner.set_op_type("Add");
    CHECK(error_of(model, Diag::kOnnxUnsupported).message().find("input 1 is missing") !=
          std::string::npos);
  }
}

TEST_CASE("a function that calls itself ends") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  auto& function = *model.model().add_functions();
  function.set_name("Again");
  function.set_domain("own");
  function.add_input("v");
  function.add_output("w");
  for (int i = 0; i < 2; ++i) {
    auto& inner = *function.add_node();
    inner.set_op_type("Again");
    inner.set_domain("own");
    inner.add_input("v");
    inner.add_output(i == 0 ? "u" : "w");
  }
  model.node("Again", {"x"}, {"y"}).set_domain("own");
  CHECK_FALSE(error_of(model, Diag::kOnnxMalformed).message().empty());
}

TEST_CASE("a branch that is known is taken") {
  for (const float taken : {0.0F, 1.0F}) {
    ModelBuilder model;
    model.input("x", {2}).output("y").floats("c", {}, {taken});
    model.node("Cast", {"c"}, {"condition"}).add_attribute()->set_name("to");
    auto& to = *model.graph().mutable_node(0)->mutable_attribute(0);
    to.set_type(::onnx::AttributeProto::INT);
    to.set_i(9);
    auto& node = model.node("If", {"condition"}, {"y"});
    for (const char* name : {"then_branch", "else_branch"}) {
      auto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(::onnx::AttributeProto::GRAPH);
      auto& inner = *attribute.mutable_g()->add_node();
      inner.set_op_type(std::string(name) == "then_branch" ? "Neg" : "Exp");
      inner.add_input("x");
      inner.add_output("r");
      attribute.mutable_g()->add_output()->set_name("r");
    }
    CHECK(text_of(model).find(taken != 0 ? "neg(x)" : "exp_(x)") != std::string::npos);
  }
}

TEST_CASE("a zero point of the left is taken off once, by sums of the known right") {
  const auto product = [](bool is_known) {
    ModelBuilder model(21);
    model.input("x", {2, 2}, 2).output("y", {2, 1}, 6);
    if (!is_known) model.input("z", {}, 2);
    const auto known = [&](const char* name, int type, const std::vector<int64_t>& shape,
                           const std::vector<int>& values) {
      ::onnx::TensorProto& tensor = *model.graph().add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(type);
      for (const int64_t extent : shape) tensor.add_dims(extent);
      for (const int value : values) tensor.add_int32_data(value);
    };
    known("w", 3, {2, 1}, {3, -5});
    if (is_known) known("z", 2, {}, {7});
    model.node("MatMulInteger", {"x", "w", "z"}, {"y"});
    return text_of(model);
  };
  // The sums are constants, whatever the zero point is; one that is known is in them.
  for (const bool is_known : {false, true}) {
    const std::string text = product(is_known);
    INFO(text);
    CHECK(text.find("sum:i32[k] A[i,k] * B[k,j];") != std::string::npos);
    CHECK(text.find(is_known ? "Y[i,j] = acc[i,j] + c[j];"
                             : "Y[i,j] = acc[i,j] + (0 - i32(ZA)) * cs[j];") != std::string::npos);
    CHECK(text.find("column_sums(") == std::string::npos);
  }
}

TEST_CASE("an attribute that is not a number is said, not written") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  ::onnx::AttributeProto& alpha = *model.node("LeakyRelu", {"x"}, {"y"}).add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(::onnx::AttributeProto::FLOAT);
  alpha.set_f(std::numeric_limits<float>::quiet_NaN());
  CHECK(error_of(model, Diag::kOnnxUnsupported).message().find("alpha") != std::string::npos);
}

TEST_CASE("a row says what it cannot do") {
  const Model model;
  const ImportOptions options;
  const JoinedNodes joined;
  Importer importer(model, options, joined);
  Node node;
  node.op = "Relu";
  node.name = "first";
  node.outputs = {"y"};
  Row row(importer, node, 17, {}, node.attributes);
  const Result<void> done = find_row("Relu")(row);
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().id() == Diag::kOnnxNode);
  CHECK(done.error().message() == "Relu (node 'first'): input 0 is missing");
}

}  // namespace
}  // namespace prunerc::onnx
