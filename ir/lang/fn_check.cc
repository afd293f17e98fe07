#include "ir/lang/fn_check.h"

namespace prunerc::lang {
namespace {

/// Finds what an fn must not contain, and calls of itself through others.
class FnChecker {
 public:
  FnChecker(const Module& module, const std::map<std::string_view, Symbol>& symbols, DiagSink& sink,
            std::set<const AstFn*>& broken)
      : module_(module), symbols_(symbols), sink_(sink), broken_(broken) {}

  void check(const AstFn& fn) {
    if (const auto known = state_.find(&fn); known != state_.end()) return;
    state_[&fn] = State::kOpen;
    const AstFn* outer = current_;
    current_ = &fn;
    const int errors_before = sink_.num_errors();
    check_params(fn);
    walk(fn.body);
    if (sink_.num_errors() != errors_before) broken_.insert(&fn);
    current_ = outer;
    state_[&fn] = State::kDone;
  }

 private:
  enum class State : uint8_t { kOpen, kDone };

  void check_params(const AstFn& fn) {
    for (size_t i = 0; i < fn.params.size(); ++i) {
      const AstName& param = fn.params[i];
      bool clash = symbols_.count(param.text) > 0;
      for (size_t j = 0; j < i; ++j) clash = clash || fn.params[j].text == param.text;
      if (clash) sink_.report<LangDiag::kRedefined>(param.range, param.text);
    }
  }

  void walk(const AstExpr* expr) {
    if (sink_.is_full()) return;
    if (expr->kind == AstKind::kRead) {
      sink_.report<LangDiag::kFnReads>(expr->range, expr->name.text);
      return;
    }
    if (expr->kind == AstKind::kReduce) {
      sink_.report<LangDiag::kFnReduces>(expr->range);
      return;
    }
    if (expr->kind == AstKind::kName) check_name(expr->name);
    if (expr->kind == AstKind::kCall) check_call(*expr);
    for (const AstExpr* arg : expr->args) walk(arg);
  }

  void check_name(const AstName& name) {
    for (const AstName& param : current_->params) {
      if (param.text == name.text) return;
    }
    const auto known = symbols_.find(name.text);
    if (known != symbols_.end() && known->second.kind == SymbolKind::kConst) return;
    std::vector<std::string_view> candidates;
    for (const AstName& param : current_->params) candidates.push_back(param.text);
    for (const auto& [text, symbol] : symbols_) {
      if (symbol.kind == SymbolKind::kConst) candidates.push_back(text);
    }
    SourceDiagnostic& diagnostic = sink_.report<LangDiag::kUnknownName>(name.range, name.text);
    const std::string_view close = closest_name(name.text, candidates);
    if (close.empty()) {
      diagnostic.message += "; an fn sees its arguments and constants";
    } else {
      diagnostic.message += fmt::format("; did you mean '{}'?", close);
      diagnostic.fix(name.range, std::string(close));
    }
  }

  void check_call(const AstExpr& expr) {
    const auto callee = module_.fns.find(expr.name.text);
    if (callee == module_.fns.end()) return;  // a built-in, or reported where it is expanded
    const auto known = state_.find(callee->second);
    if (known != state_.end() && known->second == State::kOpen) {
      sink_.report<LangDiag::kFnRecursive>(expr.name.range, expr.name.text);
      broken_.insert(callee->second);
      return;
    }
    constexpr int kMaxChain = 64;
    if (++chain_ > kMaxChain) {
      sink_.report<LangDiag::kTooDeep>(expr.name.range, kMaxChain);
    } else {
      check(*callee->second);
    }
    --chain_;
    if (broken_.count(callee->second) > 0) broken_.insert(current_);
  }

  const Module& module_;
  const std::map<std::string_view, Symbol>& symbols_;
  DiagSink& sink_;
  std::set<const AstFn*>& broken_;
  std::map<const AstFn*, State> state_;
  const AstFn* current_ = nullptr;
  int chain_ = 0;
};

}  // namespace

std::set<const AstFn*> check_functions(const Module& module,
                                       const std::map<std::string_view, Symbol>& symbols,
                                       DiagSink& sink) {
  std::set<const AstFn*> broken;
  FnChecker checker(module, symbols, sink, broken);
  for (const auto& [name, fn] : module.fns) {
    if (!sink.is_full()) checker.check(*fn);
  }
  return broken;
}

}  // namespace prunerc::lang
