// show of a net: its text, its tasks, where its tensors lie, its kernels.
#include "ir/support/file.h"
#include "search/space/task.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <cstdio>

namespace prunerc::cli {
namespace {

// ", 2 const calls (made once, 64 B)", or nothing if there is none.
std::string const_calls_text(const net::Net& net) {
  const std::size_t num_calls = net.calls.size() - net::run_calls(net).size();
  int64_t bytes = 0;
  for (const net::Tensor& tensor : net.tensors) {
    if (tensor.is_const && tensor.role == net::Role::kIntermediate)
      bytes += net::size_bytes(tensor);
  }
  if (num_calls == 0) return {};
  return fmt::format(", {} const call{} (made once, {})", num_calls, num_calls == 1 ? "" : "s",
                     bytes_text(static_cast<uint64_t>(bytes)));
}

void show_tasks(const net::Net& net) {
  std::vector<std::size_t> of_call;
  const std::vector<Operator> ops = operators_of(net, &of_call);
  fmt::print("{:<24} {:<20} {:>5} {:>12} {:>12}  {}\n", "task", "operator", "calls", "GFLOP a call",
             "MiB a call", "bindings");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const search::Task task = search::make_task(ops[i].name, ops[i].program, ir::Target{});
    std::string_view op;
    for (std::size_t c = 0; c < of_call.size() && op.empty(); ++c) {
      if (of_call[c] == i) op = net.calls[c].op;
    }
    fmt::print("{:<24} {:<20} {:>5} {:>12.4f} {:>12.3f}  {}\n", ops[i].name.substr(0, 24),
               op.substr(0, 20), ops[i].weight, task.flops * 1e-9, task.bytes / (1 << 20),
               ops[i].bindings);
  }
  fmt::print("{} tasks of {} calls{}\n", ops.size(), net::run_calls(net).size(),
             const_calls_text(net));
}

void show_plan(const net::Net& net) {
  const net::MemoryPlan plan = net::plan_memory(net);
  fmt::print("{:<24} {:<24} {:>12} {:>12}  {}\n", "step", "tensor", "bytes", "at", "type");
  for (const std::size_t i : net::run_calls(net)) {
    const net::Call& call = net.calls[i];
    for (const std::size_t result : call.results) {
      const net::Tensor& tensor = net.tensors[result];
      const std::string at = tensor.role == net::Role::kIntermediate
                                 ? fmt::format("{}", plan.offsets[result])
                                 : std::string("output");
      fmt::print("{:<24} {:<24} {:>12} {:>12}  {}\n", call.label.substr(0, 24),
                 tensor.name.substr(0, 24), net::size_bytes(tensor), at, net::type_text(tensor));
    }
  }
  int64_t constants = 0;
  for (const net::Tensor& tensor : net.tensors) {
    if (tensor.is_const && tensor.role != net::Role::kIntermediate)
      constants += net::size_bytes(tensor);
  }
  fmt::print("arena: {}, at least {} are alive at once; constants: {}{}\n",
             bytes_text(static_cast<uint64_t>(plan.bytes)),
             bytes_text(static_cast<uint64_t>(plan.lower_bound)),
             bytes_text(static_cast<uint64_t>(constants)), const_calls_text(net));
}

int show_kernels(const net::Net& net, const MachineOptions& machine) {
  Result<Session> session = machine.open();
  if (!session.ok()) return fail(session.error());
  for (const Operator& op : operators_of(net)) {
    const Result<Choice> choice = choose(*session, op, machine);
    if (!choice.ok()) return fail(choice.error(), kNoCandidate);
    fmt::print("# {} ({}{}, {} call{})\n{}\n", op.name, to_string(choice->origin),
               recipe_text(*choice), op.weight, op.weight == 1 ? "" : "s",
               schedule::print(choice->trace));
  }
  return kSuccess;
}

}  // namespace

int show_network(const LoadedNet& net, const MachineOptions& machine, const std::string& stage) {
  fmt::print(stderr, "{}", net.warnings);
  if (stage == "kernels") return show_kernels(net.net, machine);
  if (stage == "tasks") {
    show_tasks(net.net);
    for (const net::PassReport& pass : net.passes) {
      fmt::print("{}: {} calls of {}{}{}\n", pass.pass, pass.calls_after, pass.calls_before,
                 pass.details.empty() ? "" : "; ", pass.details);
    }
  } else if (stage == "plan") {
    show_plan(net.net);
  } else {
    fmt::print("{}", net::to_text(stage == "fused" ? net.net : net.written));
  }
  return kSuccess;
}

}  // namespace prunerc::cli
