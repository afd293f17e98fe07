// Statements: targets, the order in which they are computed, left-hand sides, extents.

#include "ir/lang/bind/bind_impl.h"
#include "ir/lang/parse/parser.h"

namespace prunerc::lang {

using ir::DType;

namespace {

/// Calls f(name) for each name that an expression could read.
template <typename F>
void for_each_name(const AstExpr* expr, F&& f) {
  std::vector<const AstExpr*> stack = {expr};
  while (!stack.empty()) {
    const AstExpr* item = stack.back();
    stack.pop_back();
    if (item == nullptr) continue;
    if (item->kind == AstKind::kName || item->kind == AstKind::kRead) f(item->name);
    stack.insert(stack.end(), item->args.begin(), item->args.end());
    stack.push_back(item->or_value);
    stack.push_back(item->condition);
  }
}

enum VisitState : uint8_t { kUnvisited, kOpen, kDone };

}  // namespace

void Binder::declare_targets() {
  for (const AstStmt& stmt : ast_.stmts) targets_.push_back(declare_all(stmt));
  if (ast_.has_body_errors) return;
  for (const AstPort& port : ast_.outputs) {
    const Symbol* symbol = find_symbol(port.name.text);
    const Tensor* tensor = symbol != nullptr ? symbol->tensor : nullptr;
    if (tensor != nullptr && !tensor->is_assigned)
      sink_.report<LangDiag::kNeverAssigned>(port.name.range, port.name.text);
  }
}

// One tensor, or those that a call gives.
std::vector<Tensor*> Binder::declare_all(const AstStmt& stmt) {
  const AstOperator* callee = callee_of(stmt);
  if (callee == nullptr) return {declare_target(stmt, stmt.name, stmt.indices.size())};
  std::vector<Tensor*> targets;
  for (size_t i = 0; i <= stmt.more_names.size(); ++i) {
    const AstName& name = i == 0 ? stmt.name : stmt.more_names[i - 1];
    const bool exists = i < callee->outputs.size();
    targets.push_back(declare_target(stmt, name, exists ? callee->outputs[i].shape.size() : 0));
  }
  return targets;
}

Tensor* Binder::declare_target(const AstStmt& stmt, const AstName& name, size_t rank) {
  const auto known = symbols_.find(name.text);
  Tensor* tensor = known != symbols_.end() ? known->second.tensor : nullptr;
  if (tensor != nullptr) {
    if (known->second.role == TensorRole::kInput) {
      sink_.report<LangDiag::kAssignsInput>(name.range, name.text)
          .note(known->second.range, "the input");
      return nullptr;
    }
    if (tensor->is_assigned) {
      sink_.report<LangDiag::kAssignedTwice>(name.range, name.text)
          .note(known->second.range, "the first assignment");
      return nullptr;
    }
    // Among several results one may be an output and another a let.
    if (stmt.is_let && stmt.more_names.empty() && known->second.role == TensorRole::kOutput) {
      sink_.report<LangDiag::kLetOfOutput>(name.range, name.text)
          .note(known->second.range, "the output");
    }
    tensor->is_assigned = true;
    tensor->is_broken = tensor->is_broken || !stmt.is_complete();
    known->second.range = name.range;
    return tensor;
  }
  if (const Symbol* const symbol = find_symbol(name.text)) {
    sink_.report<LangDiag::kRedefined>(name.range, name.text)
        .note(symbol->range, "the first definition");
    return nullptr;
  }
  if (!stmt.is_let) {
    SourceDiagnostic& diagnostic =
        sink_.report<LangDiag::kNotAnOutput>(name.range, name.text, name.text);
    diagnostic.fix(start_of(name.range), "let ");
  }
  Tensor& let = new_let(name, rank, stmt.indices);
  let.is_broken = !stmt.is_complete();
  return &let;
}

// A let of this operator, which is inlined perhaps: messages show the name as it is written there.
Tensor& Binder::new_let(const AstName& name, size_t rank, const std::vector<AstIndex>& indices) {
  op_->tensors.emplace_back();
  Tensor& tensor = op_->tensors.back();
  tensor.name = prefix_ + std::string(name.text);
  tensor.range = name.range;
  tensor.role = TensorRole::kLet;
  tensor.rank = rank;
  tensor.is_assigned = true;
  for (size_t d = 0; d < rank; ++d) {
    const SourceRange range = d < indices.size() ? indices[d].name.range : name.range;
    tensor.unknowns.push_back(
        extents_.make(fmt::format("dimension {} of '{}'", d, name.text), range));
  }
  Symbol symbol = {SymbolKind::kTensor, name.range, nullptr, std::nullopt, nullptr, &tensor};
  declare(name, symbol);
  return tensor;
}

void Binder::order_stmts() {
  visit_state_.assign(ast_.stmts.size(), kUnvisited);
  for (size_t i = 0; i < targets_.size(); ++i) {
    for (const Tensor* target : targets_[i]) {
      if (target != nullptr) producers_.emplace(target, i);
    }
  }
  for (size_t i = 0; i < ast_.stmts.size(); ++i) visit_stmt(i);
}

void Binder::visit_stmt(size_t start) {
  // Iterative depth-first search: a file may hold a chain of many thousand lets.
  struct Frame {
    size_t stmt;
    std::vector<std::pair<size_t, SourceRange>> reads;
    size_t next = 0;
  };
  if (visit_state_[start] != kUnvisited) return;
  std::vector<Frame> stack;
  const auto open = [&](size_t i) {
    visit_state_[i] = kOpen;
    Frame frame{i, {}, 0};
    const auto add = [&](const AstName& name) {
      const Symbol* symbol = find_symbol(name.text);
      if (symbol == nullptr || symbol->tensor == nullptr) return;
      const auto producer = producers_.find(symbol->tensor);
      if (producer != producers_.end()) frame.reads.emplace_back(producer->second, name.range);
    };
    for_each_name(ast_.stmts[i].value, add);
    if (callee_of(ast_.stmts[i]) != nullptr) {
      for (const AstName& arg : ast_.stmts[i].call->args) add(arg);
    }
    stack.push_back(std::move(frame));
  };
  open(start);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next == frame.reads.size()) {
      visit_state_[frame.stmt] = kDone;
      order_.push_back(frame.stmt);
      stack.pop_back();
      continue;
    }
    const auto [read, range] = frame.reads[frame.next++];
    if (visit_state_[read] == kUnvisited) {
      open(read);
    } else if (visit_state_[read] == kOpen) {
      SourceDiagnostic& diagnostic =
          sink_.report<LangDiag::kDependencyCycle>(range, sources_.text(range));
      for (auto it = stack.rbegin(); it != stack.rend() && it->stmt != read; ++it) {
        diagnostic.note(ast_.stmts[it->stmt].name.range,
                        fmt::format("through '{}'", ast_.stmts[it->stmt].name.text));
      }
      for (Tensor* target : targets_[read]) {
        if (target != nullptr) target->is_broken = true;
      }
    }
  }
}

IndexVar* Binder::make_index(const AstIndex& ast) {
  const AstName& name = ast.name;
  if (const IndexVar* outer = find_index(name.text)) {
    sink_.report<LangDiag::kRedefined>(name.range, name.text)
        .note(outer->range, "the first definition");
  } else if (const Symbol* symbol = find_symbol(name.text)) {
    sink_.report<LangDiag::kRedefined>(name.range, name.text)
        .note(symbol->range, "the first definition");
  }
  op_->indices.emplace_back();
  IndexVar& index = op_->indices.back();
  index.name = name.text;
  index.range = name.range;
  index.number = static_cast<int>(op_->indices.size()) - 1;
  index.unknown = extents_.make(fmt::format("the extent of '{}'", index.name), name.range);
  if (ast.begin != nullptr) {
    const auto condition = [&](std::string_view compare, const AstExpr* bound) {
      return fmt::format("; a bound that varies is a condition: '[{0} | {0} {1} {2}]'", name.text,
                         compare, sources_.text(bound->range));
    };
    const std::optional<int64_t> begin =
        constant_int(ast.begin, "the start of a range", condition(">=", ast.begin));
    const std::optional<int64_t> end =
        constant_int(ast.end, "the end of a range", condition("<", ast.end));
    index.begin = begin.value_or(0);
    int64_t extent = 0;
    if (begin && end && __builtin_sub_overflow(*end, *begin, &extent)) {
      sink_.report<LangDiag::kConstantOverflow>(join(ast.begin->range, ast.end->range));
      extents_.claim_unsolved(index.unknown);
    } else if (end) {
      extents_.fix(index.unknown, *end, ast.end->range);
    } else {
      extents_.claim_unsolved(index.unknown);
    }
  }
  if (options_.index_extents) {
    const auto given = options_.index_extents->find(index.name);
    if (given == options_.index_extents->end() && ast.begin != nullptr) return &index;
    if (given == options_.index_extents->end()) {
      sink_.report<LangDiag::kIndexNotBound>(name.range, name.text, name.text);
      extents_.claim_unsolved(index.unknown);
    } else {
      extents_.fix(index.unknown, given->second, name.range);
    }
  }
  return &index;
}

std::vector<const IndexVar*> Binder::bind_left(const AstStmt& stmt, Tensor* target) {
  std::vector<const IndexVar*> indices;
  for (const AstIndex& ast : stmt.indices) {
    IndexVar* index = make_index(ast);
    if (index->begin != 0) {
      sink_.report<LangDiag::kLeftIndexStart>(ast.begin->range, index->name, index->begin)
          .fix(ast.begin->range, "0");
      index->begin = 0;
    }
    indices.push_back(index);
    active_.push_back(index);
  }
  if (target == nullptr) return indices;
  if (indices.size() != target->rank) {
    sink_
        .report<LangDiag::kWrongRank>(stmt.name.range, target->name,
                                      counted(target->rank, "dimension"),
                                      counted(indices.size(), "subscript"))
        .note(target->range, "declared here");
    return indices;
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    const SourceRange range = indices[d]->range;
    if (target->role == TensorRole::kLet) {
      extents_.equate(indices[d]->unknown, target->unknowns[d], range);
    } else if (!target->is_broken) {
      extents_.fix(indices[d]->unknown, target->shape[d], range);
    } else {
      extents_.claim_unsolved(indices[d]->unknown);
    }
  }
  return indices;
}

const Node* Binder::convert_value(const AstStmt& stmt, Tensor* target, const Node* value) {
  std::optional<DType> annotated;
  if (stmt.type) {
    annotated = resolve_type(*stmt.type);
    if (!annotated) return nullptr;
  }
  // A let that is an output of an inlined operator has its type already.
  const bool is_port = target->role != TensorRole::kLet || target->dtype.has_value();
  if (!is_port && annotated) target->dtype = annotated;
  if (value == nullptr) return nullptr;
  if (is_port && (target->dtype || target->is_broken)) {
    if (target->is_broken) return nullptr;
    if (annotated && *annotated != *target->dtype) {
      sink_
          .report<LangDiag::kNoImplicitCast>(stmt.type->name.range, ir::to_string(*annotated),
                                             ir::to_string(*target->dtype))
          .note(target->range, "the output's type is declared here");
      return nullptr;
    }
    return typing_.convert(value, *target->dtype);
  }
  if (annotated) return typing_.convert(value, *annotated);
  if (!value->type.is_typed()) {
    const char* guess = value->type.is_float() ? ": f32" : ": i64";
    const SourceRange end = stmt.indices.empty() ? stmt.name.range : stmt.indices.back().name.range;
    SourceDiagnostic& diagnostic =
        sink_.report<LangDiag::kUntypedValue>(stmt.name.range, target->name);
    if (stmt.indices.empty()) diagnostic.fix(end_of(end), guess);
    return nullptr;
  }
  target->dtype = value->type.dtype;
  return value;
}

void Binder::bind_stmt(const AstStmt& stmt, const std::vector<Tensor*>& targets) {
  if (!stmt.is_complete()) return;
  // What nothing is called like is more often an operator than an fn of a scalar.
  const bool is_unknown = stmt.call && find_symbol(stmt.call->callee.text) == nullptr;
  if (stmt.call && (stmt.value == nullptr || callee_of(stmt) != nullptr || is_unknown)) {
    bind_call_stmt(stmt, targets);
    return;
  }
  Tensor* const target = targets[0];
  active_.clear();
  ended_.clear();
  operands_.clear();
  BoundStmt bound;
  bound.target = target;
  bound.range = stmt.range;
  bound.indices = bind_left(stmt, target);
  const Node* value = bind(stmt.value);
  if (target == nullptr) return;
  bound.value = convert_value(stmt, target, value);
  if (op_->stmts.size() >= kMaxStatements && caller_ != nullptr && bound.value != nullptr) {
    sink_.report<LangDiag::kTooManyStatements>(stmt.name.range, "an operator with what it calls",
                                               kMaxStatements);
    bound.value = nullptr;
  }
  if (bound.value == nullptr) {
    // A let whose type is written is still good to be read.
    target->is_broken = target->is_broken || !target->dtype;
    return;
  }
  op_->stmts.push_back(std::move(bound));
}

void Binder::solve() {
  for (IndexVar& index : op_->indices) {
    const std::optional<int64_t> end = extents_.value(index.unknown);
    if (end) {
      index.end = *end;
      continue;
    }
    if (!extents_.claim_unsolved(index.unknown)) continue;
    std::string upper = index.name;
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    const Symbol* size = find_symbol(upper);
    const bool known =
        size != nullptr && size->value != nullptr && size->value->kind == NodeKind::kInt;
    const std::string range = fmt::format(" in 0..{}", upper);
    SourceDiagnostic& diagnostic = sink_.report<LangDiag::kExtentUnknown>(
        index.range, fmt::format("'{}'", index.name),
        fmt::format("; write {}'{}{}'", known ? "" : "its range, as in ", index.name, range));
    if (known) diagnostic.fix(end_of(index.range), range);
  }
  if (sink_.has_errors()) return;
  for (Tensor& tensor : op_->tensors) {
    if (tensor.role == TensorRole::kOutput) check_size(tensor);
    if (tensor.role != TensorRole::kLet) continue;
    for (size_t d = 0; d < tensor.rank; ++d) {
      const int64_t extent = extents_.value(tensor.unknowns[d]).value_or(0);
      tensor.shape.push_back(extent);
      if (extent < 1) {
        sink_.report<LangDiag::kExtentTooSmall>(tensor.range, extent, "");
        tensor.is_broken = true;
      }
    }
    check_size(tensor);
  }
}

void Binder::check_size(Tensor& tensor) {
  if (tensor.is_broken) return;
  int64_t bytes = ir::byte_size(*tensor.dtype);
  bool too_large = false;
  std::string elements;
  for (const int64_t extent : tensor.shape) {
    too_large =
        __builtin_mul_overflow(bytes, extent, &bytes) || bytes >= kMaxTensorBytes || too_large;
    elements += fmt::format("{}{}", elements.empty() ? "" : " * ", extent);
  }
  if (!too_large) return;
  sink_.report<LangDiag::kTensorTooLarge>(tensor.range, tensor.name, elements,
                                          ir::to_string(*tensor.dtype));
  tensor.is_broken = true;
}

}  // namespace prunerc::lang
