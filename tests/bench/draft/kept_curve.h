// The curve of a search that took long, in a file, so that an interrupted benchmark goes on.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_KEPT_CURVE_H_
#define PRUNERC_TESTS_BENCH_DRAFT_KEPT_CURVE_H_

#include "tests/bench/draft/curve.h"

#include <optional>
#include <string>

namespace prunerc::bench {

class KeptCurve {
 public:
  /// `name` says which search it is, of what; without a folder nothing is kept.
  KeptCurve(const std::string& folder, const std::string& name);
  /// None if it is not there, is no such file, is by another commit (PRUNERC_COMMIT) or machine, or if the
  /// code is not committed.
  std::optional<Curve> read() const;
  void write(const Curve& curve) const;

 private:
  std::string path_;
};

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_KEPT_CURVE_H_
