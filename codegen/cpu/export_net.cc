#include "codegen/cpu/export_net.h"

#include "codegen/export_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace prunerc::codegen {
namespace {

constexpr std::string_view kTexts[] = {
#include "codegen/cpu/net_text.inc"
};
constexpr std::string_view kExecuteHeader = kTexts[0], kExecute = kTexts[1], kSizes = kTexts[2],
                           kWeights = kTexts[3];

// Of a file of weights; weights.c computes the same.
uint64_t weights_key(std::string_view bytes) {
  constexpr std::size_t kLanes = 8;
  std::array<uint64_t, kLanes> lanes{};
  for (std::size_t at = 0; at < bytes.size(); at += sizeof lanes) {
    std::array<uint64_t, kLanes> words{};
    std::memcpy(words.data(), bytes.data() + at, std::min(bytes.size() - at, sizeof words));
    for (std::size_t i = 0; i < kLanes; ++i) {
      const uint64_t mixed = (lanes[i] ^ words[i]) * 0x9E3779B97F4A7C15ULL;
      lanes[i] = mixed ^ mixed >> 29;
    }
  }
  uint64_t key = bytes.size();
  for (const uint64_t lane : lanes) {
    key = (key ^ lane) * 0xBF58476D1CE4E5B9ULL;
    key ^= key >> 32;
  }
  return key;
}

// The extent in the header's comment.
std::string extent_text(const NetParts& net, std::size_t param, std::size_t axis) {
  const auto extent = [&](const NetPlan& plan) { return plan.params[param].shape[axis]; };
  const auto holds = [&](auto&& is_so) {
    return std::all_of(net.plans.begin(), net.plans.end(), is_so);
  };
  const int64_t first = extent(net.plans[0]);
  if (holds([&](const NetPlan& plan) { return extent(plan) == first; }))
    return fmt::format("{}", first);
  for (std::size_t d = 0; d < net.dims.size(); ++d) {
    if (holds([&](const NetPlan& plan) { return extent(plan) == plan.sizes[d]; }))
      return c_name(net.dims[d].name);
  }
  std::string all;
  for (const NetPlan& plan : net.plans)
    all += fmt::format("{}{}", all.empty() ? "" : "|", extent(plan));
  return all;
}

std::string plan_text(const NetParts& net, std::size_t number) {
  const NetPlan& plan = net.plans[number];
  std::string out;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    std::string args;
    for (const NetArgument& arg : plan.steps[i].args)
      args += fmt::format("{{{}, {}}}, ", arg.place, arg.at);
    // C has no empty arrays.
    if (args.empty()) args = "{0, 0}";
    out += fmt::format("static const PrunercNetArg pr_args_{}_{}[] = {{{}}};\n", number, i, args);
  }
  out += fmt::format("static const PrunercNetStep pr_steps_{}[] = {{\n", number);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    out += fmt::format("    {{{}, pr_args_{}_{}, {}}},\n", net.kernels[plan.steps[i].kernel]->entry,
                       number, i, plan.steps[i].args.size());
  }
  return out + fmt::format(
                   "}};\nstatic int32_t pr_run_{0}(void* const* args, void* workspace, const "
                   "PrunercLaunch* launch) {{\n"
                   "  return prunerc_net_run(pr_steps_{0}, 0, {1}, args, workspace, "
                   "pr_weights_at(),\n"
                   "                         (char*)workspace + {2}, launch, NULL);\n}}\n",
                   number, plan.steps.size(), plan.arena_bytes);
}

}  // namespace

std::size_t num_sizes(const CpuLibrary& library) {
  return library.net ? library.net->plans.size() : 1;
}

std::string listed_sizes(const NetParts& net) {
  std::string out;
  for (const NetDim& dim : net.dims) {
    out += fmt::format("{}{} = {}", out.empty() ? "" : "; ", c_name(dim.name),
                       fmt::join(dim.values, ", "));
  }
  return out;
}

std::string bindings_of(const NetParts& net, const NetPlan& plan) {
  std::string out;
  for (std::size_t d = 0; d < net.dims.size(); ++d)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", net.dims[d].name, plan.sizes[d]);
  return out;
}

double flops_of(const NetParts& net, const NetPlan& plan) {
  double flops = 0;
  for (const NetStep& step : plan.steps) flops += net.kernels[step.kernel]->flops;
  return flops;
}

std::string net_param_comment(const NetParts& net) {
  std::string out;
  const std::vector<ArtifactParam>& params = net.plans[0].params;
  for (std::size_t i = 0; i < params.size(); ++i) {
    std::string shape;
    for (std::size_t axis = 0; axis < params[i].shape.size(); ++axis)
      shape += (axis == 0 ? "" : ", ") + extent_text(net, i, axis);
    out += fmt::format(" *   [{}] {}{}: {}[{}]\n", i,
                       params[i].role == ParamRole::kOutput ? "out " : "", c_name(params[i].name),
                       ir::to_string(params[i].dtype), shape);
  }
  return out;
}

std::string net_macros(const NetParts& net) {
  if (net.weights_file.empty()) return "";
  return fmt::format(
      "#define PR_WEIGHTS_NAME {}\n#define PR_WEIGHTS_BYTES INT64_C({})\n"
      "#define PR_WEIGHTS_KEY UINT64_C({:#x})\n",
      c_literal(net.weights_file), net.prepared.size(), weights_key(net.prepared));
}

std::string net_text(const CpuLibrary& library) {
  const NetParts& net = *library.net;
  // Each library of a program has its own.
  std::string out =
      fmt::format("\n// ---- the net ----\n\n#define prunerc_net_run {}_run_steps\n{}\n{}\n",
                  library.info.symbol, kExecuteHeader, kExecute);
  for (const Artifact* kernel : net.kernels) {
    out += fmt::format(
        "__attribute__((visibility(\"hidden\"))) int32_t {}(void* const* args, void* "
        "workspace, const PrunercLaunch* launch);\n",
        kernel->entry);
  }
  if (net.weights_file.empty()) {
    out += fmt::format(
        "__attribute__((visibility(\"hidden\"))) extern const char {0}_weights[];\n"
        "static const void* pr_weights_at(void) {{ return {0}_weights; }}\n",
        library.info.symbol);
  } else {
    out += std::string(kWeights) +
           "static const void* pr_weights_at(void) {\n"
           "  return atomic_load_explicit(&pr_weights, memory_order_acquire);\n}\n";
  }
  std::string names, rows, kernels;
  for (const NetDim& dim : net.dims) names += c_literal(c_name(dim.name)) + ", ";
  for (std::size_t i = 0; i < net.plans.size(); ++i) {
    out += plan_text(net, i);
    rows += fmt::format("    {{{}}},\n", fmt::join(net.plans[i].sizes, ", "));
    kernels += fmt::format("pr_run_{}, ", i);
  }
  out += fmt::format(
      "static PrunercKernel pr_kernel_of(int sizes) {{\n"
      "  static const PrunercKernel kernels[] = {{{}}};\n  return kernels[sizes];\n}}\n",
      kernels);
  if (net.dims.empty()) return out;
  return out + fmt::format(
                   "\nenum {{ PR_NUM_SIZES = {}, PR_NUM_DIMS = {} }};\n"
                   "static const int64_t pr_sizes[PR_NUM_SIZES][PR_NUM_DIMS] = {{\n{}}};\n"
                   "static const char* const pr_dims[] = {{{}}};\n"
                   "static const char pr_listed[] = {};\n{}",
                   net.plans.size(), net.dims.size(), rows, names, c_literal(listed_sizes(net)),
                   kSizes);
}

Artifact net_artifact(const NetParts& parts, std::string entry) {
  Artifact whole;
  whole.entry = std::move(entry);
  whole.params = parts.plans[0].params;
  for (const Artifact* kernel : parts.kernels) {
    whole.cpu = kernel->cpu;
    whole.triple = kernel->triple;
    whole.workspace_bytes_per_worker =
        std::max(whole.workspace_bytes_per_worker, kernel->workspace_bytes_per_worker);
    whole.stack_bytes = std::max(whole.stack_bytes, kernel->stack_bytes);
    for (const std::string& name : kernel->tile_features) {
      if (std::find(whole.tile_features.begin(), whole.tile_features.end(), name) ==
          whole.tile_features.end())
        whole.tile_features.push_back(name);
    }
  }
  for (const NetPlan& plan : parts.plans) {
    int64_t most = 0;
    for (const NetStep& step : plan.steps)
      most = std::max(most, parts.kernels[step.kernel]->workspace_bytes);
    whole.workspace_bytes = std::max(whole.workspace_bytes, plan.arena_bytes + most);
  }
  for (const NetStep& step : parts.plans[0].steps) {
    whole.flops += parts.kernels[step.kernel]->flops;
    whole.bytes_moved += parts.kernels[step.kernel]->bytes_moved;
  }
  return whole;
}

}  // namespace prunerc::codegen
