// What tests ask of a small model: its text, which compiles, or why it is refused; and attributes for its nodes.
#ifndef PRUNERC_TESTS_ONNX_IMPORTED_H_
#define PRUNERC_TESTS_ONNX_IMPORTED_H_

#include "ir/lang/lang.h"
#include "ir/onnx/import.h"
#include "ir/onnx/join_quantised.h"
#include "tests/onnx/model_builder.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::onnx {

/// What is imported of it, of a part if there is no more; its text compiles.
inline ImportedNet import_of(const ModelBuilder& builder, bool partial) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  ImportOptions options;
  options.partial = partial;
  Result<ImportedNet> net = import_model(*model, options);
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  lang::CompileInput input;
  input.text = net->text;
  const lang::NetResult compiled = lang::compile_net(input);
  INFO(compiled.rendered << net->text);
  REQUIRE(compiled.net.has_value());
  return std::move(net).value();
}

inline std::string text_of(const ModelBuilder& builder) { return import_of(builder, false).text; }
inline ImportedNet part_of(const ModelBuilder& builder) { return import_of(builder, true); }

inline std::string refusal_of(const ModelBuilder& builder) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  const Result<ImportedNet> net = import_model(*model);
  REQUIRE_FALSE(net.ok());
  REQUIRE(net.error().id() == Diag::kOnnxUnsupported);
  return net.error().message();
}

/// Asked directly: a join that the importer then refuses would leave the floats, too.
inline bool is_joined(const ModelBuilder& builder) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  return !join_quantised(*model).nodes.empty();
}

/// What stands between quantisers and is not imported in 8 bits, and why.
inline std::vector<std::string> in_floats_of(const ModelBuilder& builder) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  const Result<ImportedNet> net = import_model(*model);
  REQUIRE(net.ok());
  return net->in_floats;
}

/// The elements of a tensor that the importer computes.
inline std::string computed(const ModelBuilder& builder, const std::string& name) {
  const Result<Model> model = parse_model(builder.bytes(), "test.onnx");
  REQUIRE(model.ok());
  const Result<ImportedNet> net = import_model(*model);
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  INFO(net->text);
  const net::Weight* const found = net->weights.find(name);
  REQUIRE(found != nullptr);
  return std::string(found->bytes);
}

template <typename Number>
std::vector<Number> numbers_of(const ModelBuilder& model, const std::string& name = "y") {
  const std::string bytes = computed(model, name);
  std::vector<Number> out(bytes.size() / sizeof(Number));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

inline bool has(const std::string& text, const std::string& what) {
  return count_of(text, what) > 0;
}

inline void add_whole(ModelBuilder& model, const std::string& name, int64_t value) {
  ::onnx::TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(7);
  tensor.add_int64_data(value);
}

inline void add_text(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::STRING);
  attribute.set_s(value);
}

inline void add_int(::onnx::NodeProto& node, const std::string& name, int64_t value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

inline void add_ints(::onnx::NodeProto& node, const std::string& name,
                     const std::vector<int64_t>& values) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

inline void add_float(::onnx::NodeProto& node, const std::string& name, float value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

}  // namespace prunerc::onnx

#endif  // PRUNERC_TESTS_ONNX_IMPORTED_H_
