// What the tests of the published analyzer share.
#ifndef PRUNERC_TESTS_COSTMODEL_PRUNER_SUPPORT_H_
#define PRUNERC_TESTS_COSTMODEL_PRUNER_SUPPORT_H_

#include "costmodel/pruner/analyzer.h"
#include "costmodel/symbol/code.h"
#include "tests/support/check.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::costmodel {

/// The statement that writes the buffer of this name.
inline const StatementSymbols& of(const ir::Program& program,
                                  const std::vector<StatementSymbols>& all,
                                  const std::string& buffer) {
  for (const StatementSymbols& s : all) {
    if (program.buffer(s.buffer).name == buffer) return s;
  }
  FAIL("no statement writes " << buffer);
  return all[0];
}

/// A sketch's latency at one point of its parameters.
struct AtPoint {
  double ms = 0, is_feasible = 0;
};
inline AtPoint evaluate_at(const SymbolCode& code, const std::vector<int64_t>& point) {
  const std::vector<double> params(point.begin(), point.end());
  std::vector<const double*> columns;
  for (const double& value : params) columns.push_back(&value);
  AtPoint out;
  double* const outputs[] = {&out.ms, &out.is_feasible};
  SymbolScratch scratch;
  code.evaluate(columns, 1, outputs, scratch);
  return out;
}

}  // namespace prunerc::costmodel

#endif  // PRUNERC_TESTS_COSTMODEL_PRUNER_SUPPORT_H_
