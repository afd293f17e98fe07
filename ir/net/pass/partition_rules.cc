#include "ir/net/pass/partition_rules.h"

#include "ir/net/pass/closure.h"

#include <algorithm>

namespace prunerc::net {
namespace {

/// Tensors of the whole shape that an epilogue reads beside the anchor's: more of them and the
/// anchor's tile leaves the registers.
constexpr std::size_t kMaxExtraInputs = 4;
/// As the sketches have it: stages of so few operations are computed where they are read.
constexpr int64_t kMaxOperationsBefore = 6;

bool is_elementwise(const Plan& plan, std::size_t call) {
  const CallKind kind = plan.facts[call].kind;
  return kind == CallKind::kPointwise || kind == CallKind::kBroadcast;
}

bool is_kind(const Plan& plan, std::size_t group, GroupKind kind) {
  return group != kNone && plan.groups[group].kind == kind;
}

// What an anchor gives is read at the place of each element only, and few others of its size are.
bool is_epilogue(const Plan& plan, std::size_t call, const Group& group) {
  const std::size_t own = plan.net.calls[call].results[0];
  if (plan.shapes[own] != group.shape) return false;
  std::vector<std::size_t> extra;
  for (const std::size_t member : group.calls) {
    for (const std::size_t arg : plan.net.calls[member].args) {
      if (arg == own && plan.read_of(member, arg) != PortRead::kSame) return false;
      const std::size_t producer = plan.graph.producer[arg];
      const bool is_inside = producer != kNone && plan.group_of[producer] == plan.group_of[member];
      if (arg == own || is_inside || plan.shapes[arg] != group.shape) continue;
      if (std::find(extra.begin(), extra.end(), arg) == extra.end()) extra.push_back(arg);
    }
  }
  return extra.size() <= kMaxExtraInputs;
}

// An anchor above could take the call into its epilogue.
bool is_fed_by_anchor(const Plan& plan, std::size_t call) {
  bool found = false;
  grow_up(plan, call, [&](std::size_t above) {
    const CallKind kind = plan.facts[above].kind;
    if (plan.result_shape(above) != plan.result_shape(call)) return Step::kStop;
    found |= kind == CallKind::kLinear || kind == CallKind::kWindow;
    return is_elementwise(plan, above) ? Step::kTake : Step::kStop;
  });
  return found;
}

bool join_epilogue(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  if (plan.facts[call].kind != CallKind::kLinear || !is_kind(plan, group, GroupKind::kChain) ||
      !is_epilogue(plan, call, plan.groups[group]) || !plan.has_room({call}, group))
    return false;
  plan.join(call, group);
  plan.groups[group].kind = GroupKind::kLinear;
  plan.groups[group].anchor = call;
  return true;
}

bool join_pool(Plan& plan, std::size_t call) {
  const CallKind kind = plan.facts[call].kind;
  const std::size_t group = plan.group_of_readers(call);
  if ((kind != CallKind::kWindow && kind != CallKind::kReduce) ||
      !is_kind(plan, group, GroupKind::kChain) || !is_epilogue(plan, call, plan.groups[group]) ||
      !plan.has_room({call}, group))
    return false;
  plan.join(call, group);
  plan.groups[group].kind = GroupKind::kReduce;
  plan.groups[group].anchor = call;
  return true;
}

// A row's result on the way to the whole shape: calls of one element a row, up to the reduction.
bool join_row_results(Plan& plan, std::size_t call, std::size_t group) {
  Group& rows = plan.groups[group];
  const int64_t num_rows = num_elements(plan.result_shape(call));
  const int64_t whole = num_elements(rows.shape);
  if (num_rows == 0 || whole % num_rows != 0 || whole == num_rows) return false;
  const int64_t row_elems = whole / num_rows;
  if (rows.row_elems != 0 && rows.row_elems != row_elems) return false;
  std::size_t reduction = kNone;
  const auto ask = [&](std::size_t above) {
    if (num_elements(plan.result_shape(above)) != num_rows) return Step::kStop;
    const CallFacts& facts = plan.facts[above];
    if (facts.kind == CallKind::kReduce && facts.row_elems == row_elems) {
      reduction = above;
      return Step::kEnd;
    }
    return is_elementwise(plan, above) ? Step::kTake : Step::kStop;
  };
  const Step own = ask(call);
  if (own == Step::kStop) return false;
  std::vector<std::size_t> joining = {call};
  if (own == Step::kTake) {
    const std::vector<std::size_t> above = grow_up(plan, call, ask, group);
    joining.insert(joining.end(), above.begin(), above.end());
  }
  if (reduction == kNone || !plan.has_room(joining, group)) return false;
  for (const std::size_t member : joining) plan.join(member, group);
  rows.kind = GroupKind::kRows;
  rows.row_elems = row_elems;
  rows.anchor = reduction;
  return true;
}

bool join_rows(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  const bool is_chain = is_kind(plan, group, GroupKind::kChain);
  if (!is_chain && !is_kind(plan, group, GroupKind::kRows)) return false;
  Group& rows = plan.groups[group];
  const CallFacts& facts = plan.facts[call];
  if (!plan.has_room({call}, group)) return false;
  if (is_chain && facts.kind == CallKind::kRows && is_epilogue(plan, call, rows)) {
    plan.join(call, group);
    rows.kind = GroupKind::kRows;
    rows.row_elems = facts.row_elems;
    rows.anchor = call;
    return true;
  }
  if (join_row_results(plan, call, group)) return true;
  if (is_chain || !is_elementwise(plan, call)) return false;
  const bool fits =
      plan.result_shape(call) == rows.shape ||
      num_elements(plan.result_shape(call)) * rows.row_elems == num_elements(rows.shape);
  if (!fits || is_fed_by_anchor(plan, call)) return false;
  plan.join(call, group);
  return true;
}

// Does what the call gives lead to the group?
bool reaches(const Plan& plan, std::size_t from, std::size_t group) {
  std::vector<bool> seen(plan.net.calls.size());
  std::vector<std::size_t> open = {from};
  while (!open.empty()) {
    const std::size_t call = open.back();
    open.pop_back();
    if (seen[call]) continue;
    seen[call] = true;
    if (plan.group_of[call] == group) return true;
    // A group runs as a whole.
    std::vector<std::size_t> together = {call};
    if (plan.group_of[call] != kNone) together = plan.groups[plan.group_of[call]].calls;
    for (const std::size_t member : together) {
      for (const std::size_t result : plan.net.calls[member].results) {
        const std::vector<std::size_t>& readers = plan.graph.readers[result];
        open.insert(open.end(), readers.begin(), readers.end());
      }
    }
  }
  return false;
}

// No reader outside of the group leads back to it.
bool can_be_second(const Plan& plan, std::size_t tensor, std::size_t group) {
  if (group == kNone) return false;
  const Group& rows = plan.groups[group];
  if (rows.kind != GroupKind::kRows || rows.has_second || rows.shape != plan.shapes[tensor])
    return false;
  const std::vector<std::size_t>& readers = plan.graph.readers[tensor];
  return std::all_of(readers.begin(), readers.end(), [&](std::size_t reader) {
    return plan.group_of[reader] == group || !reaches(plan, reader, group);
  });
}

// A sum that rows are made of and that is read elsewhere too: a second result.
bool join_residual(Plan& plan, std::size_t call) {
  if (!is_elementwise(plan, call)) return false;
  const std::size_t own = plan.net.calls[call].results[0];
  for (const std::size_t reader : plan.graph.readers[own]) {
    const std::size_t group = plan.group_of[reader];
    if (!can_be_second(plan, own, group) || !plan.has_room({call}, group)) continue;
    // Asked last: it looks through all that is above.
    if (is_fed_by_anchor(plan, call)) return false;
    plan.join(call, group);
    plan.groups[group].has_second = true;
    return true;
  }
  return false;
}

bool join_chain(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  if (!is_elementwise(plan, call) || !is_kind(plan, group, GroupKind::kChain) ||
      plan.result_shape(call) != plan.groups[group].shape || !plan.has_room({call}, group))
    return false;
  plan.join(call, group);
  return true;
}

bool only_anchor_reads(const Plan& plan, std::size_t call, const Group& group) {
  for (const std::size_t result : plan.net.calls[call].results) {
    const std::vector<std::size_t>& readers = plan.graph.readers[result];
    if (readers.size() != 1 || readers[0] != group.anchor) return false;
  }
  return true;
}

bool join_prologue(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  if (!is_elementwise(plan, call) || !is_kind(plan, group, GroupKind::kLinear)) return false;
  Group& linear = plan.groups[group];
  const int64_t before = linear.num_before + plan.facts[call].num_operations;
  if (!only_anchor_reads(plan, call, linear) || plan.facts[linear.anchor].has_window ||
      before > kMaxOperationsBefore || is_fed_by_anchor(plan, call) ||
      !plan.has_room({call}, group))
    return false;
  plan.join(call, group);
  linear.num_before = before;
  return true;
}

// Views follow one another, and take what is pointwise before them and after them.
bool join_view(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  if (group == kNone || !plan.has_room({call}, group)) return false;
  const bool is_view = plan.facts[call].kind == CallKind::kView;
  if (is_kind(plan, group, GroupKind::kView)) {
    // A copy costs an anchor nothing, but a kernel if it stays between the anchor and a view.
    const bool is_move = is_view || plan.facts[call].is_copy;
    if (!is_move && (!is_elementwise(plan, call) || is_fed_by_anchor(plan, call))) return false;
    plan.join(call, group);
    return true;
  }
  if (!is_view || !is_kind(plan, group, GroupKind::kChain)) return false;
  for (const std::size_t member : plan.groups[group].calls) {
    if (is_fed_by_anchor(plan, member)) return false;
  }
  plan.join(call, group);
  plan.groups[group].kind = GroupKind::kView;
  return true;
}

bool is_operand_view(const CallFacts& facts) { return facts.is_copy && facts.keeps_innermost; }

// Products alone read what the call gives, or views that lead to products.
bool is_operand_of_products(const Plan& plan, std::size_t call) {
  const std::vector<std::size_t>& readers = plan.graph.readers[plan.net.calls[call].results[0]];
  return std::all_of(readers.begin(), readers.end(), [&](std::size_t reader) {
    const CallFacts& facts = plan.facts[reader];
    if (facts.kind == CallKind::kLinear) return !facts.has_window;
    return is_operand_view(facts) &&
           plan.net.tensors[plan.net.calls[reader].results[0]].role != Role::kOutput &&
           is_operand_of_products(plan, reader);
  });
}

// The operand of a product is read through views, if neighbours stay neighbours.
bool join_operand_view(Plan& plan, std::size_t call) {
  const std::size_t group = plan.group_of_readers(call);
  if (!is_operand_view(plan.facts[call])) return false;
  if (!is_kind(plan, group, GroupKind::kLinear) && !is_kind(plan, group, GroupKind::kAttention))
    return false;
  if (!is_operand_of_products(plan, call) || !plan.has_room({call}, group)) return false;
  plan.join(call, group);
  return true;
}

// clang-format off: a table
constexpr FuseRule kRules[] = {
    {"attention", join_attention}, {"epilogue", join_epilogue}, {"pool", join_pool},
    {"rows", join_rows},           {"residual", join_residual}, {"chain", join_chain},
    {"prologue", join_prologue},   {"view", join_view},         {"operand_view", join_operand_view},
};
// clang-format on

}  // namespace

int64_t num_elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::span<const FuseRule> fuse_rules() { return kRules; }

}  // namespace prunerc::net
