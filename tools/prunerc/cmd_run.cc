#include "tools/driver/backend.h"
#include "tools/driver/npy.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

namespace prunerc::cli {
namespace {

struct RunVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::string timeout;
};

Result<std::map<std::string, std::string>> named(const std::vector<std::string>& words,
                                                 const char* option) {
  std::map<std::string, std::string> found;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return error(Diag::kUsageOption, option, fmt::format("needs NAME=..., found '{}'", word));
    }
    found[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return found;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::string type_text(ir::DType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{}[{}]", ir::to_string(dtype), fmt::join(shape, ", "));
}

using Files = std::map<std::string, NpyFile>;

// An input without its @ would be an unknown fill, an output with one a file of an odd name.
Result<void> check_at_signs(const std::map<std::string, std::string>& inputs,
                            const std::map<std::string, std::string>& outputs) {
  std::error_code ignored;
  for (const auto& [name, source] : inputs) {
    if (source.starts_with("@")) continue;
    if (!source.ends_with(".npy") && !std::filesystem::exists(source, ignored)) continue;
    return error(Diag::kUsageOption, "--input",
                 fmt::format("'{1}' is no fill; did you mean {0}=@{1}?", name, source));
  }
  for (const auto& [name, file] : outputs) {
    if (!file.starts_with("@")) continue;
    return error(
        Diag::kUsageOption, "--output",
        fmt::format("takes the name of a file; did you mean {}={}?", name, file.substr(1)));
  }
  return {};
}

// The .npy files among the inputs: their shapes bind parameters that have no default.
Result<Files> open_files(const std::map<std::string, std::string>& inputs) {
  Files files;
  for (const auto& [name, source] : inputs) {
    if (source.substr(0, 1) != "@") continue;
    PRUNERC_TRY(NpyFile file, NpyFile::open(source.substr(1)));
    files.emplace(name, std::move(file));
  }
  return files;
}

// Whether the operator has an input or an output of each name.
Result<void> check_names(const Operator& op, ir::BufferRole role,
                         const std::map<std::string, std::string>& names) {
  for (const auto& [name, value] : names) {
    bool is_known = false;
    for (ir::BufferId id : op.program.params()) {
      const ir::Buffer& port = op.program.buffer(id);
      is_known |= port.name == name && port.role == role;
    }
    if (is_known) continue;
    return error(Diag::kUsageUnknownTensor, op.name,
                 std::string(role == ir::BufferRole::kInput ? "input" : "output"), name);
  }
  return {};
}

// One tensor per input port, from files and fills.
Result<std::vector<ir::Tensor>> gather(const Operator& op,
                                       const std::map<std::string, std::string>& inputs,
                                       Files files) {
  std::vector<ir::Tensor> tensors;
  for (ir::BufferId id : op.program.params()) {
    const ir::Buffer& port = op.program.buffer(id);
    if (port.role != ir::BufferRole::kInput) continue;
    const std::string name(port.name);
    const std::vector<int64_t> shape = ir::shape_of(port);
    const auto given = inputs.find(name);
    if (given == inputs.end()) {
      return error(
          Diag::kUsageOption, "--input",
          fmt::format("'{0}' ({1}) is missing; give {0}=@file.npy or {0}=rand:uniform(-1,1)", name,
                      type_text(port.dtype, shape)));
    }
    if (const auto file = files.find(name); file != files.end()) {
      NpyFile& npy = file->second;
      if (npy.dtype() != port.dtype || npy.shape() != shape) {
        return error(Diag::kUsageShape, name, type_text(port.dtype, shape),
                     type_text(npy.dtype(), npy.shape()));
      }
      PRUNERC_TRY(ir::Tensor tensor, npy.read());
      tensors.push_back(std::move(tensor));
      continue;
    }
    ir::Tensor tensor(port.dtype, shape);
    PRUNERC_TRY_VOID(fill(tensor, given->second));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void print_summary(const std::string& name, const ir::Tensor& tensor) {
  constexpr int64_t kShown = 8;
  std::string values;
  for (int64_t i = 0; i < std::min(tensor.num_elements(), kShown); ++i) {
    values += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", tensor.get(i));
  }
  if (tensor.num_elements() > kShown) values += ", ...";
  fmt::print("{}: {} = {}\n", name, type_text(tensor.dtype, tensor.shape), values);
}

Result<void> deliver(const Operator& op, const std::vector<std::string>& bytes,
                     const std::map<std::string, std::string>& files) {
  std::size_t i = 0;
  for (ir::BufferId id : op.program.params()) {
    const ir::Buffer& port = op.program.buffer(id);
    if (port.role != ir::BufferRole::kOutput) continue;
    ir::Tensor tensor(port.dtype, ir::shape_of(port));
    PRUNERC_CHECK(bytes[i].size() == tensor.data.size(), "the worker returns whole outputs");
    if (!bytes[i].empty()) std::memcpy(tensor.data.data(), bytes[i].data(), bytes[i].size());
    ++i;
    const auto file = files.find(std::string(port.name));
    if (file == files.end()) {
      if (files.empty()) print_summary(std::string(port.name), tensor);
      continue;
    }
    PRUNERC_TRY_VOID(write_npy(file->second, tensor));
    fmt::print(stderr, "wrote {}: {}\n", file->second, type_text(tensor.dtype, tensor.shape));
  }
  return {};
}

// Of one run of the kernel; 0 without --timeout. Units: ns.
Result<int64_t> run_limit_ns(const RunVerb& verb) {
  if (verb.timeout.empty()) return int64_t{0};
  constexpr double kNsPerSecond = 1e9, kMostSeconds = 1e9;
  PRUNERC_TRY(const double seconds, parse_duration(verb.timeout, "--timeout"));
  return std::max<int64_t>(1, std::llround(std::min(seconds, kMostSeconds) * kNsPerSecond));
}

int run(const RunVerb& verb) {
  const Result<int64_t> limit_ns = run_limit_ns(verb);
  if (!limit_ns.ok()) return fail(limit_ns.error());
  Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const auto inputs = named(verb.inputs, "--input");
  if (!inputs.ok()) return fail(inputs.error(), kUsage);
  const auto outputs = named(verb.outputs, "--output");
  if (!outputs.ok()) return fail(outputs.error(), kUsage);
  const Result<void> marked = check_at_signs(*inputs, *outputs);
  if (!marked.ok()) return fail(marked.error());
  Result<Files> files = open_files(*inputs);
  if (!files.ok()) return fail(files.error());
  for (const auto& [name, file] : *files) {
    if (!file.shape().empty()) request->shapes.try_emplace(name, shape_text(file.shape()));
  }
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  for (const auto& [role, names] : {std::pair(ir::BufferRole::kInput, &*inputs),
                                    std::pair(ir::BufferRole::kOutput, &*outputs)}) {
    const Result<void> known = check_names(*op, role, *names);
    if (!known.ok()) return fail(known.error());
  }
  const Result<std::vector<ir::Tensor>> tensors = gather(*op, *inputs, std::move(*files));
  if (!tensors.ok()) return fail(tensors.error());
  Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  const Result<void> here = check_runs_here(session->target());
  if (!here.ok()) return fail(here.error());
  settle_claims(*session, *op, verb.machine);
  const Result<Choice> choice = choose(*session, *op, verb.machine);
  if (!choice.ok()) return fail(choice.error(), choice_code(choice.error(), verb.machine));
  print_note(*op, *choice);
  if (choice->origin == Choice::Origin::kHeuristic || choice->origin == Choice::Origin::kModel) {
    fmt::print(stderr,
               "no record of '{}' for {}: using the {} schedule; `prunerc tune` finds a faster "
               "one\n",
               op->name, describe(session->target()), to_string(choice->origin));
  }
  const Result<codegen::Artifact> artifact = session->compile(*choice);
  if (!artifact.ok()) return fail(artifact.error(), kNoCandidate);
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(session->target(), session->num_threads(), {}, *limit_ns);
  if (!device.ok()) return fail(device.error(), kDeviceProblem);
  runtime::Job job;
  job.artifact = &*artifact;
  for (const ir::Tensor& tensor : *tensors) {
    job.inputs.push_back(
        {runtime::Fill::kBytes, 0,
         std::string_view(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size())});
  }
  job.check = runtime::Check::kNone;
  job.want_outputs = true;
  const StillAt working("running " + op->name);
  const runtime::JobOutcome outcome = (*device)->run(job);
  if (outcome.measurement.status == MeasureStatus::kTimeout && *limit_ns > 0) {
    return fail(error(Diag::kTimeLimit, "the kernel of '" + op->name + "'", verb.timeout));
  }
  if (outcome.outputs.empty()) {
    return fail(
        fmt::format("the kernel did not finish: {}: {}", describe(outcome.measurement.status),
                    outcome.measurement.detail),
        "`prunerc doctor` checks that kernels run here; smaller sizes (-D) need less memory",
        kDeviceProblem);
  }
  const Result<void> delivered = deliver(*op, outcome.outputs, *outputs);
  if (!delivered.ok()) return fail(delivered.error());
  return kSuccess;
}

}  // namespace

void add_run(CLI::App& verb, Action& action) {
  auto args = std::make_shared<RunVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  verb.add_option("--input", args->inputs,
                  "A=@a.npy, or A= with one of zeros, ones, arange, rand:uniform(a,b):seed=n,"
                  " rand:normal(mean,deviation):seed=n, rand:int(a,b):seed=n")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--output", args->outputs, "C=c.npy; without any, outputs are summarised")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  in_group(verb, "Arrays");
  verb.add_option(
          "--timeout", args->timeout,
          "kill a kernel that takes longer (exit 4): 500ms, 90s, 10m; without, after two minutes")
      ->type_name("DURATION");
  in_group(verb, "Machine");
  verb.callback([args, &action] { action = [args] { return run(*args); }; });
}

}  // namespace prunerc::cli
