#include "tests/support/cuda_host.h"

#include "codegen/cuda/host_object.h"
#include "runtime/cuda_host/run.h"

namespace prunerc::testing {

Result<std::vector<std::string>> run_source_on_host(
    const codegen::Artifact& source, std::span<const std::string_view> inputs,
    const runtime::cuda_host::ExecutionOptions& options) {
  PRUNERC_TRY(const codegen::Artifact object, codegen::build_host_object(source, {}));
  return runtime::cuda_host::run_on_host(object, inputs, options);
}

}  // namespace prunerc::testing
