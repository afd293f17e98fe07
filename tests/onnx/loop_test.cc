// Loops, of which the net has their bodies, as often as they run.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

::onnx::NodeProto& add_inner(::onnx::GraphProto& graph, const std::string& op,
                             const std::vector<std::string>& inputs, const std::string& output) {
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

// A body of inputs i, c and v, which gives `outputs`.
::onnx::GraphProto& add_body(::onnx::NodeProto& loop, const std::vector<std::string>& outputs) {
  ::onnx::AttributeProto& body = *loop.add_attribute();
  body.set_name("body");
  body.set_type(::onnx::AttributeProto::GRAPH);
  for (const char* name : {"i", "c", "v"}) body.mutable_g()->add_input()->set_name(name);
  for (const std::string& name : outputs) body.mutable_g()->add_output()->set_name(name);
  return *body.mutable_g();
}

// A loop of the model's inputs.
::onnx::GraphProto& add_loop(ModelBuilder& model, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& results,
                             const std::vector<std::string>& outputs) {
  return add_body(model.node("Loop", inputs, results), outputs);
}

// v + 0 + 1 + 2, and all that it is on the way.
ModelBuilder counting(const std::string& shown) {
  ModelBuilder model;
  model.output("y").floats("v0", {1}, {10});
  add_whole(model, "three", 3);
  ::onnx::GraphProto& body =
      add_loop(model, {"three", "", "v0"}, {"last", "all"}, {"c", "sum", "sum"});
  add_inner(body, "CastLike", {"i", "v"}, "f");
  add_inner(body, "Add", {"v", "f"}, "sum");
  model.node("Neg", {shown}, {"y"});
  return model;
}

TEST_CASE("a loop of a known number of iterations is its body so many times") {
  CHECK(numbers_of<float>(counting("last")) == std::vector<float>{-13});
  CHECK(numbers_of<float>(counting("all")) == std::vector<float>{-10, -11, -13});
  ModelBuilder model = counting("last");
  model.graph().mutable_initializer(0)->set_name("other");
  model.input("v0", {1});
  CHECK(count_of(text_of(model), "= add") == 3);
}

// Doubles v while `condition` says so.
ModelBuilder doubling(const std::string& condition) {
  ModelBuilder model;
  model.output("y").floats("v0", {1}, {10});
  add_whole(model, "one", 1);
  ::onnx::TensorProto& go = *model.graph().add_initializer();
  go.set_name("go");
  go.set_data_type(9);
  go.add_int32_data(1);
  ::onnx::GraphProto& body = add_loop(model, {"", "go", "v0"}, {"last"}, {"more", "twice"});
  add_inner(body, condition, {condition == "Less" ? "i" : "c", "one"}, "more");
  if (condition != "Less") body.mutable_node(0)->mutable_input()->RemoveLast();
  add_inner(body, "Add", {"v", "v"}, "twice");
  model.node("Neg", {"last"}, {"y"});
  return model;
}

// The input whose values the model needs at compile time.
std::string operand_of(const ModelBuilder& builder) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  const Result<ImportedNet> net = import_model(*model);
  REQUIRE_FALSE(net.ok());
  REQUIRE(net.error().id() == Diag::kOnnxOperand);
  return std::get<std::string>(net.error().data().args[2]);
}

TEST_CASE("a loop ends where its condition is known to end it, or is refused") {
  CHECK(numbers_of<float>(doubling("Less")) == std::vector<float>{-40});
  CHECK(has(refusal_of(doubling("Identity")), "more than 4096 iterations"));
  ModelBuilder model = doubling("Less");
  model.graph().mutable_initializer(2)->set_name("other");
  model.input("go", {}, 9);
  CHECK(operand_of(model) == "go");
  model.input("g", {}, 9);
  model.node("Not", {"g"}, {"not"});
  model.graph().mutable_node()->SwapElements(0, 2);
  model.graph().mutable_node()->SwapElements(1, 2);
  model.graph().mutable_node(1)->set_input(1, "not");
  CHECK(has(refusal_of(model), "a condition that is known only at run time"));
  model = doubling("Less");
  model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output()->RemoveLast();
  CHECK(has(refusal_of(model), "a body of other operands"));
}

TEST_CASE("a condition of the body alone, which ONNX ignores, does not end the loop") {
  const auto ending = [](int64_t most) {
    ModelBuilder model = doubling("Less");
    add_whole(model, "most", most);
    model.graph().mutable_node(0)->set_input(0, "most");
    model.graph().mutable_node(0)->set_input(1, "");
    return model;
  };
  CHECK(numbers_of<float>(ending(2)) == std::vector<float>{-40});
  CHECK(has(refusal_of(ending(3)),
            "a condition of the body alone: ONNX ignores it, ONNX Runtime does not"));
}

TEST_CASE("a loop of no iterations gives what it is given") {
  ModelBuilder model = doubling("Less");
  model.graph().mutable_initializer(2)->set_int32_data(0, 0);
  CHECK(numbers_of<float>(model) == std::vector<float>{-10});
  model = counting("last");
  model.graph().mutable_initializer(1)->set_int64_data(0, 0);
  CHECK(has(refusal_of(model), "Loop (1 node: 'node_last'): no iterations"));
  model.graph().mutable_node(0)->mutable_output()->RemoveLast();
  CHECK(numbers_of<float>(model) == std::vector<float>{-10});
}

TEST_CASE("the number of the iteration has the rank that the body says") {
  ModelBuilder model;
  model.input("table", {5, 4}).output("y").floats("v0", {1}, {0});
  add_whole(model, "three", 3);
  ::onnx::GraphProto& body = add_loop(model, {"three", "", "v0"}, {"last", "all"}, {"c", "v", "r"});
  add_inner(body, "Gather", {"table", "i"}, "r");
  model.node("Neg", {"all"}, {"y"});
  CHECK(has(text_of(model), "y: f32[3,4]"));
  ::onnx::TypeProto::Tensor& type = *body.mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(7);
  type.mutable_shape()->add_dim()->set_dim_value(1);
  CHECK(has(text_of(model), "y: f32[3,1,4]"));
}

TEST_CASE("a loop may have a number of iterations and nothing else") {
  ModelBuilder model;
  model.input("x", {4}).output("y");
  add_whole(model, "three", 3);
  ::onnx::GraphProto& body = add_loop(model, {"three"}, {"all"}, {"c", "r"});
  body.mutable_input()->RemoveLast();
  add_inner(body, "Relu", {"x"}, "r");
  model.node("Neg", {"all"}, {"y"});
  CHECK(has(text_of(model), "y: f32[3,4]"));
}

TEST_CASE("a body has names of its own, and those around it") {
  ModelBuilder model;
  model.output("y").floats("v0", {1}, {10}).floats("k", {1}, {100}).floats("b", {1}, {1});
  add_whole(model, "two", 2);
  model.node("Neg", {"k"}, {"m"});
  ::onnx::GraphProto& body = add_loop(model, {"two", "", "v0"}, {"last"}, {"c", "s"});
  ::onnx::TensorProto& own = *body.add_initializer();
  own.set_name("k");
  own.set_data_type(1);
  own.add_dims(1);
  own.add_float_data(2);
  add_inner(body, "Mul", {"v", "k"}, "m");
  add_inner(body, "Add", {"m", "b"}, "s");
  model.node("Sub", {"m", "last"}, {"y"});
  // -100 of the other m, less (10 * 2 + 1) * 2 + 1.
  CHECK(numbers_of<float>(model) == std::vector<float>{-143});
}

TEST_CASE("what a body holds is one constant, however often it runs") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  add_whole(model, "three", 3);
  ::onnx::GraphProto& body = add_loop(model, {"three", "", "x"}, {"y"}, {"c", "t"});
  ::onnx::TensorProto& own = *body.add_initializer();
  own.set_name("w");
  own.set_data_type(1);
  own.add_dims(2);
  own.add_float_data(1);
  own.add_float_data(2);
  add_inner(body, "Mul", {"v", "w"}, "s");
  ::onnx::AttributeProto& value = *add_inner(body, "Constant", {}, "k").add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  *value.mutable_t() = own;
  add_inner(body, "Add", {"s", "k"}, "t");
  const std::string text = text_of(model);
  CHECK(count_of(text, "const ") == 2);
  CHECK(count_of(text, ", w)") == 3);
  CHECK(count_of(text, ", k)") == 3);
}

TEST_CASE("a loop within a loop reads the values of both") {
  ModelBuilder model;
  model.output("y").floats("v0", {1}, {10});
  add_whole(model, "two", 2);
  add_whole(model, "three", 3);
  ::onnx::GraphProto& body = add_loop(model, {"two", "", "v0"}, {"last"}, {"c", "w"});
  ::onnx::GraphProto& inner =
      add_body(add_inner(body, "Loop", {"three", "", "v"}, "w"), {"c", "sum"});
  inner.mutable_input(0)->set_name("j");
  inner.mutable_input(2)->set_name("u");
  add_inner(inner, "Add", {"i", "j"}, "both");
  add_inner(inner, "CastLike", {"both", "u"}, "f");
  add_inner(inner, "Add", {"u", "f"}, "sum");
  model.node("Neg", {"last"}, {"y"});
  // 0 + 1 + 2, then 1 + 2 + 3.
  CHECK(numbers_of<float>(model) == std::vector<float>{-19});
}

TEST_CASE("of a loop that is left out nothing remains") {
  ModelBuilder model;
  model.input("x", {2}).output("y").output("last");
  add_whole(model, "most", 1000);
  model.node("Neg", {"x"}, {"y"});
  ::onnx::GraphProto& body = add_loop(model, {"most", "", "x"}, {"last"}, {"c", "b"});
  add_inner(body, "Relu", {"v"}, "a");
  add_inner(body, "Frobnicate", {"a"}, "b");
  ImportedNet net = part_of(model);
  CHECK(net.output_names == std::vector<std::string>{"y"});
  CHECK_FALSE(has(net.text, "relu"));
  REQUIRE(net.left_out.size() == 2);
  CHECK(net.left_out[1] == "Loop (1 node: 'node_last'): what its body needs");
  body.mutable_node(1)->set_op_type("Relu");
  for (int i = 0; i < 120; ++i) add_inner(body, "Relu", {"v"}, "more" + std::to_string(i));
  net = part_of(model);
  CHECK(net.output_names == std::vector<std::string>{"y"});
  REQUIRE(net.left_out.size() == 1);
  CHECK(net.left_out[0] == "Loop (1 node: 'node_last'): so many nodes in all its iterations");
}

TEST_CASE("of a branch that is left out there is what its missing nodes read") {
  ModelBuilder model;
  model.input("x", {2}).output("y");
  ::onnx::TensorProto& condition = *model.graph().add_initializer();
  condition.set_name("condition");
  condition.set_data_type(9);
  condition.add_int32_data(1);
  ::onnx::AttributeProto& taken = *model.node("If", {"condition"}, {"y"}).add_attribute();
  taken.set_name("then_branch");
  taken.set_type(::onnx::AttributeProto::GRAPH);
  add_inner(*taken.mutable_g(), "Relu", {"x"}, "a");
  add_inner(*taken.mutable_g(), "Frobnicate", {"a"}, "b");
  taken.mutable_g()->add_output()->set_name("b");
  CHECK(part_of(model).output_names == std::vector<std::string>{"a"});
}

TEST_CASE("a loop carries sequences, too") {
  ModelBuilder model;
  model.output("y").floats("x", {2}, {1, 2});
  add_whole(model, "two", 2);
  model.node("SequenceEmpty", {}, {"none"});
  ::onnx::GraphProto& body = add_loop(model, {"two", "", "none"}, {"s"}, {"c", "longer"});
  add_inner(body, "SequenceInsert", {"v", "x"}, "longer");
  add_int(model.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 2, 1, 2});
}

}  // namespace
}  // namespace prunerc::onnx
