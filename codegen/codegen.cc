#include "codegen/codegen.h"

#include "codegen/cpu/object.h"
#include "codegen/cuda/print.h"
#include "codegen/hoist.h"
#include "codegen/storage_plan.h"
#include "ir/equal.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>
#include <utility>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// The functions of a kernel's object: its entry and, with const inputs, what prepares them.
struct Lowered {
  std::vector<LoweredFunction> functions;  // the entry first
  int64_t prepared_bytes = 0;
  bool prepares() const { return functions.size() > 1; }
};

// A target without a CPU name, or one without a vector width, is completed.
Target completed(const Target& target) {
  if (target.kind != TargetKind::kCpu) return target;  // resolve_cpu refuses it
  if (target.llvm_cpu.empty()) return host_target(target);
  Target t = target;
  if (t.vector_bytes == 0) t.vector_bytes = 32;
  return t;
}

Result<LoweredFunction> lower_function(const Program& program, std::string symbol,
                                       std::vector<ParamPlace> places, const Target& target,
                                       const CpuOptions& options) {
  LoweredFunction r;
  r.symbol = std::move(symbol);
  PRUNERC_TRY(r.program, lower_cpu(program, target, options.pipeline));
  PRUNERC_TRY(r.plan, plan_storage(r.program));
  r.plan.params = std::move(places);
  return r;
}

Result<Lowered> lower(const Program& program, const Target& target, const CpuOptions& options) {
  if (!program.defined()) return error(Diag::kUnsupported, "compiling an empty program");
  for (const Buffer& buffer : program.buffers()) PRUNERC_TRY_VOID(buffer_bytes(buffer));
  if (!program.domain().empty())
    return error(Diag::kUnsupported, "compiling a program with tile parameters");
  const std::string symbol =
      options.symbol.empty() ? "prunerc_" + fingerprint(program).to_string() : options.symbol;
  Lowered r;
  if (!has_const_inputs(program)) {
    PRUNERC_TRY(r.functions.emplace_back(), lower_function(program, symbol, {}, target, options));
    return r;
  }
  PRUNERC_TRY(Hoisted hoisted, hoist(program));
  PRUNERC_TRY(r.functions.emplace_back(),
              lower_function(hoisted.run, symbol, std::move(hoisted.run_places), target, options));
  PRUNERC_TRY(r.functions.emplace_back(),
              lower_function(hoisted.prepare, symbol + "_prepare",
                             std::move(hoisted.prepare_places), target, options));
  r.prepared_bytes = hoisted.prepared_bytes;
  return r;
}

void add_params(const Program& program, Artifact* artifact) {
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    ArtifactParam param;
    param.name = std::string(buffer.name);
    param.dtype = buffer.dtype;
    for (Expr extent : buffer.shape) param.shape.push_back(extent.as<IntImm>()->value);
    param.role = buffer.role == BufferRole::kOutput ? ParamRole::kOutput : ParamRole::kInput;
    artifact->bytes_moved += static_cast<double>(size_bytes(param));
    artifact->params.push_back(std::move(param));
  }
}

// Of all functions: tile registers, and what multiplies them.
std::vector<std::string> tile_features(const Lowered& lowered) {
  std::set<std::string> products;
  for (const LoweredFunction& function : lowered.functions) {
    walk(
        function.program.root(),
        [&](Stmt s) {
          const Loop* loop = s.as<Loop>();
          const TensorIntrinsic* tensor = loop == nullptr ? nullptr : tile_product_of(*loop);
          if (tensor != nullptr) products.insert(tensor->features.substr(1));  // behind a +
          return tensor == nullptr;
        },
        [](Expr) {});
  }
  if (products.empty()) return {};
  std::vector<std::string> out = {"amx-tile"};
  out.insert(out.end(), products.begin(), products.end());
  return out;
}

// Where a kernel's argument is: among the parameters, or in the workspace.
LaunchArg launch_arg(const Program& program, const GpuStorage& storage, BufferId id) {
  const std::span<const BufferId> params = program.params();
  const auto it = std::find(params.begin(), params.end(), id);
  if (it != params.end()) return {LaunchArgKind::kParam, it - params.begin()};
  return {LaunchArgKind::kWorkspace, storage.extents.at(id).offset};
}

}  // namespace

Result<Artifact> compile_cpu(const Program& scheduled, const Target& target,
                             const CpuOptions& options) {
  const Target t = completed(target);
  PRUNERC_TRY(const CpuName cpu, resolve_cpu(t));
  PRUNERC_TRY(const Lowered lowered, lower(scheduled, t, options));
  Artifact artifact;
  artifact.kind = ArtifactKind::kCpuObject;
  PRUNERC_TRY(EmittedObject object, emit_object(lowered.functions, t, ObjectForm::kObject));
  artifact.bytes = std::move(object.bytes);
  artifact.stack_bytes = object.stack_bytes;
  artifact.entry = lowered.functions.front().symbol;
  artifact.triple = cpu.triple;
  artifact.cpu = cpu.cpu;
  artifact.tile_features = tile_features(lowered);
  add_params(scheduled, &artifact);
  if (lowered.prepares()) {
    artifact.prepare_entry = lowered.functions.back().symbol;
    artifact.prepared_bytes = lowered.prepared_bytes;
    for (std::size_t i = 0; i < artifact.params.size(); ++i) {
      artifact.params[i].is_const = scheduled.buffer(scheduled.params()[i]).is_const;
    }
  }
  // Both functions are given the same one.
  for (const LoweredFunction& function : lowered.functions) {
    artifact.workspace_bytes = std::max(artifact.workspace_bytes, function.plan.workspace_bytes);
    artifact.workspace_bytes_per_worker =
        std::max(artifact.workspace_bytes_per_worker, function.plan.workspace_bytes_per_worker);
  }
  return artifact;
}

Result<Artifact> print_cuda_artifact(const Program& scheduled, const Target& target,
                                     const CudaOptions& options) {
  if (!scheduled.defined()) return error(Diag::kUnsupported, "compiling an empty program");
  PRUNERC_TRY(const Program lowered, lower_gpu(scheduled, target, options.pipeline));
  return print_lowered_cuda(lowered, target, "prunerc_" + fingerprint(scheduled).to_string());
}

Result<Artifact> print_lowered_cuda(const Program& lowered, const Target& target,
                                    std::string_view symbol) {
  PRUNERC_TRY(const CudaText text, print_cuda(lowered, target, symbol));
  Artifact artifact;
  artifact.kind = ArtifactKind::kCudaSource;
  artifact.bytes = text.text;
  artifact.triple = "nvptx64-nvidia-cuda";
  artifact.cpu = architecture_of(target);
  add_params(lowered, &artifact);
  artifact.workspace_bytes = text.storage.workspace_bytes;
  for (const KernelText& kernel : text.kernels) {
    Launch launch;
    launch.kernel = kernel.name;
    launch.grid = kernel.blocks;
    launch.block = kernel.threads;
    launch.shared_bytes = kernel.shared_bytes;
    launch.cluster = kernel.cluster;
    for (BufferId id : kernel.args) launch.args.push_back(launch_arg(lowered, text.storage, id));
    for (const KernelMap& map : kernel.maps) {
      launch.args.push_back(
          {LaunchArgKind::kTensorMap, static_cast<int64_t>(launch.tensor_maps.size())});
      launch.tensor_maps.push_back(map.map);
      launch.tensor_maps.back().base = launch_arg(lowered, text.storage, map.from);
    }
    artifact.launches.push_back(std::move(launch));
  }
  if (!artifact.launches.empty()) artifact.entry = artifact.launches.front().kernel;
  return artifact;
}

std::string architecture_of(const Target& target) {
  const std::size_t colon = target.name.find(':');
  return colon == std::string::npos ? "sm_80" : target.name.substr(colon + 1);
}

Result<std::vector<Program>> lower_functions(const Program& scheduled, const Target& target,
                                             const CpuOptions& options) {
  PRUNERC_TRY(const Lowered lowered, lower(scheduled, completed(target), options));
  std::vector<Program> out;
  for (const LoweredFunction& function : lowered.functions) out.push_back(function.program);
  return out;
}

Result<std::string> emit_cpu(const Program& scheduled, const Target& target, EmitKind kind,
                             const CpuOptions& options) {
  const Target t = completed(target);
  PRUNERC_TRY(const Lowered lowered, lower(scheduled, t, options));
  const auto emit = [&](ObjectForm form) -> Result<std::string> {
    PRUNERC_TRY(EmittedObject object, emit_object(lowered.functions, t, form));
    return std::move(object.bytes);
  };
  switch (kind) {
    case EmitKind::kObject: return emit(ObjectForm::kObject);
    case EmitKind::kAssembly: return emit(ObjectForm::kAssembly);
    case EmitKind::kLlvmText: return emit(ObjectForm::kLlvmText);
  }
  PRUNERC_UNREACHABLE("emit kind");
}

Result<std::vector<std::string>> cpu_features(const Target& target) {
  PRUNERC_TRY(const CpuName cpu, resolve_cpu(completed(target)));
  return enabled_features(cpu);
}

Target host_target(const Target& base) {
  const CpuName host = host_cpu();
  Target t = base;
  t.kind = TargetKind::kCpu;
  t.llvm_cpu = host.cpu;
  t.llvm_features = host.features;
  const bool has_avx512 = host.features.find("+avx512f") != std::string::npos &&
                          host.features.find("+avx512bw") != std::string::npos;
  const bool has_avx2 = host.features.find("+avx2") != std::string::npos;
  t.vector_bytes = has_avx512 ? 64 : has_avx2 ? 32 : 16;
  t.num_vector_registers = has_avx512 ? 32 : 16;
  return t;
}

}  // namespace prunerc::codegen
