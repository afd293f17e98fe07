// What can be said of a claimed record without running it: whether its task is what it says, and whether its time can be.
#ifndef PRUNERC_SEARCH_RECORD_PLAUSIBLE_H_
#define PRUNERC_SEARCH_RECORD_PLAUSIBLE_H_

#include "ir/support/result.h"
#include "search/space/task.h"

namespace prunerc::search {

/// The task of a stored key, its texts read and checked; its own key is the one of this build and machine, and may differ.
/// Errors: those of the parser, of verification and of verify_in_bounds; TargetUnknown, TargetField.
Result<Task> task_of_key(const TaskKey& key);

/// Whether the hash is that of the program and of the target's text.
bool is_own_hash(const TaskKey& key, const ir::Program& program);

/// No machine that the target describes runs the task in less, whatever the schedule. Generous: only
/// what cannot be true is below. Units: ns.
double least_possible_ns(const Task& task);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_PLAUSIBLE_H_
