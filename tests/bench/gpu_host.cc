// The way to a GPU without one, in numbers: ./dev bench gpu_host [--programs N] [--bugs N]
// [--json OUT]. Programs for a GPU run on the host, under the race checker too, and must give what
// the interpreter gives; NVRTC compiles each; bugs planted in lowered programs must be noticed.
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/pipeline.h"
#include "ir/support/check.h"
#include "ir/support/parallel.h"
#include "search/sampler.h"
#include "search/space.h"
#include "tests/support/cuda_host_device.h"
#include "tests/support/gpu_bugs.h"
#include "tests/support/gpu_check.h"
#include "tests/support/gpu_programs.h"
#include "tests/support/operators.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace prunerc::bench {
namespace {

using codegen::HostChecker;
using testing::Expected;
using Clock = std::chrono::steady_clock;

struct Options {
  int programs = 400;
  int bugs = 30;
  uint64_t seed = 1;
  std::string arch = "sm_80";
};

// ---- One program on the host.

struct Program {
  std::string name, family;
  ir::Program base, scheduled;
};

/// "" if the kernels do what they should, else what was found.
std::string check_on_host(const codegen::Artifact& source, const Expected& expected,
                          HostChecker checker) {
  const runtime::JobOutcome outcome =
      testing::check_source_on_host(source, expected.input_bytes(), checker);
  if (outcome.measurement.status != runtime::MeasureStatus::kOk) {
    return std::string(to_string(outcome.measurement.status)) + ": " + outcome.measurement.detail;
  }
  return testing::difference(expected, outcome.outputs);
}

// ---- Programs: written by hand, and drawn from the search space of each operator.

std::string family_of(const std::string& name) {
  for (const char* family : {"matmul", "gemm", "conv", "pool", "softmax", "norm", "attention"}) {
    if (name.find(family) != std::string::npos) return family;
  }
  for (const char* word : {"sum", "max", "mean", "arg", "reduce", "min"}) {
    if (name.find(word) != std::string::npos) return "reduction";
  }
  return "other";
}

ir::Target target_for(const Options& options) {
  Result<ir::Target> target = ir::target_from_string("cuda-host:" + options.arch);
  PRUNERC_CHECK(target.ok(), "a target of the table");
  return *std::move(target);
}

// Up to `count` different programs of one operator.
std::vector<Program> draw(const testing::NamedProgram& op, int count, const Options& options) {
  std::vector<Program> out;
  const search::Task task = search::make_task(op.name, op.program, target_for(options));
  const Result<search::SearchSpace> space = search::make_space(task);
  if (!space.ok()) return out;
  Rng rng(options.seed);
  std::vector<Fingerprint> seen;
  for (int attempt = 0; attempt < 4 * count && static_cast<int>(out.size()) < count; ++attempt) {
    const int sketch = static_cast<int>(rng.below(space->sketches.size()));
    const search::Genome genome = search::random_genome(*space, sketch, rng);
    const Result<search::Candidate> candidate =
        search::instantiate(task, *space, sketch, genome.decisions);
    if (!candidate.ok()) continue;
    if (std::find(seen.begin(), seen.end(), candidate->fingerprint) != seen.end()) continue;
    seen.push_back(candidate->fingerprint);
    out.push_back(
        {fmt::format("{}/{}", op.name, space->sketches[static_cast<std::size_t>(sketch)].name),
         family_of(op.name), op.program, candidate->program});
  }
  return out;
}

std::vector<Program> all_programs(const Options& options) {
  std::vector<Program> out;
  for (const testing::GpuProgram& p : testing::gpu_programs()) {
    out.push_back({p.name, family_of(p.name), p.base, p.scheduled});
  }
  const std::vector<testing::NamedProgram> gallery = testing::operator_gallery();
  const int rest = options.programs - static_cast<int>(out.size());
  const int each =
      std::max(1, (rest + static_cast<int>(gallery.size()) - 1) / static_cast<int>(gallery.size()));
  for (const testing::NamedProgram& op : gallery) {
    for (Program& p : draw(op, each, options)) out.push_back(std::move(p));
  }
  if (static_cast<int>(out.size()) > options.programs) {
    out.resize(static_cast<std::size_t>(options.programs));
  }
  return out;
}

// ---- Rows.

struct Row {
  std::string name;
  double value = 0;
  std::string unit, note;
};

struct Tally {
  std::mutex mutex;
  int ok = 0;
  std::map<std::string, int> refused;  // by reason
  std::vector<std::string> failures;
  std::map<std::string, std::vector<double>> nvrtc_ms;
};

void check_program(const Program& p, const Options& options, Tally* tally) {
  const Result<codegen::Artifact> source =
      codegen::print_cuda_artifact(p.scheduled, target_for(options));
  const auto fail = [&](const std::string& what) {
    const std::lock_guard lock(tally->mutex);
    tally->failures.push_back(p.name + ": " + what);
  };
  if (!source.ok()) {
    const std::lock_guard lock(tally->mutex);
    ++tally->refused[std::string(diag_name(source.error().id())) + ": " +
                     source.error().message().substr(0, 90)];
    return;
  }
  const Result<Expected> expected = testing::expected_outputs(p.base, options.seed);
  if (!expected.ok()) return fail("interpreter: " + expected.error().message());
  for (const HostChecker checker : {HostChecker::kNone, HostChecker::kRace}) {
    const std::string found = check_on_host(*source, *expected, checker);
    if (!found.empty())
      return fail((checker == HostChecker::kRace ? "race checker: " : "") + found);
  }
  const auto start = Clock::now();
  const Result<codegen::Cubin> cubin = codegen::compile_cubin(source->bytes, options.arch, {});
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (!cubin.ok() && cubin.error().id() != Diag::kNvrtcMissing) {
    return fail(cubin.error().message());
  }
  const std::lock_guard lock(tally->mutex);
  ++tally->ok;
  if (cubin.ok()) tally->nvrtc_ms[p.family].push_back(ms);
}

std::vector<Row> program_rows(const Options& options) {
  const std::vector<Program> programs = all_programs(options);
  Tally tally;
  ThreadPool pool(0);
  pool.for_each(programs.size(),
                [&](std::size_t i) { check_program(programs[i], options, &tally); });
  for (const auto& [reason, n] : tally.refused) fmt::print("  refused {}: {}\n", n, reason);
  for (const std::string& what : tally.failures) fmt::print("  FAILED {}\n", what.substr(0, 400));
  int num_refused = 0;
  for (const auto& [reason, n] : tally.refused) num_refused += n;
  std::vector<Row> rows = {
      {"programs", static_cast<double>(programs.size()) - num_refused, "programs",
       fmt::format("{} more were refused", num_refused)},
      {"programs_ok", static_cast<double>(tally.ok), "programs", "values, races"}};
  for (auto& [family, ms] : tally.nvrtc_ms) {
    std::sort(ms.begin(), ms.end());
    rows.push_back({"nvrtc_ms/" + family, ms[ms.size() / 2], "ms",
                    fmt::format("median of {}, most {:.0f}", ms.size(), ms.back())});
  }
  if (tally.nvrtc_ms.empty()) fmt::print("  NVRTC was not found: nothing compiled for a GPU\n");
  return rows;
}

// ---- Planted bugs.

struct Planted {
  std::string name;
  codegen::Artifact source;
  Expected expected;
};

// One bug at a random site of a random program; nothing if that has no text.
std::optional<Planted> plant_one(const std::vector<testing::GpuProgram>& programs,
                                 const Options& options, Rng& rng) {
  const testing::GpuProgram& p = programs[rng.below(programs.size())];
  const auto bug = static_cast<testing::GpuBug>(rng.below(testing::kNumGpuBugs));
  const ir::Target target = target_for(options);
  const Result<ir::Program> lowered = codegen::lower_gpu(p.scheduled, target);
  if (!lowered.ok()) return std::nullopt;
  const int num_sites = testing::count_sites(*lowered, bug);
  if (num_sites == 0) return std::nullopt;
  const int site = static_cast<int>(rng.below(static_cast<uint64_t>(num_sites)));
  const Result<codegen::Artifact> right = codegen::print_lowered_cuda(*lowered, target, "k");
  const Result<codegen::Artifact> source =
      codegen::print_lowered_cuda(testing::plant(*lowered, bug, site), target, "k");
  const Result<Expected> expected = testing::expected_outputs(p.base, options.seed);
  if (!right.ok() || !source.ok() || !expected.ok()) return std::nullopt;
  // Conditions of shuffles do not reach the text.
  if (right->bytes == source->bytes) return std::nullopt;
  return Planted{fmt::format("{} {} of {} in {}", to_string(bug), site + 1, num_sites, p.name),
                 *source, *expected};
}

std::vector<Row> bug_rows(const Options& options) {
  const std::vector<testing::GpuProgram> programs = testing::gpu_programs();
  Rng rng(options.seed, 7);
  int planted = 0, caught = 0;
  std::vector<std::string> silent, seen;
  for (int attempt = 0; attempt < 50 * options.bugs && planted < options.bugs; ++attempt) {
    const std::optional<Planted> bug = plant_one(programs, options, rng);
    if (!bug || std::find(seen.begin(), seen.end(), bug->name) != seen.end()) continue;
    seen.push_back(bug->name);
    ++planted;
    std::string by;
    for (const HostChecker checker :
         {HostChecker::kNone, HostChecker::kRace, HostChecker::kBounds}) {
      const std::string found = check_on_host(bug->source, bug->expected, checker);
      const char* const way = checker == HostChecker::kNone   ? "values"
                              : checker == HostChecker::kRace ? "races"
                                                              : "bounds";
      if (!found.empty()) by += (by.empty() ? "" : ", ") + std::string(way);
    }
    fmt::print("  {:<56} {}\n", bug->name, by.empty() ? "NOT NOTICED" : by);
    if (by.empty()) {
      silent.push_back(bug->name);
    } else {
      ++caught;
    }
  }
  return {{"planted_bugs", static_cast<double>(planted), "bugs", ""},
          {"planted_bugs_caught", static_cast<double>(caught), "bugs",
           fmt::format("{} without effect", silent.size())}};
}

int run(const Options& options, const std::string& only, const std::string& json) {
  std::vector<Row> rows;
  if (only.empty() || only == "programs") rows = program_rows(options);
  if (only.empty() || only == "bugs") {
    for (Row& row : bug_rows(options)) rows.push_back(std::move(row));
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    fmt::print("{:<32} {:>10.4g} {:<10} {}\n", row.name, row.value, row.unit, row.note);
    out.push_back(
        {{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"note", row.note}});
  }
  if (json.empty()) return 0;
  std::ofstream file(json);
  file << nlohmann::ordered_json{{"bench", "gpu_host"}, {"arch", options.arch}, {"rows", out}}.dump(
              1)
       << "\n";
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  prunerc::bench::Options options;
  std::string only, json;
  CLI::App app("programs for a GPU on the host");
  app.add_option("--only", only, "programs or bugs");
  app.add_option("--programs", options.programs, "programs, those written by hand included");
  app.add_option("--bugs", options.bugs, "planted bugs");
  app.add_option("--arch", options.arch, "architecture that NVRTC compiles for");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(options, only, json);
}
