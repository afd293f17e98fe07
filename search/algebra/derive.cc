#include "search/algebra/derive.h"

#include "ir/equal.h"
#include "ir/support/hash.h"
#include "schedule/twin/shrink.h"
#include "search/algebra/axis.h"
#include "search/algebra/bank.h"
#include "search/algebra/cascade.h"
#include "search/algebra/form_check.h"
#include "search/algebra/lift.h"
#include "search/algebra/order.h"
#include "search/algebra/roofline.h"
#include "search/algebra/winograd.h"
#include "search/algebra/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace prunerc::search::algebra {
namespace {

/// Numbers are compared at larger extents than equality is, as long sums are where rounding shows:
/// the largest of these multiples that is not too much work (schedule::cost_of).
constexpr int64_t kNumericScales[] = {8, 4, 2, 1};
constexpr int64_t kNumericCost = 200'000;
/// Of the smallest pair: a second or so.
constexpr int64_t kSmallCost = 2'000'000;
/// Of what a form is called that has no rule to name it.
constexpr int kWordsDepth = 4;
/// Limits closer than this say nothing.
constexpr double kEqualLimits = 1.001;

int64_t cost_of(const SmallPair& pair) {
  return std::max(schedule::cost_of(pair.spec), schedule::cost_of(pair.form));
}

// A form before it is checked.
struct Draft {
  Lowered lowered;
  std::vector<Axis> axes;
  std::string recipe;
  RuleSet rules = 0;
  NumericClass claim = NumericClass::kStrict;
  Roofline cost;
};

class Derivation {
 public:
  Derivation(const ir::Program& spec, const ir::Target& target, const DeriveOptions& options)
      : program_(spec), target_(target), options_(options) {}

  Result<DeriveReport> run() {
    PRUNERC_TRY(const Spec spec, lift(program_));
    const Roofline cost = roofline(program_, target_);
    report_.spec_flops = cost.flops;
    report_.spec_bytes = cost.bytes;
    report_.spec_limit_ns = cost.limit_ns;
    if (spec.names_positions) {
      report_.refused.emplace_back(
          "all: a condition or digit names a position that small programs do not have");
    } else if (!spec.outputs.empty()) {
      seen_.insert(ir::fingerprint(program_).to_string());
      draft(spec);
      check_drafts(spec);
    }
    report_.seconds = elapsed();
    return std::move(report_);
  }

 private:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  // Says in the report that something was left out.
  bool is_late() {
    report_.stopped = report_.stopped || elapsed() > options_.seconds;
    return report_.stopped;
  }

  bool wants(Rule rule) const { return (options_.rules & static_cast<RuleSet>(rule)) != 0; }

  void draft(const Spec& spec) {
    if (wants(Rule::kOrder)) {
      add(spec, "intermediates chosen anew", static_cast<RuleSet>(Rule::kOrder),
          NumericClass::kStrict);
    }
    orders(spec, "", 0);
    small_windows(spec);
    cascades(spec);
    searched(spec);
    if (!wants(Rule::kAxis)) return;
    Spec joined = spec;
    if (const std::string words = join_products(joined); !words.empty()) {
      add(joined, words, static_cast<RuleSet>(Rule::kAxis), NumericClass::kStrict);
    }
    Spec factored = spec;
    const std::string words = factor_axes(factored);
    if (words.empty()) return;
    add(factored, words, static_cast<RuleSet>(Rule::kAxis), NumericClass::kStrict);
    orders(factored, words, static_cast<RuleSet>(Rule::kAxis));
  }

  // Whatever is put together from the inputs up.
  void searched(const Spec& spec) {
    if (!wants(Rule::kBank) || spec.num_lifted > options_.max_ops || is_late()) return;
    TermGraph graph = spec.graph;
    BankOptions options;
    options.max_ops = options_.max_ops;
    options.capacity = options_.bank;
    options.seconds = options_.seconds - elapsed();
    options.seed = options_.seed;
    const BankResult found = enumerate(spec, graph, options);
    report_.tried += found.tried;
    report_.filtered += found.filtered;
    for (const BankForm& form : found.forms) {
      Spec other = spec;
      other.graph = graph;
      std::string words;
      for (std::size_t i = 0; i < form.outputs.size(); ++i) {
        other.outputs[i].value = form.outputs[i];
        words += (words.empty() ? "" : ", ") + words_of(other, form.outputs[i], kWordsDepth);
      }
      if (!keeps_ranges(spec, other)) {
        report_.refused.push_back(words + ": exp or pow of what the operator takes none of");
        continue;
      }
      add(other, words, static_cast<RuleSet>(Rule::kBank), NumericClass::kNormal);
    }
  }

  void small_windows(const Spec& spec) {
    if (!wants(Rule::kWinograd) || options_.numerics < NumericClass::kLoose) return;
    for (const int m : {2, 4}) {
      Spec other = spec;
      const std::string words = winograd(other, m);
      if (words.empty()) return;
      add(other, words, static_cast<RuleSet>(Rule::kWinograd), NumericClass::kLoose);
    }
  }

  void cascades(const Spec& spec) {
    if (!wants(Rule::kCascade)) return;
    Spec other = spec;
    const std::string words = cascade(other, cascade_tile(spec));
    if (words.empty()) return;
    add(other, words, static_cast<RuleSet>(Rule::kCascade), NumericClass::kNormal);
    orders(other, words, static_cast<RuleSet>(Rule::kCascade), NumericClass::kNormal);
  }

  // `claim` is of what was done before.
  void orders(const Spec& spec, const std::string& before, RuleSet rules,
              NumericClass claim = NumericClass::kStrict) {
    if (!wants(Rule::kOrder)) return;
    for (const bool distribute : {false, true}) {
      for (const bool through_shared : {false, true}) {
        for (const double bytes_per_flop : {0.25, 4.0}) {
          if (is_late()) return;
          Spec other = spec;
          const std::string words = reorder(other, {.bytes_per_flop = bytes_per_flop,
                                                    .through_shared = through_shared,
                                                    .distribute = distribute});
          if (words.empty()) continue;
          add(other, before.empty() ? words : before + ", " + words,
              rules | static_cast<RuleSet>(Rule::kOrder),
              distribute ? NumericClass::kNormal : claim);
        }
      }
    }
  }

  // `claim` is what the rule does to rounding at best.
  void add(const Spec& spec, std::string recipe, RuleSet rules, NumericClass claim) {
    ++report_.tried;
    Result<Lowered> lowered = lower(spec);
    if (!lowered.ok()) return;
    if (!seen_.insert(ir::fingerprint(lowered->program).to_string()).second) return;
    const Roofline cost = roofline(lowered->program, target_);
    const bool is_cheaper =
        cost.limit_ns < report_.spec_limit_ns / kEqualLimits ||
        (cost.limit_ns < report_.spec_limit_ns * kEqualLimits && cost.flops < report_.spec_flops);
    if (!is_cheaper) {
      ++report_.filtered;
      return;
    }
    // The bank comes to the rules' forms with other names and operands the other way round.
    const bool is_known = std::any_of(drafts_.begin(), drafts_.end(), [&](const Draft& other) {
      return other.cost.flops == cost.flops && other.cost.bytes == cost.bytes;
    });
    if (rules == static_cast<RuleSet>(Rule::kBank) && is_known) return;
    drafts_.push_back({std::move(*lowered), spec.axes, std::move(recipe), rules, claim, cost});
  }

  void check_drafts(const Spec& spec) {
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      return a.cost.limit_ns < b.cost.limit_ns;
    });
    for (Draft& draft : drafts_) {
      if (static_cast<int>(report_.forms.size()) >= options_.keep || is_late()) break;
      Derived form;
      if (const std::string fault = fault_of(spec, draft, &form); !fault.empty()) {
        report_.refused.push_back(draft.recipe + ": " + fault);
        continue;
      }
      form.program = std::move(draft.lowered.program);
      form.recipe = std::move(draft.recipe);
      form.rules = draft.rules;
      form.flops = draft.cost.flops;
      form.bytes = draft.cost.bytes;
      form.limit_ns = draft.cost.limit_ns;
      ++report_.kept;
      report_.forms.push_back(std::move(form));
    }
  }

  // Why the form must not be used; "" and its verdict if it may.
  std::string fault_of(const Spec& spec, const Draft& draft, Derived* form) const {
    const Result<SmallPair> small = shrink_pair(program_, spec.loops, draft.lowered, draft.axes);
    if (!small.ok()) return small.error().message();
    if (cost_of(*small) > kSmallCost) return "too much work to be compared even at small extents";
    form->verdict = check_form(*small, options_.log2_error, options_.seed);
    if (!form->verdict.ok()) return ir::to_string(form->verdict);
    NumericVerdict numbers;
    for (const int64_t scale : kNumericScales) {
      const Result<SmallPair> pair =
          shrink_pair(program_, spec.loops, draft.lowered, draft.axes, scale);
      const int64_t most = scale > 1 ? kNumericCost : kSmallCost;
      if (!pair.ok() || cost_of(*pair) > most) continue;
      numbers = check_numerics(with_small_counts(*pair, spec, draft.axes, scale), options_.seed);
      if (numbers.is_known) break;
    }
    if (!numbers.numerics) return numbers.what.empty() ? "numbers were not compared" : numbers.what;
    // What errs no more than the operator may has the class of what was done to it.
    form->numerics = *numbers.numerics == NumericClass::kNormal
                         ? draft.claim
                         : std::max(draft.claim, *numbers.numerics);
    if (form->numerics <= options_.numerics) return "";
    return fmt::format("numbers are {} ({})", to_string(form->numerics), numbers.what);
  }

  const ir::Program& program_;
  const ir::Target& target_;
  const DeriveOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  DeriveReport report_;
  std::set<std::string> seen_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::string_view to_string(Rule rule) {
  switch (rule) {
    case Rule::kOrder: return "order";
    case Rule::kAxis: return "axis";
    case Rule::kBank: return "bank";
    case Rule::kWinograd: return "winograd";
    case Rule::kCascade: return "cascade";
  }
  PRUNERC_UNREACHABLE("rule");
}

std::string_view to_string(NumericClass numeric) {
  switch (numeric) {
    case NumericClass::kStrict: return "strict";
    case NumericClass::kNormal: return "normal";
    case NumericClass::kLoose: return "loose";
  }
  PRUNERC_UNREACHABLE("numeric class");
}

Result<DeriveReport> derive(const ir::Program& spec, const ir::Target& target,
                            const DeriveOptions& options) {
  return Derivation(spec, target, options).run();
}

}  // namespace prunerc::search::algebra
