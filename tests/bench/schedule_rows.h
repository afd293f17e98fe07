// What `./dev bench schedule` reports: each function measures some rows. A new row: a function
// here, a line in schedule.cc.
#ifndef PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_
#define PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_

#include <optional>
#include <string>
#include <vector>

namespace prunerc::bench {

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> goal;  // at least, or at most: the unit says which way is good
  std::string note;            // for people
};

/// Replays a CUDA-style matrix product of about 30 steps, with every step's legality checked as in
/// a search (and once more with ir::verify after each step). Rows replay_gpu_matmul*.
std::vector<Row> replay_rows();

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_SCHEDULE_ROWS_H_
