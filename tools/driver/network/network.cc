#include "tools/driver/network/network.h"

#include "codegen/codegen.h"
#include "ir/printer.h"
#include "ir/support/check.h"
#include "ir/support/hash.h"
#include "runtime/clock.h"
#include "runtime/cpu/float_mode.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/pool.h"
#include "runtime/net/execute.h"
#include "search/space/task.h"
#include "tools/driver/aligned.h"
#include "tools/driver/call_arrays.h"
#include "tools/driver/network/const_calls.h"
#include "tools/driver/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace prunerc {

namespace {

// Of the constants that a run reads, each once.
int64_t constants_bytes_of(const net::Net& net) {
  std::set<std::size_t> read;
  for (const std::size_t call : net::run_calls(net)) {
    for (const std::size_t arg : net.calls[call].args)
      if (net.tensors[arg].is_const) read.insert(arg);
  }
  int64_t bytes = 0;
  for (const std::size_t tensor : read) bytes += net::size_bytes(net.tensors[tensor]);
  return bytes;
}

// 16 hex digits of its text.
std::string fingerprint_of(const net::Net& net) {
  FingerprintBuilder hash;
  hash.add(net::to_text(net));
  return hash.finish().to_string().substr(0, 16);
}

}  // namespace

std::vector<Operator> operators_of(const net::Net& net,
                                   std::vector<std::size_t>* operator_of_call) {
  std::vector<Operator> ops;
  std::map<std::string, std::size_t> known;  // canonical text -> operator
  std::vector<std::optional<std::size_t>> of_program(net.programs.size());
  if (operator_of_call != nullptr) operator_of_call->clear();
  const int64_t constants_bytes = constants_bytes_of(net);
  const std::string fingerprint = fingerprint_of(net);
  for (const net::Call& call : net.calls) {
    if (net::is_const(net, call)) {
      if (operator_of_call != nullptr) operator_of_call->push_back(kNoTask);
      continue;
    }
    std::optional<std::size_t>& number = of_program[call.program];
    if (!number) {
      const ir::Program& program = net.programs[call.program];
      // The key holds no names; which target does not matter here.
      const std::string key = search::make_task(call.label, program, ir::Target{}).key.program;
      number = known.emplace(key, ops.size()).first->second;
      if (*number == ops.size()) {
        Operator op;
        op.name = call.label;
        op.source = net.definitions;
        for (const auto& [name, value] : call.bindings)
          op.bindings += fmt::format("{}{}={}", op.bindings.empty() ? "" : ",", name, value);
        op.weight = 0;
        op.net_constants_bytes = constants_bytes;
        op.network = fingerprint;
        op.program = program;
        ops.push_back(std::move(op));
      }
    }
    ops[*number].weight += 1;
    if (operator_of_call != nullptr) operator_of_call->push_back(*number);
  }
  return ops;
}

namespace {

// Equal for programs that print alike, whose code is equal to the bit.
std::string name_of_code(const ir::Program& scheduled) {
  FingerprintBuilder builder;
  builder.add(ir::print(scheduled));
  return builder.finish().to_string();
}

}  // namespace

struct Network::Impl {
  struct Kernel {
    codegen::Artifact artifact;
    runtime::LoadedKernel loaded;
  };

  Impl(net::Net net_in, ir::Target target_in, int threads)
      : net(std::move(net_in)),
        target(std::move(target_in)),
        pool({.num_threads = std::max(1, threads)}) {}

  net::Net net;
  ir::Target target;
  net::MemoryPlan memory;
  std::vector<Operator> tasks;
  std::vector<std::size_t> task_of_call;
  std::vector<Kernel> kernels;  // by task
  ConstKernels const_kernels;
  std::vector<std::size_t> calls;  // of each step
  std::vector<std::vector<PrunercNetArg>> args;
  std::vector<PrunercNetStep> steps;
  std::vector<int64_t> prepared_at;  // by step
  int64_t workspace_bytes = 0, prepared_bytes = 0;
  std::size_t num_inputs = 0;  // that are not const
  runtime::Pool pool;
  AlignedArray arena, workspace, prepared;
  bool is_prepared = false;

  static Result<Kernel> load(codegen::Artifact artifact);
  Result<void> make_steps();
  PrunercNetArg place_of(std::size_t tensor) const;
  Result<void> prepare_step(std::size_t step, ConstCalls& constants);
  Result<std::vector<void*>> addresses(std::span<const void* const> inputs,
                                       std::span<void* const> outputs) const;
  Result<void> run_steps(std::size_t first, std::size_t end, void* const* io);
};

Network::Network(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const net::Net& Network::net() const { return impl_->net; }
const net::MemoryPlan& Network::memory() const { return impl_->memory; }
const std::vector<Operator>& Network::tasks() const { return impl_->tasks; }
const codegen::Artifact& Network::artifact(std::size_t task) const {
  return impl_->kernels[task].artifact;
}
std::size_t Network::task_of_call(std::size_t call) const { return impl_->task_of_call[call]; }
int64_t Network::workspace_bytes() const { return impl_->workspace_bytes; }
int64_t Network::prepared_bytes() const { return impl_->prepared_bytes; }

Result<Network::Impl::Kernel> Network::Impl::load(codegen::Artifact artifact) {
  PRUNERC_TRY_VOID(codegen::validate(artifact));
  if (artifact.params.size() + 1 > PRUNERC_NET_MAX_ARGS)
    return error(Diag::kUnsupported,
                 fmt::format("an operator of {} parameters in a net", artifact.params.size()));
  PRUNERC_TRY(runtime::LoadedKernel loaded, runtime::load_kernel(artifact));
  return Kernel{std::move(artifact), std::move(loaded)};
}

Result<Network> Network::build(net::Net net, const NetworkOptions& options,
                               const Schedules& schedules) {
  if (options.target.kind != ir::TargetKind::kCpu)
    return error(Diag::kNetTarget, options.target.name);
  PRUNERC_TRY_VOID(check_runs_here(options.target));
  auto impl = std::make_unique<Impl>(std::move(net), options.target, options.threads);
  impl->memory = net::plan_memory(impl->net, options.reuse);
  impl->tasks = operators_of(impl->net, &impl->task_of_call);
  for (const Operator& op : impl->tasks) {
    PRUNERC_TRY(const ir::Program scheduled, schedules(op));
    codegen::CpuOptions compiling;
    if (!options.symbol.empty()) compiling.symbol = options.symbol + "_k" + name_of_code(scheduled);
    PRUNERC_TRY(codegen::Artifact artifact,
                codegen::compile_cpu(scheduled, options.target, compiling));
    PRUNERC_TRY(Impl::Kernel kernel, Impl::load(std::move(artifact)));
    impl->kernels.push_back(std::move(kernel));
  }
  for (const std::size_t input : impl->net.inputs)
    impl->num_inputs += impl->net.tensors[input].is_const ? 0 : 1;
  impl->calls = net::run_calls(impl->net);
  PRUNERC_TRY(impl->arena, AlignedArray::make(impl->memory.bytes));
  PRUNERC_TRY_VOID(impl->make_steps());
  return Network(std::move(impl));
}

Result<void> Network::replace(std::size_t task, codegen::Artifact artifact) {
  PRUNERC_TRY(impl_->kernels[task], Impl::load(std::move(artifact)));
  return impl_->make_steps();
}

PrunercNetArg Network::Impl::place_of(std::size_t tensor) const {
  if (net.tensors[tensor].role == net::Role::kIntermediate)
    return {PRUNERC_PLACE_ARENA, memory.offsets[tensor]};
  int64_t number = 0;
  for (const std::size_t input : net.inputs) {
    if (net.tensors[input].is_const) continue;
    if (input == tensor) return {PRUNERC_PLACE_IO, number};
    ++number;
  }
  for (const std::size_t output : net.outputs) {
    if (output == tensor) return {PRUNERC_PLACE_IO, number};
    ++number;
  }
  return {PRUNERC_PLACE_NONE, 0};
}

// Of the kernels as they are, with memory for what they need.
Result<void> Network::Impl::make_steps() {
  is_prepared = false;
  args.clear();
  steps.clear();
  prepared_at.clear();
  prepared_bytes = workspace_bytes = 0;
  for (const Kernel& kernel : kernels) {
    workspace_bytes = std::max(workspace_bytes,
                               codegen::total_workspace_bytes(kernel.artifact, pool.num_threads()));
  }
  for (const std::size_t i : calls) {
    const net::Call& call = net.calls[i];
    const codegen::Artifact& artifact = kernels[task_of_call[i]].artifact;
    std::vector<PrunercNetArg>& list = args.emplace_back();
    for (std::size_t p = 0; p < artifact.params.size(); ++p) {
      const bool is_arg = p < call.args.size();
      const std::size_t tensor = is_arg ? call.args[p] : call.results[p - call.args.size()];
      list.push_back(artifact.params[p].is_const ? PrunercNetArg{PRUNERC_PLACE_NONE, 0}
                                                 : place_of(tensor));
    }
    prepared_at.push_back(prepared_bytes);
    if (artifact.prepare_entry.empty()) continue;
    list.push_back({PRUNERC_PLACE_WEIGHTS, prepared_bytes});
    prepared_bytes +=
        (artifact.prepared_bytes + PRUNERC_ALIGNMENT - 1) / PRUNERC_ALIGNMENT * PRUNERC_ALIGNMENT;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    steps.push_back({kernels[task_of_call[calls[i]]].loaded.entry(), args[i].data(),
                     static_cast<int32_t>(args[i].size())});
  }
  if (workspace.size() < workspace_bytes || workspace.data() == nullptr) {
    PRUNERC_TRY(workspace, AlignedArray::make(workspace_bytes));
  }
  if (prepared.size() < prepared_bytes || prepared.data() == nullptr) {
    PRUNERC_TRY(prepared, AlignedArray::make(prepared_bytes));
  }
  return {};
}

Result<void> Network::Impl::prepare_step(std::size_t step, ConstCalls& constants) {
  const std::size_t call = calls[step];
  const Kernel& kernel = kernels[task_of_call[call]];
  if (kernel.loaded.prepare_entry() == nullptr) return {};
  PRUNERC_TRY(std::vector<void*> at, constants.arguments(call));
  at.resize(kernel.artifact.params.size());  // null: what is not const
  at.push_back(static_cast<char*>(prepared.data()) + prepared_at[step]);
  const int32_t code = kernel.loaded.prepare_entry()(at.data(), workspace.data(), pool.launch());
  constants.release(call);
  if (code != 0) return error(Diag::kKernelFailed, int64_t{code});
  return {};
}

Result<void> Network::prepare(const WeightSource& weights) {
  impl_->is_prepared = false;
  // Kernels leave gaps, which are written out with the rest: the same net must give the same bytes.
  std::memset(impl_->prepared.data(), 0, static_cast<std::size_t>(impl_->prepared.size()));
  const runtime::DefaultFloatMode mode;
  ConstCalls constants(impl_->net, impl_->target, weights, impl_->pool, impl_->const_kernels);
  for (std::size_t i = 0; i < impl_->steps.size(); ++i)
    PRUNERC_TRY_VOID(impl_->prepare_step(i, constants));
  impl_->is_prepared = true;
  return {};
}

Result<std::vector<void*>> Network::Impl::addresses(std::span<const void* const> inputs,
                                                    std::span<void* const> outputs) const {
  if (!is_prepared) return error(Diag::kKernelArguments, "the network's weights were not prepared");
  if (inputs.size() != num_inputs || outputs.size() != net.outputs.size()) {
    return error(Diag::kKernelArguments,
                 fmt::format("{} inputs and {} outputs were given to a network of {} and {}",
                             inputs.size(), outputs.size(), num_inputs, net.outputs.size()));
  }
  std::vector<CallArray> arrays;
  const auto add = [&](std::size_t tensor, const void* at, bool is_output) {
    const net::Tensor& of = net.tensors[tensor];
    arrays.push_back({at, net::size_bytes(of), ir::byte_size(of.dtype), is_output, of.name});
  };
  for (const std::size_t input : net.inputs) {
    if (!net.tensors[input].is_const) add(input, inputs[arrays.size()], /*is_output=*/false);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) add(net.outputs[i], outputs[i], true);
  PRUNERC_TRY_VOID(check_arrays(arrays));
  std::vector<void*> io;
  // Kernels do not write to inputs.
  for (const void* input : inputs) io.push_back(const_cast<void*>(input));
  io.insert(io.end(), outputs.begin(), outputs.end());
  return io;
}

Result<void> Network::Impl::run_steps(std::size_t first, std::size_t end, void* const* io) {
  const runtime::DefaultFloatMode mode;
  const int32_t code =
      prunerc_net_run(steps.data(), static_cast<int32_t>(first), static_cast<int32_t>(end), io,
                      arena.data(), prepared.data(), workspace.data(), pool.launch(), nullptr);
  if (code == 0) return {};
  return error(Diag::kKernelFailed, int64_t{code});
}

Result<void> Network::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  PRUNERC_TRY(const std::vector<void*> io, impl_->addresses(inputs, outputs));
  return impl_->run_steps(0, impl_->steps.size(), io.data());
}

Result<void> Network::run_timed(std::span<const void* const> inputs, std::span<void* const> outputs,
                                std::vector<int64_t>* times_ns) {
  PRUNERC_TRY(const std::vector<void*> io, impl_->addresses(inputs, outputs));
  times_ns->clear();
  int64_t before = runtime::now_ns();
  for (std::size_t i = 0; i < impl_->steps.size(); ++i) {
    PRUNERC_TRY_VOID(impl_->run_steps(i, i + 1, io.data()));
    const int64_t after = runtime::now_ns();
    times_ns->push_back(after - before);
    before = after;
  }
  return {};
}

Result<codegen::NetParts> Network::parts() const {
  if (!impl_->is_prepared)
    return error(Diag::kKernelArguments, "the network's weights were not prepared");
  const net::Net& net = impl_->net;
  codegen::NetParts parts;
  for (const Impl::Kernel& kernel : impl_->kernels) parts.kernels.push_back(&kernel.artifact);
  codegen::NetPlan& plan = parts.plans.emplace_back();
  for (std::size_t i = 0; i < impl_->args.size(); ++i) {
    codegen::NetStep& step = plan.steps.emplace_back();
    step.kernel = impl_->task_of_call[impl_->calls[i]];
    for (const PrunercNetArg& arg : impl_->args[i])
      step.args.push_back({static_cast<int>(arg.place), arg.at});
  }
  plan.arena_bytes = impl_->memory.bytes;
  parts.prepared = {static_cast<const char*>(impl_->prepared.data()),
                    static_cast<std::size_t>(impl_->prepared_bytes)};
  for (const auto& [list, role] : {std::pair(&net.inputs, codegen::ParamRole::kInput),
                                   {&net.outputs, codegen::ParamRole::kOutput}}) {
    for (const std::size_t i : *list) {
      const net::Tensor& tensor = net.tensors[i];
      if (tensor.role == net::Role::kInput && tensor.is_const)
        return error(Diag::kUnsupported, "a library of a net whose input '" + tensor.name +
                                             "' is const (a const of its body has its weights)");
      plan.params.push_back({tensor.name, tensor.dtype, tensor.shape, role});
    }
  }
  return parts;
}

std::string_view Network::intermediate(std::size_t tensor) const {
  const int64_t at = impl_->memory.offsets[tensor];
  PRUNERC_CHECK(at >= 0, "only intermediates that are not const lie in the arena");
  return {static_cast<const char*>(impl_->arena.data()) + at,
          static_cast<std::size_t>(net::size_bytes(impl_->net.tensors[tensor]))};
}

}  // namespace prunerc
