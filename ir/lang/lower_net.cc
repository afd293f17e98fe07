#include "ir/lang/lower_net.h"

#include "ir/analysis/views/views.h"
#include "ir/lang/check.h"
#include "ir/lang/lower.h"

#include <cctype>
#include <set>

namespace prunerc::lang {
namespace {

/// The texts of the operators that are called, and of all that they name: fns, constants, operators.
class Definitions {
 public:
  Definitions(const Module& module, const SourceSet& sources) : module_(module), sources_(sources) {
    for (const AstConst* item : module.consts) consts_[item->name.text] = item;
  }

  void add_names(std::string_view text) {
    const auto is_letter = [](char c) {
      return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    for (size_t begin = 0; begin < text.size(); ++begin) {
      if (!is_letter(text[begin])) continue;
      size_t end = begin;
      while (end < text.size() && is_letter(text[end])) ++end;
      add(text.substr(begin, end - begin));
      begin = end;
    }
  }

  void add(std::string_view name) {
    if (!seen_.insert(name).second) return;
    if (const auto found = consts_.find(name); found != consts_.end()) {
      const std::string_view value = sources_.text(found->second->value->range);
      add_names(value);
      text_ += fmt::format("const {} = {};\n", name, value);
    }
    if (const auto found = module_.fns.find(name); found != module_.fns.end()) {
      const std::string_view body = sources_.text(found->second->body->range);
      add_names(body);
      std::string params;
      for (const AstName& param : found->second->params)
        params += (params.empty() ? "" : ", ") + std::string(param.text);
      text_ += fmt::format("fn {}({}) = {};\n", name, params, body);
    }
    if (const auto found = module_.operators.find(name); found != module_.operators.end()) {
      const std::string_view op = sources_.text(found->second->range);
      add_names(op);
      text_ += fmt::format("{}\n", op);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  const Module& module_;
  const SourceSet& sources_;
  std::map<std::string_view, const AstConst*> consts_;
  std::set<std::string_view> seen_;
  std::string text_;
};

}  // namespace

std::optional<net::Net> lower_net(const Module& module, const AstNet& ast, const BoundNet& bound,
                                  const SourceSet& sources, DiagSink& sink) {
  net::Net net;
  net.name = ast.name.text;
  if (ast.weights) net.weights = ast.weights->path;
  std::map<const Tensor*, size_t> numbers;
  for (const Tensor& tensor : bound.scope->tensors) {
    numbers[&tensor] = net.tensors.size();
    net::Tensor out;
    out.name = tensor.name;
    out.dtype = *tensor.dtype;
    out.shape = tensor.shape;
    out.is_const = tensor.is_const;
    if (tensor.role == TensorRole::kInput) out.role = net::Role::kInput;
    if (tensor.role == TensorRole::kOutput) out.role = net::Role::kOutput;
    net.tensors.push_back(std::move(out));
  }
  for (const BoundNetConst& constant : bound.consts) {
    net::Tensor& tensor = net.tensors[numbers[constant.tensor]];
    tensor.role = net::Role::kConst;
    tensor.weight = constant.weight;
    tensor.value = constant.value;
  }
  for (size_t i = 0; i < net.tensors.size(); ++i) {
    if (net.tensors[i].role == net::Role::kInput) net.inputs.push_back(i);
    if (net.tensors[i].role == net::Role::kOutput) net.outputs.push_back(i);
  }
  for (const auto& op : bound.ops) {
    const Proofs proofs = check_operator(*op, sink);
    if (sink.has_errors()) return std::nullopt;
    const LoweredOp lowered = lower_operator(*op, proofs, sink);
    if (sink.has_errors()) return std::nullopt;
    net.programs.push_back(ir::absorb_views(lowered.program));
    net.num_statements.push_back(op->stmts.size());
  }
  Definitions definitions(module, sources);
  for (const BoundCall& bound_call : bound.calls) {
    net::Call call;
    call.label = bound_call.label;
    call.op = bound_call.callee->name.text;
    call.bindings = bound_call.bindings;
    call.program = bound_call.op;
    for (const Tensor* tensor : bound_call.args) call.args.push_back(numbers[tensor]);
    for (const Tensor* tensor : bound_call.results) call.results.push_back(numbers[tensor]);
    definitions.add(bound_call.callee->name.text);
    net.calls.push_back(std::move(call));
  }
  net.definitions = definitions.take();
  return net;
}

}  // namespace prunerc::lang
