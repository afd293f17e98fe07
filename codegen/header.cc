#include "codegen/codegen.h"

namespace prunerc::codegen {
namespace {

const char* c_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64: return "double";
    case ir::DType::kF32: return "float";
    case ir::DType::kF16: return "uint16_t";   // IEEE binary16 bits
    case ir::DType::kBF16: return "uint16_t";  // the upper half of an f32
    case ir::DType::kI64: return "int64_t";
    case ir::DType::kI32: return "int32_t";
    case ir::DType::kI8: return "int8_t";
    case ir::DType::kU8: return "uint8_t";
    case ir::DType::kBool: return "uint8_t";
  }
  PRUNERC_UNREACHABLE("dtype");
}

}  // namespace

std::string c_header(const Artifact& artifact) {
  const std::string guard = "PRUNERC_KERNEL_" + c_name(artifact.entry);
  std::string out = "#ifndef " + guard + "\n#define " + guard + "\n\n#include <stdint.h>\n\n";
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  out += "#ifndef PRUNERC_RUNTIME_KERNEL_H_\n#define PRUNERC_RUNTIME_KERNEL_H_\n";
  out += "/* One task of a parallel loop; worker is in 0 .. num_workers-1. */\n";
  out += "typedef void (*PrunercTask)(int64_t task, int32_t worker, void* closure);\n";
  out += "/* parallel_for runs tasks 0 .. num_tasks-1 and returns 0 when all have finished. */\n";
  out += "typedef struct PrunercLaunch {\n";
  out +=
      "  int32_t (*parallel_for)(const struct PrunercLaunch* self, int64_t num_tasks, PrunercTask "
      "body,\n";
  out +=
      "                          void* closure);\n  int32_t num_workers;\n  void* context;\n} "
      "PrunercLaunch;\n";
  out +=
      "typedef int32_t (*PrunercKernel)(void* const* args, void* workspace, const PrunercLaunch* "
      "launch);\n";
  out += "#define PRUNERC_ALIGNMENT 64\n#endif\n\n";
  out += "/* args, each dense, row-major and aligned to 64 bytes:\n";
  for (std::size_t i = 0; i < artifact.params.size(); ++i) {
    const ArtifactParam& p = artifact.params[i];
    out += " *   [" + std::to_string(i) + "] " + (p.role == ParamRole::kOutput ? "" : "const ") +
           c_type(p.dtype) + " " + c_name(p.name);
    for (const int64_t extent : p.shape) out += "[" + std::to_string(extent) + "]";
    out += " (" + std::string(ir::to_string(p.dtype)) + ")\n";
  }
  out += " * workspace: " + std::to_string(artifact.workspace_bytes) + " + num_workers * " +
         std::to_string(artifact.workspace_bytes_per_worker) + " bytes, aligned to 64.\n";
  out += " * Returns 0. */\n";
  out += "int32_t " + artifact.entry +
         "(void* const* args, void* workspace, const PrunercLaunch* launch);\n\n";
  out += "#define " + c_name(artifact.entry) + "_WORKSPACE_BYTES(num_workers) (" +
         std::to_string(artifact.workspace_bytes) + "LL + (int64_t)(num_workers) * " +
         std::to_string(artifact.workspace_bytes_per_worker) + "LL)\n\n";
  out += "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return out;
}

}  // namespace prunerc::codegen
