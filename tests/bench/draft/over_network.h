// Ansor's genetic algorithm over one of our networks: what a network gains without our draft.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_OVER_NETWORK_H_
#define PRUNERC_TESTS_BENCH_DRAFT_OVER_NETWORK_H_

#include "search/tune/tuner.h"

#include <string>

namespace prunerc::bench {

/// Of TuneOptions::make_strategy: Ansor's settings over the network of `kind`, which starts at `checkpoint`
/// (as of open_network), learns as there, and is shared by the tasks of a call. For one call.
decltype(search::TuneOptions::make_strategy) ansor_over_network(search::StrategyKind kind,
                                                                const std::string& checkpoint);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_OVER_NETWORK_H_
