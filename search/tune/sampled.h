// Whether two programs compute the same, by samples if they are too large to be run whole.
#ifndef PRUNERC_SEARCH_TUNE_SAMPLED_H_
#define PRUNERC_SEARCH_TUNE_SAMPLED_H_

#include "ir/fpv/fpv.h"
#include "ir/program.h"
#include "search/tune/equality.h"

#include <cstdint>
#include <string>

namespace prunerc::search {

struct SampleOptions {
  double log2_error = -40;  // wanted of what is compared
  uint64_t seed = 1;
  int num_random = 8;                  // tiles of each output, beside those at its corners
  int64_t max_steps = 60'000'000;      // lanes of one run of one program
  int64_t max_whole_cost = 5'000'000;  // of both programs; see schedule::cost_of. 0: only tiles
  ir::Roundings roundings = ir::Roundings::kOpaque;  // of schedules: check_in_pieces (equality.h)
};

/// What was compared. An output is cut into tiles of at most kTileElements elements; each sample is
/// one tile with all that it is made of (schedule/twin/slice.h).
struct SampledVerdict {
  ir::FpvVerdict verdict;         // Equal: of what was compared, with the bound for that
  bool is_whole = false;          // every element was
  bool at_small_extents = false;  // of both programs, whole
  int num_corners = 0, num_random = 0;
  int random_each = 0;    // of an output that was not compared tile by tile
  int64_t num_tiles = 0;  // of all outputs
};

inline constexpr int64_t kTileElements = 64;

/// Runs both programs whole if they are small, else on sampled tiles: those at the corners of each
/// output, and uniformly random ones. No sample says anything about others: if a part f of an
/// output's tiles is wrong, random ones miss that with chance (1 - f)^random_each. Races and reads
/// of what was not written are found only in what the samples run. Cost: two runs of a slice and a
/// test, and the time to fill all inputs, for each sample.
SampledVerdict check_programs(const ir::Program& spec, const ir::Program& candidate,
                              const SampleOptions& options = {});

/// The program that `trace` makes of the task's against the task's own: on a small twin if the trace
/// has one (equality.h), else by check_at_shape.
SampledVerdict check_schedule(const Task& task, const schedule::Trace& trace,
                              const ir::Program& program, const SampleOptions& options = {});

/// The same by check_programs, in pieces where a step rounds elsewhere. Unsupported where the trace then does not fit.
SampledVerdict check_at_shape(const ir::Program& base, const schedule::Trace& trace,
                              const ir::Program& program, const SampleOptions& options = {});

/// Another program against the scheduled one: where a step rounds elsewhere by way of the task's own, else at once.
SampledVerdict check_against(const ir::Program& spec, const Task& task,
                             const schedule::Trace& trace, const ir::Program& program,
                             const SampleOptions& options = {});

/// In one line: "equal on 12 of 4096 tiles, 8 of them random (chance of error 2^-76, 2 tests); a
/// fault in 1 of 10 tiles is missed with chance 0.43".
std::string to_string(const SampledVerdict& verdict);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_SAMPLED_H_
