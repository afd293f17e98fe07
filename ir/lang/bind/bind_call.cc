// Calls of operators. In an operator the callee's statements become the caller's: its ports are the
// caller's tensors, its lets get the result's name in front.

#include "ir/lang/bind/bind_impl.h"

#include <algorithm>

namespace prunerc::lang {

// Null if the statement calls nothing, an fn, or what does not exist.
const AstOperator* Binder::callee_of(const AstStmt& stmt) const {
  if (!stmt.call) return nullptr;
  const AstCall& call = *stmt.call;
  if (stmt.value != nullptr && module_.fns.contains(call.callee.text)) {
    // An fn of scalars; an operator of the same name takes tensors.
    const bool takes_tensors =
        std::any_of(call.args.begin(), call.args.end(),
                    [&](const AstName& arg) { return has_dimensions(arg.text); });
    if (!takes_tensors) return nullptr;
  }
  const auto found = module_.operators.find(call.callee.text);
  return found == module_.operators.end() ? nullptr : found->second;
}

bool Binder::has_dimensions(std::string_view tensor) const {
  for (const AstPort& port : ast_.inputs) {
    if (port.name.text == tensor) return !port.shape.empty();
  }
  for (const AstPort& port : ast_.outputs) {
    if (port.name.text == tensor) return !port.shape.empty();
  }
  for (const AstStmt& stmt : ast_.stmts) {
    if (stmt.name.text == tensor) return !stmt.indices.empty() || stmt.call.has_value();
  }
  return false;
}

Tensor* Binder::resolve_arg(const AstName& name) {
  const Symbol* symbol = find_symbol(name.text);
  if (symbol == nullptr) {
    report_unknown(name, Wanted::kTensor);
    return nullptr;
  }
  if (symbol->tensor == nullptr) {
    sink_.report<LangDiag::kNotAValue>(name.range, name.text, describe(*symbol))
        .note(symbol->range, "defined here");
    return nullptr;
  }
  symbol->tensor->is_read = true;
  const bool is_known = !symbol->tensor->is_broken && symbol->tensor->dtype.has_value();
  return is_known ? symbol->tensor : nullptr;
}

// The callee's parameters follow from the shapes of what it is applied to.
bool Binder::add_shape(const AstName& name, const Tensor& arg, const AstPort& port,
                       Callee& callee) {
  std::vector<int64_t> shape = arg.shape;
  if (arg.role == TensorRole::kLet) {
    shape.clear();
    for (const Unknown unknown : arg.unknowns) {
      const std::optional<int64_t> extent = extents_.value(unknown);
      if (!extent) {
        if (extents_.claim_unsolved(unknown))
          sink_.report<LangDiag::kCallShape>(name.range, name.text);
        return false;
      }
      shape.push_back(*extent);
    }
  }
  callee.options.shapes.emplace(port.name.text, std::move(shape));
  return true;
}

// As -D gives it.
bool Binder::add_binding(const AstBinding& binding, Callee& callee) {
  const auto keep = [&](std::string value) {
    const std::string name(binding.name.text);
    if (!callee.options.bindings.emplace(name, std::move(value)).second) {
      sink_.report<LangDiag::kRedefined>(binding.name.range, name);
      return false;
    }
    callee.options.call_ranges->emplace(name, binding.range);
    return true;
  };
  std::optional<AstType> type = binding.type;
  if (!type && binding.value->kind == AstKind::kName) {
    const Symbol* symbol = find_symbol(binding.value->name.text);
    if (symbol != nullptr && symbol->kind == SymbolKind::kTypeParam)
      type = AstType{std::nullopt, binding.value->name};
  }
  if (type) {
    const std::optional<ir::DType> dtype = resolve_type(*type);
    return dtype && keep(std::string(ir::to_string(*dtype)));
  }
  const bool takes_float =
      std::any_of(callee.op->params.begin(), callee.op->params.end(), [&](const AstParam& param) {
        return param.kind == ParamKind::kFloat && param.name.text == binding.name.text;
      });
  const Node* value = bind(binding.value);
  if (takes_float && value != nullptr && value->is_constant() && !value->type.is_typed())
    value = typing_.convert(value, ir::DType::kF64);
  if (value == nullptr) return false;
  if (value->kind == NodeKind::kInt) return keep(std::to_string(value->int_value));
  if (value->kind == NodeKind::kFloat) return keep(fmt::format("{}", value->float_value));
  sink_.report<LangDiag::kCallParameter>(binding.range, binding.name.text,
                                         "a constant number or a type");
  return false;
}

std::optional<Binder::Callee> Binder::resolve_call(const AstStmt& stmt) {
  const AstCall& call = *stmt.call;
  Callee callee;
  callee.options.call_ranges.emplace();
  callee.op = callee_of(stmt);
  if (callee.op == nullptr) {
    const AstName& name = call.callee;
    std::vector<std::string_view> names;
    for (const auto& [known, op] : module_.operators) names.push_back(known);
    sink_.report<LangDiag::kUnknownOperator>(name.range, name.text).message +=
        did_you_mean(name.text, names);
    return std::nullopt;
  }
  if (callee.op->has_header_errors) return std::nullopt;
  const auto counts = [&](size_t wanted, std::string_view noun, size_t found) {
    if (wanted == found) return true;
    sink_
        .report<LangDiag::kWrongArgCount>(call.range, call.callee.text, counted(wanted, noun),
                                          found)
        .note(callee.op->name.range, "defined here");
    return false;
  };
  if (!counts(callee.op->inputs.size(), "tensor", call.args.size()) ||
      !counts(callee.op->outputs.size(), "result", stmt.more_names.size() + 1))
    return std::nullopt;
  bool ok = true;
  for (size_t i = 0; i < call.args.size(); ++i) {
    callee.args.push_back(resolve_arg(call.args[i]));
    ok = ok && callee.args[i] != nullptr &&
         add_shape(call.args[i], *callee.args[i], callee.op->inputs[i], callee);
  }
  for (const AstBinding& binding : call.bindings) ok = add_binding(binding, callee) && ok;
  if (!ok) return std::nullopt;
  return callee;
}

bool Binder::check_arg_type(const AstName& name, const Tensor& arg, const AstPort& port,
                            const std::optional<ir::DType>& wanted, const Callee& callee) {
  if (!wanted) return false;
  if (*wanted == *arg.dtype) return true;
  sink_
      .report<LangDiag::kCallType>(name.range, name.text, ir::to_string(*arg.dtype), port.name.text,
                                   callee.op->name.text, ir::to_string(*wanted))
      .note(port.name.range, "declared here");
  return false;
}

// The target is what an output of the callee is; false if it is declared as something else.
bool Binder::give_result(Tensor& target, ir::DType dtype, const std::vector<int64_t>& shape,
                         const AstName& name) {
  if (target.role == TensorRole::kLet) {
    target.dtype = dtype;
    for (size_t d = 0; d < shape.size(); ++d)
      extents_.fix(target.unknowns[d], shape[d], name.range);
    return true;
  }
  if (target.is_broken) return false;
  if (*target.dtype == dtype && target.shape == shape) return true;
  const auto text = [](ir::DType type, const std::vector<int64_t>& extents) {
    return extents.empty() ? std::string(ir::to_string(type))
                           : fmt::format("{}[{}]", ir::to_string(type), fmt::join(extents, ","));
  };
  sink_
      .report<LangDiag::kCallResult>(name.range, name.text, text(*target.dtype, target.shape),
                                     text(dtype, shape))
      .note(target.range, "declared here");
  return false;
}

void Binder::bind_call_stmt(const AstStmt& stmt, const std::vector<Tensor*>& targets) {
  const std::optional<Callee> callee = resolve_call(stmt);
  if (callee && inline_call(stmt, *callee, targets)) return;
  for (Tensor* target : targets) {
    if (target != nullptr) target->is_broken = true;
  }
}

bool Binder::inline_call(const AstStmt& stmt, const Callee& callee,
                         const std::vector<Tensor*>& targets) {
  for (const Binder* at = this; at != nullptr; at = at->caller_) {
    if (&at->ast_ != callee.op) continue;
    sink_.report<LangDiag::kCallRecursive>(stmt.call->callee.range, stmt.call->callee.text);
    return false;
  }
  if (std::find(targets.begin(), targets.end(), nullptr) != targets.end()) return false;
  const int errors_before = sink_.num_errors();
  Binder inlined(scope_, *callee.op, callee.options, globals_);
  const bool ok = inlined.run_inlined(*this, stmt, callee, targets);
  if (sink_.num_errors() != errors_before) {
    sink_.annotate_last(stmt.call->range,
                        fmt::format("in this call of '{}'", callee.op->name.text));
  }
  return ok;
}

bool Binder::run_inlined(const Binder& caller, const AstStmt& stmt, const Callee& callee,
                         const std::vector<Tensor*>& targets) {
  caller_ = &caller;
  prefix_ = targets[0]->name + "_";
  bind_header();
  // Ports: the names are this operator's, the tensors the caller's.
  Tensor declared;
  const auto alias = [&](const AstPort& port, Tensor* tensor, TensorRole role) {
    declared = Tensor();
    declared.name = port.name.text;
    declared.role = role;
    declared.rank = port.shape.size();
    declared.dtype = resolve_type(port.type);
    bind_port_shape(port, declared);
    check_given_shape(port, declared);
    declare(port.name,
            {SymbolKind::kTensor, port.name.range, nullptr, std::nullopt, nullptr, tensor, role});
    return declared.dtype.has_value() && !declared.is_broken;
  };
  const int errors_before = sink_.num_errors();
  for (size_t i = 0; i < callee.args.size(); ++i) {
    const AstPort& port = ast_.inputs[i];
    if (!alias(port, callee.args[i], TensorRole::kInput)) return false;
    if (!check_arg_type(stmt.call->args[i], *callee.args[i], port, declared.dtype, callee))
      return false;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const AstName& name = i == 0 ? stmt.name : stmt.more_names[i - 1];
    if (!alias(ast_.outputs[i], targets[i], TensorRole::kOutput)) return false;
    if (!give_result(*targets[i], *declared.dtype, declared.shape, name)) return false;
    targets[i]->is_assigned = false;
  }
  declare_targets();
  order_stmts();
  for (const size_t i : order_) {
    if (!sink_.is_full()) bind_stmt(ast_.stmts[i], targets_[i]);
  }
  return sink_.num_errors() == errors_before;
}

}  // namespace prunerc::lang
