// Nets with ports: their tensors are bound as an operator's, each call as an operator of its own.

#include "ir/lang/bind/bind_impl.h"

#include <algorithm>

namespace prunerc::lang {

void Binder::bind_net_consts(const AstNet& net, BoundNet& out) {
  for (const AstNetConst& item : net.consts) {
    BoundNetConst constant;
    Tensor* const tensor = bind_port(item.port, TensorRole::kInput);
    constant.tensor = tensor;
    constant.weight = item.weight ? std::string(*item.weight) : tensor->name;
    if (item.value != nullptr) {
      constant.value = bind_net_value(item, *tensor);
      if (!constant.value) continue;
    }
    out.consts.push_back(std::move(constant));
  }
}

// One number of the tensor's type, kept as an f64.
std::optional<double> Binder::bind_net_value(const AstNetConst& item, const Tensor& tensor) {
  const Node* value = bind(item.value);
  if (value == nullptr || !tensor.dtype) return std::nullopt;
  const SourceRange range = item.value->range;
  if (!value->is_constant()) {
    sink_.report<LangDiag::kNotConstant>(range, "the value of a const", "number");
    return std::nullopt;
  }
  if (value->type.is_bool() != ir::is_bool(*tensor.dtype)) {
    sink_.report<LangDiag::kNoImplicitCast>(range, to_string(value->type),
                                            ir::to_string(*tensor.dtype));
    return std::nullopt;
  }
  const Node* const converted = typing_.convert(value, *tensor.dtype);
  if (converted == nullptr) return std::nullopt;
  if (converted->is_constant()) value = converted;  // else a widening, which keeps the value
  if (value->kind == NodeKind::kFloat) return value->float_value;
  constexpr int64_t kExact = int64_t{1} << 53;
  if (value->int_value >= -kExact && value->int_value <= kExact)
    return static_cast<double>(value->int_value);
  sink_.report<LangDiag::kConstantDoesNotFit>(range, value->int_value, "f64, which a net keeps");
  return std::nullopt;
}

bool Binder::bind_net_call(const AstStmt& stmt, const std::vector<Tensor*>& targets,
                           BoundNet& out) {
  const std::optional<Callee> callee = resolve_call(stmt);
  if (!callee) return false;
  // Made once: its own program has no const inputs. What it gives is const for later calls.
  const bool is_const = std::all_of(callee->args.begin(), callee->args.end(),
                                    [](const Tensor* arg) { return arg->is_const; }) &&
                        std::all_of(targets.begin(), targets.end(), [](const Tensor* target) {
                          return target != nullptr && target->role == TensorRole::kLet;
                        });
  std::string key(callee->op->name.text);
  for (const auto& [name, value] : callee->options.bindings)
    key += fmt::format(";{}={}", name, value);
  for (const auto& [name, shape] : callee->options.shapes)
    key += fmt::format(";{}[{}]", name, fmt::join(shape, ","));
  for (const Tensor* arg : callee->args) key += arg->is_const && !is_const ? ";const" : ";";
  const auto [known, is_new] = out.op_of_key.emplace(key, out.ops.size());
  if (is_new) {
    const int errors_before = sink_.num_errors();
    Scope scope(module_, sources_, sink_);
    if (!Binder(scope, *callee->op, callee->options, globals_).run()) {
      if (sink_.num_errors() != errors_before) {
        sink_.annotate_last(stmt.call->range,
                            fmt::format("in this call of '{}'", callee->op->name.text));
      }
      out.op_of_key.erase(known);
      return false;
    }
    std::unique_ptr<BoundOp> op = std::move(scope.op);
    // Whether a tensor is the same in every run is known here, not in the operator.
    for (size_t i = 0; i < op->inputs.size(); ++i) {
      for (Tensor& tensor : op->tensors) {
        if (&tensor == op->inputs[i]) tensor.is_const = callee->args[i]->is_const && !is_const;
      }
    }
    out.ops.push_back(std::move(op));
  }
  const BoundOp& op = *out.ops[known->second];
  for (size_t i = 0; i < callee->args.size(); ++i) {
    if (!check_arg_type(stmt.call->args[i], *callee->args[i], callee->op->inputs[i],
                        op.inputs[i]->dtype, *callee))
      return false;
  }
  BoundCall call;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == nullptr) return false;
    const AstName& name = i == 0 ? stmt.name : stmt.more_names[i - 1];
    if (!give_result(*targets[i], *op.outputs[i]->dtype, op.outputs[i]->shape, name)) return false;
    targets[i]->is_const = is_const;
    call.results.push_back(targets[i]);
  }
  call.label = stmt.call->label ? stmt.call->label->text : stmt.name.text;
  call.callee = callee->op;
  call.bindings = callee->options.bindings;
  call.args.assign(callee->args.begin(), callee->args.end());
  call.op = known->second;
  call.range = stmt.call->range;
  out.calls.push_back(std::move(call));
  return true;
}

void Binder::check_labels() {
  std::map<std::string_view, SourceRange> labels;
  for (const AstStmt& stmt : ast_.stmts) {
    if (!stmt.call || !stmt.call->label) continue;
    const AstName& label = *stmt.call->label;
    const auto [first, is_new] = labels.emplace(label.text, label.range);
    if (is_new) continue;
    sink_.report<LangDiag::kRedefined>(label.range, label.text)
        .note(first->second, "the first definition");
  }
}

bool Binder::run_net(const AstNet& net, BoundNet& out) {
  op_->name = ast_.name.text;
  bind_header();
  bind_ports();
  bind_net_consts(net, out);
  declare_targets();
  order_stmts();
  check_labels();
  for (const size_t i : order_) {
    if (sink_.is_full()) break;
    if (bind_net_call(ast_.stmts[i], targets_[i], out)) continue;
    for (Tensor* target : targets_[i]) {
      if (target != nullptr) target->is_broken = true;
    }
  }
  if (!sink_.has_errors()) solve();
  if (sink_.has_errors()) return false;
  for (const Tensor& tensor : op_->tensors) {
    if (tensor.role != TensorRole::kOutput && !tensor.is_read) {
      sink_.report<LangDiag::kUnusedLet>(tensor.range, tensor.name);
    }
  }
  return true;
}

std::optional<BoundNet> bind_net(const Module& module, const AstNet& net,
                                 const BindOptions& options, SourceSet& sources, DiagSink& sink) {
  BoundNet out;
  Scope scope(module, sources, sink);
  if (!Binder(scope, net.op, options).run_net(net, out)) return std::nullopt;
  out.scope = std::move(scope.op);
  return out;
}

}  // namespace prunerc::lang
