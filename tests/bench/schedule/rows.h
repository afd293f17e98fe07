// What `./dev bench schedule` reports: each function measures some rows. A new row: a function
// here, a line in main.cc.
#ifndef PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_
#define PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_

#include "ir/program.h"
#include "schedule/trace/trace.h"
#include "tests/bench/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::bench {

struct Options {
  int traces = 10'000;
  int mutants = 500;
  int candidates = 20;  // of each operator
  uint64_t seed = 1;
};

/// Replays a CUDA-style matrix product of about 30 steps, with every step's legality checked as in
/// a search (and once more with ir::verify after each step). Rows replay_gpu_matmul*.
std::vector<Row> replay_rows();

/// That trace and the program that it starts from.
struct TracedProgram {
  ir::Program program;
  schedule::Trace trace;
};
TracedProgram gpu_matmul();

/// Matrix products by dot-product instructions: dot_fraction.h.
std::vector<Row> dot_rows();

/// Random legal traces over the gallery of operators; prints how many hold each primitive, and
/// every alarm of the verifier.
std::vector<Row> trace_rows(const Options& options);
/// Mutants; prints how many of each kind counted, what did not count, and every one that passed.
std::vector<Row> mutant_rows(const Options& options);
/// The verifier's rate on matrix products, and its time on twins of search candidates.
std::vector<Row> rate_rows(const Options& options);
std::vector<Row> twin_rows(const Options& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_
