// What analyzers say of a recorded pool's candidates, and which of them a draft would take.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_SCORED_H_
#define PRUNERC_TESTS_BENCH_DRAFT_SCORED_H_

#include "search/space/draft_space.h"
#include "tests/bench/draft/pools.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::bench {

/// What an analyzer says of candidates, and what a draft needs to know of them.
struct Predicted {
  std::vector<double> ns;
  std::vector<std::size_t> sketch;  // of the space, by candidate
  std::vector<std::vector<int32_t>> genes;
  std::shared_ptr<const search::DraftSpace> space;
};

/// One pool as numbers: what was measured of every candidate that ran, and what analyzers say.
/// "prunerc" is the draft as a search selects it, "order" the same analyzer's order alone.
struct Scored {
  std::string name, op_class;
  std::vector<double> measured_ns;
  std::vector<bool> is_uniform;
  std::map<std::string, Predicted> predicted;          // by analyzer
  std::map<std::string, std::vector<double>> ablated;  // by published analyzer and what it lacks
};

/// The analyzers are ours, calibrated with measured candidates or not, and the published ones, these
/// also with one part left out. `seed` draws the candidates that calibrate.
Scored score(const NamedPool& named, uint64_t seed);

/// Measured times, sorted, of the `size` candidates among `chosen` that stand first in the order of
/// `predicted`.
std::vector<double> first_of(const Scored& pool, const std::vector<double>& predicted,
                             std::vector<std::size_t> chosen, std::size_t size);

/// Measured times, sorted, of what an analyzer's draft takes of `chosen`: "prunerc" selects as a
/// search does, the others take the first ones.
std::vector<double> drafted(const Scored& pool, const std::string& analyzer,
                            const std::vector<std::size_t>& chosen, std::size_t size);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_SCORED_H_
