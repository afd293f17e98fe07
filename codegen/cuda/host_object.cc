#include "codegen/cuda/host_object.h"

#include "codegen/cuda/host_compiler.h"
#include "codegen/cuda/prelude.h"
#include "ir/support/check.h"

#include <vector>

namespace prunerc::codegen {
namespace {

CompilerFlags flags_for(const HostObjectOptions& options) {
  CompilerFlags flags{{"-std=c++17", "-O" + std::to_string(options.optimization)}, {"-lm"}};
  const auto add = [&](std::initializer_list<const char*> words) {
    flags.options.insert(flags.options.end(), words.begin(), words.end());
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
  PRUNERC_TRY(object.bytes, compile_shared(host_text(source.bytes, kernels), flags_for(options),
                                           options.compiler));
  return object;
}

}  // namespace prunerc::codegen
