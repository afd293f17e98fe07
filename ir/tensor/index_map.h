// IndexMap: "(i, j) -> (i // 16, j, i % 16)" as a value, and what it does to a box of indices.
#ifndef PRUNERC_IR_TENSOR_INDEX_MAP_H_
#define PRUNERC_IR_TENSOR_INDEX_MAP_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// A quasi-affine function from index tuples to index tuples: sums, differences, products with a
/// constant, floor quotients and remainders by a positive constant. Owns itself; belongs to no
/// Program.
class IndexMap {
 public:
  /// Reads the text form. Errors: IndexMapText.
  static Result<IndexMap> parse(std::string_view text);
  /// Each index to itself.
  static IndexMap identity(int num_inputs);

  int num_inputs() const { return static_cast<int>(names_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  /// The normal form of the text: parse(text()) is an equal map.
  std::string text() const;

  /// The outputs as expressions over `inputs` (as many as num_inputs). Not simplified.
  std::vector<Expr> apply(IrBuilder& b, std::span<const Expr> inputs) const;
  /// The outputs at one point; arithmetic wraps.
  std::vector<int64_t> at(std::span<const int64_t> inputs) const;
  /// Does output `o` mention input `i`?
  bool uses(int output, int input) const;
  /// The smallest extent from `extent` on for which every `input // c` and `input % c` comes out
  /// even.
  int64_t round_up(int input, int64_t extent) const;

  bool operator==(const IndexMap&) const = default;

 private:
  friend class IndexMapParser;
  enum class Op : uint8_t { kInput, kConst, kAdd, kSub, kMul, kDiv, kMod };
  struct Node {
    Op op = Op::kConst;
    int64_t value = 0;  // the input's number, or the constant
    int lhs = -1;
    int rhs = -1;
    bool operator==(const Node&) const = default;
  };
  const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::string text_of(int id, int outer) const;
  bool mentions(int id, int input) const;

  std::vector<std::string> names_;
  std::vector<Node> nodes_;  // operands come before their operation
  std::vector<int> outputs_;
};

/// What a map does to the indices of a box [0, domain).
struct Layout {
  std::vector<int64_t> domain;
  /// The image lies in [0, shape).
  std::vector<int64_t> shape;
  /// Some places of the image belong to no element.
  bool pads = false;
  /// The box around the domain of which the image is all of [0, shape); empty if there is none, and
  /// then the map has no inverse.
  std::vector<int64_t> whole;
};

/// Shows that the map is injective on the box: by the structure of the map, for small boxes by
/// enumeration. Errors: IndexMapArity, IndexMapNotInjective.
Result<Layout> make_layout(const IndexMap& map, std::span<const int64_t> domain);

/// The inputs as expressions of `outputs`, for a layout with a `whole`; simplified under `ranges`,
/// which knows the outputs' variables.
std::vector<Expr> invert_layout(IrBuilder& b, const IndexMap& map, const Layout& layout,
                                std::span<const Expr> outputs, const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_INDEX_MAP_H_
