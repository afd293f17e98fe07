#include "search/space/candidate.h"

namespace prunerc::search {

Genome genome_of(const Candidate& candidate) {
  return {candidate.sketch, candidate.trace.decisions};
}

bool scores_higher(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.fingerprint < b.fingerprint;
}

}  // namespace prunerc::search
