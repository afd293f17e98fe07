// The promise of derive: whatever it makes of an operator computes the same, at ragged extents and on
// random numbers. The oracle runs both in double and shares nothing with the fields that forms are
// checked in.
#include "search/algebra/derive.h"

#include "ir/interp/bounded_run.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/machines.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using search::algebra::Derived;
using search::algebra::DeriveOptions;
using search::algebra::DeriveReport;
using search::algebra::NumericClass;

constexpr int64_t kExtents[] = {1, 2, 7, 13, 31};
/// Iterations of all axes of a chain together.
constexpr int64_t kMostIterations = 1500;
/// Of what single precision may be off by; double rounds 2^-29 times as much.
constexpr double kDoubleShare = 0x1p-20;

// All forms that are equal, however they round, of a small bank; the time limit is never reached.
DeriveOptions all_forms() {
  DeriveOptions options;
  options.numerics = NumericClass::kLoose;
  options.keep = 3;
  options.seconds = 60;
  options.bank = 256;
  return options;
}

// Sums of products, one after the other, with scales, further summands and divisors between: chains
// that an order, a hoisted factor or a product that is multiplied out may shorten.
class Chain {
 public:
  explicit Chain(Rng& rng) : rng_(rng) {
    int64_t iterations = 1;
    const auto num_axes = static_cast<std::size_t>(rng.between(2, 4));
    for (std::size_t a = 0; a < num_axes; ++a) {
      const int64_t extent = kExtents[rng.below(std::size(kExtents))];
      extents_.push_back(iterations * extent <= kMostIterations ? extent : 2);
      iterations *= extents_.back();
    }
  }

  std::string text() {
    Axes axes = subset(all());
    std::string value = input(axes), lets;
    const auto num_steps = rng_.between(2, 4);
    for (int64_t step = 0; step < num_steps; ++step) {
      std::string sum = multiply(value, axes);
      const std::string name = step + 1 == num_steps ? "Y" : fmt::format("t{}", step);
      value = fmt::format("{}[{}]", name, names(axes));
      lets += fmt::format("  {}{} = {};\n", name == "Y" ? "" : "let ", value, then(sum, axes));
    }
    return fmt::format("op p({}) -> (Y: f32[{}]) {{\n{}}}", inputs_, shape(axes), lets);
  }

 private:
  using Axes = std::vector<std::size_t>;  // ascending, never empty

  Axes all() const {
    Axes out;
    for (std::size_t a = 0; a < extents_.size(); ++a) out.push_back(a);
    return out;
  }

  Axes subset(const Axes& of) {
    Axes out;
    while (out.empty()) {
      for (const std::size_t a : of) {
        if (rng_.chance(0.6)) out.push_back(a);
      }
    }
    return out;
  }

  std::string names(const Axes& axes) const {
    std::string out;
    for (const std::size_t a : axes) out += fmt::format("{}i{}", out.empty() ? "" : ",", a);
    return out;
  }

  std::string shape(const Axes& axes) const {
    std::string out;
    for (const std::size_t a : axes) {
      out += fmt::format("{}{}", out.empty() ? "" : ",", extents_[a]);
    }
    return out;
  }

  std::string input(const Axes& axes) {
    const std::string name = fmt::format("F{}", num_inputs_++);
    inputs_ += fmt::format("{}{}: f32[{}]", inputs_.empty() ? "" : ", ", name, shape(axes));
    return fmt::format("{}[{}]", name, names(axes));
  }

  // Times an input, summed over some of the axes, which `axes` loses.
  std::string multiply(const std::string& value, Axes& axes) {
    const Axes others = subset(all());
    const std::string product = fmt::format("{} * {}", value, input(others));
    Axes both, summed;
    std::set_union(axes.begin(), axes.end(), others.begin(), others.end(),
                   std::back_inserter(both));
    axes = subset(both);
    std::set_difference(both.begin(), both.end(), axes.begin(), axes.end(),
                        std::back_inserter(summed));
    return summed.empty() ? product : fmt::format("sum[{}] {}", names(summed), product);
  }

  std::string then(const std::string& sum, const Axes& axes) {
    switch (rng_.between(0, 5)) {
      case 0: return fmt::format("({}) * 0.375", sum);
      case 1: return fmt::format("({}) + {}", sum, input(subset(axes)));
      case 2: {
        const std::string by = input(subset(axes));
        return fmt::format("({}) / ({} * {} + 1)", sum, by, by);
      }
      case 3: return fmt::format("max({}, 0)", sum);
      default: return sum;
    }
  }

  Rng& rng_;
  std::vector<int64_t> extents_;
  std::string inputs_;
  int num_inputs_ = 0;
};

Program compile_or_die(const std::string& text) {
  lang::CompileInput input;
  input.file_name = "chain.prn";
  input.text = text;
  const lang::LangResult compiled = lang::compile(input);
  INFO(text << "\n" << compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

std::vector<Tensor> normal_inputs(const Program& program, Rng& rng) {
  std::vector<Tensor> inputs;
  for (const BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    inputs.push_back(random_normal(buffer.dtype, shape_of(buffer), rng));
  }
  return inputs;
}

bool agree(const Reference& a, const Reference& b) {
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) {
    return !std::isfinite(a.value) && !std::isfinite(b.value);
  }
  const double bound = a.bound + b.bound;
  return std::isinf(bound) || std::fabs(a.value - b.value) <= kDoubleShare * bound;
}

// "" if both give the same in double, else where they first differ.
std::string difference(const Program& spec, const Program& form,
                       const std::vector<Tensor>& inputs) {
  const auto wanted = run_bounded(spec, inputs);
  const auto found = run_bounded(form, inputs);
  if (!wanted.ok()) return "operator: " + wanted.error().message();
  if (!found.ok()) return "form: " + found.error().message();
  if (wanted->size() != found->size()) return "another number of outputs";
  for (std::size_t o = 0; o < wanted->size(); ++o) {
    if ((*wanted)[o].size() != (*found)[o].size()) return "an output of another size";
    for (std::size_t i = 0; i < (*wanted)[o].size(); ++i) {
      const Reference &a = (*wanted)[o][i], &b = (*found)[o][i];
      if (agree(a, b)) continue;
      return fmt::format("output {}, element {}: {} instead of {}", o, i, b.value, a.value);
    }
  }
  return "";
}

// How many forms the program has; fails where one computes something else.
std::size_t check_forms(const Program& program, const Target& target, Rng& rng) {
  INFO(print(program));
  const Result<DeriveReport> report = search::algebra::derive(program, target, all_forms());
  REQUIRE_OK(report);
  const std::vector<Tensor> inputs = normal_inputs(program, rng);
  for (const Derived& form : report->forms) {
    INFO(form.recipe << "\n" << print(form.program));
    CHECK(difference(program, form.program, inputs) == "");
  }
  return report->forms.size();
}

TEST_CASE("what is derived of random sums of products computes the same") {
  const Target target = testing::slow_machine();
  int with_forms = 0;
  for (int i = 0; i < num_cases(); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    INFO("seed " << seed);
    Rng rng(seed, 21);
    const Program program = compile_or_die(Chain(rng).text());
    with_forms += check_forms(program, target, rng) > 0 ? 1 : 0;
  }
  INFO(with_forms << " of " << num_cases() << " have a form");
  // Fewer say that the property is about nothing; a few cases alone may have none.
  CHECK((num_cases() < 20 || with_forms * 4 >= num_cases()));
}

TEST_CASE("what is derived of random programs computes the same") {
  const Target target = testing::slow_machine();
  int with_forms = 0;
  const int cases = num_cases(150);
  for (int i = 0; i < cases; ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    INFO("seed " << seed);
    Rng rng(seed, 22);
    GenPolicy policy;
    policy.min_ops = 2;
    policy.max_ops = 6;
    policy.max_elements = 128;
    policy.max_iterations = 1024;
    policy.odd_extents = 0.8;
    policy.only_f32 = true;
    policy.transcendental = rng.chance(0.3);
    policy.unusual = rng.chance(0.2);
    const Program program = random_program(rng, policy);
    with_forms += check_forms(program, target, rng) > 0 ? 1 : 0;
  }
  INFO(with_forms << " of " << cases << " have a form");
  CHECK((cases < 50 || with_forms * 25 >= cases));
}

TEST_CASE("random programs have the same forms each time") {
  const Target target = testing::slow_machine();
  for (int i = 0; i < num_cases(30); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 21);
    const Program program = compile_or_die(Chain(rng).text());
    INFO("seed " << seed << "\n" << print(program));
    const auto forms = [&] {
      const Result<DeriveReport> report = search::algebra::derive(program, target, all_forms());
      REQUIRE_OK(report);
      REQUIRE_FALSE(report->stopped);
      std::vector<std::string> out;
      for (const Derived& form : report->forms) {
        out.push_back(form.recipe + "\n" + print(form.program));
      }
      out.insert(out.end(), report->refused.begin(), report->refused.end());
      return out;
    };
    const std::vector<std::string> once = forms();
    CHECK(once == forms());
  }
}

}  // namespace
}  // namespace prunerc
