// Analyzers judged by what others measured on their GPUs.
#ifndef PRUNERC_TESTS_BENCH_T4_ROWS_H_
#define PRUNERC_TESTS_BENCH_T4_ROWS_H_

#include "tests/bench/draft/pools.h"
#include "tests/bench/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::bench {

struct T4BenchOptions {
  std::string pools = "tests/data/t4";
  /// Pools whose times the coefficients of `fitted` come from, by name: of each class one fit, which
  /// judges the class's others. Named before anything was judged.
  std::vector<std::string> fit = {"gemm_rtx2080ti", "gemm_rtx3060-laptop", "conv_a4000",
                                  "conv_a6000"};
  std::vector<uint64_t> seeds;  // of ties
};

/// `spearman/POOL/METHOD` and `bestK/POOL/METHOD`, see ../README.md.
std::vector<Row> t4_rows(const std::vector<NamedPool>& pools, const T4BenchOptions& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_T4_ROWS_H_
