#include "ir/net/net.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace prunerc::net {
namespace {

std::string port_list(const Net& net, const std::vector<std::size_t>& ports) {
  std::string text;
  for (const std::size_t i : ports) {
    const Tensor& tensor = net.tensors[i];
    const bool says_const = tensor.role == Role::kInput && tensor.is_const;
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : ", ", says_const ? "const " : "",
                        tensor.name, type_text(tensor));
  }
  return text;
}

std::string const_item(const Tensor& tensor) {
  std::string text = fmt::format("  const {}: {}", tensor.name, type_text(tensor));
  if (tensor.value && ir::is_bool(tensor.dtype)) {
    text += *tensor.value != 0 ? " = true" : " = false";
  } else if (tensor.value) {
    text += ir::is_int(tensor.dtype) ? fmt::format(" = {}", static_cast<int64_t>(*tensor.value))
                                     : " = " + float_text(*tensor.value);
  } else if (tensor.weight != tensor.name) {
    text += fmt::format(" = \"{}\"", tensor.weight);
  }
  return text + ";\n";
}

std::string names(const Net& net, const std::vector<std::size_t>& tensors) {
  std::string text;
  for (const std::size_t i : tensors) text += (text.empty() ? "" : ", ") + net.tensors[i].name;
  return text;
}

// A label stands once in a text: where a pass gave a call's tensor another name, what was the default
// may be a label that another call has.
std::string call_item(const Net& net, const Call& call, std::set<std::string>& labels) {
  bool gives_let = false;
  for (const std::size_t i : call.results) gives_let |= net.tensors[i].role != Role::kOutput;
  std::string bindings;
  for (const auto& [name, value] : call.bindings)
    bindings += fmt::format("{}{}={}", bindings.empty() ? "" : ", ", name, value);
  if (!bindings.empty()) bindings = "<" + bindings + ">";
  std::string text =
      fmt::format("  {}{} = {}{}({})", gives_let ? "let " : "", names(net, call.results), call.op,
                  bindings, names(net, call.args));
  if (call.label != net.tensors[call.results[0]].name && labels.insert(call.label).second)
    text += " as " + call.label;
  return text + ";\n";
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "(0.0/0.0)";
  if (value == 0 && std::signbit(value)) return "-0.0";
  return fmt::format("{}", value);
}

std::string type_text(const Tensor& tensor) {
  const std::string_view type = ir::to_string(tensor.dtype);
  if (tensor.shape.empty()) return std::string(type);
  return fmt::format("{}[{}]", type, fmt::join(tensor.shape, ","));
}

std::string to_text(const Net& net) {
  std::string text = net.definitions;
  if (!text.empty()) text += "\n";
  text += fmt::format("net {}({}) -> ({}) ", net.name, port_list(net, net.inputs),
                      port_list(net, net.outputs));
  if (!net.weights.empty()) text += fmt::format("weights \"{}\" ", net.weights);
  text += "{\n";
  for (const Tensor& tensor : net.tensors) {
    if (tensor.role == Role::kConst) text += const_item(tensor);
  }
  std::set<std::string> labels;
  for (const Call& call : net.calls) text += call_item(net, call, labels);
  return text + "}\n";
}

}  // namespace prunerc::net
