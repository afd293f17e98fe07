// Candidates: points of a search space, as decisions (genomes) and as programs.
#ifndef PRUNERC_SEARCH_SPACE_CANDIDATE_H_
#define PRUNERC_SEARCH_SPACE_CANDIDATE_H_

#include "ir/program.h"
#include "ir/support/hash.h"
#include "schedule/trace/trace.h"

#include <compare>
#include <vector>

namespace prunerc::search {

/// One point of the space. `trace` holds its decisions; a drafted candidate has these alone until it
/// is picked.
struct Candidate {
  int sketch = 0;
  schedule::Trace trace;
  ir::Program program;      // undefined until the candidate is instantiated
  Fingerprint fingerprint;  // of program; before there is one, a hash of the decisions
  double predicted_ns = 0;  // by the analyzer; 0: it says nothing
  double score = 0;         // by the scorer that was asked last: higher is better
};

/// A candidate by its decisions.
struct Genome {
  int sketch = 0;
  std::vector<schedule::Decision> decisions;
  bool operator==(const Genome&) const = default;
  auto operator<=>(const Genome&) const = default;
};

Genome genome_of(const Candidate& candidate);

/// Higher score first; ties by fingerprint, so that they depend on the candidates alone.
bool scores_higher(const Candidate& a, const Candidate& b);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_CANDIDATE_H_
