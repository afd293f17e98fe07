#include "ir/net/pass/closure.h"

#include <algorithm>
#include <functional>

namespace prunerc::net {

std::vector<std::size_t> grow_up(const Plan& plan, std::size_t from,
                                 const std::function<Step(std::size_t call)>& ask,
                                 std::size_t also) {
  std::set<std::size_t> taken = {from};
  std::set<std::size_t, std::greater<>> open;
  std::vector<std::size_t> out;
  const auto add_producers = [&](std::size_t call) {
    for (const std::size_t arg : plan.net.calls[call].args) {
      const std::size_t producer = plan.graph.producer[arg];
      if (producer != kNone && !plan.graph.is_const_call[producer]) open.insert(producer);
    }
  };
  const auto is_ours = [&](std::size_t reader) {
    return taken.contains(reader) || (also != kNone && plan.group_of[reader] == also);
  };
  add_producers(from);
  while (!open.empty()) {
    const std::size_t call = *open.begin();
    open.erase(open.begin());
    if (plan.group_of[call] != kNone) continue;
    const std::vector<std::size_t>& results = plan.net.calls[call].results;
    const bool is_closed = std::all_of(results.begin(), results.end(), [&](std::size_t result) {
      const std::vector<std::size_t>& readers = plan.graph.readers[result];
      return plan.net.tensors[result].role != Role::kOutput &&
             std::all_of(readers.begin(), readers.end(), is_ours);
    });
    if (!is_closed) continue;
    const Step step = ask(call);
    if (step == Step::kStop) continue;
    taken.insert(call);
    out.push_back(call);
    if (step == Step::kTake) add_producers(call);
  }
  return out;
}

}  // namespace prunerc::net
