// What lies above calls and is read by nothing else.
#ifndef PRUNERC_IR_NET_PASS_CLOSURE_H_
#define PRUNERC_IR_NET_PASS_CLOSURE_H_

#include "ir/net/pass/partition_rules.h"

#include <functional>
#include <set>
#include <vector>

namespace prunerc::net {

enum class Step : uint8_t { kTake, kStop, kEnd };

/// Goes up from `from`, last call first. A call that is in no group and whose results only calls
/// taken before read (and not the net) is shown to `ask`: kTake takes it, kEnd takes it and does not
/// go on above it. Returns what was taken, without `from`. A reader in `also` counts as taken.
std::vector<std::size_t> grow_up(const Plan& plan, std::size_t from,
                                 const std::function<Step(std::size_t call)>& ask,
                                 std::size_t also = kNone);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_CLOSURE_H_
