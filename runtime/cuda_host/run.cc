#include "runtime/cuda_host/run.h"

#include "runtime/cuda_host/launch.h"
#include "runtime/worker/buffer.h"

#include <algorithm>
#include <cstring>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::Artifact;
using codegen::LaunchArgKind;

/// NaN in every float type.
constexpr unsigned char kPoison = 0xff;

PrHostTensorMap make_map(const codegen::TensorMap& map, unsigned char* base) {
  PrHostTensorMap result{};
  result.base = base;
  result.rows = map.rows;
  result.cols = map.cols;
  result.pitch_bytes = map.pitch_bytes;
  result.box_rows = map.box_rows;
  result.box_cols = map.box_cols;
  result.elem_bytes = ir::byte_size(map.dtype);
  result.swizzle_bytes = map.swizzle_bytes;
  if (map.pixels) {
    result.height = map.pixels->height;
    result.width = map.pixels->width;
    std::copy_n(map.pixels->lower.begin(), 2, result.lower);
    std::copy_n(map.pixels->upper.begin(), 2, result.upper);
    std::copy_n(map.pixels->steps.begin(), 2, result.steps);
  }
  return result;
}

/// The values that a launch's arguments point to.
struct Arguments {
  std::vector<void*> pointers;
  std::vector<PrHostTensorMap> maps;
  std::vector<void*> addresses;  ///< one per argument: of an element of one of the two
};

Arguments make_arguments(const codegen::Launch& launch, std::span<unsigned char* const> params,
                         unsigned char* workspace) {
  const auto place_of = [&](const codegen::LaunchArg& arg) {
    return arg.kind == LaunchArgKind::kParam ? params[static_cast<size_t>(arg.value)]
                                             : workspace + arg.value;
  };
  Arguments result;
  for (const codegen::TensorMap& map : launch.tensor_maps)
    result.maps.push_back(make_map(map, place_of(map.base)));
  result.pointers.resize(launch.args.size());
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const codegen::LaunchArg& arg = launch.args[i];
    if (arg.kind == LaunchArgKind::kTensorMap) {
      result.addresses.push_back(&result.maps[static_cast<size_t>(arg.value)]);
    } else {
      result.pointers[i] = place_of(arg);
      result.addresses.push_back(&result.pointers[i]);
    }
  }
  return result;
}

}  // namespace

std::string run_launches(const Artifact& artifact, const KernelObject& object,
                         std::span<unsigned char* const> params, unsigned char* workspace,
                         const ExecutionOptions& options) {
  for (const codegen::Launch& one : artifact.launches) {
    const PrHostKernel kernel = object.find(one.kernel);
    if (kernel == nullptr) return "the object has no kernel " + one.kernel;
    Arguments arguments = make_arguments(one, params, workspace);
    const Grid grid = {.blocks = one.grid,
                       .threads = one.block,
                       .shared_bytes = one.shared_bytes,
                       .cluster = one.cluster};
    std::string fault = launch(grid, kernel, arguments.addresses.data(), options);
    if (!fault.empty()) return one.kernel + ": " + fault;
  }
  return "";
}

Result<std::vector<std::string>> run_on_host(const Artifact& artifact,
                                             std::span<const std::string_view> inputs,
                                             const ExecutionOptions& options) {
  PRUNERC_TRY(const KernelObject object, KernelObject::load(artifact.entry, artifact.bytes));
  std::vector<GuardedBuffer> buffers;
  std::vector<unsigned char*> params;
  size_t num_inputs = 0;
  for (const codegen::ArtifactParam& param : artifact.params) {
    const int64_t bytes = codegen::size_bytes(param);
    GuardedBuffer& buffer = buffers.emplace_back(std::max<int64_t>(bytes, 1), Placement::kRight, 0);
    if (buffer.data() == nullptr) return error(Diag::kKernelRun, artifact.entry, "out of memory");
    buffer.poison(kPoison);
    params.push_back(buffer.data());
    if (param.role == codegen::ParamRole::kOutput) continue;
    const std::string_view given =
        num_inputs < inputs.size() ? inputs[num_inputs++] : std::string_view();
    if (static_cast<int64_t>(given.size()) != bytes) {
      return error(Diag::kKernelInput, param.name, bytes, static_cast<int64_t>(given.size()));
    }
    if (bytes > 0) std::memcpy(buffer.data(), given.data(), given.size());
  }
  GuardedBuffer workspace(artifact.workspace_bytes + codegen::kWorkspaceAlignment, Placement::kLeft,
                          0);
  if (workspace.data() == nullptr) return error(Diag::kKernelRun, artifact.entry, "out of memory");
  workspace.poison(kPoison);
  const std::string fault = run_launches(artifact, object, params, workspace.data(), options);
  if (!fault.empty()) return error(Diag::kKernelRun, artifact.entry, fault);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < artifact.params.size(); ++i) {
    if (artifact.params[i].role == codegen::ParamRole::kInput) continue;
    outputs.emplace_back(reinterpret_cast<const char*>(params[i]),
                         static_cast<size_t>(codegen::size_bytes(artifact.params[i])));
  }
  return outputs;
}

}  // namespace prunerc::runtime::cuda_host
