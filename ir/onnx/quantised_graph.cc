#include "ir/onnx/quantised_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace prunerc::onnx {
namespace {

/// Bytes of a name that stands in several nodes.
constexpr std::size_t kMaxName = 256;

bool is_quantiser(const Node& node, std::string_view op) {
  // One may be read by many products.
  constexpr std::size_t kMaxInputs = 3, kMaxAttributes = 4;
  return node.op == op && node.overload.empty() && node.inputs.size() <= kMaxInputs &&
         node.attributes.size() <= kMaxAttributes &&
         (node.domain.empty() || node.domain == "com.microsoft") &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const std::string& name) { return name.size() <= kMaxName; });
}

}  // namespace

bool Dequantised::is_plain() const { return scale->num_elements() == 1 && is_byte(*zero); }

bool is_own(const Node& node, std::string_view op) {
  return node.op == op && node.domain.empty() && node.overload.empty();
}

const Attribute* find_attribute(const Node& node, std::string_view name) {
  for (const Attribute& item : node.attributes) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

int64_t int_of(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* const found = find_attribute(node, name);
  return found != nullptr && found->i ? *found->i : otherwise;
}

bool has_only(const Node& node, std::initializer_list<std::string_view> names) {
  return std::all_of(node.attributes.begin(), node.attributes.end(), [&](const Attribute& item) {
    return std::find(names.begin(), names.end(), item.name) != names.end();
  });
}

bool is_byte(const Constant& constant) {
  return constant.dtype == ir::DType::kU8 || constant.dtype == ir::DType::kI8;
}

double number_of(const Constant& constant) {
  const ir::Tensor tensor = tensor_of(constant);
  return ir::is_float(tensor.dtype) ? tensor.get(0) : static_cast<double>(tensor.get_int(0));
}

QuantisedGraph::QuantisedGraph(const Graph& graph) {
  for (const auto& [name, constant] : graph.initializers) constants_.emplace(name, &constant);
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      is_twice_ = is_twice_ || constants_.contains(name) || givers_.contains(name);
      givers_.emplace(name, &node);
    }
  }
  for (const Node& node : graph.nodes) {
    const Attribute* const value =
        is_own(node, "Constant") ? find_attribute(node, "value") : nullptr;
    if (value != nullptr && value->tensor && !node.outputs.empty())
      constants_.emplace(node.outputs[0], &*value->tensor);
  }
  // Whoever calls may give other values.
  for (const ValueInfo& info : graph.inputs) {
    is_twice_ = is_twice_ || givers_.contains(info.name);
    constants_.erase(info.name);
  }
  read_by(graph, false);
}

void QuantisedGraph::read_by(const Graph& graph, bool is_within) {
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) {
      num_reads_[name] += is_within ? 2 : 1;
      if (!is_within) readers_[name] = &node;
    }
    for (const Attribute& item : node.attributes) {
      if (item.graph != nullptr) read_by(*item.graph, true);
    }
  }
  for (const ValueInfo& info : graph.outputs) num_reads_[info.name] += 2;
}

const Constant* QuantisedGraph::constant(const std::string& name) const {
  if (name.empty()) return nullptr;
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : found->second;
}

const Constant* QuantisedGraph::constant(const Node& node, std::size_t input) const {
  return input < node.inputs.size() ? constant(node.inputs[input]) : nullptr;
}

const Node* QuantisedGraph::giver(const Node& node, std::size_t input) const {
  if (node.inputs.size() <= input) return nullptr;
  const auto found = givers_.find(node.inputs[input]);
  return found == givers_.end() || found->second > &node ? nullptr : found->second;
}

// The one node of this graph that reads what a node gives; null: there are more, or none.
const Node* QuantisedGraph::only_reader(const Node& node) const {
  if (node.outputs.size() != 1) return nullptr;
  const auto found = num_reads_.find(node.outputs[0]);
  if (found == num_reads_.end() || found->second != 1) return nullptr;
  const Node* const reader = readers_.at(node.outputs[0]);
  return &node < reader ? reader : nullptr;
}

bool QuantisedGraph::is_dequantised(const Node& node, std::size_t input) const {
  const Node* const from = giver(node, input);
  return from != nullptr && is_quantiser(*from, "DequantizeLinear");
}

std::optional<Dequantised> QuantisedGraph::dequantised(const Node& node, std::size_t input) const {
  if (!is_dequantised(node, input)) return std::nullopt;
  const Node& from = *giver(node, input);
  if (from.inputs.size() != 3 || !has_only(from, {"axis"})) return std::nullopt;
  const Constant *const scale = constant(from, 1), *const zero = constant(from, 2);
  if (scale == nullptr || zero == nullptr || scale->dtype != ir::DType::kF32 ||
      scale->num_elements() != zero->num_elements())
    return std::nullopt;
  return Dequantised{from.inputs[0], from.inputs[1], from.inputs[2],
                     scale,          zero,           int_of(from, "axis", 1)};
}

// Of a Clip: its operand, or its attribute in old operator sets; nullopt: no constant of f32.
std::optional<double> QuantisedGraph::bound(const Node& clip, std::size_t input,
                                            std::string_view name, double otherwise) const {
  if (const Attribute* const old = find_attribute(clip, name))
    return old->f ? std::optional<double>(*old->f) : std::nullopt;
  if (clip.inputs.size() <= input || clip.inputs[input].empty()) return otherwise;
  const Constant* const given = constant(clip, input);
  if (given == nullptr || given->dtype != ir::DType::kF32 || given->num_elements() != 1)
    return std::nullopt;
  return number_of(*given);
}

// Whether it leaves all as it is but what becomes the least or the largest of 8 bits anyway.
bool QuantisedGraph::is_saturation(const Node& node, const Constant& scale,
                                   const Constant& zero) const {
  std::optional<double> low = 0, high = std::numeric_limits<double>::infinity();
  if (is_own(node, "Clip")) {
    if (!has_only(node, {"min", "max"})) return false;
    low = bound(node, 1, "min", -*high);
    high = bound(node, 2, "max", *high);
  } else if (!is_own(node, "Relu")) {
    return false;
  }
  const auto step = static_cast<float>(number_of(scale));
  if (!low || !high || !(step > 0)) return false;
  const auto place = [&](double number) {
    return std::nearbyint(static_cast<float>(number) / step) + static_cast<float>(number_of(zero));
  };
  const bool is_signed = zero.dtype == ir::DType::kI8;
  return place(*low) <= (is_signed ? -128.0F : 0.0F) && place(*high) >= (is_signed ? 127 : 255);
}

Requantised QuantisedGraph::requantised(const Node& node) const {
  const Node* reader = only_reader(node);
  const Node* between = nullptr;
  if (reader != nullptr && (is_own(*reader, "Relu") || is_own(*reader, "Clip"))) {
    // The bounds of a Clip are no place for it.
    if (reader->inputs[0] != node.outputs[0]) return {};
    between = reader;
    reader = only_reader(*reader);
  }
  if (reader == nullptr || !is_quantiser(*reader, "QuantizeLinear") || reader->inputs.size() != 3 ||
      reader->outputs.size() != 1 || !has_only(*reader, {"axis", "saturate"}))
    return {};
  const Constant *const scale = constant(*reader, 1), *const zero = constant(*reader, 2);
  if (scale == nullptr || zero == nullptr || scale->dtype != ir::DType::kF32 || !is_byte(*zero) ||
      scale->num_elements() != 1 || zero->num_elements() != 1)
    return {};
  if (between != nullptr && !is_saturation(*between, *scale, *zero)) return {};
  return {reader, between, scale, zero};
}

}  // namespace prunerc::onnx
