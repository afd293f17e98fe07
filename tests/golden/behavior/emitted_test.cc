// The code that operators become: LLVM text for a CPU, CUDA text for two GPUs, by the schedule that
// `-O1` chooses, and by the schedules of tests/golden/gpu. Reduced to hashes; the texts of those
// that changed are kept in the test's outputs.
#include "codegen/codegen.h"
#include "ir/support/hash.h"
#include "search/space/space.h"
#include "search/tune/instant.h"
#include "tests/golden/behavior/golden_lines.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"
#include "tools/driver/prunerc.h"

#include <algorithm>
#include <cstdio>

namespace prunerc {
namespace {

using namespace testing;  // NOLINT: a test

struct Example {
  const char* file;
  const char* op;
  std::map<std::string, std::string> bindings;
};

/// Forty operators: every file of tools/std, sizes that tiles divide and primes.
const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"attention.prn", "attention", {}},
      {"attention.prn", "causal_attention", {{"T", "77"}, {"H", "3"}}},
      {"attention.prn", "attention_f16", {}},
      {"attention.prn", "grouped_query_attention", {}},
      {"conv.prn", "conv1d", {}},
      {"conv.prn", "conv2d", {}},
      {"conv.prn", "conv2d", {{"CI", "17"}, {"H", "13"}, {"W", "13"}, {"CO", "31"}}},
      {"conv.prn", "conv2d", {{"G", "4"}, {"S", "2"}}},
      {"conv.prn", "conv2d_bias_relu", {}},
      {"conv.prn", "conv2d_nhwc", {}},
      {"conv.prn", "conv2d_f16_nhwc", {}},
      {"conv.prn", "conv3d", {}},
      {"conv.prn", "depthwise_conv2d", {}},
      {"conv.prn", "depthwise_conv2d_nhwc", {{"C", "67"}}},
      {"conv.prn", "conv_transpose2d", {}},
      {"elementwise.prn", "add_gelu", {}},
      {"elementwise.prn", "axpy", {}},
      {"elementwise.prn", "transpose2d", {{"M", "127"}}},
      {"elementwise.prn", "rope", {}},
      {"gemm.prn", "gemm_nn", {}},
      {"gemm.prn", "gemm_nn", {{"M", "127"}, {"N", "131"}, {"K", "37"}}},
      {"gemm.prn", "gemm_nt", {{"M", "1"}}},
      {"gemm.prn", "gemm_tn", {}},
      {"gemm.prn", "gemm_bias_gelu", {}},
      {"gemm.prn", "gemm_f16", {}},
      {"gemm.prn", "gemm_bf16", {}},
      {"gemm.prn", "batch_matmul_nt", {{"M", "197"}}},
      {"gemm.prn", "matvec", {}},
      {"gemm.prn", "dot", {}},
      {"indexing.prn", "gather_rows", {}},
      {"indexing.prn", "nll", {}},
      {"norm.prn", "softmax", {}},
      {"norm.prn", "softmax", {{"M", "64"}, {"N", "4999"}}},
      {"norm.prn", "layer_norm", {}},
      {"norm.prn", "rms_norm_f16", {}},
      {"pool.prn", "max_pool2d", {}},
      {"pool.prn", "global_avg_pool2d", {}},
      {"quantized.prn", "qgemm", {}},
      {"quantized.prn", "quantize", {}},
      {"reduce.prn", "col_sum", {{"M", "1023"}}},
      {"reduce.prn", "row_argmax", {}},
      {"reduce.prn", "frobenius", {}},
  };
  return all;
}

std::string line_of(const std::string& name, const Result<std::string>& text) {
  if (!text.ok()) return "refused: " + std::string(diag_name(text.error().id()));
  keep_output(name, *text);
  char line[64];
  std::snprintf(line, sizeof(line), "%td lines, %016llx",
                std::count(text->begin(), text->end(), '\n'),
                static_cast<unsigned long long>(hash_bytes(*text)));
  return line;
}

Result<std::string> cuda_text(const ir::Program& program, const ir::Target& target) {
  PRUNERC_TRY(const codegen::Artifact artifact, codegen::print_cuda_artifact(program, target));
  return artifact.bytes;
}

Result<std::string> emitted(const Operator& op, const ir::Target& target, ThreadPool& pool) {
  const search::Task task = search::make_task(op.name, op.program, target);
  PRUNERC_TRY(const search::SearchSpace space, search::make_space(task));
  PRUNERC_TRY(const search::Candidate best, search::instant_candidate(task, space, pool));
  if (target.kind != ir::TargetKind::kCpu) return cuda_text(best.program, target);
  return codegen::emit_cpu(best.program, target, codegen::EmitKind::kLlvmText);
}

std::string file_name(const Operator& op, std::string_view target) {
  std::string out = op.name + "-" + op.bindings + "-" + std::string(target);
  for (char& c : out) {
    if (c == '=' || c == ',' || c == ':' || c == ' ') c = '_';
  }
  return out;
}

TEST_CASE("operators become the code that they became before") {
  std::map<std::string, std::string> lines;
  ThreadPool pool(2);
  for (const Example& example : examples()) {
    OperatorRequest request;
    request.file = std::string("tools/std/") + example.file;
    request.op = example.op;
    request.bindings = example.bindings;
    const Result<Operator> op = load_operator(request);
    REQUIRE_OK(op);
    for (const char* const name : {"cpu:haswell", "cuda:sm_80", "cuda:sm_90a"}) {
      Result<ir::Target> target = ir::target_from_string(name);
      REQUIRE_OK(target);
      target->num_threads = 2;
      const std::string file = file_name(*op, name);
      lines[file] = line_of(file, emitted(*op, *target, pool));
    }
  }
  check_golden_lines("tests/golden/behavior/emitted.txt", lines);
}

TEST_CASE("schedules for GPUs become the code that they became before") {
  std::map<std::string, std::string> lines;
  for (const GpuProgram& program : gpu_programs()) {
    for (const std::string arch : {"sm_80", "sm_90a"}) {
      if (program.arch == "sm_90a" && arch != program.arch) continue;
      const Result<ir::Target> target = ir::target_from_string("cuda:" + arch);
      REQUIRE_OK(target);
      const std::string file = program.name + "-" + arch + ".cu";
      lines[file] = line_of(file, cuda_text(program.scheduled, *target));
    }
  }
  check_golden_lines("tests/golden/behavior/emitted_gpu_schedules.txt", lines);
}

}  // namespace
}  // namespace prunerc
