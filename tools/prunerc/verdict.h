// Whether one kernel computes what its operator does: the verdict, and how it is found on this machine.
#ifndef PRUNERC_TOOLS_PRUNERC_VERDICT_H_
#define PRUNERC_TOOLS_PRUNERC_VERDICT_H_

#include "codegen/artifact.h"
#include "ir/support/result.h"
#include "ir/target.h"
#include "search/space/task.h"
#include "tools/driver/against.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::cli {

/// The outcome for one kernel.
struct Verdict {
  enum class Kind : uint8_t { kRight, kWrong, kInvalid, kNotChecked };
  Kind kind = Kind::kRight;
  std::string name;
  std::string schedule;
  int num_seeds = 0;                    // that were right
  std::string what;                     // the first difference, or what was compared
  std::string equality;                 // of the schedule, in finite fields; empty: not asked
  bool is_history = false;              // a record that gives no program any more
  std::string values = {};              // of --against: the numbers beside them
  std::string ran_on = {};              // where its kernels ran: cpu, gpu, or host in place of one
  std::string races = {};               // of a GPU's threads; empty: not for a GPU
  std::string derived = {};             // of a derived program, in finite fields
  std::vector<std::string> kinds = {};  // blocks whose iteration kinds are not shown to be true
};

std::string_view to_string(Verdict::Kind kind);

struct KernelCheck {
  int num_seeds = 3;  // sets of fresh inputs
  uint64_t seed = 1;  // of the first
  bool interpret = false;
  int64_t run_limit_ns = 0;  // of a run; 0: the device's own
};

/// Of the second run that a late kernel gets. Units: ns.
int64_t patient_limit_ns(const KernelCheck& how, const ir::Target& target);

/// Runs the kernel on each set of inputs and compares with the unscheduled program. A run that takes too
/// long gets one more, alone; what is late then, or has no device, is not checked.
Verdict check_kernel(const KernelCheck& how, const search::Task& task,
                     const codegen::Artifact& artifact);

/// The numbers of --against; false if there were none to compare. A kernel that was not given the time or
/// the machine for them is not checked.
bool take_values(const Result<ValueVerdict>& found, Verdict* verdict);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_VERDICT_H_
