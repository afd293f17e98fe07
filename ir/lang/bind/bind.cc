#include "ir/lang/bind/bind.h"

#include "ir/lang/bind/bind_impl.h"
#include "ir/lang/fn_check.h"
#include "ir/lang/parse/lexer.h"

#include <algorithm>
#include <charconv>

namespace prunerc::lang {
namespace {

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string describe(const Symbol& symbol) {
  switch (symbol.kind) {
    case SymbolKind::kConst: return "a constant";
    case SymbolKind::kFn: return "a function";
    case SymbolKind::kParam: return "a parameter";
    case SymbolKind::kTypeParam: return "a type parameter";
    case SymbolKind::kSize: return "a derived size";
    case SymbolKind::kTensor:
      if (symbol.tensor->rank == 0) return "a scalar";
      return "a tensor of " + counted(symbol.tensor->rank, "dimension");
  }
  return "a name";
}

Binder::Binder(Scope& scope, const AstOperator& op, const BindOptions& options,
               std::shared_ptr<const Globals> globals)
    : scope_(scope),
      module_(scope.module),
      ast_(op),
      options_(options),
      sources_(scope.sources),
      sink_(scope.sink),
      op_(scope.op.get()),
      typing_(scope.typing),
      extents_(scope.extents),
      globals_(std::move(globals)) {}

// Everything up to the ports.
void Binder::bind_header() {
  if (globals_ == nullptr) bind_globals();
  add_command_line();
  check_bindings();
  bind_params();
  bind_wheres();
}

bool Binder::run() {
  op_->name = ast_.name.text;
  bind_header();
  bind_ports();
  declare_targets();
  order_stmts();
  for (const size_t i : order_) {
    if (!sink_.is_full()) bind_stmt(ast_.stmts[i], targets_[i]);
  }
  if (!sink_.has_errors()) solve();
  if (sink_.has_errors()) return false;
  for (const Tensor& tensor : op_->tensors) {
    if (tensor.role == TensorRole::kLet && !tensor.is_read) {
      sink_.report<LangDiag::kUnusedLet>(tensor.range, tensor.name);
    }
  }
  return true;
}

// The module has refused names that two of them have.
void Binder::bind_globals() {
  const auto globals = std::make_shared<Globals>();
  globals_ = globals;
  for (const AstConst* item : module_.consts) {
    globals->symbols[item->name.text] = {SymbolKind::kConst, item->name.range, bind_const(*item),
                                         std::nullopt,       nullptr,          nullptr};
  }
  for (const auto& [name, fn] : module_.fns)
    globals->symbols[name] = {SymbolKind::kFn, fn->name.range, nullptr, std::nullopt, fn, nullptr};
  globals->broken_fns = check_functions(module_, globals->symbols, sink_);
}

const Node* Binder::bind_const(const AstConst& item) {
  const Node* value = bind(item.value);
  if (value == nullptr || value->is_constant()) return value;
  sink_.report<LangDiag::kNotConstant>(item.value->range, "the value of a const", "number");
  return nullptr;
}

bool Binder::declare(const AstName& name, Symbol symbol) {
  const Symbol* const known = find_symbol(name.text);
  if (known == nullptr) return symbols_.emplace(name.text, symbol).second;
  sink_.report<LangDiag::kRedefined>(name.range, name.text)
      .note(known->range, "the first definition");
  return false;
}

void Binder::add_command_line() {
  if (options_.call_ranges) {
    command_line_ = *options_.call_ranges;
    return;
  }
  if (options_.bindings.empty()) return;
  std::string text;
  std::vector<std::pair<size_t, size_t>> places;
  for (const auto& [name, value] : options_.bindings) {
    text += text.empty() ? "-D " : " -D ";
    places.emplace_back(text.size(), text.size() + name.size() + 1 + value.size());
    text += fmt::format("{}={}", name, value);
  }
  const uint32_t file = sources_.add("<command line>", std::move(text));
  size_t i = 0;
  for (const auto& [name, value] : options_.bindings) {
    const auto [begin, end] = places[i++];
    command_line_[name] = {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  }
}

void Binder::check_bindings() {
  for (const auto& [name, value] : options_.bindings) {
    std::vector<std::string_view> params;
    bool known = false;
    for (const AstParam& param : ast_.params) {
      params.push_back(param.name.text);
      known = known || param.name.text == name;
    }
    if (known) continue;
    std::string advice = did_you_mean(name, params);
    if (advice.empty() && !params.empty()) advice = "; it has " + list_names(params);
    sink_.report<LangDiag::kUnknownParameter>(command_line_[name], ast_.name.text, name).message +=
        advice;
  }
}

void Binder::bind_shapes(std::map<std::string_view, int64_t>& from_shapes) {
  for (const AstPort& port : ast_.inputs) {
    const auto given = options_.shapes.find(std::string(port.name.text));
    if (given == options_.shapes.end()) continue;
    for (size_t d = 0; d < port.shape.size() && d < given->second.size(); ++d) {
      if (port.shape[d]->kind == AstKind::kName) {
        from_shapes.emplace(port.shape[d]->name.text, given->second[d]);
      }
    }
  }
}

void Binder::bind_params() {
  std::map<std::string_view, int64_t> from_shapes;
  bind_shapes(from_shapes);
  const bool by_call = options_.call_ranges.has_value();
  for (const AstParam& param : ast_.params) {
    Symbol symbol = {SymbolKind::kParam, param.name.range, nullptr, std::nullopt, nullptr, nullptr};
    const auto given = options_.bindings.find(std::string(param.name.text));
    const auto shape = from_shapes.find(param.name.text);
    if (param.kind == ParamKind::kType) {
      symbol.kind = SymbolKind::kTypeParam;
      bind_type_param(param, symbol);
    } else if (given != options_.bindings.end()) {
      symbol.value = bind_param(param, given->second, command_line_[given->first]);
    } else if (param.default_value != nullptr && (!by_call || shape == from_shapes.end())) {
      // Before what a file's shape says: an array of another length is more often a mistake than a
      // wish.
      symbol.value = bind_default(param);
    } else if (shape != from_shapes.end() && param.kind == ParamKind::kInt) {
      symbol.value = typing_.int_constant(shape->second, param.name.range);
    } else {
      sink_.report<LangDiag::kUnboundParameter>(param.name.range, param.name.text, param.name.text);
    }
    declare(param.name, symbol);
  }
}

void Binder::bind_type_param(const AstParam& param, Symbol& symbol) {
  const auto given = options_.bindings.find(std::string(param.name.text));
  if (given != options_.bindings.end()) {
    symbol.dtype = ir::dtype_from_string(given->second);
    if (!symbol.dtype) {
      sink_
          .report<LangDiag::kBadParameterValue>(command_line_[given->first], param.name.text,
                                                "a type", given->second)
          .note(param.name.range, "the parameter");
    }
  } else if (param.default_type) {
    symbol.dtype = resolve_type(*param.default_type);
  } else {
    sink_.report<LangDiag::kUnboundParameter>(param.name.range, param.name.text, param.name.text);
  }
}

const Node* Binder::bind_param(const AstParam& param, const std::string& given, SourceRange range) {
  if (param.kind == ParamKind::kInt) {
    if (const auto value = parse_number<int64_t>(given))
      return typing_.int_constant(*value, param.name.range);
  } else if (const auto value = parse_number<double>(given)) {
    return typing_.float_constant(*value, param.name.range);
  }
  const char* what = param.kind == ParamKind::kInt ? "a 64-bit integer" : "a number";
  sink_.report<LangDiag::kBadParameterValue>(range, param.name.text, what, given)
      .note(param.name.range, "the parameter");
  return nullptr;
}

const Node* Binder::bind_default(const AstParam& param) {
  const Node* value = bind(param.default_value);
  if (value == nullptr) return nullptr;
  if (param.kind == ParamKind::kFloat && value->is_constant() && !value->type.is_bool()) {
    const Node* exact = typing_.convert(value, ir::DType::kF64);
    return exact == nullptr ? nullptr : typing_.float_constant(exact->float_value, value->range);
  }
  if (value->kind == NodeKind::kInt) return typing_.int_constant(value->int_value, value->range);
  sink_.report<LangDiag::kNotConstant>(value->range,
                                       fmt::format("the default of '{}'", param.name.text),
                                       param.kind == ParamKind::kFloat ? "number" : "integer");
  return nullptr;
}

std::optional<int64_t> Binder::constant_int(const AstExpr* expr, std::string_view what,
                                            std::string_view advice) {
  const Node* node = bind(expr);
  if (node == nullptr) return std::nullopt;
  if (node->kind == NodeKind::kInt) return node->int_value;
  SourceDiagnostic& diagnostic = sink_.report<LangDiag::kNotConstant>(expr->range, what, "integer");
  if (!node->is_constant()) diagnostic.message += advice;
  return std::nullopt;
}

std::string Binder::numbers_in(const AstExpr* expr) const {
  std::string text;
  std::set<std::string_view> seen;
  std::vector<const AstExpr*> stack = {expr};
  while (!stack.empty()) {
    const AstExpr* item = stack.back();
    stack.pop_back();
    for (auto it = item->args.rbegin(); it != item->args.rend(); ++it) stack.push_back(*it);
    if (item->kind != AstKind::kName || !seen.insert(item->name.text).second) continue;
    const Symbol* symbol = find_symbol(item->name.text);
    if (symbol == nullptr || symbol->value == nullptr || symbol->value->kind != NodeKind::kInt)
      continue;
    text += fmt::format("{}{} = {}", text.empty() ? ": " : ", ", item->name.text,
                        symbol->value->int_value);
  }
  return text;
}

void Binder::bind_wheres() {
  for (const AstWhere& where : ast_.wheres) {
    if (where.name) {
      Symbol symbol = {
          SymbolKind::kSize, where.value->range, nullptr, std::nullopt, nullptr, nullptr};
      const auto value = constant_int(where.value, "a derived size");
      if (value) symbol.value = typing_.int_constant(*value, where.value->range);
      declare(*where.name, symbol);
      continue;
    }
    const Node* condition = bind(where.value);
    if (condition == nullptr) continue;
    if (condition->kind != NodeKind::kBool) {
      sink_.report<LangDiag::kConstraintNotBool>(where.value->range);
    } else if (condition->int_value == 0) {
      sink_.report<LangDiag::kConstraintFails>(where.value->range, numbers_in(where.value));
    }
  }
}

void Binder::bind_ports() {
  for (const AstPort& port : ast_.inputs)
    op_->inputs.push_back(bind_port(port, TensorRole::kInput));
  for (const AstPort& port : ast_.outputs)
    op_->outputs.push_back(bind_port(port, TensorRole::kOutput));
  for (const auto& [name, shape] : options_.shapes) {
    bool known = false;
    for (const AstPort& port : ast_.inputs) known = known || port.name.text == name;
    if (!known)
      sink_.report<LangDiag::kShapeMismatch>(ast_.name.range, name, "belongs to no input");
  }
}

Tensor* Binder::bind_port(const AstPort& port, TensorRole role) {
  op_->tensors.emplace_back();
  Tensor& tensor = op_->tensors.back();
  tensor.name = port.name.text;
  tensor.range = port.name.range;
  tensor.role = role;
  if (port.is_const && role == TensorRole::kOutput) {
    sink_.report<LangDiag::kConstOutput>(port.name.range, port.name.text);
    tensor.is_broken = true;
  }
  tensor.is_const = port.is_const && role == TensorRole::kInput;
  // The output of `-e` has no declared type: it takes that of its value.
  const bool is_inferred = port.type.name.text.empty();
  if (!is_inferred) tensor.dtype = resolve_type(port.type);
  tensor.rank = port.shape.size();
  tensor.is_broken = !tensor.dtype && !is_inferred;
  bind_port_shape(port, tensor);
  check_given_shape(port, tensor);
  if (tensor.dtype) check_size(tensor);
  Symbol symbol = {
      SymbolKind::kTensor, port.name.range, nullptr, std::nullopt, nullptr, &tensor, role};
  declare(port.name, symbol);
  return &tensor;
}

void Binder::bind_port_shape(const AstPort& port, Tensor& tensor) {
  for (const AstExpr* expr : port.shape) {
    in_shape_ = true;
    const std::optional<int64_t> extent = constant_int(expr, "an extent");
    in_shape_ = false;
    tensor.shape.push_back(extent.value_or(1));
    tensor.shape_ranges.push_back(expr->range);
    if (!extent) tensor.is_broken = true;
    if (!extent || *extent >= 1) continue;
    tensor.is_broken = true;
    if (sink_.is_full()) continue;
    const Symbol* symbol = expr->kind == AstKind::kName ? find_symbol(expr->name.text) : nullptr;
    const AstExpr* where = nullptr;
    for (const AstWhere& item : ast_.wheres) {
      if (symbol != nullptr && item.name && item.name->text == expr->name.text) where = item.value;
    }
    const AstExpr* cause = where != nullptr ? where : expr;
    SourceDiagnostic& diagnostic =
        sink_.report<LangDiag::kExtentTooSmall>(cause->range, *extent, numbers_in(cause));
    if (where != nullptr)
      diagnostic.note(expr->range, fmt::format("it is a dimension of '{}'", tensor.name));
  }
}

void Binder::check_given_shape(const AstPort& port, const Tensor& tensor) {
  const auto given = options_.shapes.find(tensor.name);
  if (given == options_.shapes.end() || tensor.is_broken || tensor.role != TensorRole::kInput)
    return;
  if (given->second.size() != tensor.rank) {
    sink_.report<LangDiag::kShapeMismatch>(
        port.name.range, tensor.name,
        fmt::format("has {}, but {} are declared", counted(given->second.size(), "dimension"),
                    tensor.rank));
    return;
  }
  for (size_t d = 0; d < tensor.rank; ++d) {
    if (given->second[d] == tensor.shape[d]) continue;
    SourceDiagnostic& diagnostic = sink_.report<LangDiag::kShapeMismatch>(
        tensor.shape_ranges[d], tensor.name,
        fmt::format("is {} in dimension {}, but {} is declared", given->second[d], d,
                    tensor.shape[d]));
    const AstName& name = port.shape[d]->name;
    const auto defaulted = [&](const AstParam& param) {
      return param.name.text == name.text && param.default_value != nullptr;
    };
    const bool is_default = port.shape[d]->kind == AstKind::kName &&
                            !options_.bindings.contains(std::string(name.text)) &&
                            std::any_of(ast_.params.begin(), ast_.params.end(), defaulted);
    if (is_default) {
      diagnostic.message += fmt::format("; bind it with -D {}={}", name.text, given->second[d]);
    }
  }
}

std::unique_ptr<BoundOp> bind_operator(const Module& module, const AstOperator& op,
                                       const BindOptions& options, SourceSet& sources,
                                       DiagSink& sink) {
  Scope scope(module, sources, sink);
  if (!Binder(scope, op, options).run()) return nullptr;
  return std::move(scope.op);
}

}  // namespace prunerc::lang
