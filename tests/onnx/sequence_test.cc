// Sequences of tensors, of which the net has nothing but the tensors.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

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

TEST_CASE("what is left out has the parts of a sequence, which is no output itself") {
  ModelBuilder model;
  model.input("x", {2}).output("y").output("s");
  model.node("Relu", {"x"}, {"a"});
  model.node("Neg", {"x"}, {"b"});
  model.node("SequenceConstruct", {"a", "x", "b"}, {"s"});
  model.node("Frobnicate", {"s"}, {"y"});
  const ImportedNet net = part_of(model);
  CHECK(net.output_names == std::vector<std::string>{"s_0", "s_2"});
  REQUIRE(net.left_out.size() == 2);
  CHECK(net.left_out[1] == "an output (1 node: 's'): it is a sequence of tensors");
  // Another output has a part's name.
  model.output("s_0");
  model.node("Abs", {"x"}, {"s_0"});
  CHECK(part_of(model).output_names == std::vector<std::string>{"s_0", "s_0_2", "s_2"});
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

TEST_CASE("sequences have at most 4096 parts") {
  std::vector<int64_t> sizes(4096, 0);
  sizes[0] = 3;
  const auto split = [&] {
    ModelBuilder model;
    model.input("x", {3, 2}).output("y").ints("sizes", sizes);
    add_whole(model, "first", 0);
    model.node("SplitToSequence", {"x", "sizes"}, {"parts"});
    model.node("SequenceAt", {"parts", "first"}, {"part"});
    model.node("Neg", {"part"}, {"y"});
    return model;
  };
  CHECK(has(text_of(split()), "y: f32[3,2]"));
  ModelBuilder longer = split();
  longer.node("SequenceInsert", {"parts", "x"}, {"more"});
  CHECK(has(refusal_of(longer), "SequenceInsert (1 node: 'node_more'): more than 4096 parts"));
  sizes.push_back(0);
  CHECK(has(refusal_of(split()), "SplitToSequence (1 node: 'node_parts'): more than 4096 parts"));
  ModelBuilder made;
  made.input("x", {2}).output("y");
  made.node("SequenceConstruct", std::vector<std::string>(4097, "x"), {"s"});
  made.node("SequenceLength", {"s"}, {"y"});
  CHECK(has(refusal_of(made), "more than 4096 parts"));
}

}  // namespace
}  // namespace prunerc::onnx
