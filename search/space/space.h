// The search space of a task: sketches, each a trace whose decisions are free, and the way from
// decisions to programs.
#ifndef PRUNERC_SEARCH_SPACE_SPACE_H_
#define PRUNERC_SEARCH_SPACE_SPACE_H_

#include "ir/support/result.h"
#include "schedule/trace/trace.h"
#include "search/space/candidate.h"
#include "search/space/task.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::search {

/// One structure. The trace's own decisions are the heuristic ones: good without any search.
struct Sketch {
  std::string name;  // of the rules that made it, e.g. "tile+pack+fuse"
  schedule::Trace trace;
  std::vector<schedule::DecisionSpace> spaces;  // by decision
};

/// A sketch of the trace with the spaces of its decisions.
Sketch make_sketch(std::string name, schedule::Trace trace);

class Members;

struct SearchSpace {
  std::vector<Sketch> sketches;  // in the order of the rules
  /// If set, only these candidates exist (members.h): sampler.h and mutate.h land on them.
  std::shared_ptr<const Members> members;
  /// Number of decision vectors of all sketches together, or of members; saturates.
  int64_t size() const;
};

/// Statement instances of a candidate's code at most: beyond this the back end takes seconds and
/// the processor's front end forever.
inline constexpr double kMaxCodeSize = 4000;

/// Applies every sketch rule to the task's program. A rule that fails leaves its sketch out.
/// Errors: NoSketch if the program is empty or, for GPUs, no rule gives it kernels.
Result<SearchSpace> make_space(const Task& task);

/// The program that these decisions give. Errors: those of the primitives; CandidateTooLarge;
/// Unsupported for what is not among the space's members.
Result<Candidate> instantiate(const Task& task, const SearchSpace& space, int sketch,
                              std::span<const schedule::Decision> decisions);

/// Candidate 0: the sketch and default decisions that the roofline likes best. Needs no device.
/// Errors: NoSketch.
Result<Candidate> heuristic_candidate(const Task& task, const SearchSpace& space);

/// Sketch with the same instructions as a stored trace; -1 if none.
int find_sketch(const SearchSpace& space, const schedule::Trace& trace);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SPACE_H_
