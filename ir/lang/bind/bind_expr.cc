// Expressions: name resolution, function expansion, and the equations that subscripts give the
// extents solver.

#include "ir/lang/bind/bind_impl.h"
#include "ir/lang/parse/lexer.h"
#include "ir/lang/std_table.h"

#include <algorithm>
#include <cmath>

namespace prunerc::lang {
namespace {

/// Bounds the binder's own recursion through nested function bodies.
constexpr uint32_t kMaxBindDepth = 1200;

}  // namespace

const Symbol* Binder::find_symbol(std::string_view name) const {
  const auto global = globals_->symbols.find(name);
  if (global != globals_->symbols.end()) return &global->second;
  const auto known = symbols_.find(name);
  return known == symbols_.end() ? nullptr : &known->second;
}

const IndexVar* Binder::find_index(std::string_view name) const {
  for (const IndexVar* index : active_) {
    if (index->name == name) return index;
  }
  return nullptr;
}

bool Binder::is_candidate(const Symbol& symbol, Wanted wanted) {
  switch (wanted) {
    case Wanted::kTensor: return symbol.kind == SymbolKind::kTensor;
    case Wanted::kFunction:
      return symbol.kind == SymbolKind::kFn || symbol.kind == SymbolKind::kTypeParam;
    case Wanted::kType: return symbol.kind == SymbolKind::kTypeParam;
    case Wanted::kValue:
    case Wanted::kIndex:
    case Wanted::kSize:
      return symbol.kind != SymbolKind::kFn && symbol.kind != SymbolKind::kTypeParam;
  }
  return false;
}

void Binder::report_unknown(const AstName& name, Wanted wanted) {
  if (sink_.is_full()) return;
  std::vector<std::string_view> candidates;
  if (wanted == Wanted::kValue || wanted == Wanted::kIndex) {
    for (const IndexVar* index : active_) candidates.push_back(index->name);
  }
  const auto num_indices = static_cast<std::ptrdiff_t>(candidates.size());
  const auto add = [&](const std::map<std::string_view, Symbol>& symbols) {
    for (const auto& [text, symbol] : symbols) {
      if (is_candidate(symbol, wanted)) candidates.push_back(text);
    }
  };
  add(globals_->symbols);
  add(symbols_);
  std::sort(candidates.begin() + num_indices, candidates.end());
  // What is there is said only of what the text defines.
  const std::string defined = list_names(candidates);
  if (wanted == Wanted::kFunction) append_words(TokenKind::kBuiltin, candidates);
  if (wanted == Wanted::kType || wanted == Wanted::kFunction)
    append_words(TokenKind::kDtype, candidates);
  SourceDiagnostic& diagnostic = sink_.report<LangDiag::kUnknownName>(name.range, name.text);
  const std::string_view close = closest_name(name.text, candidates);
  if (!close.empty()) {
    diagnostic.message += fmt::format("; did you mean '{}'?", close);
    diagnostic.fix(name.range, std::string(close));
  } else if (wanted == Wanted::kIndex) {
    diagnostic.message +=
        fmt::format("; an index stands on the left or in 'sum[{}] ...'", name.text);
  } else if (wanted == Wanted::kSize) {
    diagnostic.message += fmt::format("; a size is a number or a parameter: {}<{}=64>(...)",
                                      ast_.name.text, name.text);
  } else if (wanted == Wanted::kType) {
    diagnostic.message += "; a type is one of " + list_names(candidates, candidates.size());
  } else if (wanted == Wanted::kFunction) {
    const std::string_view file = std_file_with_fn(name.text);
    if (!file.empty()) diagnostic.message += fmt::format("; import \"{}\" defines it", file);
  } else if (wanted == Wanted::kTensor && !defined.empty()) {
    diagnostic.message += "; tensors are " + defined;
  }
}

std::optional<ir::DType> Binder::resolve_type(const AstType& type) {
  if (type.dtype) return type.dtype;
  const Symbol* symbol = find_symbol(type.name.text);
  if (symbol == nullptr) {
    report_unknown(type.name, Wanted::kType);
    return std::nullopt;
  }
  if (symbol->kind != SymbolKind::kTypeParam) {
    sink_.report<LangDiag::kNotAType>(type.name.range, type.name.text, describe(*symbol));
    return std::nullopt;
  }
  return symbol->dtype;
}

const Node* Binder::bind(const AstExpr* expr) {
  if (expr == nullptr || sink_.is_full() || typing_.is_exhausted()) return nullptr;
  if (depth_ >= kMaxBindDepth) {
    sink_.report<LangDiag::kTooDeep>(expr->range, kMaxBindDepth);
    return nullptr;
  }
  ++depth_;
  const Node* node = bind_kind(*expr);
  --depth_;
  return node;
}

const Node* Binder::bind_kind(const AstExpr& expr) {
  switch (expr.kind) {
    case AstKind::kInt: return typing_.int_constant(expr.int_value, expr.range);
    case AstKind::kFloat: return typing_.float_constant(expr.float_value, expr.range);
    case AstKind::kBool: return typing_.bool_constant(expr.bool_value, expr.range);
    case AstKind::kInf: return typing_.float_constant(HUGE_VAL, expr.range);
    case AstKind::kExtreme: {
      const std::optional<ir::DType> dtype = resolve_type(*expr.type);
      return dtype ? typing_.extreme(*dtype, expr.is_highest, expr.range) : nullptr;
    }
    case AstKind::kName: return bind_name(expr);
    case AstKind::kRead: return bind_read(expr);
    case AstKind::kCall: return bind_call(expr);
    case AstKind::kCast: {
      const std::optional<ir::DType> dtype = resolve_type(*expr.type);
      const std::optional<ir::DType> body_type = typing_.set_body_type(std::nullopt);
      const Node* operand = bind(expr.args[0]);
      typing_.set_body_type(body_type);
      return dtype ? typing_.cast(*dtype, operand, expr.range) : nullptr;
    }
    case AstKind::kReduce: return bind_reduce(expr);
    case AstKind::kUnary: return typing_.unary(expr, bind(expr.args[0]));
    case AstKind::kBinary: return bind_binary(expr);
    case AstKind::kIf: {
      const Node* condition = bind(expr.args[0]);
      const Node* on_true = bind(expr.args[1]);
      const Node* on_false = bind(expr.args[2]);
      return typing_.choose(NodeKind::kIf, condition, on_true, on_false, expr.range);
    }
  }
  return nullptr;
}

const Node* Binder::bind_binary(const AstExpr& expr) {
  const Node* lhs = bind(expr.args[0]);
  operands_.push_back(expr.args[1]->range);
  const Node* rhs = bind(expr.args[1]);
  operands_.pop_back();
  return typing_.binary(expr, lhs, rhs);
}

const Node* Binder::bind_name(const AstExpr& expr) {
  const std::string_view name = expr.name.text;
  if (frame_ != nullptr) {
    const std::vector<AstName>& params = frame_->fn->params;
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].text == name) return frame_->args[i];
    }
  } else if (const IndexVar* index = find_index(name)) {
    return typing_.index(index, expr.range);
  }
  const Symbol* symbol = find_symbol(name);
  if (symbol != nullptr) return bind_symbol(expr, *symbol);
  const auto ended = std::find_if(ended_.begin(), ended_.end(),
                                  [&](const EndedReduction& item) { return item.index == name; });
  if (frame_ == nullptr && ended != ended_.end()) {
    report_after_body(expr);
  } else {
    report_unknown(expr.name, &expr == subscript_ ? Wanted::kIndex
                              : in_shape_         ? Wanted::kSize
                                                  : Wanted::kValue);
  }
  return nullptr;
}

void Binder::report_after_body(const AstExpr& expr) {
  // The last reduction over this index is the one that the reader meant to continue.
  const auto ended = std::find_if(ended_.rbegin(), ended_.rend(), [&](const EndedReduction& item) {
    return item.index == expr.name.text;
  });
  if (ended->is_reported) return;  // once is enough: the fix-it mends all uses
  ended->is_reported = true;
  SourceDiagnostic& diagnostic =
      sink_.report<LangDiag::kIndexAfterBody>(expr.range, expr.name.text);
  diagnostic.note(ended->body, "the body of the reduction");
  for (const SourceRange& operand : operands_) {
    if (operand.begin < ended->body.end) continue;
    diagnostic.fix(start_of(ended->body), "(").fix(end_of(operand), ")");
    return;
  }
}

const Node* Binder::bind_symbol(const AstExpr& expr, const Symbol& symbol) {
  switch (symbol.kind) {
    case SymbolKind::kConst:
    case SymbolKind::kParam:
    case SymbolKind::kSize: return typing_.at(symbol.value, expr.range);
    case SymbolKind::kTensor:
      if (symbol.tensor->rank == 0) {
        symbol.tensor->is_read = true;
        if (symbol.tensor->is_broken || !symbol.tensor->dtype) return nullptr;
        return typing_.read(symbol.tensor, {}, nullptr, false, expr.range);
      }
      break;
    case SymbolKind::kFn:
    case SymbolKind::kTypeParam: break;
  }
  sink_.report<LangDiag::kNotAValue>(expr.range, expr.name.text, describe(symbol))
      .note(symbol.range, "defined here");
  return nullptr;
}

void Binder::equate(const AstExpr* subscript, const Tensor& tensor, size_t dim) {
  if (subscript->kind != AstKind::kName || options_.index_extents) return;
  const IndexVar* index = find_index(subscript->name.text);
  if (index == nullptr) return;
  if (tensor.role == TensorRole::kLet) {
    extents_.equate(index->unknown, tensor.unknowns[dim], subscript->range);
  } else if (!tensor.is_broken) {
    extents_.fix(index->unknown, tensor.shape[dim], subscript->range);
  }
}

const Node* Binder::bind_read(const AstExpr& expr) {
  std::vector<const Node*> subscripts;
  const std::optional<ir::DType> body_type = typing_.set_body_type(std::nullopt);
  for (const AstExpr* arg : expr.args) {
    subscript_ = arg;
    subscripts.push_back(bind(arg));
  }
  typing_.set_body_type(body_type);
  const Node* or_value = bind(expr.or_value);
  const Symbol* symbol = find_symbol(expr.name.text);
  const IndexVar* index = find_index(expr.name.text);
  if (index != nullptr || (symbol != nullptr && symbol->tensor == nullptr)) {
    sink_.report<LangDiag::kNotATensor>(expr.name.range, expr.name.text,
                                        index != nullptr ? "an index" : describe(*symbol));
    return nullptr;
  }
  if (symbol == nullptr) {
    report_unknown(expr.name, Wanted::kTensor);
    return nullptr;
  }
  Tensor& tensor = *symbol->tensor;
  tensor.is_read = true;
  if (tensor.rank != subscripts.size()) {
    if (tensor.is_broken) return nullptr;
    sink_
        .report<LangDiag::kWrongRank>(expr.range, tensor.name, counted(tensor.rank, "dimension"),
                                      counted(subscripts.size(), "subscript"))
        .note(symbol->range, "defined here");
    return nullptr;
  }
  for (size_t d = 0; d < tensor.rank; ++d) equate(expr.args[d], tensor, d);
  if (tensor.is_broken || !tensor.dtype) return nullptr;
  return typing_.read(&tensor, std::move(subscripts), or_value, expr.or_value != nullptr,
                      expr.range);
}

const Node* Binder::bind_call(const AstExpr& expr) {
  std::vector<const Node*> args;
  for (const AstExpr* arg : expr.args) args.push_back(bind(arg));
  const TokenKind word = classify_word(expr.name.text);
  if (word == TokenKind::kBuiltin || word == TokenKind::kReducer)
    return typing_.call(expr, std::move(args));
  const Symbol* symbol = find_symbol(expr.name.text);
  if (symbol == nullptr) {
    report_unknown(expr.name, Wanted::kFunction);
    return nullptr;
  }
  const size_t expected = symbol->fn != nullptr ? symbol->fn->params.size() : 1;
  if (symbol->kind != SymbolKind::kFn && symbol->kind != SymbolKind::kTypeParam) {
    sink_.report<LangDiag::kNotAFunction>(expr.name.range, expr.name.text, describe(*symbol))
        .note(symbol->range, "defined here");
    return nullptr;
  }
  if (args.size() != expected) {
    sink_
        .report<LangDiag::kWrongArgCount>(expr.range, expr.name.text, counted(expected, "argument"),
                                          args.size())
        .note(symbol->range, "defined here");
    return nullptr;
  }
  if (symbol->kind == SymbolKind::kFn) return expand(expr, *symbol->fn, std::move(args));
  return symbol->dtype ? typing_.cast(*symbol->dtype, args[0], expr.range) : nullptr;
}

const Node* Binder::expand(const AstExpr& call, const AstFn& fn, std::vector<const Node*> args) {
  for (const Node* arg : args) {
    if (arg == nullptr) return nullptr;
  }
  if (globals_->broken_fns.count(&fn) > 0) return nullptr;
  const FnFrame frame = {&fn, std::move(args), frame_};
  const int errors_before = sink_.num_errors();
  frame_ = &frame;
  const Node* value = bind(fn.body);
  frame_ = frame.parent;
  if (sink_.num_errors() != errors_before) {
    sink_.annotate_last(call.range, fmt::format("in this call of '{}'", fn.name.text));
  }
  return typing_.at(value, call.range);
}

const Node* Binder::bind_reduce(const AstExpr& expr) {
  const size_t num_active = active_.size();
  std::vector<const IndexVar*> indices;
  for (const AstIndex& ast : expr.indices) {
    indices.push_back(make_index(ast));
    active_.push_back(indices.back());
  }
  const Node* condition = nullptr;
  bool ok = true;
  if (expr.condition != nullptr) {
    const std::optional<ir::DType> outer_type = typing_.set_body_type(std::nullopt);
    condition = typing_.condition(bind(expr.condition), "the condition of a reduction");
    typing_.set_body_type(outer_type);
    ok = condition != nullptr;
  }
  std::optional<ir::DType> accumulator;
  if (expr.type) {
    accumulator = resolve_type(*expr.type);
    ok = ok && accumulator.has_value();
  }
  const std::optional<ir::DType> outer_type = typing_.set_body_type(accumulator);
  const Node* body = bind(expr.args[0]);
  typing_.set_body_type(outer_type);
  active_.resize(num_active);
  for (const AstIndex& ast : expr.indices)
    ended_.push_back({ast.name.text, expr.args[0]->range, false});
  if (!ok) return nullptr;
  return typing_.reduce(expr, accumulator, std::move(indices), condition, body);
}

}  // namespace prunerc::lang
