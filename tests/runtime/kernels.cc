#include "tests/runtime/kernels.h"

#include <fstream>
#include <iterator>

namespace prunerc::runtime {

codegen::Artifact test_artifact(const std::string& entry) {
  const char* object = entry == "calls_the_system_library" ? "foreign_kernel" : "test_kernels";
  std::ifstream file(std::string("tests/runtime/") + object + ".o", std::ios::binary);
  codegen::Artifact artifact;
  artifact.bytes.assign(std::istreambuf_iterator<char>(file), {});
  artifact.entry = entry;
  artifact.params = {
      {.name = "A", .dtype = ir::DType::kF32, .shape = {1000}, .role = codegen::ParamRole::kInput},
      {.name = "C",
       .dtype = ir::DType::kF32,
       .shape = {10, 100},
       .role = codegen::ParamRole::kOutput},
  };
  artifact.workspace_bytes = 100;
  return artifact;
}

Job test_job(const codegen::Artifact& artifact) {
  Job job;
  job.artifact = &artifact;
  job.inputs = {{.fill = Fill::kUniform, .seed = 1, .bytes = {}}};
  return job;
}

WorkerOptions test_options(int num_threads) {
  WorkerOptions options;
  options.num_threads = num_threads;
  options.worker_argv = {"tests/runtime/worker", "__worker"};
  options.run_limit_ns = 2'000'000'000;
  return options;
}

}  // namespace prunerc::runtime
