// Small ONNX models for tests, built field by field.
#ifndef PRUNERC_TESTS_ONNX_MODEL_BUILDER_H_
#define PRUNERC_TESTS_ONNX_MODEL_BUILDER_H_

#include "third_party/onnx.pb.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::onnx {

/// A model of operator set 17 whose tensors are f32 unless said.
class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  ::onnx::ModelProto& model() { return model_; }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& shape, int type = 1) {
    port(*graph().add_input(), name, shape, type);
    return *this;
  }
  /// A dimension of -1 is named "n".
  ModelBuilder& output(const std::string& name, const std::vector<int64_t>& shape = {},
                       int type = 1) {
    port(*graph().add_output(), name, shape, type);
    return *this;
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
    ::onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(op);
    node.set_name("node_" + outputs[0]);
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    return node;
  }
  ModelBuilder& floats(const std::string& name, const std::vector<int64_t>& shape,
                       const std::vector<float>& values) {
    ::onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(1);
    for (const int64_t extent : shape) tensor.add_dims(extent);
    for (const float value : values) tensor.add_float_data(value);
    return *this;
  }
  ModelBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    ::onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(7);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return *this;
  }
  /// An initializer whose typed field has these numbers, of any type of up to 32 bits.
  ModelBuilder& numbers(const std::string& name, int type, const std::vector<int64_t>& shape,
                        const std::vector<int>& values) {
    ::onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t extent : shape) tensor.add_dims(extent);
    for (const int value : values) tensor.add_int32_data(value);
    return *this;
  }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  static void port(::onnx::ValueInfoProto& info, const std::string& name,
                   const std::vector<int64_t>& shape, int type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const int64_t extent : shape) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (extent == -1) dim.set_dim_param("n");
      if (extent >= 0) dim.set_dim_value(extent);
    }
    tensor.mutable_shape();
  }

  ::onnx::ModelProto model_;
};

}  // namespace prunerc::onnx

#endif  // PRUNERC_TESTS_ONNX_MODEL_BUILDER_H_
