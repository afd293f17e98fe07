#include "tools/driver/operator.h"

#include "ir/analysis/declared.h"
#include "ir/lang/lang.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/support/file.h"
#include "ir/verify.h"
#include "schedule/legality/iteration_kind.h"
#include "schedule/schedule.h"
#include "tools/driver/network/network.h"
#include "tools/driver/network/onnx.h"
#include "tools/driver/network/sizes.h"
#include "tools/driver/prunerc.h"
#include "tools/driver/validity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace prunerc {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string bindings_text(const std::map<std::string, std::string>& bindings) {
  std::string out;
  for (const auto& [name, value] : bindings) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  }
  return out;
}

Result<Operator> from_lang(lang::LangResult result, const OperatorRequest& request,
                           std::string source) {
  if (!result.program) {
    while (ends_with(result.rendered, "\n")) result.rendered.pop_back();
    return error(Diag::kOperatorText, result.rendered);
  }
  Operator op;
  op.name = result.program->name();
  op.source = std::move(source);
  op.bindings = bindings_text(request.bindings);
  op.warnings = std::move(result.rendered);
  op.program = std::move(*result.program);
  return op;
}

Result<Operator> from_expression(const OperatorRequest& request) {
  lang::ExpressionInput input;
  input.text = request.expression;
  input.extents = request.bindings;
  std::string dtypes;
  for (const auto& [name, type] : request.dtypes) {
    const std::string word = name.empty() ? type : name + "=" + type;
    dtypes += (dtypes.empty() ? "" : ",") + word;
  }
  if (!dtypes.empty()) input.dtype = dtypes;
  for (const auto& [name, text] : request.shapes) {
    PRUNERC_TRY(input.shapes[name], parse_shape(name, text));
  }
  return from_lang(lang::compile_expression(input), request, request.expression);
}

// "FILE:line:column: error: message", the form in which operator texts are refused, too.
Error in_file(std::string_view file, const Error& error) {
  ErrorData data = error.data();
  const Locus at = std::exchange(data.locus, {});
  const std::string place =
      at.line > 0 ? fmt::format("{}:{}:{}", file, at.line, at.column) : std::string(file);
  return prunerc::error(Diag::kOperatorText, fmt::format("{}: error: {}", place, message(data)));
}

Result<Operator> from_prc(const OperatorRequest& request, std::string text) {
  if (!request.bindings.empty())
    return error(Diag::kUsageOption, "-D", "binds parameters, and a program has its sizes");
  Result<ir::Program> program = ir::parse(text);
  if (!program.ok()) return in_file(request.file, program.error());
  if (!request.op.empty() && request.op != program->name()) {
    return error(Diag::kUsageOption, "--op",
                 fmt::format("'{}' is not the program of the file, '{}'", request.op,
                             printable_line(program->name())));
  }
  for (const auto check :
       {ir::verify, ir::verify_declared_regions, schedule::verify_iteration_kinds}) {
    if (const Result<void> sound = check(*program); !sound.ok()) {
      return in_file(request.file, sound.error());
    }
  }
  if (request.validity == Validity::kRequired) PRUNERC_TRY_VOID(check_valid(*program));
  Operator op;
  op.name = program->name();
  op.source = std::move(text);
  op.program = std::move(program).value();
  return op;
}

Result<lang::CompileInput> compile_input(const OperatorRequest& request, const std::string& text) {
  lang::CompileInput input;
  input.file_name = request.file.empty() ? "<text>" : request.file;
  input.text = text;
  input.op = request.op;
  input.import = lang::import_near(request.file, request.import_folders);
  input.bindings = request.bindings;
  for (const auto& [name, shape_text] : request.shapes) {
    PRUNERC_TRY(input.shapes[name], parse_shape(name, shape_text));
  }
  return input;
}

Result<Operator> from_text(const OperatorRequest& request, const std::string& text) {
  if (ends_with(request.file, ".prc")) return from_prc(request, text);
  PRUNERC_TRY(const lang::CompileInput input, compile_input(request, text));
  return from_lang(lang::compile(input), request, text);
}

// Whether the request is about a net with ports.
bool is_about_net(const OperatorRequest& request, const lang::ListResult& listed) {
  bool is_op = false, is_net = false;
  for (const lang::OpInfo& op : listed.ops) is_op |= op.name == request.op;
  for (const lang::NetInfo& net : listed.nets)
    is_net |= net.has_ports && (request.op.empty() || request.op == net.name);
  return is_net && !is_op;
}

Result<LoadedNet> from_net(const OperatorRequest& request, const std::string& text) {
  PRUNERC_TRY(const lang::CompileInput input, compile_input(request, text));
  lang::NetResult result = lang::compile_net(input);
  if (!result.net) {
    while (ends_with(result.rendered, "\n")) result.rendered.pop_back();
    return error(Diag::kOperatorText, result.rendered);
  }
  LoadedNet net;
  net.net = std::move(*result.net);
  net.warnings = std::move(result.rendered);
  return net;
}

Result<std::string> text_of(const OperatorRequest& request) {
  if (!request.text.empty()) return request.text;
  return read_text_file(request.file);
}

lang::ListResult list(const OperatorRequest& request, const std::string& text) {
  return lang::list_ops(request.file, text,
                        lang::import_near(request.file, request.import_folders));
}

bool has_parameter(const lang::OpInfo& info, const std::string& name) {
  return std::any_of(info.params.begin(), info.params.end(),
                     [&](const lang::ParamInfo& param) { return param.name == name; });
}

// The request with those bindings that the operator has parameters for.
OperatorRequest known_bindings(OperatorRequest request, const lang::OpInfo& info) {
  std::erase_if(request.bindings,
                [&](const auto& binding) { return !has_parameter(info, binding.first); });
  return request;
}

// Whether something of the file can be bound by that name: a line of its nets, else an operator.
bool takes(const lang::ListResult& listed, const std::string& name) {
  for (const lang::NetInfo& net : listed.nets) {
    if (net.has_ports) return true;  // it says itself what it has
    for (const lang::NetTaskInfo& line : net.tasks) {
      if (line.bindings.contains(name)) return true;
    }
  }
  return listed.nets.empty() &&
         std::any_of(listed.ops.begin(), listed.ops.end(),
                     [&](const lang::OpInfo& info) { return has_parameter(info, name); });
}

Error nobody_takes(const std::string& name) {
  return error(Diag::kUsageOption, "-D",
               fmt::format("no operator, or line of a net, has a '{}' to bind", name));
}

// Each line of each net is an operator; what the command line binds goes before what the net says.
Result<std::vector<Operator>> from_nets(const OperatorRequest& request, const std::string& text,
                                        const lang::ListResult& listed) {
  std::vector<Operator> ops;
  for (const lang::NetInfo& net : listed.nets) {
    for (const lang::NetTaskInfo& line : net.tasks) {
      OperatorRequest one = request;
      one.op = line.op;
      one.bindings = line.bindings;
      for (const auto& [name, value] : request.bindings) {
        if (one.bindings.contains(name)) one.bindings[name] = value;
      }
      PRUNERC_TRY(Operator op, from_text(one, text));
      op.weight = static_cast<double>(line.times);
      if (!line.label.empty()) op.name = line.label;
      ops.push_back(std::move(op));
    }
  }
  return ops;
}

}  // namespace

// A net that a person wrote is taken as written.
Result<void> run_passes(const OperatorRequest& request, LoadedNet& net) {
  net.written = net.net;
  if (!is_onnx(request.file) && !request.passes) return {};
  net::PassOptions options;
  options.without.insert(request.no_passes.begin(), request.no_passes.end());
  options.without_rules.insert(request.no_fuse.begin(), request.no_fuse.end());
  PRUNERC_TRY(net.net, net::run_passes(net.written, options, &net.passes));
  return {};
}

Result<std::vector<int64_t>> parse_shape(const std::string& name, const std::string& text) {
  std::vector<int64_t> shape;
  const char* p = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t extent = 0;
    const auto [stop, code] = std::from_chars(p, end, extent);
    if (code != std::errc() || extent < 1 || (stop != end && *stop != 'x')) {
      return error(Diag::kUsageOption, "--shape",
                   fmt::format("needs extents such as {}=64x64, found '{}'", name, text));
    }
    shape.push_back(extent);
    if (stop == end) return shape;
    p = stop + 1;
  }
}

Result<Choice> apply_script(const Operator& op, const std::string& file) {
  PRUNERC_TRY(const std::string text, read_text_file(file));
  const Result<schedule::TraceScript> script = schedule::parse_script(text);
  if (!script.ok()) return in_file(file, script.error());
  const Result<schedule::Schedule> done = schedule::replay(
      op.program, script->trace, {.verify = schedule::Verify::kEachStep, .lines = script->lines});
  if (!done.ok()) return in_file(file, done.error());
  return Choice{Choice::Origin::kScript, done->program(), done->trace(), 0, 0, ""};
}

Result<Operator> load_operator(const OperatorRequest& request) {
  PRUNERC_TRY_VOID(check_not_listed(request));
  if (!request.expression.empty()) return from_expression(request);
  if (is_onnx(request.file)) return error(Diag::kOnnxNotOperator, request.file);
  PRUNERC_TRY(const std::string text, text_of(request));
  return from_text(request, text);
}

Result<std::optional<LoadedNet>> load_net(const OperatorRequest& request) {
  PRUNERC_TRY_VOID(check_not_listed(request));
  if (!request.expression.empty() || ends_with(request.file, ".prc"))
    return std::optional<LoadedNet>();
  if (is_onnx(request.file)) {
    PRUNERC_TRY(LoadedNet net, load_onnx(request));
    return std::optional<LoadedNet>(std::move(net));
  }
  PRUNERC_TRY(const std::string text, text_of(request));
  if (!is_about_net(request, list(request, text))) return std::optional<LoadedNet>();
  PRUNERC_TRY(LoadedNet net, from_net(request, text));
  PRUNERC_TRY_VOID(run_passes(request, net));
  return std::optional<LoadedNet>(std::move(net));
}

Result<std::vector<Operator>> load_operators(const OperatorRequest& request) {
  std::vector<Operator> ops;
  PRUNERC_TRY(const SizedNets nets, load_nets(request));
  if (!nets.nets.empty()) {
    ops = operators_of(nets);
    if (!ops.empty()) ops[0].warnings = nets.nets[0].net.warnings;
    return ops;
  }
  if (!request.op.empty() || !request.expression.empty() || ends_with(request.file, ".prc")) {
    PRUNERC_TRY(Operator op, load_operator(request));
    ops.push_back(std::move(op));
    return ops;
  }
  PRUNERC_TRY(const std::string text, text_of(request));
  const lang::ListResult listed = list(request, text);
  const bool is_one = listed.nets.empty() && listed.ops.size() <= 1;
  for (const auto& [name, value] : request.bindings) {
    if (listed.ok && !is_one && !takes(listed, name)) return nobody_takes(name);
  }
  if (listed.ok && !listed.nets.empty()) return from_nets(request, text, listed);
  if (!listed.ok || is_one) {
    PRUNERC_TRY(Operator op, from_text(request, text));
    ops.push_back(std::move(op));
    return ops;
  }
  for (const lang::OpInfo& info : listed.ops) {
    OperatorRequest one = known_bindings(request, info);
    one.op = info.name;
    PRUNERC_TRY(Operator op, from_text(one, text));
    ops.push_back(std::move(op));
  }
  return ops;
}

Result<std::vector<Operator>> load_operators(std::span<const OperatorRequest> requests) {
  if (requests.size() == 1) return load_operators(requests[0]);
  std::vector<Operator> all;
  std::map<std::string, bool> is_taken;
  for (const OperatorRequest& request : requests) {
    OperatorRequest one = request;
    lang::ListResult listed;
    if (!is_onnx(request.file) && !ends_with(request.file, ".prc")) {
      PRUNERC_TRY(const std::string text, text_of(request));
      listed = list(request, text);
    }
    std::erase_if(one.bindings, [&](const auto& binding) {
      const bool is_chosen =
          std::any_of(listed.ops.begin(), listed.ops.end(), [&](const lang::OpInfo& info) {
            return info.name == request.op && has_parameter(info, binding.first);
          });
      const bool takes_it =
          is_onnx(request.file) || !listed.ok || is_chosen || takes(listed, binding.first);
      is_taken[binding.first] |= takes_it;
      return !takes_it;
    });
    PRUNERC_TRY(std::vector<Operator> ops, load_operators(one));
    for (Operator& op : ops) all.push_back(std::move(op));
  }
  for (const auto& [name, taken] : is_taken) {
    if (!taken) return nobody_takes(name);
  }
  return all;
}

}  // namespace prunerc
