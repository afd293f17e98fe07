#include "ir/net/pass/partition.h"

#include "ir/lang/lang.h"
#include "ir/net/pass/fuse.h"
#include "ir/net/pass/partition_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace prunerc::net {

Plan::Plan(const Net& net_in) : net(net_in), graph(net_in), group_of(net_in.calls.size(), kNone) {
  std::vector<std::optional<CallFacts>> of_program(net.programs.size());
  for (const Call& call : net.calls) {
    std::optional<CallFacts>& known = of_program[call.program];
    if (!known) known = classify(net.programs[call.program]);
    facts.push_back(*known);
  }
  for (const Tensor& tensor : net.tensors) {
    std::vector<int64_t>& shape = shapes.emplace_back(tensor.shape);
    shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  }
}

std::size_t Plan::group_of_readers(std::size_t call) const {
  std::size_t group = kNone;
  for (const std::size_t result : net.calls[call].results) {
    if (net.tensors[result].role == Role::kOutput) return kNone;
    for (const std::size_t reader : graph.readers[result]) {
      if (group_of[reader] == kNone || (group != kNone && group != group_of[reader])) return kNone;
      group = group_of[reader];
    }
  }
  return group;
}

PortRead Plan::read_of(std::size_t call, std::size_t tensor) const {
  const std::vector<std::size_t>& args = net.calls[call].args;
  PortRead read = PortRead::kElsewhere;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] != tensor) continue;
    if (facts[call].reads[i] != PortRead::kSame) return facts[call].reads[i];
    read = PortRead::kSame;
  }
  return read;
}

// What the call gives comes from inside from now on.
void Plan::add_to(Group& grown, std::size_t call, std::size_t group) const {
  grown.num_statements += net.num_statements[net.calls[call].program];
  for (const std::size_t arg : net.calls[call].args) {
    const std::size_t producer = graph.producer[arg];
    const bool is_inside = producer != kNone && group != kNone && group_of[producer] == group;
    if (!is_inside) grown.outside.insert(arg);
  }
  for (const std::size_t result : net.calls[call].results) grown.outside.erase(result);
}

bool Plan::has_room(const std::vector<std::size_t>& more, std::size_t group) const {
  Group grown;
  if (group != kNone) {
    grown.outside = groups[group].outside;
    grown.num_statements = groups[group].num_statements;
  }
  for (const std::size_t call : more) add_to(grown, call, group);
  // They may stand in any order.
  for (const std::size_t call : more) {
    for (const std::size_t result : net.calls[call].results) grown.outside.erase(result);
  }
  return grown.outside.size() <= lang::kMaxListLength &&
         grown.num_statements <= lang::kMaxStatements;
}

void Plan::start(std::size_t call) {
  Group group;
  group.calls = {call};
  add_to(group, call, kNone);
  group.anchor = call;
  group.shape = result_shape(call);
  switch (graph.is_const_call[call] ? CallKind::kOther : facts[call].kind) {
    case CallKind::kPointwise:
    case CallKind::kBroadcast: group.kind = GroupKind::kChain; break;
    case CallKind::kView: group.kind = GroupKind::kView; break;
    case CallKind::kLinear: group.kind = GroupKind::kLinear; break;
    case CallKind::kRows:
      group.kind = GroupKind::kRows;
      group.row_elems = facts[call].row_elems;
      break;
    case CallKind::kReduce:
      group.kind = facts[call].row_elems > 0 ? GroupKind::kRows : GroupKind::kReduce;
      group.row_elems = facts[call].row_elems;
      // The whole shape is what it reads.
      group.shape = shapes[net.calls[call].args[0]];
      break;
    case CallKind::kWindow: group.kind = GroupKind::kReduce; break;
    case CallKind::kOpaque:
    case CallKind::kOther: break;
  }
  group_of[call] = groups.size();
  groups.push_back(std::move(group));
}

void Plan::join(std::size_t call, std::size_t group) {
  add_to(groups[group], call, group);
  group_of[call] = group;
  groups[group].calls.push_back(call);
}

std::vector<std::string_view> fuse_rule_names() {
  std::vector<std::string_view> names;
  for (const FuseRule& rule : fuse_rules()) names.push_back(rule.name);
  return names;
}

Result<Net> partition(const Net& net, const PartitionOptions& options,
                      std::vector<RuleCount>* counts) {
  const std::vector<std::string_view> names = fuse_rule_names();
  for (const std::string& name : options.without) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return error(Diag::kFuseRuleUnknown, name, fmt::format("{}", fmt::join(names, ", ")));
  }
  Plan plan(net);
  std::vector<RuleCount> used;
  for (const std::string_view name : names) used.push_back({name, 0});
  for (std::size_t call = net.calls.size(); call-- > 0;) {
    if (plan.group_of[call] != kNone) continue;
    bool joined = false;
    for (std::size_t i = 0; i < names.size() && !joined && !plan.graph.is_const_call[call]; ++i) {
      if (options.without.contains(std::string(names[i]))) continue;
      joined = fuse_rules()[i].apply(plan, call);
      used[i].num_calls += joined;
    }
    if (!joined) plan.start(call);
  }
  if (counts != nullptr) *counts = std::move(used);
  std::vector<FusedCalls> groups;
  for (const Group& group : plan.groups) {
    if (group.calls.size() > 1) groups.push_back({group.calls, group.anchor});
  }
  if (groups.empty()) return net;
  return fuse_calls(net, groups);
}

}  // namespace prunerc::net
