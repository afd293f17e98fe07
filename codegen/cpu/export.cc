#include "codegen/cpu/export.h"

#include "codegen/cpu/features.h"
#include "codegen/export_text.h"
#include "codegen/host_compiler.h"
#include "codegen/subprocess.h"
#include "ir/support/check.h"

#include <fmt/format.h>

#include <string_view>

namespace prunerc::codegen {
namespace {

constexpr std::string_view kTexts[] = {
#include "codegen/cpu/library_text.inc"
};
constexpr std::string_view kKernelHeader = kTexts[0], kLibraryHeader = kTexts[1],
                           kLauncher = kTexts[2], kPool = kTexts[3];

constexpr std::string_view kFeatureType = R"(
typedef struct {
  const char* name;
  unsigned leaf, subleaf;
  int where, bit;
  uint64_t registers;
} pr_feature;
)";

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// "const float* X, float* Y".
std::string signature(const Artifact& artifact) {
  const std::vector<std::string> names = c_param_names(artifact.params);
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ArtifactParam& p = artifact.params[i];
    out += fmt::format("{}{}{}* {}", i == 0 ? "" : ", ",
                       p.role == ParamRole::kOutput ? "" : "const ", c_type(p.dtype), names[i]);
  }
  return out;
}

std::string features_text(const std::vector<CpuFeature>& features) {
  std::string rows;
  for (const CpuFeature& f : features)
    rows += fmt::format("    {{\"{}\", {:#x}, {}, {}, {}, {:#x}}},\n", f.name, f.leaf, f.subleaf,
                        static_cast<int>(f.where), f.bit, f.registers);
  // C has no empty arrays.
  if (rows.empty()) rows = "    {\"\", 0, 0, 0, 0, 0},\n";
  return fmt::format(
      "{}enum {{ PR_NUM_FEATURES = {} }};\nstatic const pr_feature pr_features[] = {{\n{}}};\n",
      kFeatureType, features.size(), rows);
}

std::string info_text(const CpuLibrary& library, const std::vector<CpuFeature>& features) {
  const LibraryInfo& info = library.info;
  const Artifact& artifact = library.artifact;
  std::string rows, names;
  for (std::size_t i = 0; i < artifact.params.size(); ++i) {
    const ArtifactParam& p = artifact.params[i];
    rows += fmt::format("    {{{}, \"{}\", {}, {}, pr_shape_{}}},\n", c_literal(p.name),
                        ir::to_string(p.dtype), p.role == ParamRole::kOutput ? 1 : 0,
                        p.shape.size(), i);
  }
  for (const CpuFeature& f : features)
    names += fmt::format("{}{}", names.empty() ? "" : ",", f.name);
  return fmt::format(
      "\nstatic const PrunercParam pr_param_infos[] = {{\n{}}};\n"
      "static const PrunercInfo pr_info = {{\n"
      "    .name = {},\n    .symbol = {},\n    .bindings = {},\n    .version = {},\n"
      "    .record_id = {},\n    .record_version = {},\n    .tuned_ns = {:e},\n    .flops = {:e},\n"
      "    .target = {},\n    .cpu = {},\n    .features = {},\n"
      "    .num_threads = {},\n    .num_params = {},\n    .params = pr_param_infos,\n"
      "    .workspace_bytes = {},\n    .workspace_bytes_per_worker = {},\n}};\n",
      rows, c_literal(info.name), c_literal(info.symbol), c_literal(info.bindings),
      c_literal(info.version), info.record_id, c_literal(info.record_version), info.tuned_ns,
      info.flops, c_literal(info.target), c_literal(artifact.cpu), c_literal(names),
      info.num_threads, artifact.params.size(), artifact.workspace_bytes,
      artifact.workspace_bytes_per_worker);
}

std::string exports_text(const CpuLibrary& library) {
  std::string args;
  for (const std::string& name : c_param_names(library.artifact.params))
    args += fmt::format("{}(void*){}", args.empty() ? "" : ", ", name);
  return fmt::format(
      "\n// ---- exported ----\n\n#define PR_EXPORT __attribute__((visibility(\"default\")))\n"
      "PR_EXPORT int {0}({1}) {{\n  return pr_run((void* const[]){{{2}}});\n}}\n"
      "PR_EXPORT int {0}_dlpack(const void* const* tensors, int32_t num_tensors) {{\n"
      "  return pr_run_tensors((const pr_tensor* const*)tensors, num_tensors);\n}}\n"
      "PR_EXPORT const char* {0}_error(void) {{ return pr_message; }}\n"
      "PR_EXPORT const PrunercInfo* {0}_info(void) {{ return &pr_info; }}\n"
      "PR_EXPORT int32_t {0}_kernel(void* const* args, void* workspace, const PrunercLaunch* "
      "launch) {{\n  return pr_run_kernel(args, workspace, launch);\n}}\n"
      "PR_EXPORT void {0}_set_launch(const PrunercLaunch* launch) {{\n"
      "  atomic_store_explicit(&pr_given_launch, launch, memory_order_release);\n}}\n",
      library.info.symbol, signature(library.artifact), args);
}

std::string needs(const CpuLibrary& library) {
  return fmt::format("{}{}, compiled by prunerc {} for {}", library.info.name,
                     library.info.bindings.empty() ? "" : " with " + library.info.bindings,
                     library.info.version, library.artifact.cpu);
}

Result<std::string> archive(const std::string& object, const std::string& symbol) {
  PRUNERC_TRY(const ScratchFolder folder, ScratchFolder::make());
  const std::string member = folder.file(symbol + ".o"), file = folder.file("library.a");
  PRUNERC_TRY_VOID(write_file(member, object));
  const std::string messages = folder.file("messages");
  for (const std::string tool : {"ar", "llvm-ar"}) {
    // D: the same object gives the same bytes.
    if (run_program({tool, "rcsD", file, member}, messages) == 0) return read_file(file);
  }
  return error(Diag::kIoError, "make", "an archive",
               "neither ar nor llvm-ar works\n" + read_file(messages));
}

}  // namespace

std::string cpu_library_header(const CpuLibrary& library) {
  const Artifact& artifact = library.artifact;
  return fmt::format(
      "/* {1}. */\n"
      "#ifndef PRUNERC_KERNEL_{0}\n#define PRUNERC_KERNEL_{0}\n\n{2}\n{3}\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* Arrays are dense, row-major and aligned as their elements are; f16 and bf16 are their "
      "bits, a\n"
      " * scalar is an array of one element, and no output overlaps another array:\n{4}"
      " * Any number of threads may call it at once. Returns 0, or PRUNERC_ERROR_* having done "
      "nothing.\n"
      " * PRUNERC_NUM_THREADS in the environment replaces the number of threads it was tuned for. "
      "*/\n"
      "int {0}({5});\n\n"
      "/* The same for DLPack's DLTensors in the memory of the CPU. */\n"
      "int {0}_dlpack(const void* const* tensors, int32_t num_tensors);\n\n"
      "/* What went wrong in this thread's latest call that failed. */\n"
      "const char* {0}_error(void);\n\n"
      "const PrunercInfo* {0}_info(void);\n\n"
      "/* From now on parallel loops run by `launch`, which must live on; NULL: by threads of the "
      "library's\n"
      " * own again. */\n"
      "void {0}_set_launch(const PrunercLaunch* launch);\n\n"
      "/* The kernel alone, for those who keep workspace and threads: "
      "{6}_WORKSPACE_BYTES(launch->num_workers)\n"
      " * bytes, aligned to PRUNERC_ALIGNMENT. It checks no array. */\n"
      "int32_t {0}_kernel(void* const* args, void* workspace, const PrunercLaunch* launch);\n"
      "#define {6}_WORKSPACE_BYTES(num_workers) \\\n  ({7} + (int64_t)(num_workers) * {8})\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      library.info.symbol, needs(library), kKernelHeader, kLibraryHeader,
      param_comment(artifact.params), signature(artifact), upper(library.info.symbol),
      artifact.workspace_bytes, artifact.workspace_bytes_per_worker);
}

std::string cpu_library_source(const CpuLibrary& library) {
  const Artifact& artifact = library.artifact;
  PRUNERC_CHECK(artifact.kind == ArtifactKind::kCpuObject,
                "only a CPU's object is a CPU's library");
  const std::vector<CpuFeature> features = needed_features(library.cpu_features);
  std::string out = fmt::format(
      "// {}.\n// Generated; to be compiled with the kernel: cc -shared -fPIC -pthread this.c "
      "kernel.s\n"
      "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n",
      needs(library));
  for (const char* header :
       {"cpuid.h", "limits.h", "linux/futex.h", "pthread.h", "sched.h", "signal.h", "stdarg.h",
        "stdatomic.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "sys/syscall.h",
        "time.h", "unistd.h", "xmmintrin.h"})
    out += fmt::format("#include <{}>\n", header);
  out += "\n" + cpu_library_header(library) + "\n";
  out += fmt::format(
      "#define PR_KERNEL {}\n#define PR_NUM_THREADS {}\n#define PR_WORKSPACE_BYTES INT64_C({})\n"
      "#define PR_WORKSPACE_BYTES_PER_WORKER INT64_C({})\n",
      artifact.entry, library.info.num_threads, artifact.workspace_bytes,
      artifact.workspace_bytes_per_worker);
  out += features_text(features) + arguments_text(artifact.params);
  out += info_text(library, features) + "\n" + std::string(kLauncher);
  if (library.info.num_threads > 1) out += "\n" + std::string(kPool);
  return out + exports_text(library);
}

Result<std::string> build_cpu_library(const CpuLibrary& library, CpuLibraryForm form) {
  PRUNERC_TRY(const std::string compiler, find_c_compiler());
  const std::string source = cpu_library_source(library);
  const std::vector<std::string> options = {"-std=gnu11",          "-O2",      "-fPIC",
                                            "-fvisibility=hidden", "-pthread", "-w"};
  const auto build = [&](std::vector<std::string> more, const std::vector<CompilerInput>& inputs) {
    more.insert(more.begin(), options.begin(), options.end());
    return run_compiler(compiler, more, inputs);
  };
  const CompilerInput kernel = {"kernel.o", library.artifact.bytes};
  if (form == CpuLibraryForm::kShared) {
    return build({"-shared", "-Wl,-z,defs", "-Wl,--as-needed"}, {{"library.c", source}, kernel});
  }
  PRUNERC_TRY(const std::string launcher, build({"-c"}, {{"library.c", source}}));
  PRUNERC_TRY(std::string object,
              run_compiler(compiler, {"-r", "-nostdlib"}, {{"library.o", launcher}, kernel}));
  if (form == CpuLibraryForm::kObject) return object;
  return archive(object, library.info.symbol);
}

}  // namespace prunerc::codegen
