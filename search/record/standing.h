// Which of a candidate's measurements counts, if there are several.
#ifndef PRUNERC_SEARCH_RECORD_STANDING_H_
#define PRUNERC_SEARCH_RECORD_STANDING_H_

#include "search/record/measurement.h"

#include <cstddef>
#include <span>
#include <string>

namespace prunerc::search {

/// A reference that took so many times as long as beside the quietest measurement of the task: more
/// than clocks wander by themselves.
inline constexpr double kSlowedReference = 1.2;

/// The smaller of two references, of which 0 says nothing.
double quieter(double a_ns, double b_ns);

/// Whether other work slowed the machine down while this was timed: it took the CPUs from most
/// samples, or the reference beside it took clearly longer than `quiet_ns`. A measurement without a
/// state, or without anything to compare with, is believed.
bool is_slowed(const Measurement& m, double quiet_ns);

/// Index of the measurement that counts, of one candidate's in the order they were made: the latest
/// that was not slowed; the shortest if all were, as it is the closest upper bound. `measurements`
/// is not empty, and all of it ok.
std::size_t standing(std::span<const Measurement> measurements, double quiet_ns);

/// What shows that the candidate is right, by whichever of its measurements, the latest that says
/// so: a time that nobody verified takes nothing from it. Empty: nothing does.
std::string evidence_of(std::span<const Measurement> measurements);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_STANDING_H_
