// The inputs and outputs of the net.
#include "ir/onnx/importer.h"
#include "ir/support/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace prunerc::onnx {

Result<std::vector<int64_t>> Importer::input_shape(const ValueInfo& info) {
  std::vector<int64_t> shape;
  for (std::size_t i = 0; i < info.shape.size(); ++i) {
    const Dim& dim = info.shape[i];
    if (dim.value >= 0) {
      shape.push_back(dim.value);
      continue;
    }
    const std::string name = dim_name(info, i);
    dims_.insert(name);
    const auto found = options_.dims.find(name);
    if (found == options_.dims.end()) dims_unbound_.insert(name);
    shape.push_back(found == options_.dims.end() ? 1 : found->second);
  }
  return shape;
}

// Inputs that are given go before what the model holds for them.
Result<void> Importer::add_given(Scope& scope) {
  for (const ValueInfo& info : model_.graph.inputs) {
    const auto given = options_.constants.find(info.name);
    const std::optional<ir::DType> dtype = dtype_of(info.onnx_type);
    if (given == options_.constants.end() || !dtype || scope.values.contains(info.name)) continue;
    ir::Tensor tensor = given->second;
    std::vector<std::string> wanted;
    std::vector<int64_t> shape;
    for (std::size_t i = 0; i < info.shape.size(); ++i) {
      const int64_t number = info.shape[i].value;
      const std::string name = dim_name(info, i);
      if (number < 0) dims_.insert(name);
      const auto bound = options_.dims.find(name);
      const bool is_open = number < 0 && bound == options_.dims.end();
      const int64_t own = i < tensor.shape.size() ? tensor.shape[i] : 1;
      shape.push_back(number >= 0 ? number : is_open ? own : bound->second);
      wanted.push_back(is_open ? name : fmt::format("{}", shape.back()));
    }
    // A number alone stands for a tensor of one element.
    const bool is_one =
        std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent == 1; });
    if (tensor.shape.empty() && is_one) tensor.shape = shape;
    if (tensor.dtype != *dtype || (info.has_shape && tensor.shape != shape)) {
      std::vector<std::string> found;
      for (const int64_t extent : tensor.shape) found.push_back(fmt::format("{}", extent));
      return error(Diag::kUsageShape, info.name, at(ir::to_string(*dtype), wanted),
                   at(ir::to_string(tensor.dtype), found));
    }
    const Value* const value = constant(tensor);
    name_value(value, info.name);
    PRUNERC_TRY_VOID(define(scope, info.name, value));
  }
  // What the caller gives is not the model's doing.
  made_bytes_ = 0;
  return {};
}

Result<void> Importer::add_inputs(Scope& scope) {
  std::set<std::string> names;
  std::set<std::string_view> own;
  for (const auto& [name, constant] : model_.graph.initializers) own.insert(name);
  for (const ValueInfo& info : model_.graph.inputs) {
    if (!names.insert(info.name).second) {
      return error(Diag::kOnnxMalformed, model_.path,
                   printable_line("its input '" + info.name + "' is given twice"));
    }
    // Before IR version 4 constants were inputs too.
    if (own.contains(info.name)) continue;
    fed_names_.push_back(info.name);
    if (!scope.values.contains(info.name)) PRUNERC_TRY_VOID(add_input(info, scope));
  }
  if (!dims_unbound_.empty()) {
    return error(Diag::kOnnxDims, model_.path,
                 printable_line(fmt::format("{}", fmt::join(dims_unbound_, ", "))),
                 printable_line(fmt::format("{}", fmt::join(dims_unbound_, "=N,"))));
  }
  for (const auto& [name, value] : options_.dims) {
    if (dims_.contains(name)) continue;
    return error(
        Diag::kOnnxDimUnknown, model_.path, name,
        dims_.empty() ? "none" : printable_line(fmt::format("{}", fmt::join(dims_, ", "))));
  }
  for (const auto& [name, tensor] : options_.constants) {
    std::vector<std::string> known;
    for (const ValueInfo& info : model_.graph.inputs) known.push_back("'" + info.name + "'");
    if (std::find(known.begin(), known.end(), "'" + name + "'") != known.end()) continue;
    return error(
        Diag::kUsageUnknownTensor, model_.path, "input '" + name + "'",
        known.empty() ? "none" : printable_line(fmt::format("{}", fmt::join(known, ", "))));
  }
  return {};
}

Result<void> Importer::add_input(const ValueInfo& info, Scope& scope) {
  const std::optional<ir::DType> dtype = dtype_of(info.onnx_type);
  std::string why;
  if (info.onnx_type == 0) {
    why = "it is no tensor";
  } else if (!dtype) {
    why = "there is no type " + type_name(info.onnx_type) + " here";
  } else if (!info.has_shape) {
    why = "the model does not say its rank";
  }
  if (!why.empty()) {
    Node node;
    node.op = "an input";
    node.name = info.name;
    node.outputs = {info.name};
    misses_more_than_operands_ = true;
    miss(node, why, scope);
    return {};
  }
  PRUNERC_TRY(std::vector<int64_t> shape, input_shape(info));
  const std::optional<int64_t> bytes = tensor_bytes(ir::byte_size(*dtype), shape);
  if (!bytes) {
    return error(Diag::kOnnxMalformed, model_.path,
                 printable_line("the input '" + info.name + "' has a shape that cannot be"));
  }
  if (*bytes == 0) {
    const Value* const value = constant(ir::Tensor(*dtype, shape));
    name_value(value, info.name);
    return define(scope, info.name, value);
  }
  Value* const value = new_value(*dtype, std::move(shape));
  name_value(value, info.name);
  inputs_.push_back(value);
  input_names_.push_back(info.name);
  return define(scope, info.name, value);
}

std::string Importer::input_name(const Value* value) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == value) return input_names_[i];
  }
  return {};
}

namespace {

// Why no net has it as an output; empty: it may.
std::string output_flaw(const Value& value) {
  if (value.is_sequence) return "is a sequence of tensors";
  if (value.stands_for != 0) return "is of " + type_name(value.stands_for);
  return value.num_elements() == 0 ? "has no elements" : "";
}

}  // namespace

Result<void> Importer::add_output(const std::string& name, const Value* value) {
  if (const std::string flaw = output_flaw(*value); !flaw.empty()) {
    if (!options_.partial)
      return error(Diag::kOnnxUnsupported, model_.path,
                   printable_line("  its output '" + name + "' " + flaw));
    missing_[{"an output", "it " + flaw}].push_back(printable_line(name));
    return {};
  }
  // Ours, though rows see it as const.
  Value* result = value->is_result && !value->is_output ? const_cast<Value*>(value) : nullptr;
  if (result == nullptr) {
    // An input, a constant, or an output already: a copy.
    const std::string index = indices(value->rank());
    const std::string body =
        value->shape.empty() ? "Y = X;" : fmt::format("Y[{}] = X[{}];", index, index);
    PRUNERC_TRY(const std::vector<const Value*> copy,
                write_call("copy", {{"X", value}}, {{"Y", value->dtype, value->shape}}, body));
    result = calls_.back().results[0];
  }
  result->is_output = true;
  if (result->name != sanitized(name)) result->name = free_name(name);
  outputs_.push_back(result);
  output_names_.push_back(name);
  return {};
}

Result<void> Importer::add_read(const std::string& name, const Value& value,
                                std::map<std::string, int>& done) {
  for (std::size_t i = 0; i < value.parts.size(); ++i) {
    const Value& part = *value.parts[i];
    if (part.is_result && !part.is_output)
      PRUNERC_TRY_VOID(add_read(fmt::format("{}_{}", name, i), part, done));
  }
  if (!value.is_result || value.is_output || value.stands_for != 0) return {};
  // In functions and sequences others have its name.
  std::string free = name;
  while (!done.emplace(free, 1).second) free = fmt::format("{}_{}", name, ++done[name]);
  return add_output(free, &value);
}

Result<void> Importer::add_outputs(const Scope& scope) {
  std::map<std::string, int> done;  // names of outputs, and how many wanted each
  for (const ValueInfo& info : model_.graph.outputs) {
    const auto found = scope.values.find(info.name);
    if (found == scope.values.end()) {
      return error(Diag::kOnnxMalformed, model_.path,
                   printable_line("nothing gives its output '" + info.name + "'"));
    }
    if (!done.emplace(info.name, 1).second) {
      return error(Diag::kOnnxMalformed, model_.path,
                   printable_line("its output '" + info.name + "' is given twice"));
    }
    if (found->second != nullptr) PRUNERC_TRY_VOID(add_output(info.name, found->second));
    const auto typeless = typeless_.find(info.name);
    if (found->second == nullptr && typeless != typeless_.end() && !options_.partial) {
      return error(Diag::kOnnxUnsupported, model_.path,
                   printable_line("  its output '" + info.name + "' is of " + typeless->second));
    }
  }
  for (const auto& [name, value] : read_by_missing_) PRUNERC_TRY_VOID(add_read(name, *value, done));
  if (outputs_.empty()) return error(Diag::kOnnxUnsupported, model_.path, "  all of it");
  return {};
}

}  // namespace prunerc::onnx
