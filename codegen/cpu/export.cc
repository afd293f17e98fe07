#include "codegen/cpu/export.h"

#include "codegen/cpu/export_net.h"
#include "codegen/cpu/features.h"
#include "codegen/export_text.h"
#include "codegen/host_compiler.h"
#include "codegen/subprocess.h"
#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace prunerc::codegen {
namespace {

constexpr std::string_view kTexts[] = {
#include "codegen/cpu/library_text.inc"
};
constexpr std::string_view kKernelHeader = kTexts[0], kLibraryHeader = kTexts[1],
                           kLauncher = kTexts[2], kGroups = kTexts[3], kPool = kTexts[4];

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

/// The parameters of one of the library's functions, and their names, which differ from each other
/// and from the function's other ones.
struct Arguments {
  std::vector<ArtifactParam> params;
  std::vector<std::string> names;
  std::vector<std::string> sizes;  ///< what stands in front of them in a net of several sizes
};

bool has_constants(const Artifact& artifact) { return !artifact.prepare_entry.empty(); }

bool has_weights_file(const CpuLibrary& library) {
  return library.net && !library.net->weights_file.empty();
}

Arguments arguments_of(const CpuLibrary& library, bool constants) {
  Arguments out;
  std::vector<std::string> names;
  if (library.net) {
    for (const NetDim& dim : library.net->dims) names.push_back(dim.name);
  }
  // All else that stands beside sizes and tensors; of a size and a tensor, the tensor takes another
  // name.
  out.sizes = c_param_names(names, {"prepared", "args", "workspace", "launch"});
  std::vector<std::string> taken = out.sizes;
  taken.emplace_back("prepared");
  names.clear();
  for (const ArtifactParam& param : library.artifact.params) names.push_back(param.name);
  names = c_param_names(names, std::move(taken));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ArtifactParam& param = library.artifact.params[i];
    if (param.is_const != constants) continue;
    out.params.push_back(param);
    out.names.push_back(names[i]);
  }
  return out;
}

// For functions that are compiled here: there the user's names, which he reads in the header, could
// be macros of the system's headers or hide what the function calls.
Arguments with_own_names(Arguments arguments) {
  const auto number = [](std::string_view stem, std::vector<std::string>* names) {
    for (std::size_t i = 0; i < names->size(); ++i) (*names)[i] = fmt::format("{}_{}", stem, i);
  };
  number("pr_array", &arguments.names);
  number("pr_extent", &arguments.sizes);
  return arguments;
}

// "int64_t seq, ", or nothing.
std::string size_signature(const Arguments& arguments) {
  std::string out;
  for (const std::string& size : arguments.sizes) out += fmt::format("int64_t {}, ", size);
  return out;
}

// "const float* X, float* Y".
std::string signature(const Arguments& arguments) {
  std::string out;
  for (std::size_t i = 0; i < arguments.names.size(); ++i) {
    const ArtifactParam& p = arguments.params[i];
    out +=
        fmt::format("{}{}{}* {}", i == 0 ? "" : ", ", p.role == ParamRole::kOutput ? "" : "const ",
                    c_type(p.dtype), arguments.names[i]);
  }
  return out;
}

// "(void*)X, (void*)Y".
std::string addresses(const Arguments& arguments) {
  std::string out;
  for (const std::string& name : arguments.names)
    out += fmt::format("{}(void*){}", out.empty() ? "" : ", ", name);
  return out;
}

/// Of what _prepare fills: a line that says who did, then the constants.
constexpr int64_t kPreparedHeaderBytes = 64;

int64_t prepared_bytes(const Artifact& artifact) {
  return has_constants(artifact) ? kPreparedHeaderBytes + artifact.prepared_bytes : 0;
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

std::string param_rows(std::span<const ArtifactParam> params, bool constants, std::size_t first) {
  std::string rows;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ArtifactParam& p = params[i];
    if (p.is_const != constants) continue;
    rows += fmt::format("    {{{}, \"{}\", {}, {}, pr_shape_{}}},\n", c_literal(p.name),
                        ir::to_string(p.dtype), p.role == ParamRole::kOutput ? 1 : 0,
                        p.shape.size(), first + i);
  }
  return rows;
}

// The infos of all sizes, one behind the other.
std::string info_text(const CpuLibrary& library, const std::vector<CpuFeature>& features) {
  const LibraryInfo& info = library.info;
  const Artifact& artifact = library.artifact;
  const std::size_t num = num_sizes(library), num_params = artifact.params.size();
  std::string names, tables, rows;
  for (const CpuFeature& f : features)
    names += fmt::format("{}{}", names.empty() ? "" : ",", f.name);
  const std::string constants = param_rows(artifact.params, true, 0);
  const std::size_t num_constants = arguments_of(library, true).params.size();
  if (!constants.empty())
    tables += fmt::format("static const PrunercParam pr_constant_infos[] = {{\n{}}};\n", constants);
  for (std::size_t i = 0; i < num; ++i) {
    const NetPlan* const plan = library.net ? &library.net->plans[i] : nullptr;
    const std::string params =
        param_rows(plan != nullptr ? plan->params : artifact.params, false, i * num_params);
    const bool is_sized = plan != nullptr && !library.net->dims.empty();
    if (!params.empty())
      tables +=
          fmt::format("static const PrunercParam pr_param_infos_{}[] = {{\n{}}};\n", i, params);
    rows += fmt::format(
        "  {{\n"
        "    .name = {},\n    .symbol = {},\n    .bindings = {},\n    .version = {},\n"
        "    .record_id = {},\n    .record_version = {},\n    .tuned_ns = {:e},\n    .flops = "
        "{:e},\n"
        "    .target = {},\n    .cpu = {},\n    .features = {},\n"
        "    .num_threads = {},\n    .num_params = {},\n    .params = {},\n"
        "    .workspace_bytes = {},\n    .workspace_bytes_per_worker = {},\n"
        "    .num_constants = {},\n    .constants = {},\n    .prepared_bytes = {},\n"
        "    .num_sizes = {},\n  }},\n",
        c_literal(info.name), c_literal(info.symbol),
        c_literal(is_sized ? bindings_of(*library.net, *plan) : info.bindings),
        c_literal(info.version), info.record_id, c_literal(info.record_version), info.tuned_ns,
        is_sized ? flops_of(*library.net, *plan) : info.flops, c_literal(info.target),
        c_literal(artifact.cpu), c_literal(names), info.num_threads, num_params - num_constants,
        params.empty() ? "NULL" : fmt::format("pr_param_infos_{}", i), artifact.workspace_bytes,
        artifact.workspace_bytes_per_worker, num_constants,
        num_constants > 0 ? "pr_constant_infos" : "NULL", prepared_bytes(artifact), num);
  }
  return fmt::format("\n{}static const PrunercInfo pr_infos[] = {{\n{}}};\n", tables, rows);
}

// Sets `sizes`, the number of the sizes that a call is for; `how` finds it.
std::string find_sizes(const Arguments& call, const std::string& how) {
  if (call.sizes.empty()) return "  const int sizes = 0;\n";
  return fmt::format("  const int sizes = {};\n  if (sizes < 0) return PRUNERC_ERROR_SIZES;\n",
                     how);
}

std::string exports_text(const CpuLibrary& library) {
  const Arguments call = with_own_names(arguments_of(library, false));
  const bool constants = has_constants(library.artifact);
  const std::string by_sizes = find_sizes(
      call, fmt::format("pr_find((const int64_t[]){{{}}})", fmt::join(call.sizes, ", ")));
  const std::string by_tensors =
      find_sizes(call, "pr_find_tensors((const pr_tensor* const*)tensors, num_tensors)");
  std::string out = fmt::format(
      "\n// ---- exported ----\n\n#define PR_EXPORT __attribute__((visibility(\"default\")))\n"
      "PR_EXPORT int {0}({5}{1}{3}) {{\n{6}"
      "  return pr_run(sizes, (void* const[]){{{2}}}, {4});\n}}\n"
      "PR_EXPORT int {0}_dlpack(const void* const* tensors, int32_t num_tensors{3}) {{\n{7}"
      "  return pr_run_tensors(sizes, (const pr_tensor* const*)tensors, num_tensors, {4});\n}}\n"
      "PR_EXPORT const char* {0}_error(void) {{ return pr_message; }}\n"
      "PR_EXPORT const PrunercInfo* {0}_info(void) {{ return pr_infos; }}\n"
      "PR_EXPORT int32_t {0}_kernel({5}void* const* args, void* workspace, const PrunercLaunch* "
      "launch) {{\n{6}  return pr_run_kernel(sizes, args, workspace, launch);\n}}\n"
      "PR_EXPORT void {0}_set_launch(const PrunercLaunch* launch) {{\n"
      "  atomic_store_explicit(&pr_given_launch, launch, memory_order_release);\n}}\n",
      library.info.symbol, signature(call), addresses(call),
      constants ? ", const void* prepared" : "", constants ? "prepared" : "NULL",
      size_signature(call), by_sizes, by_tensors);
  if (has_weights_file(library)) {
    out += fmt::format(
        "PR_EXPORT int {0}_load_weights(const char* path) {{ return pr_load_weights(path); }}\n"
        "PR_EXPORT int {0}_use_weights(const void* bytes, int64_t num_bytes) {{\n"
        "  return pr_use_weights(bytes, num_bytes);\n}}\n",
        library.info.symbol);
  }
  if (!constants) return out;
  const Arguments given = with_own_names(arguments_of(library, true));
  return out + fmt::format(
                   "PR_EXPORT int {0}_prepare({1}, void* prepared) {{\n"
                   "  return pr_prepare_constants((void* const[]){{{2}}}, prepared);\n}}\n"
                   "PR_EXPORT int {0}_prepare_dlpack(const void* const* tensors, int32_t "
                   "num_tensors, void* prepared) {{\n"
                   "  return pr_prepare_tensors((const pr_tensor* const*)tensors, num_tensors, "
                   "prepared);\n}}\n",
                   library.info.symbol, signature(given), addresses(given));
}

// What a header says of a library with constants.
std::string prepare_text(const CpuLibrary& library) {
  const Artifact& artifact = library.artifact;
  if (!has_constants(artifact)) return "";
  const Arguments given = arguments_of(library, true);
  return fmt::format(
      "/* First, once: brings the constants into the form that calls want. `prepared` has "
      "{2}_PREPARED_BYTES\n"
      " * bytes (also _info()->prepared_bytes), aligned to PRUNERC_ALIGNMENT:\n{3}"
      " * The arrays may go away afterwards, the memory must stay. It holds no address, but "
      "belongs "
      "to this\n"
      " * build of the library: another one refuses it. After _prepare has returned, any number of "
      "threads\n"
      " * may make calls with it; nobody may while it is prepared anew. */\n"
      "int {0}_prepare({1}, void* prepared);\n"
      "#define {2}_PREPARED_BYTES {4}\n\n"
      "/* The same for DLPack's DLTensors in the memory of the CPU. */\n"
      "int {0}_prepare_dlpack(const void* const* tensors, int32_t num_tensors, void* "
      "prepared);\n\n",
      library.info.symbol, signature(given), upper(library.info.symbol),
      param_comment(given.params), prepared_bytes(artifact));
}

// What a header says of sizes, and of weights in a file.
std::string sizes_text(const CpuLibrary& library) {
  if (!library.net || library.net->dims.empty()) return "";
  return fmt::format(
      "/* Compiled for {1}, each with each, and for no others: for those a call returns\n"
      " * PRUNERC_ERROR_SIZES. {0}_info() points to {2}_NUM_SIZES infos, one for each combination. "
      "*/\n"
      "#define {2}_NUM_SIZES {3}\n\n",
      library.info.symbol, listed_sizes(*library.net), upper(library.info.symbol),
      library.net->plans.size());
}

std::string weights_text(const CpuLibrary& library) {
  if (!has_weights_file(library)) return "";
  return fmt::format(
      "/* The weights lie in the file {1} of {2} bytes. The first call maps it from\n"
      " * the folder of what this code is linked into; so does _load_weights, from `path` if that "
      "is\n"
      " * not NULL. _use_weights takes them from memory, aligned to PRUNERC_ALIGNMENT, that must "
      "stay.\n"
      " * Either reads all of them once and refuses what this library was not compiled with; once "
      "there\n"
      " * are weights it changes nothing. Nobody may write to the file while it is in use. Return "
      "0, or\n"
      " * PRUNERC_ERROR_WEIGHTS.\n"
      " * More than 2 MiB from a file are copied once, into huge pages, unless the system gives "
      "none\n"
      " * or they are over a fourth of the memory that the process may have or that is free. Not "
      "worth it\n"
      " * for a few calls, or in many processes, which share the pages of a file: "
      "PRUNERC_COPY_WEIGHTS=0\n"
      " * in the environment leaves the copy out. */\n"
      "int {0}_load_weights(const char* path);\n"
      "int {0}_use_weights(const void* bytes, int64_t num_bytes);\n\n",
      library.info.symbol, c_literal(library.net->weights_file), library.net->prepared.size());
}

std::string needs(const CpuLibrary& library) {
  return fmt::format("{}{}, compiled by prunerc {} for {}", c_name(library.info.name),
                     library.info.bindings.empty() ? "" : " with " + library.info.bindings,
                     library.info.version, library.artifact.cpu);
}

/// What the library's own code takes of a caller's stack, the C library's below it included: paths, text
/// of messages, and addresses of parameters in several orders.
constexpr int64_t kLauncherStackBytes = 32 << 10, kStackBytesPerParam = 64;

int64_t stack_bytes(const CpuLibrary& library) {
  constexpr int64_t kStep = 4096;
  const int64_t bytes = library.artifact.stack_bytes + kLauncherStackBytes +
                        kStackBytesPerParam * static_cast<int64_t>(library.artifact.params.size());
  return (bytes + kStep - 1) / kStep * kStep;
}

// What an operator has where a net has its plans.
std::string kernel_text(const Artifact& artifact) {
  return fmt::format(
      "\n__attribute__((visibility(\"hidden\"))) int32_t {0}(void* const* args, void* workspace, "
      "const PrunercLaunch* launch);\n"
      "static PrunercKernel pr_kernel_of(int sizes) {{\n  (void)sizes;\n  return {0};\n}}\n",
      artifact.entry);
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

// All but what keeps two of them apart.
std::string header_body(const CpuLibrary& library) {
  const Artifact& artifact = library.artifact;
  const Arguments call = arguments_of(library, false);
  const bool constants = has_constants(artifact);
  const std::string comment =
      call.sizes.empty() ? param_comment(call.params) : net_param_comment(*library.net);
  return fmt::format(
      "/* {1}. */\n\n{2}\n{3}\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{9}{13}"
      "/* Arrays are dense, row-major and aligned as their elements are; f16 and bf16 are their "
      "bits, a\n"
      " * scalar is an array of one element, and no output overlaps another array:\n{4}"
      " * Any number of threads may call it at once. Returns 0, or PRUNERC_ERROR_* having done "
      "nothing.\n"
      " * It runs on as many threads as it was tuned for, or on as many as there are CPUs for the "
      "process\n"
      " * (affinity, control group's quota) if these are fewer. PRUNERC_NUM_THREADS in the "
      "environment\n"
      " * replaces that number, up to the CPUs of the machine. A thread that calls it, or computes "
      "for "
      "a launch\n"
      " * that is given, needs {6}_STACK_BYTES of stack, beside what that launch's parallel_for "
      "takes. "
      "*/\n"
      "int {0}({12}{5}{10});\n"
      "#define {6}_STACK_BYTES {14}\n\n"
      "/* The same for DLPack's DLTensors in the memory of the CPU. */\n"
      "int {0}_dlpack(const void* const* tensors, int32_t num_tensors{10});\n\n"
      "/* What went wrong in this thread's latest call that failed. */\n"
      "const char* {0}_error(void);\n\n"
      "const PrunercInfo* {0}_info(void);\n\n"
      "/* From now on parallel loops run by `launch`, which must live on; NULL: by threads of the "
      "library's\n"
      " * own again. */\n"
      "void {0}_set_launch(const PrunercLaunch* launch);\n\n"
      "/* The kernel alone, for those who keep workspace and threads: "
      "{6}_WORKSPACE_BYTES(launch->num_workers)\n"
      " * bytes, aligned to PRUNERC_ALIGNMENT. It checks no array{11}. */\n"
      "int32_t {0}_kernel({12}void* const* args, void* workspace, const PrunercLaunch* launch);\n"
      "#define {6}_WORKSPACE_BYTES(num_workers) \\\n  ({7} + (int64_t)(num_workers) * {8})\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n",
      library.info.symbol, needs(library), kKernelHeader, kLibraryHeader, comment, signature(call),
      upper(library.info.symbol), artifact.workspace_bytes, artifact.workspace_bytes_per_worker,
      prepare_text(library), constants ? ", const void* prepared" : "",
      constants ? ";\n * behind the arrays, args holds the address of the prepared memory" : "",
      size_signature(call), sizes_text(library) + weights_text(library), stack_bytes(library));
}

}  // namespace

std::string cpu_library_header(const CpuLibrary& library) {
  const std::string body = header_body(library);
  // Version and CPU, which the first line names as well, declare nothing.
  const std::string what = library.info.name + "\n" + library.info.bindings;
  return guarded_header(library.info.symbol, what + body.substr(body.find('\n')), body);
}

std::string cpu_library_source(const CpuLibrary& library) {
  const Artifact& artifact = library.artifact;
  PRUNERC_CHECK(artifact.kind == ArtifactKind::kCpuObject,
                "only a CPU's object is a CPU's library");
  const std::vector<CpuFeature> features =
      needed_features(library.cpu_features, artifact.tile_features);
  std::string out = fmt::format(
      "// {}.\n// Generated; to be compiled with the kernel: cc -shared -fPIC -pthread this.c "
      "kernel.s\n"
      "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n",
      needs(library));
  // In front of the system's headers, whose macros a user's names may be.
  out += "\n" + cpu_library_header(library) + "\n";
  for (const char* header :
       {"cpuid.h", "errno.h",  "fcntl.h",    "limits.h",    "linux/futex.h", "pthread.h",
        "sched.h", "signal.h", "stdarg.h",   "stdatomic.h", "stddef.h",      "stdint.h",
        "stdio.h", "stdlib.h", "string.h",   "sys/mman.h",  "sys/stat.h",    "sys/syscall.h",
        "time.h",  "unistd.h", "xmmintrin.h"})
    out += fmt::format("#include <{}>\n", header);
  out += fmt::format(
      "\n#define PR_NUM_THREADS {}\n#define PR_WORKSPACE_BYTES INT64_C({})\n"
      "#define PR_WORKSPACE_BYTES_PER_WORKER INT64_C({})\n",
      library.info.num_threads, artifact.workspace_bytes, artifact.workspace_bytes_per_worker);
  out += fmt::format("#define PR_NUM_CONSTANTS {}\n#define PR_USES_TILES {}\n",
                     arguments_of(library, true).params.size(),
                     artifact.tile_features.empty() ? 0 : 1);
  if (has_constants(artifact)) {
    out += fmt::format(
        "#define PR_PREPARE {}\n#define PR_PREPARE_NAME \"{}_prepare\"\n"
        "#define PR_PREPARED_BYTES {}\n#define PR_PREPARED_KEY UINT64_C({:#x})\n",
        artifact.prepare_entry, library.info.symbol, prepared_bytes(artifact),
        // Never 0, which is no key.
        hash_bytes(artifact.bytes) | 1);
  }
  std::vector<ArtifactParam> params = artifact.params;
  if (library.net) {
    out += net_macros(*library.net);
    params.clear();
    for (const NetPlan& plan : library.net->plans)
      params.insert(params.end(), plan.params.begin(), plan.params.end());
  }
  out += features_text(features) + arguments_text(params, num_sizes(library));
  out += info_text(library, features) + "\n" + std::string(kLauncher);
  const bool has_pool = library.info.num_threads > 1;
  if (has_pool || has_weights_file(library)) out += "\n" + std::string(kGroups);
  if (has_pool) out += "\n" + std::string(kPool);
  out += library.net ? net_text(library) : kernel_text(artifact);
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
  PRUNERC_TRY(const ScratchFolder folder, ScratchFolder::make());
  std::vector<CompilerInput> objects;
  std::vector<std::string> names;  // the inputs look at them
  std::string weights;
  if (library.net) {
    names.reserve(library.net->kernels.size());
    for (const Artifact* kernel : library.net->kernels) {
      names.push_back(kernel->entry + ".o");
      objects.push_back({names.back(), kernel->bytes});
    }
    if (library.net->weights_file.empty()) {
      // Megabytes of numbers are no text for a compiler; its assembler takes the bytes as they are.
      PRUNERC_TRY_VOID(write_file(folder.file("weights"), library.net->prepared));
      weights = fmt::format(
          ".section .rodata\n.balign 64\n.globl {0}_weights\n.hidden {0}_weights\n{0}_weights:\n"
          ".incbin {1}\n.byte 0\n.section .note.GNU-stack,\"\",@progbits\n",
          library.info.symbol, c_literal(folder.file("weights")));
      objects.push_back({"weights.s", weights});
    }
  } else {
    objects.push_back({"kernel.o", library.artifact.bytes});
  }
  if (form == CpuLibraryForm::kShared) {
    // Linkers refuse names that there are not.
    std::vector<std::string> suffixes = {"",      "_dlpack", "_error",
                                         "_info", "_kernel", "_set_launch"};
    if (has_constants(library.artifact))
      suffixes.insert(suffixes.end(), {"_prepare", "_prepare_dlpack"});
    if (has_weights_file(library))
      suffixes.insert(suffixes.end(), {"_load_weights", "_use_weights"});
    std::string exports = "{ global: ";
    for (const std::string& suffix : suffixes) exports += library.info.symbol + suffix + "; ";
    PRUNERC_TRY_VOID(write_file(folder.file("exports"), exports + "local: *; };\n"));
    objects.insert(objects.begin(), {"library.c", source});
    return build({"-shared", "-Wl,-z,defs", "-Wl,--as-needed", "-Xlinker",
                  "--version-script=" + folder.file("exports")},
                 objects);
  }
  PRUNERC_TRY(const std::string launcher, build({"-c"}, {{"library.c", source}}));
  objects.insert(objects.begin(), {"library.o", launcher});
  PRUNERC_TRY(std::string object, run_compiler(compiler, {"-r", "-nostdlib"}, objects));
  if (form == CpuLibraryForm::kObject) return object;
  return archive(object, library.info.symbol);
}

}  // namespace prunerc::codegen
