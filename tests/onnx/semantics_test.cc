// Where ONNX's page says what its cases do not show: results by hand.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

// 0, 1, 2, ...
std::vector<float> counted_up(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

TEST_CASE("the nearest element is chosen by floats, in which 1 / 0.1 is 10") {
  const auto shrunk = [](const std::string& coordinates, const std::string& rounding) {
    ModelBuilder model(13);
    model.output("y").floats("x", {30}, counted_up(30)).floats("scales", {1}, {0.1F});
    ::onnx::NodeProto& node = model.node("Resize", {"x", "", "scales"}, {"y"});
    add_text(node, "coordinate_transformation_mode", coordinates);
    add_text(node, "nearest_mode", rounding);
    return numbers_of<float>(model);
  };
  CHECK(shrunk("asymmetric", "floor") == std::vector<float>{0, 10, 20});
  CHECK(shrunk("asymmetric", "ceil") == std::vector<float>{0, 10, 20});
  // (o + 0.5) * 10 - 0.5 lies half way between two.
  CHECK(shrunk("half_pixel", "round_prefer_floor") == std::vector<float>{4, 14, 24});
  CHECK(shrunk("half_pixel", "round_prefer_ceil") == std::vector<float>{5, 15, 25});
}

TEST_CASE("aligned corners are the corners, whatever the quotient of the sizes is") {
  // 29.0 / 7 * 7 is more than 29.
  ModelBuilder model(13);
  model.output("y").floats("x", {7}, counted_up(7)).ints("sizes", {29});
  ::onnx::NodeProto& node = model.node("Resize", {"x", "", "", "sizes"}, {"y"});
  add_text(node, "coordinate_transformation_mode", "align_corners");
  add_text(node, "nearest_mode", "floor");
  std::vector<float> wanted;
  for (int64_t o = 0; o < 29; ++o) wanted.push_back(static_cast<float>(o * 6 / 28));
  CHECK(numbers_of<float>(model) == wanted);
}

TEST_CASE("a vector of zeros is normalised to zeros") {
  ModelBuilder model;
  model.output("y").floats("x", {2, 3}, {0, 0, 0, 3, 0, 4});
  model.node("LpNormalization", {"x"}, {"y"});
  CHECK(numbers_of<float>(model) == std::vector<float>{0, 0, 0, 0.6F, 0, 0.8F});
  add_int(*model.graph().mutable_node(0), "p", 1);
  CHECK(numbers_of<float>(model) == std::vector<float>{0, 0, 0, 3.0F / 7, 0, 4.0F / 7});
}

TEST_CASE("a scalar is its own sum of exponentials, however large") {
  ModelBuilder model;
  model.input("x", {}).output("y");
  model.node("ReduceLogSumExp", {"x"}, {"y"});
  CHECK(has(text_of(model), "Y = X;"));
}

TEST_CASE("the numbers of Selu have more digits since set 6") {
  for (const int64_t opset : {1, 6}) {
    ModelBuilder model(opset);
    model.input("x", {2}).output("y");
    model.node("Selu", {"x"}, {"y"});
    const std::string text = text_of(model);
    INFO(text);
    CHECK(has(text, opset == 1 ? "1.67320001" : "1.67326319"));
    CHECK(has(text, opset == 1 ? "1.05069995" : "1.05070102"));
  }
}

TEST_CASE("an axis is padded once, and an empty one has no places to step through") {
  ModelBuilder model(18);
  model.input("x", {2, 3}).output("y").ints("pads", {1, 0, 0, 1}).ints("axes", {0, -2});
  model.node("Pad", {"x", "pads", "", "axes"}, {"y"});
  CHECK(has(refusal_of(model), "an axis that is there twice"));
  ModelBuilder empty;
  empty.input("x", {2}).output("y").floats("e", {0}, {});
  for (const char* name : {"starts", "axes", "steps"}) empty.ints(name, {name[0] == 'a' ? 0 : -1});
  empty.ints("ends", {-9});
  empty.node("Slice", {"e", "starts", "ends", "axes", "steps"}, {"cut"});
  add_int(empty.node("Concat", {"x", "cut"}, {"y"}), "axis", 0);
  CHECK(has(text_of(empty), "y: f32[2]"));
}

TEST_CASE("elements of any type are scattered, those of 32 bits and more are joined, too") {
  for (const int type : {2, 9, 10, 16}) {
    for (const char* op : {"ScatterND", "ScatterElements"}) {
      const bool is_nd = op == std::string("ScatterND");
      ModelBuilder model(18);
      model.input("x", {4, 2}, type).input("u", {2, 2}, type).output("y", {}, type);
      model.input("ids", is_nd ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{2, 2}, 7);
      ::onnx::NodeProto& node = model.node(op, {"x", "ids", "u"}, {"y"});
      INFO(op << " " << type);
      CHECK(has(text_of(model), "last[i0,i1]"));
      add_text(node, "reduction", "add");
      CHECK(has(refusal_of(model), "this type"));
    }
  }
}

TEST_CASE("ONNX Runtime's own names of quantisation are those of ONNX") {
  ModelBuilder model(11);
  model.input("x", {2, 3}).output("y").floats("s", {3}, {0.5F, 1, 2});
  model.node("QuantizeLinear", {"x", "s"}, {"q"}).set_domain("com.microsoft");
  model.node("DequantizeLinear", {"q", "s"}, {"y"}).set_domain("com.microsoft");
  const std::string text = text_of(model);
  INFO(text);
  CHECK(has(text, "u8(clamp(round(f32(X[i0,i1]) / f32(s[i1])), 0, 255))"));
  CHECK(has(text, "f32(X[i0,i1]) * s[i1]"));
}

void add_relus(::onnx::NodeProto& node, int count) {
  ::onnx::AttributeProto& activations = *node.add_attribute();
  activations.set_name("activations");
  activations.set_type(::onnx::AttributeProto::STRINGS);
  for (int i = 0; i < count; ++i) activations.add_strings("Relu");
}

// A network that sums what it reads, of two sequences of which the first is short.
ModelBuilder sums(const std::string& direction) {
  ModelBuilder model(14);
  model.output("y").output("last").floats("x", {3, 2, 1}, {1, 8, 2, 16, 4, 32}).ints("n", {2, 3});
  model.floats("w", {1, 1, 1}, {1}).floats("r", {1, 1, 1}, {1});
  ::onnx::NodeProto& node = model.node("RNN", {"x", "w", "r", "", "n"}, {"y", "last"});
  add_text(node, "direction", direction);
  add_relus(node, 1);
  return model;
}

TEST_CASE("a sequence that has ended keeps its state and gives zeros") {
  const ModelBuilder forward = sums("forward"), reverse = sums("reverse");
  CHECK(numbers_of<float>(forward) == std::vector<float>{1, 8, 3, 24, 0, 56});
  CHECK(numbers_of<float>(forward, "last") == std::vector<float>{3, 56});
  CHECK(numbers_of<float>(reverse) == std::vector<float>{3, 56, 2, 48, 0, 32});
  CHECK(numbers_of<float>(reverse, "last") == std::vector<float>{3, 56});
}

// Three steps of ones in sequences of 0, 2 and 3 steps, which begin with states.
ModelBuilder begun(const std::vector<float>& w) {
  ModelBuilder model(14);
  model.output("y").output("last").floats("x", {3, 3, 1}, std::vector<float>(9, 1));
  const auto gates = static_cast<int64_t>(w.size());
  model.ints("n", {0, 2, 3}).floats("h", {1, 3, 1}, {5, 5, 5}).floats("w", {1, gates, 1}, w);
  return model.floats("r", {1, gates, 1}, std::vector<float>(w.size(), 0));
}

TEST_CASE("a sequence of no steps ends in zeros, as ONNX Runtime has it") {
  ModelBuilder model = begun({1, 1, 1, 1});
  model.output("cell").floats("c", {1, 3, 1}, {10, 20, 30});
  // Each step adds 1 to the cell, which is what is seen.
  add_relus(model.node("LSTM", {"x", "w", "r", "", "n", "h", "c"}, {"y", "last", "cell"}), 3);
  CHECK(numbers_of<float>(model) == std::vector<float>{0, 21, 31, 0, 22, 32, 0, 0, 33});
  CHECK(numbers_of<float>(model, "last") == std::vector<float>{0, 22, 33});
  CHECK(numbers_of<float>(model, "cell") == std::vector<float>{0, 22, 33});
  // Each step is the mean of the state and 1.
  model = begun({0.5F, 1, 1});
  add_relus(model.node("GRU", {"x", "w", "r", "", "n", "h"}, {"y", "last"}), 2);
  CHECK(numbers_of<float>(model) == std::vector<float>{0, 3, 3, 0, 2, 2, 0, 0, 1.5F});
  CHECK(numbers_of<float>(model, "last") == std::vector<float>{0, 2, 1.5F});
  model = begun({4});
  add_relus(model.node("RNN", {"x", "w", "r", "", "n", "h"}, {"y", "last"}), 1);
  CHECK(numbers_of<float>(model, "last") == std::vector<float>{0, 4, 4});
}

TEST_CASE("the cells of sequences that have ended are kept, too; full ones have no question") {
  ModelBuilder model(14);
  model.input("x", {3, 2, 4}).input("n", {2}, 6).output("y").output("cell");
  model.floats("w", {1, 8, 4}, std::vector<float>(32, 0.5F));
  model.floats("r", {1, 8, 2}, std::vector<float>(16, 0.5F));
  ::onnx::NodeProto& node = model.node("LSTM", {"x", "w", "r", "", "n"}, {"y", "", "cell"});
  CHECK(count_of(text_of(model), "= kept(") == 6);
  node.set_input(4, "full");
  model.ints("full", {3, 3});
  CHECK_FALSE(has(text_of(model), "kept"));
  model.ints("wrong", {3});
  node.set_input(4, "wrong");
  CHECK(has(refusal_of(model), "lengths of another shape or type"));
}

TEST_CASE("queries of a cache of counted keys are the last of them") {
  ModelBuilder model(24);
  for (const char* name : {"q", "k", "v"}) model.input(name, {1, 2, name[0] == 'q' ? 2 : 8, 4});
  model.input("n", {1}, 7).output("y");
  ::onnx::NodeProto& node = model.node("Attention", {"q", "k", "v", "", "", "", "n"}, {"y"});
  CHECK_FALSE(has(text_of(model), "i64(t)"));
  add_int(node, "is_causal", 1);
  CHECK(has(text_of(model), "i64(s) < i64(N[b]) && i64(s) - i64(t) <= i64(N[b]) - 2"));
}

TEST_CASE("the nearest pixel is chosen before it is turned back into the image") {
  ModelBuilder model(20);
  model.output("y").floats("x", {1, 1, 1, 4}, {1, 2, 3, 4});
  // Places -1.5 and -0.5: pixel -2, which is turned back to 1, and pixel 0.
  model.floats("grid", {1, 1, 2, 2}, {-1.5F, 0, -1, 0});
  ::onnx::NodeProto& node = model.node("GridSample", {"x", "grid"}, {"y"});
  add_text(node, "mode", "nearest");
  add_text(node, "padding_mode", "reflection");
  CHECK(numbers_of<float>(model) == std::vector<float>{2, 1});
}

}  // namespace
}  // namespace prunerc::onnx
