// Strategy: proposes candidates and learns from answers. A pure state machine, deterministic in
// (seed, answers).
#ifndef PRUNERC_SEARCH_STRATEGY_STRATEGY_H_
#define PRUNERC_SEARCH_STRATEGY_STRATEGY_H_

#include "search/record/measurement.h"
#include "search/space/candidate.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search {

/// Ask-tell. Answers must be told in the order in which they were asked for, but any number may be
/// outstanding.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Up to n new candidates, none asked for before; fewer (or none) once the space is exhausted.
  virtual std::vector<Candidate> ask(std::size_t n) = 0;
  virtual void tell(std::span<const Candidate> candidates,
                    std::span<const Measurement> measurements) = 0;
  /// Programs that were made and scored so far, to choose those that were proposed.
  virtual int64_t num_drafted() const = 0;
  /// Part of the time spent in ask and tell that trained a model. Units: seconds.
  virtual double learn_seconds() const { return 0; }
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_STRATEGY_H_
