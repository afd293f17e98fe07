// Floats where ONNX's page says little: what is not a number, rests of divisions, images of doubles.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

TEST_CASE("an extreme is NaN where any operand is, and a number known now goes first") {
  for (const char* op : {"Max", "Min"}) {
    ModelBuilder model;
    model.input("x", {4}).input("z", {4}).output("y").floats("zero", {}, {0.0F});
    model.node(op, {"x", "zero", "z"}, {"y"});
    const std::string text = text_of(model), name = op == std::string("Max") ? "max" : "min";
    INFO(text);
    // The condition reads both: no read is behind it.
    const std::string all = name + "(B[i0], A[i0])";
    CHECK(has(text, "Y[i0] = if " + all + " != " + all + " then A[i0] else " + name + "(f32(0), " +
                        name + "(A[i0], B[i0]));"));
    ModelBuilder three;
    three.output("y").floats("table", {2}, {0.5F, 1});
    for (const char* input : {"x", "z", "w"}) three.input(input, {2});
    three.node(op, {"x", "z", "table", "w"}, {"y"});
    const std::string read = name + "(B[i0], " + name + "(D[i0], " + name + "(C[i0], A[i0])))";
    INFO(text_of(three));
    CHECK(has(text_of(three), "Y[i0] = if " + read + " != " + read +
                                  " then A[i0] else if B[i0] != B[i0] then B[i0] else " + name +
                                  "(C[i0], " + name + "(A[i0], " + name + "(B[i0], D[i0])));"));
    ModelBuilder known;
    known.input("x", {2}).output("y").floats("table", {2}, {0.5F, 1});
    known.node(op, {"x", "table"}, {"y"});
    CHECK(has(text_of(known), "Y[i0] = " + name + "(B[i0], A[i0]);"));
    ModelBuilder unknown;
    unknown.input("x", {2}).output("y").floats("table", {2}, {0.5F, NAN});
    unknown.node(op, {"table", "x"}, {"y"});
    CHECK(has(text_of(unknown), "then A[i0] else " + name + "(A[i0], B[i0]);"));
    ModelBuilder one;
    one.input("x", {4}).output("y").floats("zero", {}, {0.0F});
    one.node(op, {"x", "zero"}, {"y"});
    CHECK(has(text_of(one), "Y[i0] = " + name + "(f32(0), A[i0]);"));
  }
  ModelBuilder whole;
  whole.input("x", {4}, 6).input("z", {4}, 6).output("y", {}, 6);
  whole.node("Max", {"x", "z"}, {"y"});
  CHECK(has(text_of(whole), "Y[i0] = i32(max(A[i0], B[i0]));"));
}

TEST_CASE("what a recurrent network clips stays NaN") {
  ModelBuilder model(14);
  model.input("x", {3, 2, 3}).output("y");
  model.floats("w", {1, 2, 3}, std::vector<float>(6, 0.5F));
  model.floats("r", {1, 2, 2}, std::vector<float>(4, 0.5F));
  add_float(model.node("RNN", {"x", "w", "r"}, {"y"}), "clip", 0.25F);
  CHECK(has(text_of(model), "tanh(min(0.25, max(-0.25, A[b, h])))"));
}

std::vector<float> rests(const std::vector<float>& a, const std::vector<float>& b, bool is_fmod) {
  ModelBuilder model;
  const auto count = static_cast<int64_t>(a.size());
  model.output("y").floats("a", {count}, a).floats("b", {count}, b);
  ::onnx::NodeProto& node = model.node("Mod", {"a", "b"}, {"y"});
  if (is_fmod) add_int(node, "fmod", 1);
  const std::string bytes = computed(model, "y");
  std::vector<float> out(a.size());
  REQUIRE(bytes.size() == out.size() * sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST_CASE("rests of floats are exact, with the sign of the dividend or of the divisor") {
  const std::vector<float> a = {5.5F, -5.5F, 5.5F, -5.5F, 6, -6, 0.3F, 1e10F, -2, 1};
  const std::vector<float> b = {2, 2, -2, -2, 3, -3, 0.1F, -3e-4F, 5, HUGE_VALF};
  std::vector<float> towards_zero, floored;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float rest = std::fmod(a[i], b[i]);
    towards_zero.push_back(rest);
    const bool turns = rest != 0 && (rest < 0) != (b[i] < 0);
    floored.push_back(turns ? rest + b[i] : rest);
  }
  CHECK(rests(a, b, true) == towards_zero);
  CHECK(rests(a, b, false) == floored);
}

TEST_CASE("rests that quotients in f64 cannot give are NaN") {
  for (const float rest : rests({1e30F, -1e30F, 1, HUGE_VALF}, {3, 7e-20F, 0, 2}, true))
    CHECK(std::isnan(rest));
}

TEST_CASE("images of doubles are resized in doubles") {
  const auto image = [](double scale, bool is_known) {
    ModelBuilder model(18);
    model.output("y", {}, 11).floats("scales", {3}, {1, 1, static_cast<float>(scale)});
    ::onnx::NodeProto& node = model.node("Resize", {"x", "", "scales"}, {"y"});
    add_text(node, "mode", "linear");
    add_int(node, "antialias", 1);
    if (!is_known) return model.input("x", {1, 1, 16}, 11);
    ::onnx::TensorProto& x = *model.graph().add_initializer();
    x.set_name("x");
    x.set_data_type(11);
    for (const int64_t extent : {1, 1, 2}) x.add_dims(extent);
    for (const double value : {0.0, 1.0}) x.add_double_data(value);
    return model;
  };
  const std::string bytes = computed(image(3, true), "y");
  std::vector<double> y(6);
  REQUIRE(bytes.size() == y.size() * sizeof(double));
  std::memcpy(y.data(), bytes.data(), bytes.size());
  CHECK(std::fabs(y[2] - 1.0 / 3) < 1e-15);
  CHECK(has(text_of(image(0.25, false)), "sum:f64[t in 0..8]"));
}

}  // namespace
}  // namespace prunerc::onnx
