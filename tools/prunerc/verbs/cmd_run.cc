#include "tools/driver/backend.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/arrays.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace prunerc::cli {
namespace {

struct RunVerb {
  OperatorOptions op;
  MachineOptions machine;
  ArrayOptions arrays;
  std::string weights;
  std::string timeout;
};

int run(const RunVerb& verb) {
  const Result<int64_t> limit_ns = parse_limit_ns(verb.timeout, "--timeout");
  if (!limit_ns.ok()) return fail(limit_ns.error());
  Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  Result<Arrays> arrays = open_arrays(verb.arrays);
  if (!arrays.ok()) return fail(arrays.error());
  add_shapes(*arrays, &*request);
  const Result<std::optional<LoadedNet>> net = load_net(*request);
  if (!net.ok()) return fail(net.error());
  if (*net && !verb.timeout.empty())
    return fail(error(Diag::kUsageOption, "--timeout", "is of one operator, not of a net"), kUsage);
  if (*net) return run_network(**net, *request, verb.machine, verb.weights, *arrays);
  if (const Result<void> fits = check_no_net_options(verb.weights); !fits.ok())
    return fail(fits.error());
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  const std::vector<Port> ports = ports_of(*op);
  const Result<void> known = check_names(op->name, ports, *arrays);
  if (!known.ok()) return fail(known.error());
  const Result<std::vector<ir::Tensor>> tensors = gather(ports, *arrays);
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
  const Result<void> delivered = deliver(ports, outcome.outputs, arrays->outputs);
  if (!delivered.ok()) return fail(delivered.error());
  return kSuccess;
}

}  // namespace

void add_run(CLI::App& verb, Action& action) {
  auto args = std::make_shared<RunVerb>();
  args->op.add_to(verb);
  args->machine.add_to(verb);
  args->machine.add_script_to(verb);
  args->arrays.add_to(verb);
  add_weights_to(verb, &args->weights);
  verb.add_option(
          "--timeout", args->timeout,
          "kill a kernel that takes longer (exit 4): 500ms, 90s, 10m; without, after two minutes")
      ->type_name("DURATION");
  in_group(verb, "Machine");
  verb.callback([args, &action] { action = [args] { return run(*args); }; });
}

}  // namespace prunerc::cli
