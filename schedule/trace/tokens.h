// A trace as a matrix of numbers: what the cost model TLP (Zhai et al., ASPLOS 2023) sees instead
// of a program.
#ifndef PRUNERC_SCHEDULE_TRACE_TOKENS_H_
#define PRUNERC_SCHEDULE_TRACE_TOKENS_H_

#include "schedule/trace/trace.h"

#include <cstdint>
#include <vector>

namespace prunerc::schedule {

/// Kinds of primitives that are told apart, as many as TLP has.
inline constexpr int kNumTokenKinds = 11;
/// Columns of a row: the kind as one-hot, then as many numbers. TLP's 22.
inline constexpr int kTokenWidth = 2 * kNumTokenKinds;

/// One row for each instruction, in order, sampling left out: its values stand where they are used.
/// Numbers of a row: its operands in order, lists flattened, what is too many cut off. A loop or
/// block is its id, a string a number of its own, an integer x is sign(x) * log2(1 + |x|).
struct TraceTokens {
  int num_rows = 0;
  std::vector<float> values;  // row by row, kTokenWidth each
};

/// `trace` brings its decisions. Cost: some us.
TraceTokens trace_tokens(const Trace& trace);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TRACE_TOKENS_H_
