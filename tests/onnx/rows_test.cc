// Rows on nodes that nobody would write: text that compiles, or an error.
#include "ir/lang/lang.h"
#include "ir/onnx/import.h"
#include "ir/onnx/row.h"
#include "ir/support/rng.h"
#include "tests/onnx/model_builder.h"

#include <catch2/catch.hpp>

#include <limits>

namespace prunerc::onnx {
namespace {

constexpr int64_t kLow = std::numeric_limits<int64_t>::min(),
                  kHigh = std::numeric_limits<int64_t>::max();

std::string text_of(const ModelBuilder& builder) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  const Result<ImportedNet> net = import_model(*model);
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  return net->text;
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
  const std::string text = text_of(model);
  std::size_t cells = 0;
  for (std::size_t at = text.find("op lstm_cell"); at != std::string::npos;
       at = text.find("op lstm_cell", at + 1))
    ++cells;
  CHECK(cells == 1);
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
                                        "storage_order"};
  constexpr std::string_view kLists[] = {
      "axes",  "perm",   "pads", "strides", "dilations",      "kernel_shape",
      "split", "starts", "ends", "shape",   "output_padding", "output_shape"};
  constexpr std::string_view kFloats[] = {
      "alpha",        "beta", "epsilon",       "scale",
      "softcap",      "clip", "cubic_coeff_a", "extrapolation_value",
      "spatial_scale"};
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
      {"nearest_mode", "ceil"}};
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
  constexpr int kTypes[] = {1, 1, 1, 10, 11, 6, 7, 9, 2};
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
      const std::size_t num_inputs = 1 + rng.below(4), num_outputs = 1 + rng.below(3);
      for (std::size_t x = 0; x < num_inputs; ++x) inputs.push_back(any_operand(rng, model, x));
      for (std::size_t y = 0; y < num_outputs; ++y) outputs.push_back("y" + std::to_string(y));
      model.output("y0");
      add_attributes(rng, model.node(std::string(op), inputs, outputs));
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
