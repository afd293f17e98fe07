// Models of one node of ONNX Runtime's own domain.
#ifndef PRUNERC_TESTS_ONNX_CONTRIB_MODEL_H_
#define PRUNERC_TESTS_ONNX_CONTRIB_MODEL_H_

#include "tests/onnx/imported.h"

#include <string>
#include <vector>

namespace prunerc::onnx {

inline constexpr int kF32 = 1, kU8 = 2, kI8 = 3, kI32 = 6, kI64 = 7, kF16 = 10;

/// An operand: its shape and type. No type: it is not given.
struct Port {
  std::vector<int64_t> shape;
  int type = kF32;
};
inline constexpr int kNotGiven = 0;

/// A model of one node of the domain, whose inputs are x0, x1, ...
inline ModelBuilder model_of(const std::string& op, const std::vector<Port>& ports,
                             const std::vector<std::string>& outputs = {"y"}) {
  ModelBuilder model;
  std::vector<std::string> inputs;
  for (const Port& port : ports) {
    inputs.push_back(port.type == kNotGiven ? "" : "x" + std::to_string(inputs.size()));
    if (port.type != kNotGiven) model.input(inputs.back(), port.shape, port.type);
  }
  for (const std::string& output : outputs) {
    if (!output.empty()) model.output(output);
  }
  ::onnx::NodeProto& node = model.node(op, inputs, outputs);
  node.set_name("n");
  node.set_domain("com.microsoft");
  return model;
}

inline ::onnx::NodeProto& node_of(ModelBuilder& model) { return *model.graph().mutable_node(0); }

inline const Port kNone = {{}, kNotGiven};

}  // namespace prunerc::onnx

#endif  // PRUNERC_TESTS_ONNX_CONTRIB_MODEL_H_
