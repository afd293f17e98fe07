#include "ir/net/pass/passes.h"

#include "ir/net/pass/layout.h"
#include "ir/net/pass/merge_same.h"
#include "ir/net/pass/partition.h"
#include "ir/net/pass/remove_dead.h"
#include "ir/net/pass/scale_into_weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::net {
namespace {

struct Pass {
  std::string_view name;
  Result<Net> (*run)(const Net& net, const PassOptions& options, std::string* details);
};

Result<Net> run_partition(const Net& net, const PassOptions& options, std::string* details) {
  std::vector<RuleCount> counts;
  PRUNERC_TRY(Net out, partition(net, {options.without_rules}, &counts));
  for (const RuleCount& count : counts) {
    if (count.num_calls == 0) continue;
    *details += fmt::format("{}{} {}", details->empty() ? "" : ", ", count.rule, count.num_calls);
  }
  return out;
}

Result<Net> run_merge_same(const Net& net, const PassOptions&, std::string*) {
  return merge_same(net);
}

Result<Net> run_scale_into_weights(const Net& net, const PassOptions&, std::string* details) {
  std::size_t num_moved = 0;
  PRUNERC_TRY(Net out, scale_into_weights(net, {}, &num_moved));
  if (num_moved > 0) *details = fmt::format("{} factors", num_moved);
  return out;
}

Result<Net> run_layout(const Net& net, const PassOptions&, std::string* details) {
  LayoutCount count;
  PRUNERC_TRY(Net out, layout(net, &count));
  if (count.num_turned > 0) {
    *details = fmt::format("{} tensors channels-last, {} transposes, {} views left",
                           count.num_turned, count.num_transposes, count.num_views);
  }
  return out;
}

Result<Net> run_remove_dead(const Net& net, const PassOptions&, std::string*) {
  return remove_dead(net);
}

constexpr Pass kPasses[] = {{"merge_same", run_merge_same},
                            {"scale_into_weights", run_scale_into_weights},
                            {"remove_dead", run_remove_dead},
                            {"layout", run_layout},
                            {"partition", run_partition}};

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

Result<Net> run_passes(const Net& net, const PassOptions& options,
                       std::vector<PassReport>* reports) {
  const std::vector<std::string_view> names = pass_names();
  for (const std::string& name : options.without) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return error(Diag::kUsageOption, "--no-pass",
                   fmt::format("names no pass: '{}'; there are {}", name, fmt::join(names, ", ")));
  }
  Net out = net;
  for (const Pass& pass : kPasses) {
    if (options.without.contains(std::string(pass.name))) continue;
    PassReport report{pass.name, out.calls.size(), 0, {}};
    PRUNERC_TRY(out, pass.run(out, options, &report.details));
    report.calls_after = out.calls.size();
    if (reports != nullptr) reports->push_back(std::move(report));
  }
  return out;
}

}  // namespace prunerc::net
