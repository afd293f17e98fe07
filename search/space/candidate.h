// Candidates: points of a search space, as decisions (genomes) and as programs.
#ifndef PRUNERC_SEARCH_SPACE_CANDIDATE_H_
#define PRUNERC_SEARCH_SPACE_CANDIDATE_H_

#include "ir/program.h"
#include "ir/support/hash.h"
#include "schedule/trace/trace.h"

#include <vector>

namespace prunerc::search {

/// One point of the space, instantiated. `trace` holds its decisions.
struct Candidate {
  int sketch = 0;
  schedule::Trace trace;
  ir::Program program;
  Fingerprint fingerprint;  // of program
  double predicted_ns = 0;  // by the cost model, 0 if it has no unit
  double score = 0;         // by the cost model: higher is better
};

/// A candidate before it has a program.
struct Genome {
  int sketch = 0;
  std::vector<schedule::Decision> decisions;
  bool operator==(const Genome&) const = default;
};

/// Of an instantiated candidate.
Genome genome_of(const Candidate& candidate);

/// Higher score first. A total order: ties must not depend on anything but the programs.
bool scores_higher(const Candidate& a, const Candidate& b);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_CANDIDATE_H_
