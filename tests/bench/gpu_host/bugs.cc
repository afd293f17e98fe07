#include "codegen/codegen.h"
#include "codegen/pipeline.h"
#include "ir/fpv/fpv.h"
#include "ir/support/parallel.h"
#include "ir/support/rng.h"
#include "tests/bench/gpu_host/cases.h"
#include "tests/support/gpu_bugs.h"
#include "tests/support/gpu_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace prunerc::bench {
namespace {

using codegen::HostChecker;

struct Planted {
  std::string name;
  ir::Program base, lowered;
  codegen::Artifact source;
};

/// What the checkers say of a bug.
struct Finding {
  std::string by;          // who noticed it
  bool has_effect = true;  // may it matter, for all that is known?
};

// A program with all that planting needs, if it can be lowered.
struct Field {
  std::string name;
  ir::Program base, lowered;
  codegen::Artifact source;
};

std::vector<Field> fields_of(const GpuHostOptions& options) {
  const ir::Target target = host_target(options.arch.empty() ? "sm_80" : options.arch);
  std::vector<Field> out;
  for (const testing::GpuProgram& p : testing::gpu_programs()) {
    Result<ir::Program> lowered = codegen::lower_gpu(p.scheduled, target);
    if (!lowered.ok()) continue;
    Result<codegen::Artifact> source = codegen::print_lowered_cuda(*lowered, target, "k");
    if (!source.ok()) continue;
    out.push_back({p.name, p.base, *std::move(lowered), *std::move(source)});
  }
  return out;
}

// Is there a copy that a wait waits for?
bool has_async_copy(const codegen::Artifact& source) {
  return source.bytes.find("pr_cp_async<") != std::string::npos ||
         source.bytes.find("pr_cp_async_zfill<") != std::string::npos;
}

// One bug of a kind at a random site of a random program; nothing if that has no such site, or if
// the text stays as it was (conditions of shuffles do not reach it).
std::optional<Planted> plant_one(const Field& field, testing::GpuBug bug,
                                 const GpuHostOptions& options, Rng& rng) {
  if (bug == testing::GpuBug::kWeakWait && !has_async_copy(field.source)) return std::nullopt;
  const int num_sites = testing::count_sites(field.lowered, bug);
  if (num_sites == 0) return std::nullopt;
  const int site = static_cast<int>(rng.below(static_cast<uint64_t>(num_sites)));
  const ir::Target target = host_target(options.arch.empty() ? "sm_80" : options.arch);
  ir::Program wrong = testing::plant(field.lowered, bug, site);
  const Result<codegen::Artifact> source = codegen::print_lowered_cuda(wrong, target, "k");
  if (!source.ok() || source->bytes == field.source.bytes) return std::nullopt;
  return Planted{fmt::format("{} {} of {} in {}", to_string(bug), site + 1, num_sites, field.name),
                 field.base, std::move(wrong), *source};
}

// The kinds take turns, the programs come at random.
std::vector<Planted> plant_all(const GpuHostOptions& options, int count) {
  const std::vector<Field> fields = fields_of(options);
  Rng rng(options.seed, 7);
  std::vector<Planted> out;
  std::set<std::string> seen;
  for (int attempt = 0; attempt < 400 * count && static_cast<int>(out.size()) < count; ++attempt) {
    const auto bug = static_cast<testing::GpuBug>(out.size() % testing::kNumGpuBugs);
    const Field& field = fields[rng.below(fields.size())];
    std::optional<Planted> planted = plant_one(field, bug, options, rng);
    if (planted && seen.insert(planted->name).second) out.push_back(*std::move(planted));
  }
  return out;
}

// Inputs that leave a bug little room: small numbers keep sums exact, large ones are seldom equal,
// and exp of the largest overflows where a softmax misses its maximum.
std::vector<testing::Expected> inputs_for(const Planted& bug, uint64_t seed) {
  constexpr int64_t kLargest[] = {3, 100, 1000, 3};
  std::vector<testing::Expected> out;
  for (const int64_t largest : kLargest) {
    Result<testing::Expected> one = testing::expected_outputs(bug.base, seed++, largest);
    if (one.ok()) out.push_back(*std::move(one));
  }
  return out;
}

Finding examine(const Planted& bug, const GpuHostOptions& options) {
  Finding out;
  const std::vector<testing::Expected> inputs = inputs_for(bug, options.seed);
  for (const auto& [checker, way] :
       {std::pair{HostChecker::kNone, "values"}, std::pair{HostChecker::kRace, "races"},
        std::pair{HostChecker::kBounds, "bounds"}}) {
    std::vector<const testing::Expected*> some;
    for (const testing::Expected& one : inputs) some.push_back(&one);
    // Checkers look at accesses, for which one input is as good as several.
    if (checker != HostChecker::kNone) some.resize(std::min<std::size_t>(some.size(), 1));
    if (check_on_host(bug.source, some, checker).empty()) continue;
    out.by += (out.by.empty() ? "" : ", ") + std::string(way);
  }
  // If threads took turns, is what it computes still right?
  if (out.by.empty()) out.has_effect = !ir::check_equivalent(bug.base, bug.lowered).ok();
  return out;
}

}  // namespace

std::vector<Row> bug_rows(const GpuHostOptions& options) {
  // Some sites turn out to have no effect.
  const std::vector<Planted> bugs = plant_all(options, options.bugs + options.bugs / 10);
  ThreadPool pool(0);
  const std::vector<Finding> found =
      pool.map<Finding>(bugs.size(), [&](std::size_t i) { return examine(bugs[i], options); });
  int caught = 0, silent = 0;
  for (std::size_t i = 0; i < bugs.size(); ++i) {
    const bool noticed = !found[i].by.empty();
    caught += noticed ? 1 : 0;
    silent += !noticed && !found[i].has_effect ? 1 : 0;
    fmt::print("  {:<56} {}\n", bugs[i].name,
               noticed               ? found[i].by
               : found[i].has_effect ? "NOT NOTICED"
                                     : "no effect: equal, no race");
  }
  const double num_bugs = static_cast<double>(bugs.size()) - silent;
  return {{"planted_bugs", num_bugs, "bugs", std::nullopt, "sites without effect left out"},
          {"planted_bugs_caught", static_cast<double>(caught), "bugs", num_bugs,
           "by values in some order, the race checker or the bounds checker"},
          {"planted_bugs_silent", static_cast<double>(silent), "sites", std::nullopt,
           fmt::format("of {} without effect where threads take turns; a race that nobody noticed "
                       "would be one of them",
                       bugs.size())}};
}

}  // namespace prunerc::bench
