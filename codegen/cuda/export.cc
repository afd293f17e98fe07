#include "codegen/cuda/export.h"

#include "codegen/export_text.h"
#include "codegen/host_compiler.h"
#include "ir/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace prunerc::codegen {
namespace {

constexpr std::string_view kLauncher =
#include "codegen/cuda/launcher_text.inc"
    ;

constexpr std::string_view kTypes = R"(
enum { PR_PARAM, PR_WORKSPACE, PR_MAP };
typedef struct {
  int kind;
  int64_t value;
} pr_arg;
typedef struct {
  pr_arg base;
  int type, swizzle;
  int64_t rows, cols, pitch_bytes, box_rows, box_cols;
  int64_t height, width;  // of images whose pixels are rows; 0 of a plain matrix
  int lower[2], upper[2];
  unsigned steps[2];
} pr_map;
typedef struct {
  const char* kernel;
  unsigned grid[3], block[3];
  int64_t shared_bytes;
  int num_args, num_maps;
  const pr_arg* args;
  const pr_map* maps;
} pr_launch;

)";

std::string literal(std::string_view bytes) {
  constexpr std::size_t kBytesPerLine = 32;
  std::string out;
  out.reserve(bytes.size() * 4 + bytes.size() / kBytesPerLine * 6);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kBytesPerLine == 0) out += i == 0 ? "    \"" : "\"\n    \"";
    out += fmt::format("\\{:03o}", static_cast<unsigned char>(bytes[i]));
  }
  return out + (bytes.empty() ? "\"\"" : "\"");
}

std::string_view kind_name(LaunchArgKind kind) {
  switch (kind) {
    case LaunchArgKind::kParam: return "PR_PARAM";
    case LaunchArgKind::kWorkspace: return "PR_WORKSPACE";
    case LaunchArgKind::kTensorMap: return "PR_MAP";
  }
  PRUNERC_UNREACHABLE("argument kind");
}

std::string arg_text(const LaunchArg& arg) {
  return fmt::format("{{{}, {}}}", kind_name(arg.kind), arg.value);
}

std::string launches_text(const Artifact& artifact) {
  std::string tables, rows;
  for (std::size_t i = 0; i < artifact.launches.size(); ++i) {
    const Launch& launch = artifact.launches[i];
    std::string args, maps;
    for (const LaunchArg& arg : launch.args) args += arg_text(arg) + ", ";
    for (const TensorMap& m : launch.tensor_maps) {
      const PixelBox p = m.pixels.value_or(PixelBox{});
      maps +=
          fmt::format("\n    {{{}, {}, {}, {}, {}, {}, {}, {},", arg_text(m.base), m.cuda_type(),
                      m.cuda_swizzle(), m.rows, m.cols, m.pitch_bytes, m.box_rows, m.box_cols);
      maps += fmt::format(" {}, {}, {{{}, {}}}, {{{}, {}}}, {{{}, {}}}}},", p.height, p.width,
                          p.lower[0], p.lower[1], p.upper[0], p.upper[1], p.steps[0], p.steps[1]);
    }
    // C has no empty arrays.
    tables += fmt::format("static const pr_arg pr_args_{}[] = {{{}}};\n", i,
                          args.empty() ? "{0, 0}" : args);
    tables += fmt::format(
        "static const pr_map pr_maps_{}[] = {{{}}};\n", i,
        maps.empty() ? "{{0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, {0, 0}, {1, 1}}" : maps);
    rows += fmt::format("    {{\"{}\", {{{}}}, {{{}}}, {}, {}, {}, pr_args_{}, pr_maps_{}}},\n",
                        c_name(launch.kernel), fmt::join(launch.grid, ", "),
                        fmt::join(launch.block, ", "), launch.shared_bytes, launch.args.size(),
                        launch.tensor_maps.size(), i, i);
  }
  return tables + "static const pr_launch pr_launches[] = {\n" + rows + "};\n";
}

std::string sizes_text(const Artifact& artifact) {
  std::size_t args = 1, maps = 1;
  for (const Launch& launch : artifact.launches) {
    args = std::max(args, launch.args.size());
    maps = std::max(maps, launch.tensor_maps.size());
  }
  return fmt::format(
      "enum {{\n  PR_NUM_LAUNCHES = {},\n  PR_MAX_ARGS = {},\n"
      "  PR_MAX_MAPS = {},\n}};\n#define PR_WORKSPACE_BYTES {}ULL\n\n",
      artifact.launches.size(), args, maps, artifact.workspace_bytes);
}

std::string exports_text(std::string_view symbol) {
  return fmt::format(
      "\n#define PR_EXPORT __attribute__((visibility(\"default\")))\n"
      "PR_EXPORT int32_t {0}_dlpack(const void* const* tensors, int32_t num_tensors,\n"
      "                           void* stream) {{\n"
      "  return pr_run((const pr_tensor* const*)tensors, num_tensors, stream);\n}}\n"
      "PR_EXPORT const char* {0}_error(void) {{ return pr_message; }}\n",
      symbol);
}

}  // namespace

std::string cuda_launcher_source(const Artifact& cubin, std::string_view ptx,
                                 std::string_view symbol) {
  PRUNERC_CHECK(cubin.kind == ArtifactKind::kCudaCubin, "only a cubin can be launched");
  std::string out = fmt::format("// {} for {}. Generated; build with cc -shared -fPIC.\n", symbol,
                                c_name(cubin.cpu));
  for (const char* header : {"dlfcn.h", "pthread.h", "stdarg.h", "stdint.h", "stdio.h", "stdlib.h"})
    out += fmt::format("#include <{}>\n", header);
  out += kTypes;
  out += sizes_text(cubin) + launches_text(cubin);
  out += "static const _Alignas(64) char pr_cubin[] =\n" + literal(cubin.bytes) + ";\n";
  out += "static const char pr_ptx[] =\n" + literal(ptx) + ";\n";
  return out + arguments_text(cubin.params) + "\n" + std::string(kLauncher) + exports_text(symbol);
}

std::string cuda_launcher_header(const Artifact& cubin, std::string_view symbol) {
  const std::string params = param_comment(cubin.params);
  const std::string body = fmt::format(
      "#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* For {1}. `tensors` are pointers to DLPack's DLTensor, all on one CUDA device, dense,\n"
      " * row-major, aligned to 16 bytes, outputs apart from all others:\n{2}"
      " * Puts the kernels into the stream (a cudaStream_t or CUstream; NULL is the default one)\n"
      " * and does not wait for them. Any number of threads at once.\n"
      " * Returns 0; 1 if an argument is wrong, 2 if CUDA fails: nothing is said of outputs then. "
      "*/\n"
      "int32_t {0}_dlpack(const void* const* tensors, int32_t num_tensors, void* stream);\n\n"
      "/* What went wrong in this thread's latest call that failed. */\n"
      "const char* {0}_error(void);\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n",
      symbol, c_name(cubin.cpu), params);
  return guarded_header(symbol, params, body);
}

Result<std::string> build_cuda_library(const Artifact& cubin, std::string_view ptx,
                                       std::string_view symbol) {
  PRUNERC_TRY(const std::string compiler, find_c_compiler());
  const std::string source = cuda_launcher_source(cubin, ptx, symbol);
  return run_compiler(
      compiler, {"-shared", "-fPIC", "-w", "-std=gnu11", "-O1", "-fvisibility=hidden", "-pthread"},
      {{"library.c", source}}, {"-ldl"});
}

}  // namespace prunerc::codegen
