// Integers of 4 and 16 bits, which only quantisation reads and writes.
#include "tests/onnx/imported.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

constexpr int kU8 = 2, kU16 = 4, kI16 = 5, kU4 = 21, kI4 = 22;

std::vector<float> floats_of(const ModelBuilder& model) {
  const std::string bytes = computed(model, "y");
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST_CASE("numbers of 4 bits lie two in a byte, the first in its lower bits") {
  ModelBuilder model(21);
  model.output("y").floats("s", {}, {0.5F});
  ::onnx::TensorProto& x = *model.graph().add_initializer();
  x.set_name("x");
  x.set_data_type(kI4);
  x.add_dims(5);
  x.set_raw_data("\x78\x3f\x0c");
  model.numbers("z", kI4, {}, {15});
  model.node("DequantizeLinear", {"x", "s"}, {"y"});
  CHECK(floats_of(model) == std::vector<float>{-4, 3.5F, -0.5F, 1.5F, -2});
  model.graph().mutable_node(0)->add_input("z");
  CHECK(floats_of(model) == std::vector<float>{-3.5F, 4, 0, 2, -1.5F});
  x.set_raw_data("\x78\x3f");
  CHECK_FALSE(parse_model(model.bytes(), "test.onnx").ok());
}

TEST_CASE("weights of 4 bits have a scale for each block") {
  ModelBuilder model(21);
  model.output("y").floats("s", {2}, {1, 2});
  model.numbers("x", kU4, {4}, {0xf1, 0x80});
  ::onnx::NodeProto& node = model.node("DequantizeLinear", {"x", "s"}, {"y"});
  add_int(node, "axis", 0);
  add_int(node, "block_size", 2);
  CHECK(floats_of(model) == std::vector<float>{1, 15, 0, 16});
}

// The floats there and back again.
std::vector<float> through(int type, int zero) {
  ModelBuilder model(21);
  model.output("y").floats("x", {4}, {-70000, -1, 0.5F, 70000}).floats("s", {}, {1});
  model.numbers("z", type, {}, {zero});
  model.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  return floats_of(model);
}

TEST_CASE("what is quantised saturates at the ends of its own type") {
  CHECK(through(kU16, 32768) == std::vector<float>{-32768, -1, 0, 32767});
  CHECK(through(kI16, -2) == std::vector<float>{-32766, -1, 0, 32769});
  CHECK(through(kU4, 3) == std::vector<float>{-3, -1, 0, 12});
  CHECK(through(kI4, 1) == std::vector<float>{-9, -1, 0, 6});
  CHECK(through(kU8, 128) == std::vector<float>{-128, -1, 0, 127});
}

TEST_CASE("numbers of 4 and 16 bits are refused elsewhere") {
  ModelBuilder model(21);
  model.input("x", {2}).output("y").floats("s", {}, {1});
  model.numbers("z", kU16, {}, {7});
  model.numbers("other", kI16, {}, {7});
  model.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.node("Identity", {"q"}, {"y"});
  CHECK(has(refusal_of(model), "Identity (1 node: 'node_y'): an operand of uint16"));
  ::onnx::NodeProto& last = *model.graph().mutable_node(1);
  last.set_op_type("DequantizeLinear");
  last.add_input("s");
  last.add_input("other");
  CHECK(has(refusal_of(model), "operands of these types"));
  last.set_input(2, "z");
  CHECK(has(text_of(model), "i32(clamp(round("));
  model.output("q");
  CHECK(has(refusal_of(model), "its output 'q' is of uint16"));
  add_int(*model.graph().mutable_node(0), "output_dtype", kI16);
  CHECK(has(refusal_of(model), "a zero point of this type"));
}

TEST_CASE("numbers of 16 bits are no outputs of what is imported in part") {
  ModelBuilder model(21);
  model.input("x", {2}).output("y").output("q").output("r").floats("s", {}, {1});
  model.numbers("z", kU16, {}, {7});
  model.node("Neg", {"x"}, {"y"});
  model.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.node("Frobnicate", {"q"}, {"r"});
  const ImportedNet net = part_of(model);
  CHECK(net.output_names == std::vector<std::string>{"y"});
  REQUIRE(net.left_out.size() == 2);
  CHECK(net.left_out[1] == "an output (1 node: 'q'): it is of uint16");
}

TEST_CASE("rows of a table of few bits have a scale for each block") {
  const std::vector<int> bytes = {0,    0,    0,    0,    0,    0,    0,    0,
                                  0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  // Row 1 has 0 to 15, half as large, counted from `from`.
  const auto taken = [&](int type, int zero, const std::vector<int64_t>& ids = {-1}) {
    ModelBuilder model(21);
    model.output("y").floats("s", {2, 1}, {1, 0.5F}).ints("ids", ids);
    model.numbers("x", type, type == kU8 ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 16},
                  bytes);
    std::vector<std::string> inputs = {"x", "ids", "s"};
    if (zero >= 0) inputs.emplace_back("z");
    if (zero >= 0)
      model.numbers("z", type, {2, 1},
                    type == kU8 ? std::vector<int>{0, zero} : std::vector<int>{zero << 4});
    ::onnx::NodeProto& node = model.node("GatherBlockQuantized", inputs, {"y"});
    node.set_domain("com.microsoft");
    add_int(node, "block_size", 16);
    return floats_of(model);
  };
  const auto wanted = [](int from, bool is_signed) {
    std::vector<float> out;
    for (int i = 0; i < 16; ++i)
      out.push_back(0.5F * static_cast<float>((is_signed && i > 7 ? i - 16 : i) - from));
    return out;
  };
  CHECK(taken(kU8, -1) == wanted(8, false));
  CHECK(taken(kU8, 3) == wanted(3, false));
  CHECK(taken(kU4, -1) == wanted(0, false));
  CHECK(taken(kI4, -1) == wanted(0, true));
  CHECK(taken(kI4, 3) == wanted(3, true));
  // Two rows that the table does not have, then its last.
  for (const bool is_packed : {false, true}) {
    std::vector<float> rows(32, 0);
    const std::vector<float> last = is_packed ? wanted(3, false) : wanted(0, true);
    rows.insert(rows.end(), last.begin(), last.end());
    CHECK((is_packed ? taken(kU8, 3, {2, -3, 1}) : taken(kI4, -1, {2, -3, 1})) == rows);
  }
}

TEST_CASE("tables that do not fit are refused") {
  ModelBuilder model(21);
  model.input("x", {2, 8}, kU8).input("ids", {3}, 7).input("s", {2, 1}).output("y");
  ::onnx::NodeProto& node = model.node("GatherBlockQuantized", {"x", "ids", "s"}, {"y"});
  node.set_domain("com.microsoft");
  add_int(node, "block_size", 16);
  CHECK(has(text_of(model), "y: f32[3,16]"));
  add_int(node, "bits", 3);
  CHECK(has(refusal_of(model), "weights of 3 bits"));
  node.mutable_attribute(1)->set_i(8);
  node.mutable_attribute(0)->set_i(8);
  CHECK(has(refusal_of(model), "blocks of 8 weights"));
  node.mutable_attribute(0)->set_i(16);
  CHECK(has(text_of(model), "y: f32[3,8]"));
  add_int(node, "quantize_axis", 0);
  CHECK(has(refusal_of(model), "a table of this shape or type, or these axes"));
  node.mutable_attribute(2)->set_i(1);
  node.set_input(2, "wide");
  model.input("wide", {2, 2});
  CHECK(has(refusal_of(model), "scales or zero points of another shape"));
}

TEST_CASE("what a condition chooses has the scale of the result") {
  ModelBuilder model;
  model.output("y", {}, kU8).floats("sx", {}, {0.5F}).floats("sy", {}, {1}).floats("sz", {}, {2});
  model.numbers("c", 9, {3}, {1, 0, 1});
  model.numbers("x", kU8, {3}, {10, 20, 14});
  model.numbers("zx", kU8, {}, {10});
  model.numbers("other", kU8, {}, {4});
  model.numbers("zy", kU8, {}, {2});
  model.numbers("zz", kU8, {}, {100});
  ::onnx::NodeProto& node =
      model.node("QLinearWhere", {"c", "x", "sx", "zx", "other", "sy", "zy", "sz", "zz"}, {"y"});
  node.set_domain("com.microsoft");
  // (10 - 10) * 0.5 / 2, (4 - 2) * 1 / 2 and (14 - 10) * 0.5 / 2, all behind 100.
  CHECK(computed(model, "y") == std::string("\x64\x65\x65"));
  node.set_input(0, "x");
  CHECK(has(refusal_of(model), "operands of these types"));
}

}  // namespace
}  // namespace prunerc::onnx
