// The state of one import.
#ifndef PRUNERC_IR_ONNX_IMPORTER_H_
#define PRUNERC_IR_ONNX_IMPORTER_H_

#include "ir/onnx/import.h"
#include "ir/onnx/join_quantised.h"
#include "ir/onnx/row.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace prunerc::onnx {

/// What a name of the model stands for, in a graph, a function's body or a branch.
struct Scope {
  std::unordered_map<std::string, const Value*> values;  ///< null: follows from what has no row
  const Scope* outer = nullptr;
  const std::map<std::string, int64_t>* opsets = nullptr;
  const std::vector<Attribute>* attributes = nullptr;  ///< of the call of a function
  std::set<std::string> omitted;                       ///< inputs that the call leaves out
  int depth = 0;
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options, const JoinedNodes& joined)
      : model_(model), options_(options), joined_(joined) {
    for (const Function& item : model.functions)
      functions_[{item.domain, item.name, item.overload}] = &item;
  }
  Result<ImportedNet> run();

  // For rows.
  Result<std::vector<const Value*>> call(std::string_view stem, const std::vector<Arg>& args,
                                         const std::vector<Out>& outs, std::string_view body);
  const Value* constant(const ir::Tensor& tensor);
  /// One of the model's, whose bytes are not copied.
  const Value* constant(const Constant& constant);
  /// The same of one that stands in the model, whose bytes are one value however often a loop comes by.
  const Value* held(const Constant& constant);
  const Value* sequence(std::vector<const Value*> parts);
  /// A branch or a body, in the scope of the node that has it.
  Result<std::vector<const Value*>> import_graph(const Graph& graph,
                                                 const std::vector<const Value*>& inputs);
  const Model& model() const { return model_; }
  /// The model's name of an input; empty: it is none.
  std::string input_name(const Value* value) const;

 private:
  struct Call {
    std::string op;
    std::vector<const Value*> args;
    std::vector<Value*> results;
  };
  /// Domain, name and overload of a function.
  using FunctionKey = std::array<std::string_view, 3>;
  /// By operator and reason, the nodes.
  using NodesByReason = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;

  Result<void> add_given(Scope& scope);
  Result<void> add_inputs(Scope& scope);
  Result<void> add_input(const ValueInfo& info, Scope& scope);
  Result<std::vector<int64_t>> input_shape(const ValueInfo& info);
  void add_initializers(const Graph& graph, Scope& scope);
  Result<void> count_node();
  Result<void> count_names(std::size_t num);
  Result<void> import_nodes(const std::vector<Node>& nodes, Scope& scope);
  Result<void> import_node(const Node& node, Scope& scope);
  Result<void> leave_out(const Node& node, Scope& scope);
  Result<void> run_row(const Node& node, RowFn row, const std::vector<const Value*>& inputs,
                       Scope& scope);
  /// Lists what a row cannot do, or imports what the node stands for. Errors: any other.
  Result<void> refuse(const Node& node, const Error& why, Scope& scope);
  Result<void> import_in_floats(const JoinedNode& joined, const std::string& why, Scope& scope);
  void note_in_floats(const Node& node, const std::string& why, const Scope& scope);
  /// Calls from here on, of a row that was refused: their results are none.
  void drop_calls(std::size_t first);
  const Function* find_function(const Node& node) const;
  Result<void> import_function(const Function& function, const Node& node,
                               std::vector<const Value*> inputs, Scope& scope);
  Result<void> define(Scope& scope, const std::string& name, const Value* value);
  void miss(const Node& node, std::string why, Scope& scope);
  Result<void> add_outputs(const Scope& scope);
  Result<void> add_output(const std::string& name, const Value* value);
  /// What a missing node reads; of a sequence its parts. `done`: names of outputs.
  Result<void> add_read(const std::string& name, const Value& value,
                        std::map<std::string, int>& done);
  void drop_dead();
  ImportedNet finish();

  Value* new_value(ir::DType dtype, std::vector<int64_t> shape);
  /// Names it unless it has a name.
  void name_value(const Value* value, std::string_view wanted);
  static std::string sanitized(std::string_view wanted);
  std::string free_name(std::string_view wanted);
  std::string free_name_beside_outputs(std::string_view wanted);
  Result<std::vector<const Value*>> write_call(std::string_view stem, const std::vector<Arg>& args,
                                               const std::vector<Out>& outs, std::string_view body);
  std::string op_for(std::string_view stem, const std::vector<Arg>& args,
                     const std::vector<Out>& outs, std::string_view body);
  std::optional<std::vector<const Value*>> fold(const std::string& op, const std::vector<Arg>& args,
                                                const std::vector<Out>& outs);
  static std::vector<std::string> lines_of(const NodesByReason& nodes_by_reason);
  std::string const_item(const Value& value, std::map<std::string, net::Weight>& weights) const;

  const Model& model_;
  const ImportOptions& options_;
  const JoinedNodes& joined_;
  std::map<FunctionKey, const Function*> functions_;
  std::deque<Value> values_;
  std::map<std::tuple<const char*, int32_t, std::vector<int64_t>>, const Value*> held_;
  std::vector<const Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<std::string> input_names_, output_names_, fed_names_;
  std::vector<Call> calls_;
  std::set<std::string> names_;                         // taken, of tensors and operators
  std::unordered_map<std::string, std::string> op_of_;  // signature and body -> name
  std::unordered_map<std::string, std::string> ops_;    // name -> text
  std::unordered_map<std::string, std::optional<ir::Program>> folded_;
  double fold_steps_ = 0;   // of the interpreter
  int64_t made_bytes_ = 0;  // of constants that the model does not hold
  std::unordered_map<std::string, int> next_number_;
  std::set<std::string> dims_, dims_unbound_;
  NodesByReason missing_;    // what has no row
  NodesByReason in_floats_;  // what stands between quantisers
  std::vector<std::pair<std::string, const Value*>> read_by_missing_;
  std::map<std::string, std::string> typeless_;  // constants of types that we have not, and these
  std::optional<Error> first_operand_;
  bool misses_more_than_operands_ = false;
  Scope* scope_ = nullptr;  // of the node at hand
  std::size_t num_nodes_ = 0;
  std::size_t num_bound_ = 0;  // names of graphs within, in all iterations
  std::string net_name_;
};

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_IMPORTER_H_
