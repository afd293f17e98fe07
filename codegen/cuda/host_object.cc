#include "codegen/cuda/host_object.h"

#include "codegen/cuda/prelude.h"
#include "codegen/host_compiler.h"
#include "ir/support/check.h"

#include <vector>

namespace prunerc::codegen {
namespace {

std::vector<std::string> flags_for(const HostObjectOptions& options) {
  std::vector<std::string> flags = {"-shared", "-fPIC", "-w", "-std=c++17",
                                    "-O" + std::to_string(options.optimization)};
  const auto add = [&](std::initializer_list<const char*> words) {
    flags.insert(flags.end(), words.begin(), words.end());
  };
  // What the language fixes and C++ leaves open: integers wrap, and a sum of products rounds twice.
  add({"-march=x86-64-v3", "-ffp-contract=off", "-fwrapv", "-fno-math-errno",
       "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"});
  // Every reader of line numbers knows version 4 of DWARF.
  if (options.checker == HostChecker::kRace)
    add({"-fsanitize=thread", "-g1", "-gdwarf-4", "-fno-omit-frame-pointer", "-DPR_CHECKED"});
  if (options.checker == HostChecker::kBounds) {
    add({"-fsanitize=address,bounds", "-fno-sanitize-recover=bounds", "-g1", "-gdwarf-4",
         "-fno-omit-frame-pointer"});
  }
  return flags;
}

}  // namespace

Result<Artifact> build_host_object(const Artifact& source, const HostObjectOptions& options) {
  PRUNERC_CHECK(source.kind == ArtifactKind::kCudaSource, "only text can be compiled");
  std::vector<std::string> kernels;
  for (const Launch& launch : source.launches) kernels.push_back(launch.kernel);
  Artifact object = source;
  object.kind = ArtifactKind::kCudaHostObject;
  std::string compiler = options.compiler;
  if (compiler.empty()) {
    PRUNERC_TRY(compiler, find_host_compiler());
  }
  const std::string text = host_text(source.bytes, kernels);
  PRUNERC_TRY(object.bytes,
              run_compiler(compiler, flags_for(options), {{"kernel.cc", text}}, {"-lm"}));
  return object;
}

}  // namespace prunerc::codegen
