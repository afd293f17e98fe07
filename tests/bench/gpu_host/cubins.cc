// What machine code is like: rules that every kernel keeps, violations planted in some, and of what
// -O1 chooses for named operators the instructions of the main loop.
#include "codegen/codegen.h"
#include "ir/support/parallel.h"
#include "tests/bench/gpu_host/cases.h"
#include "tests/bench/gpu_host/lint.h"
#include "tools/driver/prunerc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

namespace prunerc::bench {
namespace {

/// Operators of the table: the sizes of tests/bench/gpu/operators.py.
struct Named {
  const char* name;
  const char* file;
  const char* op;
  std::map<std::string, std::string> bindings;
};

std::vector<Named> named_operators() {
  const auto cube = [](const char* n) {
    return std::map<std::string, std::string>{{"M", n}, {"N", n}, {"K", n}};
  };
  return {
      {"gemm_f16_4096", "std/gemm", "gemm_f16", cube("4096")},
      {"gemm_f32_1024", "std/gemm", "gemm_nn", cube("1024")},
      {"gemm_i8_2048", "std/quantized", "gemm_i8", cube("2048")},
      {"conv3x3_f16_56", "std/conv", "conv2d_f16_nhwc", {{"N", "8"}}},
      {"attention_f16_512",
       "examples/gpu/attention",
       "attention",
       {{"H", "32"}, {"T", "512"}, {"S", "512"}}},
      {"softmax_4096", "std/norm", "softmax", {{"M", "4096"}, {"N", "4096"}}},
      {"layer_norm_8192x1024", "std/norm", "layer_norm", {{"M", "8192"}, {"N", "1024"}}},
      {"silu_mul_8192x4096", "std/elementwise", "silu_mul", {{"M", "8192"}, {"N", "4096"}}},
  };
}

// "LDG 128 x 4, 32 x 2" of the accesses with this name.
std::string widths_of(const std::vector<LintedKernel>& kernels, std::string_view name) {
  std::map<int, int64_t, std::greater<>> widths;
  for (const LintedKernel& k : kernels) {
    const CodeRange all{0, k.sass.code.size()};
    int64_t wide = 0;
    for (const int bits : {128, 64, 16, 8}) {
      int64_t n = count(k.sass, all, name, std::to_string(bits));
      if (bits <= 16) n += count(k.sass, all, name, "U" + std::to_string(bits));
      widths[bits] += n;
      wide += n;
    }
    widths[32] += count(k.sass, all, name) - wide;
  }
  std::string text;
  for (const auto& [bits, n] : widths) {
    if (n > 0) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", bits, n);
  }
  return text.empty() ? "" : fmt::format("; {} {}", name, text);
}

// The kernel with the most multiply-adds in its main loop, else the longest.
const LintedKernel* main_kernel(const std::vector<LintedKernel>& kernels) {
  const LintedKernel* best = nullptr;
  std::pair<int64_t, size_t> most{-1, 0};
  for (const LintedKernel& k : kernels) {
    const int64_t math = std::count_if(k.sass.code.begin(), k.sass.code.end(), is_math);
    const std::pair<int64_t, size_t> value{math, k.sass.code.size()};
    if (value <= most) continue;
    most = value;
    best = &k;
  }
  return best;
}

Row quality_of(const std::string& name, const std::vector<LintedKernel>& kernels) {
  const LintedKernel* const k = main_kernel(kernels);
  if (k == nullptr) return {"sass/" + name, 0, "%", {}, "no kernel"};
  const CodeRange loop = main_loop(k->sass);
  int64_t math = 0;
  std::map<std::string, int64_t> names;
  for (size_t i = loop.begin; i < loop.end; ++i) {
    if (!is_math(k->sass.code[i])) continue;
    ++math;
    ++names[std::string(k->sass.code[i].name())];
  }
  const auto size = static_cast<double>(loop.end - loop.begin);
  std::string note = fmt::format("{} kernel{}; main loop {:.0f} instructions", kernels.size(),
                                 kernels.size() == 1 ? "" : "s", size);
  for (const auto& [math_name, n] : names) note += fmt::format(", {} {}", n, math_name);
  note += fmt::format("; {} registers, {} threads, {} KB shared", k->resources.registers,
                      k->launch.block[0] * k->launch.block[1] * k->launch.block[2],
                      (k->launch.shared_bytes + k->resources.shared_bytes) / 1024);
  for (const char* access : {"LDG", "LDGSTS", "LDS", "STS", "STG", "UTMALDG", "UTMASTG"})
    note += widths_of(kernels, access);
  return {"sass/" + name, 100 * static_cast<double>(math) / std::max(1.0, size), "%", {}, note};
}

std::vector<Row> quality_rows() {
  std::vector<Row> rows;
  for (const char* target : {"cuda:sm_80", "cuda:h100"}) {
    SessionOptions options;
    options.target = target;
    options.database = ":memory:";
    options.limits = Limits::kAsDescribed;
    Result<Session> session = Session::open(options);
    if (!session.ok()) continue;
    for (const Named& named : named_operators()) {
      const std::string name = fmt::format("{}/{}", named.name, target);
      OperatorRequest request;
      request.file = fmt::format("tools/{}.prn", named.file);
      request.op = named.op;
      request.bindings = named.bindings;
      const Result<Operator> op = load_operator(request);
      const Result<Choice> choice = op.ok() ? session->choose(*op, Effort::kO1) : op.error();
      const Result<codegen::Artifact> source =
          choice.ok() ? codegen::print_cuda_artifact(choice->program, session->target())
                      : choice.error();
      const Result<std::vector<LintedKernel>> kernels =
          source.ok() ? linted_kernels(*source, source->cpu) : source.error();
      if (kernels.ok()) {
        rows.push_back(quality_of(name, *kernels));
      } else {
        fmt::print("  {}: {}\n", name, kernels.error().message().substr(0, 300));
      }
    }
  }
  return rows;
}

}  // namespace

std::vector<Row> cubin_rows(const GpuHostOptions& options) {
  const std::vector<HostCase> cases = host_cases(options);
  ThreadPool pool(0);
  std::mutex mutex;
  int64_t num_kernels = 0, num_violations = 0;
  std::string problem, what;
  std::array<int64_t, kNumLintRules> planted{}, caught{};
  pool.for_each(cases.size(), [&](std::size_t i) {
    const Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(cases[i].scheduled, host_target(cases[i].arch));
    if (!source.ok()) return;
    Result<std::vector<LintedKernel>> kernels = linted_kernels(*source, cases[i].arch);
    const std::lock_guard lock(mutex);
    if (!kernels.ok()) problem = kernels.error().message();
    if (!kernels.ok()) return;
    for (LintedKernel& kernel : *kernels) {
      ++num_kernels;
      const std::vector<Violation> found = lint(kernel);
      for (const Violation& v : found)
        fmt::print("  VIOLATION {}, {}: {}\n", cases[i].name, to_string(v.rule), v.what);
      num_violations += static_cast<int64_t>(found.size());
      for (const Violation& v : found)
        what += fmt::format("{}{}: {}", what.empty() ? "" : "; ", cases[i].op, v.what);
      if (!found.empty()) continue;
      for (int r = 0; r < kNumLintRules; ++r) {
        LintedKernel broken = kernel;
        if (!plant_violation(static_cast<LintRule>(r), &broken)) continue;
        ++planted[static_cast<std::size_t>(r)];
        const std::vector<Violation> seen = lint(broken);
        caught[static_cast<std::size_t>(r)] +=
            std::any_of(seen.begin(), seen.end(),
                        [r](const Violation& v) { return v.rule == static_cast<LintRule>(r); })
                ? 1
                : 0;
      }
    }
  });
  if (num_kernels == 0) {
    fmt::print("  nothing was disassembled: {}\n", problem);
    return {};
  }
  std::vector<Row> rows = {
      {"linted", static_cast<double>(num_kernels), "kernels", {}, "machine code and launches"},
      {"violations", static_cast<double>(num_violations), "violations", 0.0, what, true}};
  for (int r = 0; r < kNumLintRules; ++r) {
    const auto at = static_cast<std::size_t>(r);
    rows.push_back({fmt::format("violations_caught/{}", to_string(static_cast<LintRule>(r))),
                    static_cast<double>(caught[at]), "violations", static_cast<double>(planted[at]),
                    fmt::format("of {} planted", planted[at])});
  }
  for (Row& row : quality_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace prunerc::bench
