// Calls that one kernel computes well together become one call: which ones, rules say.
#ifndef PRUNERC_IR_NET_PASS_PARTITION_H_
#define PRUNERC_IR_NET_PASS_PARTITION_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::net {

struct PartitionOptions {
  std::set<std::string> without;  ///< names of rules that are not applied
};

/// Calls that a rule put where they are; those that start a group are not counted.
struct RuleCount {
  std::string_view rule;
  std::size_t num_calls = 0;
};

/// Names of the rules, in the order in which they are asked.
std::vector<std::string_view> fuse_rule_names();

/// In reverse order, each call joins the group of its readers if a rule takes it, or starts one. A
/// call of constants alone stays as it is. Equal groups give one operator (fuse.h).
/// Errors: those of fuse_calls; FuseRuleUnknown.
Result<Net> partition(const Net& net, const PartitionOptions& options = {},
                      std::vector<RuleCount>* counts = nullptr);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_PARTITION_H_
