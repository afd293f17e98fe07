#include "ir/onnx/join_quantised.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace prunerc::onnx {
namespace {

/// A scale of the bias may differ from the product of the others by roundings.
constexpr double kScaleError = 0x1p-23;
/// Of a product of two bytes less their zero points.
constexpr int64_t kMostOfProduct = 255 * 255;
/// Elements of scales and biases that are looked at, of all products, and bytes of a name that stands in several.
constexpr int64_t kMaxRead = int64_t{1} << 26;
constexpr std::size_t kMaxName = 256;

/// What a DequantizeLinear makes floats of. Names are the model's.
struct Dequantised {
  std::string values;
  std::string scale_name, zero_name;
  const Constant *scale, *zero;
  int64_t axis;
};

bool is_own(const Node& node, std::string_view op) {
  return node.op == op && node.domain.empty() && node.overload.empty();
}
bool is_quantiser(const Node& node, std::string_view op) {
  // One may be read by many products.
  constexpr std::size_t kMaxInputs = 3, kMaxAttributes = 4;
  return node.op == op && node.overload.empty() && node.inputs.size() <= kMaxInputs &&
         node.attributes.size() <= kMaxAttributes &&
         (node.domain.empty() || node.domain == "com.microsoft") &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const std::string& name) { return name.size() <= kMaxName; });
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
// Of Gemm: 1 where it is not given.
bool is_one(const Node& node, std::string_view name) {
  const Attribute* const found = find_attribute(node, name);
  return found == nullptr || (found->f && *found->f == 1);
}

bool is_byte(const Constant& constant) {
  return constant.dtype == ir::DType::kU8 || constant.dtype == ir::DType::kI8;
}
bool is_all(const Constant& constant, int64_t number) {
  const ir::Tensor tensor = tensor_of(constant);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.get_int(i) != number) return false;
  }
  return true;
}
int64_t least_of(const Constant& zero) { return zero.dtype == ir::DType::kU8 ? 0 : -128; }

class Joiner {
 public:
  explicit Joiner(const Graph& graph) : graph_(graph) {
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
    read_by(graph);
  }

  std::vector<Node> run() {
    if (is_twice_) return {};
    for (const Node& node : graph_.nodes) {
      if (is_own(node, "Conv") || is_own(node, "Gemm") || is_own(node, "MatMul")) join(node);
    }
    if (joined_.empty()) return {};
    std::vector<Node> out;
    for (const Node& node : graph_.nodes) {
      if (const auto found = joined_.find(&node); found != joined_.end()) {
        out.push_back(std::move(found->second));
      } else if (!gone_.contains(&node)) {
        out.push_back(node);
      }
    }
    return out;
  }

 private:
  // Graphs within read what is around them, too: what they read is nobody's alone.
  void read_by(const Graph& graph, bool is_within = false) {
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

  const Constant* constant(const Node& node, std::size_t input) const {
    if (node.inputs.size() <= input) return nullptr;
    const auto found = constants_.find(node.inputs[input]);
    return found == constants_.end() ? nullptr : found->second;
  }
  const Node* giver(const Node& node, std::size_t input) const {
    if (node.inputs.size() <= input) return nullptr;
    const auto found = givers_.find(node.inputs[input]);
    return found == givers_.end() || found->second > &node ? nullptr : found->second;
  }
  // The one node of this graph that reads what a node gives; null: there are more, or none.
  const Node* only_reader(const Node& node) const {
    if (node.outputs.size() != 1) return nullptr;
    const auto found = num_reads_.find(node.outputs[0]);
    if (found == num_reads_.end() || found->second != 1) return nullptr;
    const Node* const reader = readers_.at(node.outputs[0]);
    return &node < reader ? reader : nullptr;
  }

  std::optional<Dequantised> dequantised(const Node& node, std::size_t input) const {
    const Node* const from = giver(node, input);
    if (from == nullptr || !is_quantiser(*from, "DequantizeLinear") || from->inputs.size() != 3 ||
        !has_only(*from, {"axis"}))
      return std::nullopt;
    const Constant *const scale = constant(*from, 1), *const zero = constant(*from, 2);
    if (scale == nullptr || zero == nullptr || scale->dtype != ir::DType::kF32 ||
        scale->num_elements() != zero->num_elements())
      return std::nullopt;
    return Dequantised{from->inputs[0],         from->inputs[1], from->inputs[2], scale, zero,
                       int_of(*from, "axis", 1)};
  }

  // The weights of a product: of two axes or more, a scale for all or for each place of `axis`.
  const Constant* weights(const Dequantised& d, int64_t axis) const {
    const auto found = constants_.find(d.values);
    if (found == constants_.end() || !is_byte(*d.zero) || found->second->dtype != d.zero->dtype)
      return nullptr;
    const Constant& w = *found->second;
    const auto rank = static_cast<int64_t>(w.shape.size());
    if (rank < 2 || axis >= rank || w.num_elements() == 0) return nullptr;
    if (d.scale->num_elements() == 1) return &w;
    const int64_t own = d.axis < 0 ? d.axis + rank : d.axis;
    const std::vector<int64_t> by_place = {w.shape[static_cast<std::size_t>(axis)]};
    return own == axis && d.scale->shape == by_place && d.zero->shape == by_place ? &w : nullptr;
  }

  // Whether the factors of sums, which are f32, keep their digits and are finite, also over the
  // result's scale: infinity times a sum of 0 is no number.
  bool are_normal(const Dequantised& x, const Dequantised& w, float of_y) {
    reads_left_ -= w.scale->num_elements();
    if (reads_left_ < 0) return false;
    const double of_x = tensor_of(*x.scale).get(0);
    const ir::Tensor by = tensor_of(*w.scale);
    for (int64_t i = 0; i < by.num_elements(); ++i) {
      const auto factor = static_cast<float>(of_x * by.get(i));
      if (!std::isnormal(factor) || !std::isfinite(factor / of_y)) return false;
    }
    return true;
  }

  // The bias of sums of products of these: whole numbers of the same scale. Empty: it is none.
  std::string bias(const Node& node, const Dequantised& x, const Dequantised& w, int64_t* largest) {
    const Node* const from = giver(node, 2);
    if (from == nullptr || !is_quantiser(*from, "DequantizeLinear") || !has_only(*from, {"axis"}) ||
        from->inputs.size() < 2)
      return {};
    const Constant *const values = constant(*from, 0), *const scale = constant(*from, 1);
    if (values == nullptr || scale == nullptr || values->dtype != ir::DType::kI32 ||
        values->shape.size() != 1 || scale->dtype != ir::DType::kF32)
      return {};
    if (from->inputs.size() == 3 && !from->inputs[2].empty()) {
      const Constant* const zero = constant(*from, 2);
      if (zero == nullptr || zero->dtype != ir::DType::kI32) return {};
      reads_left_ -= zero->num_elements();
      if (reads_left_ < 0 || !is_all(*zero, 0)) return {};
    }
    const int64_t places = values->num_elements(), num_own = scale->num_elements(),
                  num_by = w.scale->num_elements();
    const auto fits = [&](int64_t count) { return count == 1 || count == places; };
    reads_left_ -= places + num_own + num_by;
    if (places == 0 || !fits(num_own) || !fits(num_by) || reads_left_ < 0) return {};
    const ir::Tensor own = tensor_of(*scale), by = tensor_of(*w.scale), b = tensor_of(*values);
    const double of_x = tensor_of(*x.scale).get(0);
    for (int64_t i = 0; i < std::max(num_own, num_by); ++i) {
      const double wanted = of_x * by.get(num_by == 1 ? 0 : i);
      if (!(std::abs(own.get(num_own == 1 ? 0 : i) - wanted) <= kScaleError * std::abs(wanted)))
        return {};
    }
    for (int64_t i = 0; i < places; ++i) *largest = std::max(*largest, std::abs(b.get_int(i)));
    return from->inputs[0];
  }

  // What makes 8 bits of it, alone or behind a Relu that saturation does as well; null: nothing does.
  const Node* quantiser(const Node& node, const Node** between) const {
    const Node* reader = only_reader(node);
    const bool has_relu = reader != nullptr && is_own(*reader, "Relu");
    *between = has_relu ? reader : nullptr;
    if (has_relu) reader = only_reader(*reader);
    if (reader == nullptr || !is_quantiser(*reader, "QuantizeLinear") ||
        reader->inputs.size() != 3 || reader->outputs.size() != 1 ||
        !has_only(*reader, {"axis", "saturate"}))
      return nullptr;
    const Constant *const scale = constant(*reader, 1), *const zero = constant(*reader, 2);
    if (scale == nullptr || zero == nullptr || scale->dtype != ir::DType::kF32 || !is_byte(*zero) ||
        scale->num_elements() != 1 || zero->num_elements() != 1)
      return nullptr;
    const bool saturates = is_all(*zero, least_of(*zero)) && tensor_of(*scale).get(0) > 0;
    return has_relu && !saturates ? nullptr : reader;
  }

  // The product of whole numbers in place of `node`. `added`: its bias, or none; `to`: what makes 8 bits of
  // it, or null.
  static Node product_of(const Node& node, const Dequantised& x, const Dequantised& w,
                         const std::string& added, const Node* to) {
    const bool is_conv = node.op == "Conv", is_gemm = node.op == "Gemm";
    Node made;
    made.name = node.name;
    made.outputs = to != nullptr ? to->outputs : node.outputs;
    for (const Attribute& item : node.attributes) {
      if (item.name != "alpha" && item.name != "beta") made.attributes.push_back(item);
    }
    if (!is_conv && !is_gemm && to == nullptr) {
      made.op = "MatMulIntegerToFloat";
      made.domain = "com.microsoft";
      made.inputs = {x.values, w.values, x.scale_name, w.scale_name, x.zero_name, w.zero_name};
      return made;
    }
    made.op = is_conv ? "QLinearConv" : is_gemm ? "QGemm" : "QLinearMatMul";
    if (is_gemm) made.domain = "com.microsoft";
    made.inputs = {x.values, x.scale_name, x.zero_name, w.values, w.scale_name, w.zero_name};
    if (is_gemm) made.inputs.push_back(added);
    if (to != nullptr) made.inputs.insert(made.inputs.end(), {to->inputs[1], to->inputs[2]});
    if (is_conv && !added.empty()) made.inputs.push_back(added);
    return made;
  }

  void join(const Node& node) {
    const bool is_conv = node.op == "Conv", is_gemm = node.op == "Gemm";
    const bool transposes = is_gemm && int_of(node, "transB", 0) != 0;
    if (node.outputs.size() != 1 || (is_gemm && (!is_one(node, "alpha") || !is_one(node, "beta"))))
      return;
    const std::optional<Dequantised> x = dequantised(node, 0), w = dequantised(node, 1);
    if (!x || !w || x->scale->num_elements() != 1 || !is_byte(*x->zero)) return;
    const int64_t across = is_conv || transposes ? 0 : 1;
    const Constant* const matrix = weights(*w, across);
    if (matrix == nullptr || (!is_conv && matrix->shape.size() != 2)) return;
    const Node* relu = nullptr;
    const Node* const to = quantiser(node, &relu);
    if (is_conv && to == nullptr) return;
    if (is_gemm && to != nullptr && constant(*to, 2)->dtype != x->zero->dtype) return;
    const bool has_bias = node.inputs.size() > 2 && !node.inputs[2].empty();
    int64_t largest = 0;
    const std::string added = has_bias ? bias(node, *x, *w, &largest) : "";
    if (has_bias && added.empty()) return;
    const int64_t columns = std::max<int64_t>(1, matrix->shape[static_cast<std::size_t>(across)]);
    const int64_t room = std::numeric_limits<int32_t>::max() - largest;
    if (matrix->num_elements() / columns > room / kMostOfProduct) return;
    const double of_y = to != nullptr ? tensor_of(*constant(*to, 1)).get(0) : 1;
    if (!are_normal(*x, *w, static_cast<float>(of_y))) return;
    Node made = product_of(node, *x, *w, added, to);
    if (to != nullptr) gone_.insert(&node);
    if (to != nullptr && relu != nullptr) gone_.insert(relu);
    joined_.emplace(to != nullptr ? to : &node, std::move(made));
  }

  const Graph& graph_;
  std::unordered_map<std::string, const Constant*> constants_;
  std::unordered_map<std::string, const Node*> givers_, readers_;
  std::unordered_map<std::string, int> num_reads_;
  bool is_twice_ = false;  // a name is given by two
  int64_t reads_left_ = kMaxRead;
  std::unordered_map<const Node*, Node> joined_;  // what stands in the place of a node
  std::unordered_set<const Node*> gone_;
};

}  // namespace

std::vector<Node> join_quantised(const Model& model) {
  // What a model calls so may be something else.
  for (const Function& item : model.functions) {
    if (item.domain.empty() || item.domain == "com.microsoft") return {};
  }
  return Joiner(model.graph).run();
}

}  // namespace prunerc::onnx
