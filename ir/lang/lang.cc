#include "ir/lang/lang.h"

#include "ir/lang/bind/bind.h"
#include "ir/lang/check.h"
#include "ir/lang/lower.h"
#include "ir/lang/lower_net.h"
#include "ir/lang/module.h"
#include "ir/lang/pipeline.h"
#include "ir/support/file.h"

namespace prunerc::lang {
namespace {

template <typename R>
void fill_diagnostics(const SourceSet& sources, const DiagSink& sink, R& result) {
  for (const SourceDiagnostic& item : sink.all()) {
    const LangDiagRow& row = kLangDiagRows[static_cast<size_t>(item.id)];
    const auto [line, column] = sources.line_column(item.range);
    result.diagnostics.push_back({row.severity == Severity::kError, std::string(row.name),
                                  sources.name(item.range.file), line, column, item.message});
  }
  result.rendered = render(sources, sink);
}

std::string text_between(const SourceSet& sources, SourceRange first, SourceRange last) {
  return printable_line(sources.text(join(first, last)));
}

PortInfo describe_port(const SourceSet& sources, const AstPort& port) {
  PortInfo info = {std::string(port.name.text), std::string(port.type.name.text), port.is_const};
  if (!port.shape.empty()) {
    info.type +=
        "[" + text_between(sources, port.shape.front()->range, port.shape.back()->range) + "]";
  }
  return info;
}

ParamInfo describe_param(const SourceSet& sources, const AstParam& param) {
  constexpr std::string_view kKinds[] = {"int", "float", "type"};
  ParamInfo info = {std::string(param.name.text),
                    std::string(kKinds[static_cast<size_t>(param.kind)]), ""};
  if (param.default_value != nullptr)
    info.default_text = printable_line(sources.text(param.default_value->range));
  if (param.default_type) info.default_text = param.default_type->name.text;
  return info;
}

NetInfo describe_net(const SourceSet& sources, const AstNet& net) {
  NetInfo info;
  info.name = net.name.text;
  info.has_ports = net.has_ports;
  for (const AstNetTask& task : net.tasks) {
    NetTaskInfo line;
    line.op = task.op.text;
    if (task.label) line.label = task.label->text;
    line.times = task.times;
    for (const AstBinding& binding : task.bindings) {
      line.bindings[std::string(binding.name.text)] = std::string(sources.text(binding.range));
    }
    line.line = sources.line_column(task.op.range).first;
    info.tasks.push_back(std::move(line));
  }
  return info;
}

}  // namespace

LangResult finish_compile(const BoundOp* op, const SourceSet& sources, DiagSink& sink) {
  LangResult result;
  if (op != nullptr) {
    const Proofs proofs = check_operator(*op, sink);
    if (!sink.has_errors()) {
      LoweredOp lowered = lower_operator(*op, proofs, sink);
      for (const StageOrigin& stage : lowered.stages) {
        result.origins.push_back(
            {stage.block, sources.name(stage.range.file), sources.line_column(stage.range).first});
      }
      if (!sink.has_errors()) result.program = std::move(lowered.program);
    }
  }
  fill_diagnostics(sources, sink, result);
  return result;
}

LangResult compile(const CompileInput& input) {
  SourceSet sources;
  DiagSink sink;
  const Module module =
      load_module(sources, input.file_name, input.text, input.import, sink, input.max_bytes);
  const AstOperator* ast = find_operator(module, input.op, sink);
  std::unique_ptr<BoundOp> op;
  if (ast != nullptr && !ast->has_header_errors && !sink.is_full()) {
    op = bind_operator(module, *ast, {input.bindings, input.shapes, std::nullopt}, sources, sink);
  }
  return finish_compile(op.get(), sources, sink);
}

NetResult compile_net(const CompileInput& input) {
  SourceSet sources;
  DiagSink sink;
  const Module module =
      load_module(sources, input.file_name, input.text, input.import, sink, input.max_bytes);
  NetResult result;
  const AstNet* const ast = find_net(module, input.op);
  const SourceRange top = {0, 0, 0};
  if (ast == nullptr) {
    std::string names;
    for (const AstNet* net : module.nets) {
      if (net->has_ports) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", net->name.text);
    }
    if (input.op.empty() && !names.empty()) {
      sink.report<LangDiag::kChooseNet>(top, names);
    } else if (!sink.has_errors()) {
      sink.report<LangDiag::kNoNet>(top, input.op);
    }
  } else if (!sink.has_errors()) {
    const BindOptions options = {input.bindings, input.shapes, std::nullopt};
    if (const auto bound = bind_net(module, *ast, options, sources, sink))
      result.net = lower_net(module, *ast, *bound, sources, sink);
  }
  fill_diagnostics(sources, sink, result);
  return result;
}

ListResult list_ops(std::string file_name, std::string text, const ImportFn& import) {
  SourceSet sources;
  DiagSink sink;
  const Module module = load_module(sources, file_name, std::move(text), import, sink);
  ListResult result;
  for (const AstOperator* op : module.ops) {
    OpInfo info;
    info.name = op->name.text;
    info.line = sources.line_column(op->name.range).first;
    for (const AstParam& param : op->params) info.params.push_back(describe_param(sources, param));
    for (const AstPort& port : op->inputs) info.inputs.push_back(describe_port(sources, port));
    for (const AstPort& port : op->outputs) info.outputs.push_back(describe_port(sources, port));
    result.ops.push_back(std::move(info));
  }
  for (const AstNet* net : module.nets) result.nets.push_back(describe_net(sources, *net));
  result.ok = !sink.has_errors();
  result.rendered = render(sources, sink);
  return result;
}

}  // namespace prunerc::lang
