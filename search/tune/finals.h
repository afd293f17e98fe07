// Finals: what the best candidates' times are, from several turns of which some were disturbed.
#ifndef PRUNERC_SEARCH_TUNE_FINALS_H_
#define PRUNERC_SEARCH_TUNE_FINALS_H_

#include <cstddef>
#include <span>
#include <vector>

namespace prunerc::search {

/// Times of one turn, a candidate each; 0 where it failed. Units: ns.
using FinalTurn = std::vector<double>;

/// So many undisturbed turns decide.
inline constexpr std::size_t kFinalTurns = 3;
/// A machine that is never quiet gets no more turns than these.
inline constexpr std::size_t kMaxFinalTurns = 8;

/// The turns in which the field as a whole was not slowed down, in order: those whose median
/// slowdown over the candidates is small. A candidate's slowdown is against its best time, in
/// `before` (0: none) or any turn. Once kMaxFinalTurns are there, at least the kFinalTurns least
/// disturbed ones.
std::vector<std::size_t> quiet_turns(std::span<const FinalTurn> turns,
                                     std::span<const double> before);

/// Whether no further turn is needed.
bool is_decided(std::span<const FinalTurn> turns, std::span<const double> before);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_FINALS_H_
