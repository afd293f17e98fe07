// What is done to a net between its text and its tasks, in order.
#ifndef PRUNERC_IR_NET_PASS_PASSES_H_
#define PRUNERC_IR_NET_PASS_PASSES_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::net {

struct PassOptions {
  std::set<std::string> without;        ///< names of passes that do not run
  std::set<std::string> without_rules;  ///< of the partition
};

/// What a pass did.
struct PassReport {
  std::string_view pass;
  std::size_t calls_before = 0, calls_after = 0;
  std::string details;  ///< "epilogue 8, rows 2"; may be empty
};

std::vector<std::string_view> pass_names();

/// Inputs, outputs and what they hold stay as they are, up to rounding.
/// Errors: UsageOption; those of the passes.
Result<Net> run_passes(const Net& net, const PassOptions& options = {},
                       std::vector<PassReport>* reports = nullptr);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_PASSES_H_
