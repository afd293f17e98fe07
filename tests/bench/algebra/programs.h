// The operators that `bench algebra` tries: those of std/algebra.prn, and convolutions.
#ifndef PRUNERC_TESTS_BENCH_ALGEBRA_PROGRAMS_H_
#define PRUNERC_TESTS_BENCH_ALGEBRA_PROGRAMS_H_

#include "search/algebra/derive.h"
#include "tools/driver/prunerc.h"

#include <map>
#include <string>
#include <vector>

namespace prunerc::bench {

struct AlgebraCase {
  std::string name;
  std::string file = {};  // of the library; empty: `text`
  std::string op;
  std::map<std::string, std::string> bindings = {};
  double least_gain = 1;  // of operations, by the planted form; 0: nothing may be found
  double speed_aim = 0;   // spec's time over the form's; 0: not timed
  search::algebra::NumericClass numerics = search::algebra::NumericClass::kNormal;
  std::string text = {};
  std::string words = {};  // that the planted form's recipe has; empty: any has
};

const std::vector<AlgebraCase>& algebra_cases();

/// Aborts if it does not compile: the files are the project's own.
Operator load_case(const AlgebraCase& c);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_ALGEBRA_PROGRAMS_H_
