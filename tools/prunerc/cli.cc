#include "tools/prunerc/cli.h"

#include "tools/driver/backend.h"
#include "tools/driver/platform.h"

#include <fmt/format.h>

#include <cstdio>

namespace prunerc::cli {
namespace {

// "N=3,M=4" or "N=3": name and value pairs of a repeated option.
Result<std::vector<std::pair<std::string, std::string>>> pairs(
    const std::vector<std::string>& words, const char* option) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return error(Diag::kUsageOption, option, fmt::format("needs NAME=VALUE, found '{}'", word));
    }
    found.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return found;
}

}  // namespace

void OperatorOptions::add_to(CLI::App& verb, bool file_required) {
  CLI::Option* positional = verb.add_option("file", file, "operator file (.prn or .prc)");
  CLI::Option* inline_text = verb.add_option(
      "-e,--expression", expression, "operator in one line: 'C[i,j] = sum[k] A[i,k] * B[k,j]'");
  if (file_required) inline_text->excludes(positional);
  verb.add_option("--op", op, "operator of the file, if it has several");
  verb.add_option("-D,--define", bindings, "bind parameters: -D M=512,N=512")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--dtype", dtypes, "types of -e's inputs: f16, or A=f16,B=f16")
      ->allow_extra_args(false)
      ->delimiter(',');
  verb.add_option("--shape", shapes, "shape of one of -e's inputs: A=64x64")
      ->allow_extra_args(false);
}

void OperatorOptions::add_several_to(CLI::App& verb) {
  add_to(verb, true);
  verb.add_option("files", more_files, "further operator files");
}

Result<OperatorRequest> OperatorOptions::request() const {
  OperatorRequest request;
  if (file.empty() == expression.empty()) {
    return error(Diag::kUsageOption, "FILE", "give an operator file or -e EXPRESSION");
  }
  request.file = file;
  request.op = op;
  request.expression = expression;
  PRUNERC_TRY(const auto defined, pairs(bindings, "-D"));
  for (const auto& [name, value] : defined) request.bindings[name] = value;
  for (const std::string& word : dtypes) {
    const std::size_t equals = word.find('=');
    const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
    request.dtypes[name] = equals == std::string::npos ? word : word.substr(equals + 1);
  }
  PRUNERC_TRY(const auto shaped, pairs(shapes, "--shape"));
  for (const auto& [name, value] : shaped) request.shapes[name] = value;
  return request;
}

Result<std::vector<Operator>> OperatorOptions::load() const {
  PRUNERC_TRY(const OperatorRequest first, request());
  std::vector<OperatorRequest> requests = {first};
  for (const std::string& more : more_files) {
    requests.push_back(first);
    requests.back().file = more;
  }
  return load_operators(requests);
}

std::string OperatorOptions::repro() const {
  std::string out = expression.empty() ? file : fmt::format("-e '{}'", expression);
  for (const std::string& more : more_files) out += " " + more;
  if (!op.empty()) out += " --op " + op;
  if (!bindings.empty()) out += fmt::format(" -D {}", fmt::join(bindings, ","));
  if (!dtypes.empty()) out += fmt::format(" --dtype {}", fmt::join(dtypes, ","));
  for (const std::string& shape : shapes) out += " --shape " + shape;
  return out;
}

void MachineOptions::add_target_to(CLI::App& verb) {
  verb.add_option("--target", target, "cpu (this machine), cpu:NAME")->capture_default_str();
  verb.add_option("--db", database, "tuning database (default: $PRUNERC_DB or the user's cache)");
}

void MachineOptions::add_to(CLI::App& verb) {
  add_target_to(verb);
  verb.add_option("--threads", threads, "threads of a kernel (default: all)")
      ->check(CLI::Range(0, 4096));
}

void MachineOptions::add_script_to(CLI::App& verb) {
  verb.add_option("--schedule", script,
                  "apply this script, one primitive a line; /dev/null: the program as written");
}

Result<Choice> choose(Session& session, const Operator& op, const MachineOptions& machine,
                      int effort) {
  if (!machine.script.empty()) return apply_script(op, machine.script);
  Result<Choice> choice = session.choose(op);
  if (effort == 0 || !choice.ok() || choice->origin == Choice::Origin::kRecord) return choice;
  return session.choose(op, Effort::kO1);
}

std::optional<Prepared> prepare(const OperatorRequest& request, const MachineOptions& machine,
                                ExitCode* code, Without device) {
  const auto failed = [code](const Error& error, ExitCode with) {
    *code = with;
    fail(error, with);
    return std::nullopt;
  };
  Result<Operator> op = load_operator(request);
  if (!op.ok()) return failed(op.error(), exit_code(op.error()));
  fmt::print(stderr, "{}", op->warnings);
  Result<Session> session = Session::open({machine.target, machine.threads, machine.database, {}});
  if (!session.ok()) return failed(session.error(), exit_code(session.error()));
  const ir::Target target =
      device == Without::kUseHost ? with_device(session->target()) : session->target();
  if (!runs_here(target))
    return failed(error(Diag::kTargetNotHost, machine.target), kDeviceProblem);
  Result<Choice> choice = choose(*session, *op, machine, 0);
  if (!choice.ok()) return failed(choice.error(), choice_code(choice.error(), machine));
  Result<codegen::Artifact> artifact = build_kernel(choice->program, target);
  if (!artifact.ok()) return failed(artifact.error(), kNoCandidate);
  return Prepared{std::move(op).value(), std::move(session).value(), std::move(choice).value(),
                  std::move(artifact).value()};
}

ExitCode choice_code(const Error& error, const MachineOptions& machine) {
  return machine.script.empty() ? kNoCandidate : exit_code(error);
}

int fail(const Error& error, ExitCode code) {
  const std::string text = error.message();
  // A rendered source diagnostic stands for itself: "file:line:col: error: ...".
  const bool rendered = text.find(": error: ") != std::string::npos;
  fmt::print(stderr, "{}{}\n", rendered ? "" : "error: ", text);
  return code;
}

ExitCode exit_code(const Error& error) {
  switch (error.id()) {
    case Diag::kUsageOption:
    case Diag::kFillUnknown:
    case Diag::kTargetUnknown:
    case Diag::kTargetField: return kUsage;
    case Diag::kIoError:
    case Diag::kTargetNotHost:
    case Diag::kDatabaseOpen:
    case Diag::kDatabaseCorrupt:
    case Diag::kDatabaseVersion:
    case Diag::kDatabaseQuery:
    case Diag::kPoolDamaged:
    case Diag::kPoolVersion:
    case Diag::kModelLibrary:
    case Diag::kKernelLoad:
    case Diag::kKernelRun:
    case Diag::kInternal: return kDeviceProblem;
    case Diag::kCancelled: return kInterrupted;
    default: return kBadInput;
  }
}

}  // namespace prunerc::cli
