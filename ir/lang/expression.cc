// `-e`: one statement becomes an operator whose shapes follow from the extents of its indices.

#include "ir/lang/bind/bind.h"
#include "ir/lang/lang.h"
#include "ir/lang/parse/parser.h"
#include "ir/lang/pipeline.h"
#include "ir/lang/range.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace prunerc::lang {
namespace {

class ExpressionCompiler {
 public:
  explicit ExpressionCompiler(const ExpressionInput& input) : input_(input) {}

  LangResult run() {
    const uint32_t file = sources_.add("<expression>", input_.text);
    std::optional<AstStmt> stmt = parse_statement(sources_, file, ast_, sink_);
    std::unique_ptr<BoundOp> op;
    if (stmt && read_extents(*stmt)) {
      declare(*stmt);
      op = bind_twice();
    }
    return finish_compile(op.get(), sources_, sink_);
  }

 private:
  static void collect(const AstExpr* expr, std::set<std::string_view>& indices) {
    if (expr == nullptr) return;
    for (const AstIndex& index : expr->indices) indices.insert(index.name.text);
    for (const AstExpr* arg : expr->args) collect(arg, indices);
    collect(expr->or_value, indices);
    collect(expr->condition, indices);
  }

  bool read_extents(const AstStmt& stmt) {
    for (const AstIndex& index : stmt.indices) indices_.insert(index.name.text);
    collect(stmt.value, indices_);
    options_.index_extents.emplace();
    for (const auto& [name, value] : input_.extents) {
      const std::string text = fmt::format("-D {}={}", name, value);
      const SourceRange range = {sources_.add("<command line>", text), 3,
                                 static_cast<uint32_t>(text.size())};
      int64_t extent = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), extent);
      if (indices_.count(name) == 0) {
        const std::vector<std::string_view> known(indices_.begin(), indices_.end());
        std::string advice = did_you_mean(name, known);
        if (advice.empty() && !known.empty()) advice = "; its indices are " + list_names(known);
        sink_.report<LangDiag::kUnknownParameter>(range, "expr", name).message += advice;
      } else if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
        sink_.report<LangDiag::kBadParameterValue>(range, name, "a 64-bit integer", value);
      } else if (extent < 1) {
        sink_.report<LangDiag::kExtentTooSmall>(range, extent, "");
      } else {
        (*options_.index_extents)[name] = extent;
      }
    }
    return !sink_.has_errors();
  }

  /// All names that are read and are no indices are inputs, in the order of their first use.
  void declare(const AstStmt& stmt) {
    op_.name = {"expr", stmt.name.range};
    op_.range = stmt.range;
    add_inputs(stmt.value, stmt.name.text);
    check_inputs(stmt);
    AstPort output;
    output.name = stmt.name;
    if (stmt.type) output.type = *stmt.type;
    for (const AstIndex& index : stmt.indices) {
      const auto extent = options_.index_extents->find(std::string(index.name.text));
      output.shape.push_back(
          index.end != nullptr
              ? index.end
              : literal(extent == options_.index_extents->end() ? 1 : extent->second, index.name));
    }
    op_.outputs.push_back(std::move(output));
    op_.stmts.push_back(stmt);
    op_.stmts.back().is_let = false;
  }

  const AstExpr* literal(int64_t value, const AstName& place) {
    AstExpr expr;
    expr.kind = AstKind::kInt;
    expr.int_value = value;
    expr.range = place.range;
    ast_.exprs.push_back(std::move(expr));
    return &ast_.exprs.back();
  }

  void add_inputs(const AstExpr* expr, std::string_view target) {
    if (expr == nullptr) return;
    const bool is_name = expr->kind == AstKind::kName || expr->kind == AstKind::kRead;
    const std::string_view name = expr->name.text;
    if (is_name && indices_.count(name) == 0 && name != target) add_input(*expr);
    if (expr->kind == AstKind::kRead && expr->or_value != nullptr && name != target &&
        input_.shapes.count(std::string(name)) == 0) {
      sink_.report<LangDiag::kOrNeedsShape>(expr->name.range, name, name);
    }
    for (const AstExpr* arg : expr->args) add_inputs(arg, target);
    add_inputs(expr->or_value, target);
    add_inputs(expr->condition, target);
  }

  /// What the command line says of inputs that there are not is a slip.
  void check_inputs(const AstStmt& stmt) {
    std::set<std::string_view> named;
    for (const auto& [name, shape] : input_.shapes) named.insert(name);
    for (std::string_view rest = input_.dtype; !rest.empty();) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      if (item.find('=') != std::string_view::npos) named.insert(item.substr(0, item.find('=')));
    }
    std::vector<std::string_view> inputs;
    for (const AstPort& port : op_.inputs) inputs.push_back(port.name.text);
    for (const std::string_view name : named) {
      if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
      sink_.report<LangDiag::kUnknownName>(stmt.range, name).message +=
          inputs.empty() ? std::string("; nothing is read") : "; inputs are " + list_names(inputs);
    }
  }

  void add_input(const AstExpr& read) {
    for (const AstPort& known : op_.inputs) {
      if (known.name.text == read.name.text) return;
    }
    AstPort port;
    port.name = read.name;
    port.type.name = read.name;
    port.type.dtype = dtype_of(read.name);
    const auto given = input_.shapes.find(std::string(read.name.text));
    const size_t rank = given != input_.shapes.end() ? given->second.size() : read.args.size();
    for (size_t d = 0; d < rank; ++d) {
      // A placeholder until the first binding tells how far the subscripts reach.
      port.shape.push_back(literal(given != input_.shapes.end() ? given->second[d] : 1, read.name));
    }
    op_.inputs.push_back(std::move(port));
  }

  std::optional<ir::DType> dtype_of(const AstName& name) {
    std::string_view rest = input_.dtype;
    std::optional<ir::DType> general = ir::dtype_from_string(rest);
    while (!rest.empty() && !general) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      const size_t equals = item.find('=');
      if (equals == std::string_view::npos || item.substr(0, equals) != name.text) continue;
      const std::optional<ir::DType> own = ir::dtype_from_string(item.substr(equals + 1));
      if (own) return own;
      break;
    }
    if (general) return general;
    sink_.report<LangDiag::kBadParameterValue>(name.range, name.text, "a type through --dtype",
                                               input_.dtype);
    return ir::DType::kF32;
  }

  std::unique_ptr<BoundOp> bind_twice() {
    if (sink_.has_errors()) return nullptr;
    const Module module;
    const std::unique_ptr<BoundOp> first = bind_operator(module, op_, options_, sources_, sink_);
    if (first == nullptr) return nullptr;
    for (const BoundStmt& stmt : first->stmts) reach(stmt.value);
    for (AstPort& port : op_.inputs) {
      const std::string name(port.name.text);
      if (input_.shapes.count(name) > 0) continue;
      for (size_t d = 0; d < port.shape.size(); ++d) {
        port.shape[d] = literal(std::max<int64_t>(1, extents_[name][d]), port.name);
      }
    }
    return bind_operator(module, op_, options_, sources_, sink_);
  }

  /// A subscript's dimension is its largest value plus one.
  void reach(const Node* node) {
    if (node->kind == NodeKind::kRead) {
      std::vector<int64_t>& extents = extents_[node->tensor->name];
      extents.resize(node->args.size(), 1);
      for (size_t d = 0; d < node->args.size(); ++d) {
        const int64_t largest = range_of(node->args[d], FactSet()).hi;
        if (largest < INT64_MAX) extents[d] = std::max(extents[d], largest + 1);
      }
    }
    for_each_child(*node, [&](const Node* child) { reach(child); });
  }

  const ExpressionInput& input_;
  SourceSet sources_;
  DiagSink sink_;
  AstFile ast_;
  AstOperator op_;
  BindOptions options_;
  std::set<std::string_view> indices_;
  std::map<std::string, std::vector<int64_t>> extents_;
};

}  // namespace

LangResult compile_expression(const ExpressionInput& input) {
  return ExpressionCompiler(input).run();
}

}  // namespace prunerc::lang
