#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/support/parallel.h"
#include "tests/bench/gpu_host/cases.h"
#include "tests/support/cuda_host_device.h"
#include "tests/support/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

namespace prunerc::bench {

using codegen::HostChecker;
using testing::Expected;

std::string check_on_host(const codegen::Artifact& source,
                          std::span<const Expected* const> expected, HostChecker checker) {
  const Result<codegen::Artifact> object = codegen::build_host_object(source, {.checker = checker});
  if (!object.ok()) return object.error().message();
  for (const Expected* e : expected) {
    const runtime::JobOutcome outcome =
        testing::check_object_on_host(*object, e->input_bytes(), checker);
    if (outcome.measurement.status != MeasureStatus::kOk) {
      return std::string(to_string(outcome.measurement.status)) + ": " + outcome.measurement.detail;
    }
    std::string found = testing::difference(*e, outcome.outputs);
    if (!found.empty()) return found;
  }
  return "";
}

namespace {

using Clock = std::chrono::steady_clock;

// Of this thread alone: NVRTC starts none, and what else the machine does is not its time.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One case and what came of it.
struct Outcome {
  codegen::Artifact source;
  std::string refused;  // why it has no text
  std::string fault;    // "" if all is right
  double nvrtc_ms = 0;  // for its own architecture, CPU time
  int num_cubins = 0;
};

// Outputs of each operator once, whatever schedules it has.
std::map<const ir::Program*, Result<Expected>> expect_all(const std::vector<HostCase>& cases,
                                                          uint64_t seed, ThreadPool& pool) {
  std::vector<const ir::Program*> bases;
  for (const HostCase& c : cases) bases.push_back(c.base.get());
  std::sort(bases.begin(), bases.end());
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  std::vector<std::optional<Result<Expected>>> found(bases.size());
  pool.for_each(bases.size(),
                [&](std::size_t i) { found[i] = testing::expected_outputs(*bases[i], seed); });
  std::map<const ir::Program*, Result<Expected>> out;
  for (std::size_t i = 0; i < bases.size(); ++i) out.emplace(bases[i], *std::move(found[i]));
  return out;
}

void run_on_host(const Result<Expected>& expected, Outcome* out) {
  if (!expected.ok()) {
    out->fault = "interpreter: " + expected.error().message();
    return;
  }
  for (const HostChecker checker : {HostChecker::kNone, HostChecker::kRace}) {
    const Expected* const inputs[] = {&*expected};
    const std::string found = check_on_host(out->source, inputs, checker);
    if (!found.empty() && out->fault.empty()) {
      out->fault = (checker == HostChecker::kRace ? "race checker: " : "") + found;
    }
  }
}

void run_on_gpu(const Result<Expected>& expected, Outcome* out) {
  if (!expected.ok()) {
    out->fault = "interpreter: " + expected.error().message();
    return;
  }
  const runtime::JobOutcome outcome =
      testing::check_source_on_gpu(out->source, expected->input_bytes());
  out->fault =
      outcome.measurement.status == MeasureStatus::kOk
          ? testing::difference(*expected, outcome.outputs)
          : std::string(to_string(outcome.measurement.status)) + ": " + outcome.measurement.detail;
}

// Does the cubin say of each kernel what the compiler's log says?
std::string compare_with_log(const codegen::Cubin& cubin) {
  if (cubin.info.kernels.size() != cubin.spills.size()) return "another number of kernels";
  for (const codegen::SpillInfo& log : cubin.spills) {
    const auto found = std::find_if(
        cubin.info.kernels.begin(), cubin.info.kernels.end(),
        [&](const codegen::KernelResources& kernel) { return kernel.kernel == log.kernel; });
    if (found == cubin.info.kernels.end()) return "no kernel " + log.kernel;
    if (found->registers != log.registers || found->stack_bytes != log.stack_bytes) {
      return fmt::format("{}: {} registers and {} bytes of stack, {} and {} in the log", log.kernel,
                         found->registers, found->stack_bytes, log.registers, log.stack_bytes);
    }
  }
  return "";
}

// The architectures that a text is for, its own first.
std::vector<std::string> archs_for(const HostCase& c) {
  if (c.arch != "sm_80") return {c.arch};
  return {"sm_80", "sm_89", "sm_90a"};
}

void compile(const HostCase& c, Outcome* out) {
  for (const std::string& arch : archs_for(c)) {
    const double start = cpu_ms();
    const Result<codegen::Cubin> cubin = codegen::compile_cubin(out->source.bytes, arch, {});
    if (out->num_cubins == 0) out->nvrtc_ms = cpu_ms() - start;
    if (!cubin.ok() && cubin.error().id() == Diag::kNvrtcMissing) return;
    const std::string found = cubin.ok() ? compare_with_log(*cubin) : cubin.error().message();
    if (found.empty()) {
      ++out->num_cubins;
    } else if (out->fault.empty()) {
      out->fault = arch + ": " + found;
    }
  }
}

// Progress, with the seconds since the start.
void say(Clock::time_point start, const std::string& what) {
  fmt::print(stderr, "  {:.0f} s: {}\n", ms_since(start) / 1e3, what);
}

void keep_text(const GpuHostOptions& options, std::size_t number, const HostCase& c,
               const Outcome& outcome) {
  if (options.keep.empty()) return;
  std::filesystem::create_directories(options.keep);
  std::ofstream file(fmt::format("{}/{:03}.cu", options.keep, number));
  file << fmt::format("// {} for {}: {:.0f} ms of NVRTC\n", c.name, c.arch, outcome.nvrtc_ms)
       << outcome.source.bytes;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

std::vector<Row> nvrtc_rows(const std::vector<HostCase>& cases,
                            const std::vector<Outcome>& outcomes) {
  std::map<std::string, std::vector<double>> by_family;
  std::vector<double> all;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (outcomes[i].num_cubins == 0) continue;
    by_family[cases[i].family].push_back(outcomes[i].nvrtc_ms);
    all.push_back(outcomes[i].nvrtc_ms);
  }
  if (all.empty()) {
    fmt::print("  NVRTC was not found: nothing compiled for a GPU\n");
    return {};
  }
  by_family["all"] = std::move(all);
  std::vector<Row> rows;
  for (auto& [family, ms] : by_family) {
    std::sort(ms.begin(), ms.end());
    rows.push_back({"nvrtc_ms/" + family, quantile(ms, 0.5), "ms", std::nullopt,
                    fmt::format("median of {}; 95 % below {:.0f}, most {:.0f}", ms.size(),
                                quantile(ms, 0.95), ms.back())});
  }
  return rows;
}

std::vector<Row> tally(const std::vector<HostCase>& cases, const std::vector<Outcome>& outcomes,
                       bool on_gpu) {
  std::map<std::string, int> refused, archs;
  std::set<std::string> ops;
  int num_ok = 0, num_refused = 0, num_cubins = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Outcome& o = outcomes[i];
    if (!o.refused.empty()) {
      ++refused[o.refused];
      ++num_refused;
      continue;
    }
    ops.insert(cases[i].op);
    ++archs[cases[i].arch];
    num_ok += o.fault.empty() ? 1 : 0;
    num_cubins += o.num_cubins;
    if (!o.fault.empty()) fmt::print("  FAILED {}: {}\n", cases[i].name, o.fault.substr(0, 400));
  }
  for (const auto& [reason, n] : refused) fmt::print("  refused {}: {}\n", n, reason);
  std::string for_archs;
  for (const auto& [arch, n] : archs) for_archs += fmt::format(", {} for {}", n, arch);
  return {{"programs", static_cast<double>(cases.size()) - num_refused, "programs", std::nullopt,
           fmt::format("{} operators{}; {} more were refused", ops.size(), for_archs, num_refused)},
          {"programs_ok", static_cast<double>(num_ok), "programs", std::nullopt,
           on_gpu ? "values on the GPU, compiled, resources as in the log"
                  : "values in six orders, no race, compiled, resources as in the log"},
          {"cubins", static_cast<double>(num_cubins), "cubins", std::nullopt,
           "every architecture of a program"}};
}

}  // namespace

std::vector<Row> program_rows(const GpuHostOptions& options) {
  if (const std::string why = options.on_gpu ? testing::why_no_gpu() : ""; !why.empty()) {
    fmt::print("  nothing ran: {}\n", why);
    return {};
  }
  const Clock::time_point start = Clock::now();
  const std::vector<HostCase> cases = host_cases(options);
  say(start, fmt::format("{} programs drawn", cases.size()));
  ThreadPool pool(0);
  std::vector<Outcome> outcomes(cases.size());
  pool.for_each(cases.size(), [&](std::size_t i) {
    Result<codegen::Artifact> source =
        codegen::print_cuda_artifact(cases[i].scheduled, host_target(cases[i].arch));
    if (source.ok()) {
      outcomes[i].source = *std::move(source);
    } else {
      outcomes[i].refused = std::string(diag_name(source.error().id())) + ": " +
                            source.error().message().substr(0, 90);
    }
  });
  const auto expected = expect_all(cases, options.seed, pool);
  say(start, "printed, outputs known");
  // One after the other, so that NVRTC's times are its own.
  pool.for_each(cases.size(), [&](std::size_t i) {
    if (outcomes[i].refused.empty()) compile(cases[i], &outcomes[i]);
  });
  say(start, "compiled by NVRTC");
  for (std::size_t i = 0; i < cases.size(); ++i) keep_text(options, i, cases[i], outcomes[i]);
  if (options.on_gpu) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (outcomes[i].refused.empty()) run_on_gpu(expected.at(cases[i].base.get()), &outcomes[i]);
    }
    say(start, "ran on the GPU");
  } else {
    pool.for_each(cases.size(), [&](std::size_t i) {
      if (outcomes[i].refused.empty()) run_on_host(expected.at(cases[i].base.get()), &outcomes[i]);
    });
    say(start, "ran on the host");
  }
  std::vector<Row> rows = tally(cases, outcomes, options.on_gpu);
  for (Row& row : nvrtc_rows(cases, outcomes)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace prunerc::bench
