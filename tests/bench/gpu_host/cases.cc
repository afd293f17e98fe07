#include "tests/bench/gpu_host/cases.h"

#include "codegen/codegen.h"
#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/property/swizzled_products.h"
#include "tests/support/gpu_programs.h"
#include "tests/support/half_products.h"
#include "tests/support/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace prunerc::bench {
namespace {

/// Draws for one program that is wanted: some are no programs, some were drawn before.
constexpr int kAttempts = 6;

std::string family_of(const std::string& name) {
  for (const char* family : {"matmul", "gemm", "conv", "pool", "softmax", "norm", "attention"}) {
    if (name.find(family) != std::string::npos) return family;
  }
  for (const char* word : {"sum", "max", "mean", "arg", "reduce", "min", "moments", "total"}) {
    if (name.find(word) != std::string::npos) return "reduction";
  }
  return "other";
}

/// Of the programs, if none asks for an architecture: those for Hopper's instructions.
constexpr int kHopperShare = 4;
/// And for these in tf32, which nobody else may use.
constexpr int kTf32Share = 40;

bool uses_hopper(const HostCase& c) {
  const Result<codegen::Artifact> source =
      codegen::print_cuda_artifact(c.scheduled, host_target(c.arch));
  return source.ok() && source->bytes.find("pr_wgmma") != std::string::npos;
}

// sm_80 if the program can be printed for it, else sm_90a.
std::string arch_of(const ir::Program& scheduled) {
  const bool is_plain = codegen::print_cuda_artifact(scheduled, host_target("sm_80")).ok();
  const bool is_hopper =
      !is_plain && codegen::print_cuda_artifact(scheduled, host_target("sm_90a")).ok();
  return is_hopper ? "sm_90a" : "sm_80";
}

// Draws from the search space of one operator.
class Drawing {
 public:
  Drawing(const testing::NamedProgram& op, const std::string& arch, uint64_t seed)
      : op_(op),
        arch_(arch.substr(0, arch.find(' '))),
        task_(search::make_task(op.name, op.program, host_target(arch))),
        base_(std::make_shared<const ir::Program>(op.program)),
        rng_(seed) {
    Result<search::SearchSpace> space = search::make_space(task_);
    if (space.ok()) space_ = *std::move(space);
  }

  // Another program; sketches take turns. Nothing if the space seems to have no more.
  std::optional<HostCase> next(bool (*fit)(const HostCase&)) {
    for (int attempt = 0; attempt < kAttempts && !space_.sketches.empty(); ++attempt) {
      const int sketch = static_cast<int>(turn_++ % space_.sketches.size());
      const search::Genome genome = search::random_genome(space_, sketch, rng_);
      Result<search::Candidate> candidate =
          search::instantiate(task_, space_, sketch, genome.decisions);
      if (!candidate.ok() || !seen_.insert(candidate->fingerprint.to_string()).second) continue;
      const std::string op = op_.name.substr(0, op_.name.find(' '));
      HostCase made{
          fmt::format("{}/{}", op_.name, space_.sketches[static_cast<std::size_t>(sketch)].name),
          op,
          family_of(op),
          arch_,
          base_,
          std::move(candidate->program)};
      if (fit(made)) return made;
    }
    return std::nullopt;
  }

 private:
  const testing::NamedProgram& op_;
  std::string arch_;
  search::Task task_;
  std::shared_ptr<const ir::Program> base_;
  search::SearchSpace space_;
  Rng rng_;
  std::size_t turn_ = 0;
  std::set<std::string> seen_;
};

}  // namespace

ir::Target host_target(const std::string& arch) {
  Result<ir::Target> target = ir::target_from_string("cuda-host:" + arch);
  PRUNERC_CHECK(target.ok(), "a target of the table");
  return *std::move(target);
}

namespace {

// From each operator in turn until there are `wanted`, or no more. Only those that are `fit`. Options
// of the target may follow the architecture.
void draw(const std::vector<testing::NamedProgram>& ops, const std::string& arch, uint64_t seed,
          std::size_t wanted, bool (*fit)(const HostCase&), std::vector<HostCase>* out) {
  std::vector<Drawing> drawings;
  for (const testing::NamedProgram& op : ops) drawings.emplace_back(op, arch, seed);
  for (bool is_dry = false; !is_dry && out->size() < wanted;) {
    is_dry = true;
    for (Drawing& drawing : drawings) {
      std::optional<HostCase> next = out->size() < wanted ? drawing.next(fit) : std::nullopt;
      if (!next) continue;
      out->push_back(*std::move(next));
      is_dry = false;
    }
  }
}

// Tiles in panels of each width; results through shared memory or not, sums whole or in parts.
void add_swizzled(const GpuHostOptions& options, std::vector<HostCase>* out) {
  const std::string arch = options.arch.empty() ? "sm_80" : options.arch;
  const auto base = std::make_shared<const ir::Program>(testing::swizzled_product());
  for (testing::SwizzledProduct& made :
       testing::swizzled_products(host_target(arch), options.seed)) {
    out->push_back({"gemm_swizzled/" + made.name, "gemm_swizzled", "gemm", arch, base,
                    std::move(made.candidate.program)});
  }
}

// The default of each sketch that keeps attention's rows on chip, of which sketches in turn would give few.
void add_chains(const GpuHostOptions& options, std::vector<HostCase>* out) {
  const std::string arch = options.arch.empty() ? "sm_90a" : options.arch;
  for (auto* operators :
       {testing::group_chained_operators, testing::group_split_chained_operators}) {
    for (const testing::NamedProgram& op : operators()) {
      const search::Task task = search::make_task(op.name, op.program, host_target(arch));
      const Result<search::SearchSpace> space = search::make_space(task);
      if (!space.ok()) continue;
      const auto base = std::make_shared<const ir::Program>(op.program);
      for (int s = 0; s < std::ssize(space->sketches); ++s) {
        const std::string& sketch = space->sketches[static_cast<std::size_t>(s)].name;
        if (sketch.find("+chain") == std::string::npos) continue;
        Result<search::Candidate> made =
            search::instantiate(task, *space, s, search::default_genome(*space, s).decisions);
        if (!made.ok()) continue;
        out->push_back(
            {op.name + "/" + sketch, op.name, "attention", arch, base, std::move(made->program)});
      }
    }
  }
}

}  // namespace

std::vector<HostCase> host_cases(const GpuHostOptions& options) {
  std::vector<HostCase> out;
  for (const testing::GpuProgram& p : testing::gpu_programs()) {
    const std::string op = p.name.substr(0, p.name.rfind("_ragged"));
    const std::string arch = options.arch.empty() ? arch_of(p.scheduled) : options.arch;
    out.push_back({p.name, op, family_of(op), arch, std::make_shared<const ir::Program>(p.base),
                   p.scheduled});
  }
  add_swizzled(options, &out);
  add_chains(options, &out);
  std::vector<testing::NamedProgram> all = testing::tensor_operators();
  const std::size_t wanted = static_cast<std::size_t>(std::max(options.programs, 0));
  if (options.arch.empty()) {
    draw(testing::single_products(), "sm_90a allow_tf32=1", options.seed,
         out.size() + wanted / kTf32Share, uses_hopper, &out);
    std::vector<testing::NamedProgram> products = testing::half_products();
    products.insert(products.end(), all.begin(), all.end());
    for (auto* chained :
         {testing::group_chained_operators, testing::group_split_chained_operators}) {
      for (testing::NamedProgram& op : chained()) products.push_back(std::move(op));
    }
    draw(products, "sm_90a", options.seed, out.size() + wanted / kHopperShare, uses_hopper, &out);
  }
  for (testing::NamedProgram& op : testing::chained_operators()) all.push_back(std::move(op));
  for (testing::NamedProgram& op : testing::single_chained_operators()) {
    all.push_back(std::move(op));
  }
  for (testing::NamedProgram& op : testing::split_chained_operators()) all.push_back(std::move(op));
  for (testing::NamedProgram& op : testing::large_operators()) all.push_back(std::move(op));
  for (testing::NamedProgram& op : testing::operator_gallery()) all.push_back(std::move(op));
  draw(
      all, options.arch.empty() ? "sm_80" : options.arch, options.seed, wanted,
      [](const HostCase&) { return true; }, &out);
  if (out.size() > wanted) out.resize(wanted);
  return out;
}

}  // namespace prunerc::bench
