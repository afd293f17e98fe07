#include "ir/fpv/fpv.h"
#include "ir/interp/interpreter.h"
#include "search/algebra/derive.h"
#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/programs.h"
#include "tests/support/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::bench {
namespace {

using search::algebra::Derived;
using search::algebra::NumericClass;

// The programs at extents at which each is run whole.
const std::vector<AlgebraCase>& small_cases() {
  static const std::vector<AlgebraCase> cases = [] {
    const std::string file = "std/algebra.prn";
    const std::map<std::string, std::string> mkn = {{"M", "3"}, {"K", "5"}, {"N", "4"}};
    const std::map<std::string, std::string> mknr = {
        {"M", "3"}, {"K", "5"}, {"N", "4"}, {"R", "2"}};
    const std::map<std::string, std::string> attention = {
        {"H", "2"}, {"T", "3"}, {"S", "5"}, {"E", "4"}};
    return std::vector<AlgebraCase>{
        {"lora_merged", file, "lora_merged", mknr},
        {"lora_added", file, "lora_added", mknr},
        {"chain3", file, "chain3", {{"N", "5"}}},
        {"product_row_sums", file, "product_row_sums", {{"N", "5"}}},
        {"linear_attention", file, "linear_attention", {{"T", "5"}, {"E", "3"}}},
        {"rmsnorm_linear", file, "rmsnorm_linear", mkn},
        {"layernorm_linear", file, "layernorm_linear", mkn},
        {"grouped_decode",
         file,
         "grouped_decode",
         {{"H", "6"}, {"G", "3"}, {"S", "5"}, {"E", "4"}}},
        {"raw_attention", file, "raw_attention", attention},
        {"qk_norm", file, "qk_norm", attention},
        {"outer_then_sum", file, "outer_then_sum", {{"N", "5"}, {"D", "3"}}},
    };
  }();
  return cases;
}

struct Form {
  std::string name;
  ir::Program spec, program;
};

std::vector<Form> small_forms() {
  const ir::Target target = *ir::target_from_string("cpu");
  std::vector<Form> out;
  for (const AlgebraCase& c : small_cases()) {
    const Operator op = load_case(c);
    const Result<search::algebra::DeriveReport> report =
        search::algebra::derive(op.program, target, {.numerics = NumericClass::kLoose});
    PRUNERC_CHECK(report.ok(), "a case of the benchmark is lifted");
    for (const Derived& form : report->forms) out.push_back({c.name, op.program, form.program});
  }
  return out;
}

std::vector<ir::Tensor> draw_inputs(const ir::Program& program, uint64_t seed) {
  std::vector<ir::Tensor> inputs;
  for (const ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    ir::Tensor tensor(buffer.dtype, ir::shape_of(buffer));
    Rng rng(seed, inputs.size());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, 0.25 + rng.uniform());
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// The oracle: more than a hundredth of an element apart, by the interpreter, which shares nothing with
// finite fields. What it cannot run is no mutant.
bool is_wrong(const ir::Program& spec, const ir::Program& mutant) {
  for (const uint64_t seed : {1, 2}) {
    const std::vector<ir::Tensor> inputs = draw_inputs(spec, seed);
    const auto wanted = ir::interpret(spec, inputs);
    const auto found = ir::interpret(mutant, inputs);
    if (!wanted.ok() || !found.ok()) return false;
    for (std::size_t o = 0; o < wanted->size(); ++o) {
      for (int64_t i = 0; i < (*wanted)[o].num_elements(); ++i) {
        const double a = (*wanted)[o].get(i), b = (*found)[o].get(i);
        if (!std::isfinite(b) || std::fabs(a - b) > 1e-2 * std::max(1e-3, std::fabs(a)))
          return true;
      }
    }
  }
  return false;
}

bool accepts(const Form& form, const ir::Program& program, uint64_t seed) {
  ir::FpvOptions options;
  options.log2_error = -20;
  options.seed = seed;
  return ir::check_equivalent(form.spec, program, options).ok();
}

// One test at the published prime, 167 = 2*83 + 1, with random inputs (the published ones are not).
bool accepts_small(const Form& form, const ir::Program& program, ir::PrimeRange primes,
                   uint64_t seed, double* log2_error = nullptr) {
  ir::FpvOptions options;
  options.log2_error = -1e-9;
  options.seed = seed;
  options.primes = primes;
  options.max_tests = 1;
  const ir::FpvVerdict verdict = ir::check_equivalent(form.spec, program, options);
  if (log2_error != nullptr) *log2_error = verdict.log2_error;
  return verdict.ok();
}

constexpr uint32_t kPrimes[] = {23, 47, 167};
constexpr ir::PrimeRange range_of(uint32_t prime) { return {prime, prime + 1}; }

std::vector<Row> mutant_rows(const std::vector<Form>& forms, std::vector<Form>* wrong) {
  int num_accepted = 0, num_small = 0;
  Rng rng(kBoundSeed);
  for (int round = 0; round < 12; ++round) {
    for (const Form& form : forms) {
      for (int kind = 0; kind < testing::kNumMutantKinds; ++kind) {
        const auto mutant =
            testing::mutate(form.program, static_cast<testing::MutantKind>(kind), rng);
        if (!mutant || !is_wrong(form.spec, *mutant)) continue;
        wrong->push_back({form.name, form.spec, *mutant});
      }
    }
  }
  for (const Form& form : *wrong) {
    bool any = false, any_small = false;
    for (const uint64_t seed : {1, 2, 3}) {
      any = any || accepts(form, form.program, seed);
      any_small = any_small || accepts_small(form, form.program, range_of(167), seed);
    }
    num_accepted += any ? 1 : 0;
    num_small += any_small ? 1 : 0;
  }
  return {{.name = "mutants",
           .value = static_cast<double>(wrong->size()),
           .unit = "programs",
           .goal = 500,
           .note = "derived forms with one fault, wrong by the interpreter"},
          {.name = "mutants_accepted",
           .value = static_cast<double>(num_accepted),
           .unit = "programs",
           .goal = 0,
           .note = "at 2^-20, by any of three seeds",
           .at_most = true},
          {.name = "mutants_accepted_167",
           .value = static_cast<double>(num_small),
           .unit = "programs",
           .goal = {},
           .note = "the same by one test at p = 167, with random inputs"}};
}

// How often a wrong program passes one test, beside the bound that the verdict prints.
std::vector<Row> rate_rows(const std::vector<Form>& forms, const std::vector<Form>& wrong) {
  std::vector<Row> rows;
  for (const uint32_t prime : kPrimes) {
    // A test that says no to everything would look sure.
    int num_right = 0, num_asked = 0;
    for (const Form& form : forms) {
      for (uint64_t seed = 1; seed <= 50; ++seed) {
        ++num_asked;
        num_right += accepts_small(form, form.program, range_of(prime), seed) ? 1 : 0;
      }
    }
    rows.push_back({.name = fmt::format("right_accepted_{}", prime),
                    .value = static_cast<double>(num_right) / num_asked,
                    .unit = "of tests",
                    .goal = {},
                    .note = "of right forms, beside which the next row is to be read"});
    int64_t num_tests = 0, num_passed = 0, num_above = 0;
    double bound = 0;
    for (std::size_t i = 0; i < wrong.size(); i += std::max<std::size_t>(1, wrong.size() / 60)) {
      int64_t passed = 0;
      double log2_error = 0, own = 0;
      constexpr int kSeeds = 300;
      for (int seed = 1; seed <= kSeeds; ++seed) {
        const bool ok = accepts_small(wrong[i], wrong[i].program, range_of(prime),
                                      static_cast<uint64_t>(seed), &log2_error);
        passed += ok ? 1 : 0;
        if (ok) own = std::exp2(std::min(0.0, log2_error));
      }
      num_tests += kSeeds;
      num_passed += passed;
      bound = std::max(bound, own);
      // Three standard deviations above its own bound.
      const double rate = static_cast<double>(passed) / kSeeds;
      if (passed > 0 && rate > own + 3 * std::sqrt(own * (1 - own) / kSeeds) + 1e-9) ++num_above;
    }
    rows.push_back(
        {.name = fmt::format("false_accepts_{}", prime),
         .value =
             static_cast<double>(num_passed) / static_cast<double>(std::max<int64_t>(1, num_tests)),
         .unit = "of tests",
         .goal = {},
         .note = fmt::format("{} of {} tests of wrong programs; largest printed bound {:.3f}",
                             num_passed, num_tests, bound)});
    rows.push_back({.name = fmt::format("above_bound_{}", prime),
                    .value = static_cast<double>(num_above),
                    .unit = "programs",
                    .goal = 0,
                    .note = "whose rate is above the bound by three standard deviations",
                    .at_most = true});
  }
  return rows;
}

Row right_row(const std::vector<Form>& forms) {
  int64_t num_refused = 0, num_checked = 0;
  for (uint64_t seed = 1; num_checked < kRightChecks; ++seed) {
    for (const Form& form : forms) {
      ++num_checked;
      num_refused += accepts(form, form.program, seed) ? 0 : 1;
    }
  }
  return {.name = "right_refused",
          .value = static_cast<double>(num_refused),
          .unit = "checks",
          .goal = 0,
          .note = fmt::format("of {} checks of {} right forms, another seed each", num_checked,
                              forms.size()),
          .at_most = true};
}

}  // namespace

std::vector<Row> bound_rows() {
  const std::vector<Form> forms = small_forms();
  std::vector<Form> wrong;
  std::vector<Row> rows = mutant_rows(forms, &wrong);
  for (Row& row : rate_rows(forms, wrong)) rows.push_back(std::move(row));
  rows.push_back(right_row(forms));
  return rows;
}

}  // namespace prunerc::bench
