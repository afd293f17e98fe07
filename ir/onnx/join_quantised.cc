#include "ir/onnx/join_quantised.h"

#include "ir/onnx/quantised_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace prunerc::onnx {
namespace {

/// A scale of the bias may differ from the product of the others by roundings.
constexpr double kScaleError = 0x1p-23;
/// Of a product of two bytes less their zero points.
constexpr int64_t kMostOfProduct = 255 * 255;
constexpr int64_t kMostOfSum = std::numeric_limits<int32_t>::max();
/// Elements of scales and biases that are looked at, of all products.
constexpr int64_t kMaxRead = int64_t{1} << 26;
/// Parts that are put together, in all nodes: each is three names.
constexpr int64_t kMaxParts = int64_t{1} << 16;
/// Of such scales products of two over a third keep all digits of f32, and bytes times one do.
constexpr double kMostScale = 0x1p40, kLeastScale = 0x1p-40;
/// Of an operand's scale over the result's, in a sum: what zero points bring to it is one number of f32, which
/// cancels what the bytes bring. Up to here that is exact to 2^-6 of a step.
constexpr double kMostRatio = 0x1p8;

/// Operators that only say which element stands where, of their first operand.
constexpr std::string_view kMoves[] = {"Reshape", "Flatten",      "Transpose",    "Squeeze",
                                       "Slice",   "Unsqueeze",    "Gather",       "Expand",
                                       "Tile",    "DepthToSpace", "SpaceToDepth", "MaxPool"};

constexpr const char* kOpenScale =
    "a scale or zero point that is not there, is no constant or is of another type";

// Of Gemm: 1 where it is not given.
bool is_one(const Node& node, std::string_view name) {
  const Attribute* const found = find_attribute(node, name);
  return found == nullptr || (found->f && *found->f == 1);
}

bool is_all_zero(const Constant& constant) {
  const ir::Tensor tensor = tensor_of(constant);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.get_int(i) != 0) return false;
  }
  return true;
}

// A Resize that only moves elements: a window may reach beyond the image.
bool is_nearest(const Node& node) {
  const Attribute *const mode = find_attribute(node, "mode"), *const places = find_attribute(
                                                                  node,
                                                                  "coordinate_transformation_mode");
  return is_own(node, "Resize") && (mode == nullptr || mode->s == "nearest") &&
         (places == nullptr || places->s != "tf_crop_and_resize");
}

bool is_moderate(const Constant& scale) {
  const double number = number_of(scale);
  return number >= kLeastScale && number <= kMostScale;
}

/// Conv, Gemm or MatMul of what two DequantizeLinear give.
struct Product {
  explicit Product(const Node& node_in)
      : node(node_in), is_conv(node.op == "Conv"), is_gemm(node.op == "Gemm") {
    across = is_conv || (is_gemm && int_of(node, "transB", 0) != 0) ? 0 : 1;
  }

  const Node& node;
  bool is_conv, is_gemm;
  std::size_t across;  ///< axis of the weights along which each place gives sums of its own
  Dequantised x{}, w{};
  const Constant* weights = nullptr;  ///< null: of a MatMul, operands that change
  Requantised to;
  std::string bias;
  int64_t largest = 0;  ///< of the bias
};

class Joiner {
 public:
  explicit Joiner(const Graph& graph) : graph_(graph), around_(graph) {}

  JoinedNodes run() {
    JoinedNodes out;
    if (around_.is_ambiguous()) return out;
    for (const Node& node : graph_.nodes) {
      if (std::string why = join(node); !why.empty())
        out.in_floats.emplace_back(&node, std::move(why));
    }
    if (made_.empty()) return out;
    // Elements must not move when they are pointed to.
    out.nodes.reserve(graph_.nodes.size());
    for (const Node& node : graph_.nodes) {
      if (const auto found = made_.find(&node); found != made_.end()) {
        out.nodes.push_back(std::move(found->second.node));
        out.joined.emplace(&out.nodes.back(), std::move(found->second.joined));
      } else if (!gone_.contains(&node)) {
        out.nodes.push_back(node);
      }
    }
    return out;
  }

 private:
  struct Made {
    Node node;
    JoinedNode joined;
  };

  // Why a product stays in floats; empty: it does not, or it is no product between quantisers.
  std::string join(const Node& node) {
    if (node.outputs.size() != 1 || !around_.is_dequantised(node, 0)) return {};
    if (is_own(node, "Conv") || is_own(node, "Gemm") || is_own(node, "MatMul"))
      return around_.is_dequantised(node, 1) ? join_product(node) : std::string();
    if (is_own(node, "Add")) join_binary(node, "QLinearAdd");
    if (is_own(node, "Mul")) join_binary(node, "QLinearMul");
    if (is_own(node, "GlobalAveragePool")) join_average(node);
    if (is_own(node, "Concat")) join_concat(node);
    const auto moves = [&](std::string_view op) { return is_own(node, op); };
    if (is_nearest(node) || std::any_of(std::begin(kMoves), std::end(kMoves), moves))
      join_move(node);
    return {};
  }

  // In the place of the last of the nodes that it stands for.
  JoinedNode& replace(const Node& node, const Requantised& to, Node made) {
    made.name = node.name;
    made.outputs = to.node != nullptr ? to.node->outputs : node.outputs;
    Made item{std::move(made), {}};
    item.joined.written.push_back(node);
    for (const Node* const more : {to.between, to.node}) {
      if (more != nullptr) item.joined.written.push_back(*more);
    }
    if (to.node != nullptr) gone_.insert(&node);
    if (to.between != nullptr) gone_.insert(to.between);
    const Node* const place = to.node != nullptr ? to.node : &node;
    return made_.emplace(place, std::move(item)).first->second.joined;
  }

  // Weights of two axes or more, with a scale for all or for each place of an axis.
  const Constant* weights(const Dequantised& d, std::size_t axis) const {
    const Constant* const w = around_.constant(d.values);
    if (w == nullptr || !is_byte(*d.zero) || w->dtype != d.zero->dtype) return nullptr;
    if (w->shape.size() < 2 || axis >= w->shape.size() || w->num_elements() == 0) return nullptr;
    if (d.scale->num_elements() == 1) return w;
    const int64_t own = d.axis < 0 ? d.axis + static_cast<int64_t>(w->shape.size()) : d.axis;
    const std::vector<int64_t> by_place = {w->shape[axis]};
    const bool fits = own == static_cast<int64_t>(axis) && d.scale->shape == by_place &&
                      d.zero->shape == by_place;
    return fits ? w : nullptr;
  }

  std::string read_operands(Product& p) {
    const std::optional<Dequantised> x = around_.dequantised(p.node, 0),
                                     w = around_.dequantised(p.node, 1);
    if (!x || !w) return kOpenScale;
    p.x = *x;
    p.w = *w;
    if (!p.x.is_plain()) return "a left operand of other than 8 bits, or of several scales";
    p.weights = weights(p.w, p.across);
    if (p.weights != nullptr && (p.is_conv || p.weights->shape.size() == 2)) return {};
    p.weights = nullptr;
    const Constant* const held = around_.constant(p.w.values);
    const bool is_empty = held != nullptr && held->num_elements() == 0;
    if (!p.is_conv && !p.is_gemm && p.w.is_plain() && !is_empty) return {};
    if (held != nullptr) return "weights of other than 8 bits, or of scales by another axis";
    return p.is_conv || p.is_gemm ? "a right operand that is no constant"
                                  : "a right operand of other than 8 bits, or of several scales";
  }

  // Whether the factors of sums, which are f32, keep their digits and are finite, also over the
  // result's scale: infinity times a sum of 0 is no number.
  bool are_normal(const Product& p) {
    reads_left_ -= p.w.scale->num_elements();
    if (reads_left_ < 0) return false;
    const double of_x = number_of(*p.x.scale);
    const auto of_y = static_cast<float>(p.to.node != nullptr ? number_of(*p.to.scale) : 1);
    const ir::Tensor by = tensor_of(*p.w.scale);
    for (int64_t i = 0; i < by.num_elements(); ++i) {
      const auto factor = static_cast<float>(of_x * by.get(i));
      if (!std::isnormal(factor) || !std::isfinite(factor / of_y)) return false;
    }
    return true;
  }

  // Whether a bias of whole numbers has the scale of the sum.
  bool fits(const Constant& values, const Constant& scale, const Product& p) {
    const int64_t places = values.num_elements(), num_own = scale.num_elements(),
                  num_by = p.w.scale->num_elements();
    const auto is_for = [&](int64_t count) { return count == 1 || count == places; };
    reads_left_ -= places + num_own + num_by;
    if (places == 0 || !is_for(num_own) || !is_for(num_by) || reads_left_ < 0) return false;
    const ir::Tensor own = tensor_of(scale), by = tensor_of(*p.w.scale);
    const double of_x = number_of(*p.x.scale);
    for (int64_t i = 0; i < std::max(num_own, num_by); ++i) {
      const double wanted = of_x * by.get(num_by == 1 ? 0 : i);
      if (!(std::abs(own.get(num_own == 1 ? 0 : i) - wanted) <= kScaleError * std::abs(wanted)))
        return false;
    }
    return true;
  }

  // False: a bias that is no whole numbers of the sum's scale.
  bool read_bias(Product& p) {
    if (p.node.inputs.size() < 3 || p.node.inputs[2].empty()) return true;
    if (!around_.is_dequantised(p.node, 2)) return false;
    const Node& from = *around_.giver(p.node, 2);
    const Constant *const values = around_.constant(from, 0), *const scale =
                                                                  around_.constant(from, 1);
    if (values == nullptr || scale == nullptr || !has_only(from, {"axis"}) ||
        values->dtype != ir::DType::kI32 || values->shape.size() != 1 ||
        scale->dtype != ir::DType::kF32)
      return false;
    if (from.inputs.size() == 3 && !from.inputs[2].empty()) {
      const Constant* const zero = around_.constant(from, 2);
      if (zero == nullptr || zero->dtype != ir::DType::kI32) return false;
      reads_left_ -= zero->num_elements();
      if (reads_left_ < 0 || !is_all_zero(*zero)) return false;
    }
    if (!fits(*values, *scale, p)) return false;
    const ir::Tensor b = tensor_of(*values);
    for (int64_t i = 0; i < b.num_elements(); ++i)
      p.largest = std::max(p.largest, std::abs(b.get_int(i)));
    p.bias = from.inputs[0];
    return true;
  }

  static Node product_of(const Product& p) {
    Node made;
    for (const Attribute& item : p.node.attributes) {
      if (item.name != "alpha" && item.name != "beta") made.attributes.push_back(item);
    }
    const Dequantised &x = p.x, &w = p.w;
    if (!p.is_conv && !p.is_gemm && p.to.node == nullptr) {
      made.op = "MatMulIntegerToFloat";
      made.domain = "com.microsoft";
      made.inputs = {x.values, w.values, x.scale_name, w.scale_name, x.zero_name, w.zero_name};
      return made;
    }
    made.op = p.is_conv ? "QLinearConv" : p.is_gemm ? "QGemm" : "QLinearMatMul";
    if (p.is_gemm) made.domain = "com.microsoft";
    made.inputs = {x.values, x.scale_name, x.zero_name, w.values, w.scale_name, w.zero_name};
    if (p.is_gemm) made.inputs.push_back(p.bias);
    if (p.to.node != nullptr)
      made.inputs.insert(made.inputs.end(), {p.to.node->inputs[1], p.to.node->inputs[2]});
    if (p.is_conv && !p.bias.empty()) made.inputs.push_back(p.bias);
    return made;
  }

  std::string join_product(const Node& node) {
    Product p(node);
    if (p.is_gemm && (!is_one(node, "alpha") || !is_one(node, "beta"))) return "alpha or beta";
    if (std::string why = read_operands(p); !why.empty()) return why;
    p.to = around_.requantised(node);
    if (p.is_conv && p.to.node == nullptr)
      return "a result that goes on in floats, or is quantised with several scales";
    if (p.is_gemm && p.to.node != nullptr && p.to.zero->dtype != p.x.zero->dtype)
      return "a result of another type than the left operand";
    if (!read_bias(p)) return "a bias that is no constant of 32 bits with the sum's scale";
    int64_t most_summed = (kMostOfSum - p.largest) / kMostOfProduct;
    if (p.weights != nullptr) {
      const int64_t columns = std::max<int64_t>(1, p.weights->shape[p.across]);
      if (p.weights->num_elements() / columns > most_summed) return "sums that may leave 32 bits";
      most_summed = std::numeric_limits<int64_t>::max();
    }
    if (!are_normal(p)) return "scales whose products f32 does not hold";
    replace(node, p.to, product_of(p)).most_summed = most_summed;
    return {};
  }

  // The first operands, as many as asked for, and the result: of 8 bits of one type, each with one scale. Empty: they are not.
  std::vector<Dequantised> of_one_type(const Node& node, std::size_t count, const Requantised& to) {
    if (to.node == nullptr || node.inputs.size() < count || !is_moderate(*to.scale)) return {};
    std::vector<Dequantised> out;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<Dequantised> x = around_.dequantised(node, i);
      if (!x || !x->is_plain() || !is_moderate(*x->scale) || x->zero->dtype != to.zero->dtype)
        return {};
      out.push_back(*x);
    }
    return out;
  }

  static Node contrib(std::string op) {
    Node made;
    made.op = std::move(op);
    made.domain = "com.microsoft";
    return made;
  }
  static void append(Node& made, const Dequantised& x) {
    made.inputs.insert(made.inputs.end(), {x.values, x.scale_name, x.zero_name});
  }
  static void append(Node& made, const Requantised& to) {
    made.inputs.insert(made.inputs.end(), {to.node->inputs[1], to.node->inputs[2]});
  }

  void join_binary(const Node& node, std::string op) {
    const Requantised to = around_.requantised(node);
    const std::vector<Dequantised> x = of_one_type(node, 2, to);
    if (x.empty() || node.inputs.size() != 2 || !node.attributes.empty()) return;
    for (const Dequantised& one : x) {
      if (node.op == "Add" && number_of(*one.scale) > kMostRatio * number_of(*to.scale)) return;
    }
    Node made = contrib(std::move(op));
    for (const Dequantised& one : x) append(made, one);
    append(made, to);
    replace(node, to, std::move(made));
  }

  void join_average(const Node& node) {
    const Requantised to = around_.requantised(node);
    const std::vector<Dequantised> x = of_one_type(node, 1, to);
    if (x.empty() || !node.attributes.empty()) return;
    Node made = contrib("QLinearGlobalAveragePool");
    append(made, x[0]);
    append(made, to);
    replace(node, to, std::move(made));
  }

  void join_concat(const Node& node) {
    const auto count = static_cast<int64_t>(node.inputs.size());
    if (count > parts_left_) return;
    parts_left_ -= count;
    const Requantised to = around_.requantised(node);
    const std::vector<Dequantised> x = of_one_type(node, node.inputs.size(), to);
    if (x.empty() || !has_only(node, {"axis"})) return;
    Node made = contrib("QLinearConcat");
    made.attributes = node.attributes;
    append(made, to);
    for (const Dequantised& one : x) append(made, one);
    replace(node, to, std::move(made));
  }

  // Bytes that stand for the same numbers on both sides. The scale is positive, so the largest stays the largest.
  void join_move(const Node& node) {
    const Requantised to = around_.requantised(node);
    const std::vector<Dequantised> x = of_one_type(node, 1, to);
    if (x.empty() || number_of(*x[0].scale) != number_of(*to.scale) ||
        number_of(*x[0].zero) != number_of(*to.zero))
      return;
    Node made = node;
    made.inputs[0] = x[0].values;
    replace(node, to, std::move(made)).moved = x[0].zero->dtype;
  }

  const Graph& graph_;
  const QuantisedGraph around_;
  int64_t reads_left_ = kMaxRead, parts_left_ = kMaxParts;
  std::unordered_map<const Node*, Made> made_;  // what stands in the place of a node
  std::unordered_set<const Node*> gone_;
};

}  // namespace

JoinedNodes join_quantised(const Model& model) {
  // What a model calls so may be something else.
  for (const Function& item : model.functions) {
    if (item.domain.empty() || item.domain == "com.microsoft") return {};
  }
  return Joiner(model.graph).run();
}

}  // namespace prunerc::onnx
