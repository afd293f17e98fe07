// Who gives and who reads the tensors of a graph, and what stands between quantisers there.
#ifndef PRUNERC_IR_ONNX_QUANTISED_GRAPH_H_
#define PRUNERC_IR_ONNX_QUANTISED_GRAPH_H_

#include "ir/onnx/model.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace prunerc::onnx {

/// What a DequantizeLinear makes floats of. Names are the model's.
struct Dequantised {
  std::string values;
  std::string scale_name, zero_name;
  const Constant *scale, *zero;
  int64_t axis;

  /// Of 8 bits, with one scale for all.
  bool is_plain() const;
};

/// What alone makes 8 bits of a node's result, with one scale for all.
struct Requantised {
  const Node* node = nullptr;     ///< null: nothing does
  const Node* between = nullptr;  ///< a Relu or a Clip that saturation does as well
  const Constant *scale = nullptr, *zero = nullptr;
};

/// Of ONNX's own domain.
bool is_own(const Node& node, std::string_view op);
const Attribute* find_attribute(const Node& node, std::string_view name);
int64_t int_of(const Node& node, std::string_view name, int64_t otherwise);
/// Whether it has no other attributes than these.
bool has_only(const Node& node, std::initializer_list<std::string_view> names);
bool is_byte(const Constant& constant);
/// Of one that has elements, the first.
double number_of(const Constant& constant);

/// Of a graph, which must live longer. Graphs within it read what is around them, so that is nobody's alone.
class QuantisedGraph {
 public:
  explicit QuantisedGraph(const Graph& graph);

  /// A name is given by two: nothing can be said of it.
  bool is_ambiguous() const { return is_twice_; }
  /// Null: it is none, or whoever calls may give another.
  const Constant* constant(const std::string& name) const;
  const Constant* constant(const Node& node, std::size_t input) const;
  /// The node before this one that gives the input; null: there is none.
  const Node* giver(const Node& node, std::size_t input) const;
  /// Whether the input comes out of a DequantizeLinear, of whatever kind.
  bool is_dequantised(const Node& node, std::size_t input) const;
  /// Nullopt: it does not, or the graph alone does not say with which scales and zero points.
  std::optional<Dequantised> dequantised(const Node& node, std::size_t input) const;
  Requantised requantised(const Node& node) const;

 private:
  void read_by(const Graph& graph, bool is_within);
  const Node* only_reader(const Node& node) const;
  std::optional<double> bound(const Node& clip, std::size_t input, std::string_view name,
                              double otherwise) const;
  bool is_saturation(const Node& node, const Constant& scale, const Constant& zero) const;

  std::unordered_map<std::string, const Constant*> constants_;
  std::unordered_map<std::string, const Node*> givers_, readers_;
  std::unordered_map<std::string, int> num_reads_;
  bool is_twice_ = false;
};

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_QUANTISED_GRAPH_H_
