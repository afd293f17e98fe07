// Sequences of tensors, of which the net has nothing but the tensors; and loops, of which it has their bodies.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

template <typename Number>
std::vector<Number> numbers_of(const ModelBuilder& model) {
  const std::string bytes = computed(model, "y");
  std::vector<Number> out(bytes.size() / sizeof(Number));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

void add_whole(ModelBuilder& model, const std::string& name, int64_t value) {
  ::onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(7);
  tensor.add_int64_data(value);
}

// The negatives of part number `place` of 0 to 5, split.
std::vector<float> part(int64_t place, const std::vector<std::string>& inputs, bool keeps = true) {
  ModelBuilder model;
  model.output("y").floats("x", {3, 2}, {0, 1, 2, 3, 4, 5}).ints("sizes", {1, 2});
  add_whole(model, "two", 2);
  add_whole(model, "place", place);
  ::onnx::NodeProto& split = model.node("SplitToSequence", inputs, {"parts"});
  if (!keeps) add_int(split, "keepdims", 0);
  model.node("SequenceAt", {"parts", "place"}, {"part"});
  model.node("Neg", {"part"}, {"y"});
  return numbers_of<float>(model);
}

TEST_CASE("a tensor is split into parts of one size, of listed sizes or of one place each") {
  CHECK(part(0, {"x", "two"}) == std::vector<float>{-0.0F, -1, -2, -3});
  CHECK(part(-1, {"x", "two"}) == std::vector<float>{-4, -5});
  CHECK(part(1, {"x", "sizes"}) == std::vector<float>{-2, -3, -4, -5});
  CHECK(part(2, {"x"}) == std::vector<float>{-4, -5});
  CHECK(part(-2, {"x"}, false) == std::vector<float>{-2, -3});
}

ModelBuilder two_parts() {
  ModelBuilder model;
  model.output("y").floats("a", {2}, {1, 2}).floats("b", {2}, {3, 4});
  model.node("SequenceConstruct", {"a", "b"}, {"s"});
  return model;
}

TEST_CASE("the parts of a sequence are joined along an axis, or along a new one") {
  ModelBuilder model = two_parts();
  add_int(model.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 2, 3, 4});
  add_int(*model.graph().mutable_node(1), "new_axis", 1);
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 2, 3, 4});
  model.graph().mutable_node(1)->mutable_attribute(0)->set_i(-1);
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 3, 2, 4});
}

TEST_CASE("parts are put in before a place or behind all, and taken out") {
  ModelBuilder model = two_parts();
  model.floats("c", {1}, {9});
  add_whole(model, "one", 1);
  add_whole(model, "last", -1);
  model.node("SequenceInsert", {"s", "c"}, {"behind"});
  model.node("SequenceInsert", {"behind", "c", "last"}, {"before"});
  ::onnx::NodeProto& erase = model.node("SequenceErase", {"before", "one"}, {"less"});
  add_int(model.node("ConcatFromSequence", {"less"}, {"y"}), "axis", 0);
  // a b c, a b c c, a c c
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 2, 9, 9});
  erase.mutable_input()->RemoveLast();
  CHECK(numbers_of<float>(model) == std::vector<float>{1, 2, 3, 4, 9});
  model.graph().mutable_node()->RemoveLast();
  model.node("SequenceLength", {"less"}, {"length"});
  model.node("Neg", {"length"}, {"y"});
  CHECK(numbers_of<int64_t>(model) == std::vector<int64_t>{-3});
}

TEST_CASE("a sequence is refused where a tensor is expected, and the other way round") {
  ModelBuilder model = two_parts();
  model.node("Relu", {"s"}, {"y"});
  CHECK(has(refusal_of(model), "Relu (1 node: 'node_y'): a sequence where a tensor is expected"));
  model.graph().mutable_node(1)->set_op_type("Identity");
  CHECK(has(refusal_of(model), "its output 'y' is a sequence of tensors"));
  model.graph().mutable_node(1)->set_op_type("SequenceLength");
  model.graph().mutable_node(1)->set_input(0, "a");
  CHECK(has(refusal_of(model), "an operand that is no sequence"));
}

TEST_CASE("places and sizes that a sequence does not have are refused") {
  const auto refusal = [](int64_t place, const std::vector<int64_t>& sizes) {
    ModelBuilder model;
    model.input("x", {3, 2}).output("y").ints("sizes", sizes);
    add_whole(model, "place", place);
    model.node("SplitToSequence", {"x", "sizes"}, {"parts"});
    model.node("SequenceAt", {"parts", "place"}, {"y"});
    return refusal_of(model);
  };
  CHECK(has(refusal(2, {1, 2}), "a place that the sequence does not have"));
  CHECK(has(refusal(-3, {1, 2}), "a place that the sequence does not have"));
  CHECK(has(refusal(0, {1, 1}), "parts that do not fit"));
  CHECK(has(refusal(0, {4, -1}), "parts that do not fit"));
}

void add_inner(::onnx::GraphProto& graph, const std::string& op,
               const std::vector<std::string>& inputs, const std::string& output) {
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
}

// A loop of the model's inputs whose body has inputs i, c and v, and gives `outputs`.
::onnx::GraphProto& add_loop(ModelBuilder& model, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& results,
                             const std::vector<std::string>& outputs) {
  ::onnx::AttributeProto& body = *model.node("Loop", inputs, results).add_attribute();
  body.set_name("body");
  body.set_type(::onnx::AttributeProto::GRAPH);
  for (const char* name : {"i", "c", "v"}) body.mutable_g()->add_input()->set_name(name);
  for (const std::string& name : outputs) body.mutable_g()->add_output()->set_name(name);
  return *body.mutable_g();
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

TEST_CASE("a loop ends where its condition is known to end it, or is refused") {
  CHECK(numbers_of<float>(doubling("Less")) == std::vector<float>{-40});
  CHECK(has(refusal_of(doubling("Identity")), "more than 4096 iterations"));
  ModelBuilder model = doubling("Less");
  model.graph().mutable_initializer(2)->set_name("other");
  model.input("go", {}, 9);
  CHECK(has(refusal_of(model), "a condition that is known only at run time"));
  model = doubling("Less");
  model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output()->RemoveLast();
  CHECK(has(refusal_of(model), "a body of other operands"));
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
