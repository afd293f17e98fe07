#include "ir/onnx/import.h"

#include "ir/onnx/importer.h"
#include "ir/support/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::onnx {
namespace {

/// The newest version of ONNX's operator set that the rows were written for.
constexpr int64_t kNewestOpset = 25;
/// Functions that call functions, branches in branches.
constexpr int kMaxScopes = 32;
/// Of branches, bodies and functions, each time they are imported: inputs, constants, outputs, operands of nodes.
constexpr std::size_t kMaxBound = 10 * kMaxNodes;
/// Constants that nodes make while they are imported. Units: bytes.
constexpr int64_t kMaxMadeBytes = int64_t{1} << 28;

const Value* const* find(const Scope& scope, const std::string& name) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    if (const auto found = at->values.find(name); found != at->values.end()) return &found->second;
  }
  return nullptr;
}

// An input of the function around that its call leaves out.
bool is_omitted(const Scope& scope, const std::string& name) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    if (at->values.contains(name)) return false;
    if (at->omitted.contains(name)) return true;
  }
  return false;
}

// Attributes of a node in a function's body, those of the call put in.
std::vector<Attribute> resolved(const Node& node, const std::vector<Attribute>* call) {
  std::vector<Attribute> out;
  for (const Attribute& item : node.attributes) {
    if (item.refers_to.empty()) {
      out.push_back(item);
      continue;
    }
    for (const Attribute& given : call != nullptr ? *call : std::vector<Attribute>{}) {
      if (given.name != item.refers_to) continue;
      out.push_back(given);
      out.back().name = item.name;
    }
  }
  return out;
}

// What no row makes sense of; empty: nothing.
std::string unreadable(const Node& node, const std::vector<Attribute>& attributes,
                       const std::vector<const Value*>& inputs) {
  for (const Attribute& item : attributes) {
    // It has no text, and only a constant has use for it.
    if (item.f && node.op != "Constant" && std::isnan(*item.f))
      return "the attribute " + item.name + ", which is not a number";
  }
  for (const Value* input : inputs) {
    if (input == nullptr) continue;
    if (input->is_sequence && !takes_sequences(node.op))
      return "a sequence where a tensor is expected";
    if (input->stands_for != 0 && !takes_stand_ins(node.op))
      return "an operand of " + type_name(input->stands_for);
  }
  return {};
}

}  // namespace

Result<void> Importer::define(Scope& scope, const std::string& name, const Value* value) {
  if (scope.values.emplace(name, value).second) return {};
  return error(Diag::kOnnxMalformed, model_.path, printable_line("'" + name + "' is given twice"));
}

void Importer::miss(const Node& node, std::string why, Scope& scope) {
  std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  missing_[{printable_line(op), printable_line(why)}].push_back(printable_line(node.name));
  for (const std::string& name : node.inputs) {
    const Value* const* const value = find(scope, name);
    if (value != nullptr && *value != nullptr) read_by_missing_.emplace_back(name, *value);
  }
  for (const std::string& name : node.outputs) {
    if (!name.empty()) scope.values.emplace(name, nullptr);
  }
}

// Functions that call each other twice each would double the number without end, as loops within loops would.
Result<void> Importer::count_node() {
  if (++num_nodes_ <= kMaxNodes) return {};
  return error(Diag::kOnnxMalformed, model_.path,
               fmt::format("it has more than {} nodes", kMaxNodes));
}

Result<void> Importer::count_names(std::size_t num) {
  num_bound_ += num;
  if (num_bound_ <= kMaxBound) return {};
  return error(Diag::kOnnxNode, std::string(), std::string(), "so many names in its graphs");
}

Result<void> Importer::import_nodes(const std::vector<Node>& nodes, Scope& scope) {
  if (scope.depth > kMaxScopes)
    return error(Diag::kOnnxMalformed, model_.path, "its functions call each other without end");
  for (const Node& node : nodes) {
    PRUNERC_TRY_VOID(count_node());
    if (scope.depth > 0) PRUNERC_TRY_VOID(count_names(node.inputs.size() + node.outputs.size()));
    PRUNERC_TRY_VOID(import_node(node, scope));
    if (made_bytes_ > kMaxMadeBytes)
      return error(Diag::kOnnxMalformed, model_.path,
                   "its nodes make constants of more than " +
                       bytes_text(static_cast<uint64_t>(kMaxMadeBytes)));
  }
  return {};
}

// A node that reads what has no row.
Result<void> Importer::leave_out(const Node& node, Scope& scope) {
  for (const std::string& name : node.inputs) {
    const auto typeless = typeless_.find(name);
    const Value* const* const value = find(scope, name);
    if (typeless == typeless_.end() || value == nullptr || *value != nullptr) continue;
    misses_more_than_operands_ = true;
    miss(node, "an operand of " + typeless->second, scope);
    return {};
  }
  for (const std::string& name : node.outputs) {
    if (!name.empty()) PRUNERC_TRY_VOID(define(scope, name, nullptr));
  }
  return {};
}

Result<void> Importer::import_node(const Node& node, Scope& scope) {
  std::vector<const Value*> inputs;
  bool is_reachable = true;
  for (const std::string& name : node.inputs) {
    if (name.empty() || is_omitted(scope, name)) {
      inputs.push_back(nullptr);
      continue;
    }
    const Value* const* const value = find(scope, name);
    if (value == nullptr) {
      return error(
          Diag::kOnnxMalformed, model_.path,
          printable_line(fmt::format("{} (node '{}') reads '{}', which nothing before it gives",
                                     node.op, node.name, name)));
    }
    is_reachable = is_reachable && *value != nullptr;
    inputs.push_back(*value);
  }
  // Overloads are of functions alone.
  const RowFn row =
      node.overload.empty()
          ? find_row(node.domain.empty() ? node.op : fmt::format("{}.{}", node.domain, node.op))
          : nullptr;
  const Function* const function = find_function(node);
  if (row == nullptr && function == nullptr) {
    misses_more_than_operands_ = true;
    miss(node, "there is no such operator here", scope);
    return {};
  }
  if (!is_reachable) return leave_out(node, scope);
  if (const auto joined = joined_.joined.find(&node); joined != joined_.joined.end()) {
    const Value* const left = inputs[0];
    if (left != nullptr && left->rank() > 0 && left->shape.back() > joined->second.most_summed)
      return import_in_floats(joined->second, "sums that may leave 32 bits", scope);
    const std::optional<ir::DType> moved = joined->second.moved;
    if (left != nullptr && moved && left->dtype != *moved)
      return import_in_floats(joined->second, "a zero point of another type", scope);
  }
  if (function != nullptr) {
    const Result<void> done = import_function(*function, node, std::move(inputs), scope);
    return done.ok() ? done : refuse(node, done.error(), scope);
  }
  return run_row(node, row, inputs, scope);
}

Result<void> Importer::refuse(const Node& node, const Error& why, Scope& scope) {
  if (why.id() != Diag::kOnnxNode && why.id() != Diag::kOnnxOperand) return why;
  const bool is_operand = why.id() == Diag::kOnnxOperand;
  std::string text = std::get<std::string>(why.data().args[2]);
  if (is_operand) text = fmt::format("'{}' is known only at run time", text);
  if (const auto joined = joined_.joined.find(&node); joined != joined_.joined.end())
    return import_in_floats(joined->second, text, scope);
  if (is_operand && !first_operand_) first_operand_ = why;
  misses_more_than_operands_ = misses_more_than_operands_ || !is_operand;
  miss(node, std::move(text), scope);
  return {};
}

// What a row does not do on 8 bits is done as the model has it.
Result<void> Importer::import_in_floats(const JoinedNode& joined, const std::string& why,
                                        Scope& scope) {
  PRUNERC_TRY_VOID(import_nodes(joined.written, scope));
  note_in_floats(joined.written.front(), why, scope);
  return {};
}

// Not of one that is left out.
void Importer::note_in_floats(const Node& node, const std::string& why, const Scope& scope) {
  const Value* const* const result = find(scope, node.outputs[0]);
  if (result == nullptr || *result == nullptr) return;
  in_floats_[{printable_line(node.op), printable_line(why)}].push_back(printable_line(node.name));
}

void Importer::drop_calls(std::size_t first) {
  for (std::size_t i = first; i < calls_.size(); ++i) {
    for (Value* const result : calls_[i].results) result->is_result = false;
  }
  calls_.resize(first);
}

Result<void> Importer::run_row(const Node& node, RowFn row_fn,
                               const std::vector<const Value*>& inputs, Scope& scope) {
  const auto set = scope.opsets->find("");
  const int64_t opset = set == scope.opsets->end() ? 1 : set->second;
  const std::vector<Attribute> attributes = resolved(node, scope.attributes);
  Row row(*this, node, opset, inputs, attributes);
  const std::string why =
      opset > kNewestOpset
          ? fmt::format("operator set {}: export the model with {} or less", opset, kNewestOpset)
          : unreadable(node, attributes, inputs);
  if (!why.empty()) return refuse(node, row.unsupported(why), scope);
  Scope* const before = scope_;
  scope_ = &scope;
  const std::size_t first_value = values_.size(), first_call = calls_.size();
  Result<void> done = row_fn(row);
  scope_ = before;
  if (!row.mistyped().empty())
    done = row.unsupported("the attribute '" + row.mistyped() + "' has another type there");
  if (!done.ok()) {
    // Of a branch that is left out what its missing nodes read remains.
    if (node.op != "If") drop_calls(first_call);
    return refuse(node, done.error(), scope);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const Value* const value = row.results()[i];
    if (value == nullptr) {
      return error(
          Diag::kOnnxMalformed, model_.path,
          printable_line(fmt::format("{} (node '{}') has no output {}", node.op, node.name, i)));
    }
    name_value(value, node.outputs[i]);
    PRUNERC_TRY_VOID(define(scope, node.outputs[i], value));
  }
  const std::string stem = node.outputs.empty() ? node.op : node.outputs[0];
  for (std::size_t i = first_value; i < values_.size(); ++i) name_value(&values_[i], stem);
  return {};
}

const Function* Importer::find_function(const Node& node) const {
  const auto found = functions_.find({node.domain, node.op, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

Result<void> Importer::import_function(const Function& function, const Node& node,
                                       std::vector<const Value*> inputs, Scope& scope) {
  std::vector<Attribute> attributes = resolved(node, scope.attributes);
  for (const Attribute& item : function.defaults) {
    const bool is_given =
        std::any_of(attributes.begin(), attributes.end(),
                    [&](const Attribute& given) { return given.name == item.name; });
    if (!is_given) attributes.push_back(item);
  }
  Scope inner;
  inner.opsets = function.opsets.empty() ? scope.opsets : &function.opsets;
  inner.attributes = &attributes;
  inner.depth = scope.depth + 1;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    if (i < inputs.size() && inputs[i] != nullptr) {
      PRUNERC_TRY_VOID(define(inner, function.inputs[i], inputs[i]));
    } else {
      inner.omitted.insert(function.inputs[i]);
    }
  }
  PRUNERC_TRY_VOID(import_nodes(function.nodes, inner));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const auto found =
        i < function.outputs.size() ? inner.values.find(function.outputs[i]) : inner.values.end();
    if (found == inner.values.end()) {
      return error(
          Diag::kOnnxMalformed, model_.path,
          printable_line(fmt::format("the function {} gives no output {}", function.name, i)));
    }
    PRUNERC_TRY_VOID(define(scope, node.outputs[i], found->second));
  }
  return {};
}

Result<std::vector<const Value*>> Importer::import_graph(const Graph& graph,
                                                         const std::vector<const Value*>& inputs) {
  PRUNERC_TRY_VOID(count_node());
  PRUNERC_TRY_VOID(
      count_names(graph.inputs.size() + graph.initializers.size() + graph.outputs.size()));
  Scope inner;
  inner.outer = scope_;
  inner.opsets = scope_->opsets;
  inner.attributes = scope_->attributes;
  inner.depth = scope_->depth + 1;
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i)
    PRUNERC_TRY_VOID(define(inner, graph.inputs[i].name, inputs[i]));
  add_initializers(graph, inner);
  PRUNERC_TRY_VOID(import_nodes(graph.nodes, inner));
  std::vector<const Value*> out;
  for (const ValueInfo& info : graph.outputs) {
    const Value* const* const value = find(inner, info.name);
    if (value == nullptr) {
      return error(Diag::kOnnxMalformed, model_.path,
                   printable_line("nothing gives the output '" + info.name + "' of a branch"));
    }
    out.push_back(*value);
  }
  return out;
}

void Importer::add_initializers(const Graph& graph, Scope& scope) {
  for (const auto& [name, constant] : graph.initializers) {
    if (scope.values.contains(name)) continue;
    if (!constant.dtype && !constant.stand_in) {
      // Whoever reads it says so.
      scope.values.emplace(name, nullptr);
      typeless_[name] = type_name(constant.onnx_type);
      continue;
    }
    const Value* const value = held(constant);
    name_value(value, name);
    scope.values.emplace(name, value);
  }
}

Result<ImportedNet> Importer::run() {
  net_name_ = free_name_beside_outputs(model_.graph.name.empty() ? "model" : model_.graph.name);
  Scope scope;
  scope.opsets = &model_.opsets;
  PRUNERC_TRY_VOID(add_given(scope));
  add_initializers(model_.graph, scope);
  PRUNERC_TRY_VOID(add_inputs(scope));
  PRUNERC_TRY_VOID(import_nodes(joined_.nodes.empty() ? model_.graph.nodes : joined_.nodes, scope));
  for (const auto& [node, why] : joined_.in_floats) note_in_floats(*node, why, scope);
  if (!missing_.empty() && !options_.partial) {
    if (first_operand_ && !misses_more_than_operands_) return *first_operand_;
    return error(Diag::kOnnxUnsupported, model_.path,
                 fmt::format("  {}", fmt::join(lines_of(missing_), "\n  ")));
  }
  PRUNERC_TRY_VOID(add_outputs(scope));
  drop_dead();
  return finish();
}

std::vector<std::string> Importer::lines_of(const NodesByReason& nodes_by_reason) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> lines;
  for (const auto& [what, nodes] : nodes_by_reason) {
    std::string names;
    for (std::size_t i = 0; i < nodes.size() && i < kShown; ++i)
      names += fmt::format("{}'{}'", i == 0 ? "" : ", ", nodes[i]);
    if (nodes.size() > kShown) names += ", ...";
    lines.push_back(fmt::format("{} ({} node{}: {}): {}", what.first, nodes.size(),
                                nodes.size() == 1 ? "" : "s", names, what.second));
  }
  return lines;
}

Result<ImportedNet> import_model(const Model& model, const ImportOptions& options) {
  const JoinedNodes joined = join_quantised(model);
  return Importer(model, options, joined).run();
}

}  // namespace prunerc::onnx
