// What a row of the importer sees of a node, and what it writes: calls of small operators.
#ifndef PRUNERC_IR_ONNX_ROW_H_
#define PRUNERC_IR_ONNX_ROW_H_

#include "ir/onnx/model.h"

#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// A tensor of the net that is being written.
struct Value {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::optional<Constant> known;  ///< its elements, where the model has them
  bool is_result = false;         ///< of a call
  bool is_output = false;
  bool is_sequence = false;         ///< no tensor, but a list of tensors
  std::vector<const Value*> parts;  ///< of a sequence
  int32_t stands_for =
      0;  ///< the type of ONNX whose numbers these are, if that is no DType; else 0

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t num_elements() const;
  /// Element of what is known. Floats as doubles.
  double element(int64_t position) const;
  int64_t int_element(int64_t position) const;
};

/// An argument of a call and how the operator's text names it.
struct Arg {
  std::string name;
  const Value* value;
};
/// A result: how the operator's text names it, and its type.
struct Out {
  std::string name;
  ir::DType dtype;
  std::vector<int64_t> shape;
};

class Importer;

/// One node. Threads: one call at a time.
class Row {
 public:
  Row(Importer& importer, const Node& node, int64_t opset, std::vector<const Value*> inputs,
      const std::vector<Attribute>& attributes)
      : importer_(importer),
        node_(node),
        opset_(opset),
        inputs_(std::move(inputs)),
        attributes_(attributes),
        results_(node.outputs.size()) {}

  const Node& node() const { return node_; }
  /// The version of the operator set that the model asks for.
  int64_t opset() const { return opset_; }
  std::size_t num_inputs() const { return inputs_.size(); }
  /// Null: not given.
  const Value* in(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  /// Errors: if it is not given.
  Result<const Value*> need(std::size_t i) const;
  bool wants_output(std::size_t i) const {
    return i < node_.outputs.size() && !node_.outputs[i].empty();
  }

  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  const Attribute* find(std::string_view attribute) const;
  int64_t attr_int(std::string_view name, int64_t otherwise) const;
  double attr_float(std::string_view name, double otherwise) const;
  std::string attr_string(std::string_view name, std::string otherwise) const;
  /// One of these texts; the first if it is not there. Errors: OnnxNode, for any other.
  Result<std::string> attr_choice(std::string_view name,
                                  std::initializer_list<std::string_view> choices) const;
  /// Empty if it is not there.
  std::vector<int64_t> attr_ints(std::string_view name) const;
  std::vector<double> attr_floats(std::string_view name) const;
  /// The first attribute that was asked for and is of another type; empty: none.
  const std::string& mistyped() const { return mistyped_; }

  /// The elements of an operand that must be known before the program can be written. Errors: if
  /// they are not; it says how to give them.
  Result<std::vector<int64_t>> known_ints(std::size_t i) const;
  Result<std::vector<double>> known_numbers(std::size_t i) const;
  /// A known operand's, or else an attribute's (older operator sets).
  Result<std::vector<int64_t>> ints(std::size_t input, std::string_view attribute) const;

  /// Calls an operator of the given body; `stem` becomes its name. What follows from known elements
  /// alone is computed at once if it is small. Errors: of the text; that is a defect of the row.
  Result<const Value*> call(std::string_view stem, std::vector<Arg> args, ir::DType dtype,
                            std::vector<int64_t> shape, std::string_view body);
  Result<std::vector<const Value*>> call(std::string_view stem, std::vector<Arg> args,
                                         std::vector<Out> outs, std::string_view body);
  /// A tensor that is known now.
  const Value* constant(const ir::Tensor& tensor);
  /// One that an attribute holds.
  const Value* constant(const Constant& constant);
  const Value* scalar(ir::DType dtype, double value);
  const Value* int_vector(const std::vector<int64_t>& values);
  const Value* sequence(std::vector<const Value*> parts);
  /// A result of a call, as numbers of a type of ONNX that is no DType; 0: of its own.
  const Value* standing_for(const Value* result, int32_t onnx_type);

  /// Result number `i` of the node, if it has so many.
  void set(std::size_t i, const Value* value) {
    if (i < results_.size()) results_[i] = value;
  }
  const std::vector<const Value*>& results() const { return results_; }

  /// What this importer cannot do, though the model may be right.
  Error unsupported(std::string_view why) const;

  Importer& importer() { return importer_; }

 private:
  Importer& importer_;
  const Node& node_;
  int64_t opset_;
  std::vector<const Value*> inputs_;
  const Attribute* find_typed(std::string_view name, bool (*fits)(const Attribute&)) const;

  const std::vector<Attribute>& attributes_;
  mutable std::string mistyped_;
  std::vector<const Value*> results_;
};

/// Most values of one call that take any number; more are joined in groups before, since lists of a call end
/// somewhere (lang::kMaxListLength).
inline constexpr std::size_t kMaxJoined = 24;
using Joiner = std::function<Result<const Value*>(const std::vector<const Value*>& group)>;
/// The values, at most kMaxJoined: groups of neighbours become what `join` makes of them, until so few are left.
Result<std::vector<const Value*>> joined_in_groups(std::vector<const Value*> values,
                                                   const Joiner& join);

/// The parts one after the other along an axis, as Concat puts them. Errors: OnnxNode.
Result<const Value*> concatenated(Row& row, const std::vector<const Value*>& parts, int64_t along);

/// The same along a new axis, as Concat puts them where each is one place.
Result<const Value*> stacked(Row& row, const std::vector<const Value*>& parts, int64_t along);

using RowFn = Result<void> (*)(Row& row);
struct RowEntry {
  std::string_view op;
  RowFn fn;
};
/// Null if there is no row for the operator.
RowFn find_row(std::string_view op);
/// The operators that have one.
std::vector<std::string_view> row_names();
/// Whether the row minds that operands stand for another type.
bool takes_stand_ins(std::string_view op);
/// Whether the row looks for sequences among its operands; all others have tensors alone.
bool takes_sequences(std::string_view op);

std::span<const RowEntry> pointwise_rows();
std::span<const RowEntry> shape_rows();
std::span<const RowEntry> move_rows();
std::span<const RowEntry> linear_rows();
std::span<const RowEntry> conv_rows();
std::span<const RowEntry> pool_rows();
std::span<const RowEntry> norm_rows();
std::span<const RowEntry> reduce_rows();
std::span<const RowEntry> index_rows();
std::span<const RowEntry> resize_rows();
std::span<const RowEntry> quant_rows();
std::span<const RowEntry> recurrent_rows();
std::span<const RowEntry> attention_rows();
std::span<const RowEntry> math_rows();
std::span<const RowEntry> sample_rows();
std::span<const RowEntry> region_rows();
std::span<const RowEntry> part_rows();
std::span<const RowEntry> sequence_rows();
// Of the domain com.microsoft.
std::span<const RowEntry> contrib_norm_rows();
std::span<const RowEntry> contrib_pointwise_rows();
std::span<const RowEntry> contrib_product_rows();
std::span<const RowEntry> contrib_quant_rows();
std::span<const RowEntry> contrib_attention_rows();

/// Of the extents from `first` to before `end`; all of them if nothing is said.
int64_t product(const std::vector<int64_t>& shape, std::size_t first = 0,
                std::size_t end = static_cast<std::size_t>(-1));

// --- pieces of text

/// "i0,i1,i2".
std::string indices(int rank, std::string_view stem = "i");
/// "Y[i0,i1]"; a scalar is its name alone. `subscripts` may be empty texts.
std::string at(std::string_view name, const std::vector<std::string>& subscripts);
/// {"i0", "i1", ...}
std::vector<std::string> index_list(int rank, std::string_view stem = "i");
/// How an element of `shape` is read where the indices i0.. run over `out`: extents 1 are stretched,
/// missing ones are in front.
std::string broadcast_read(std::string_view name, const std::vector<int64_t>& shape, int out_rank);
/// The common shape; nullopt if there is none.
std::optional<std::vector<int64_t>> broadcast_shape(const std::vector<int64_t>& a,
                                                    const std::vector<int64_t>& b);
/// A number as the language reads it, exactly; "inf" and "(-inf)" too. NaN has no text.
std::string number_text(ir::DType dtype, double value);
/// The same of a whole number.
std::string whole_text(int64_t value);
/// -1 is the last of `rank` axes; nullopt if it is none of them.
std::optional<int> axis_of(int64_t axis, int rank);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_ROW_H_
