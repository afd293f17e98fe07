// linear, rows, linear: probabilities are made of scores row by row, and both stay in the nest that
// sums values by them.
#include "ir/net/pass/closure.h"
#include "ir/net/pass/partition_rules.h"

#include <algorithm>

namespace prunerc::net {
namespace {

bool feeds(const Plan& plan, std::size_t from, std::size_t to) {
  const std::vector<std::size_t>& readers = plan.graph.readers[plan.net.calls[from].results[0]];
  return std::find(readers.begin(), readers.end(), to) != readers.end();
}

// A product with weights has a kernel of its own: what it gives is too large for a nest of two.
bool reads_const(const Plan& plan, std::size_t call) {
  const std::vector<std::size_t>& args = plan.net.calls[call].args;
  return std::any_of(args.begin(), args.end(),
                     [&](std::size_t arg) { return plan.graph.is_const[arg]; });
}

/// What lies between the second product and the first one.
struct Middle {
  std::vector<std::size_t> calls;  // the first product among them
  int num_products = 0, num_reductions = 0;
};

Middle middle_above(const Plan& plan, std::size_t call, std::size_t scores) {
  const std::size_t top = plan.graph.producer[scores];
  const std::vector<int64_t>& shape = plan.shapes[scores];
  const std::vector<int64_t>& axes = plan.net.tensors[scores].shape;
  const int64_t row_elems = axes.empty() ? 0 : axes.back();
  Middle middle;
  const auto ask = [&](std::size_t above) {
    // The other operand's.
    if (above != top && feeds(plan, above, call)) return Step::kStop;
    const CallFacts& facts = plan.facts[above];
    const int64_t size = num_elements(plan.result_shape(above));
    const bool is_whole = plan.result_shape(above) == shape;
    const bool is_row = size * row_elems == num_elements(shape);
    switch (facts.kind) {
      case CallKind::kLinear:
        if (!is_whole || facts.has_window || reads_const(plan, above)) return Step::kStop;
        ++middle.num_products;
        return Step::kEnd;
      case CallKind::kRows:
      case CallKind::kReduce:
        if (facts.row_elems != row_elems || (!is_whole && !is_row)) return Step::kStop;
        ++middle.num_reductions;
        return Step::kTake;
      case CallKind::kPointwise:
      case CallKind::kBroadcast: return is_whole || is_row ? Step::kTake : Step::kStop;
      default: return Step::kStop;
    }
  };
  const auto taking = [&](std::size_t above) {
    const Step step = ask(above);
    if (step != Step::kStop) middle.calls.push_back(above);
    return step;
  };
  grow_up(plan, call, taking);
  return middle;
}

}  // namespace

bool join_attention(Plan& plan, std::size_t call) {
  if (plan.facts[call].kind != CallKind::kLinear || plan.facts[call].has_window ||
      reads_const(plan, call))
    return false;
  for (const std::size_t arg : plan.net.calls[call].args) {
    if (plan.graph.producer[arg] == kNone) continue;
    const Middle middle = middle_above(plan, call, arg);
    if (middle.num_products != 1 || middle.num_reductions == 0) continue;
    std::vector<std::size_t> together = middle.calls;
    together.push_back(call);
    if (!plan.has_room(together, kNone)) continue;
    plan.start(call);
    const std::size_t group = plan.group_of[call];
    plan.groups[group].kind = GroupKind::kAttention;
    for (const std::size_t member : middle.calls) plan.join(member, group);
    return true;
  }
  return false;
}

}  // namespace prunerc::net
