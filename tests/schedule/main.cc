// All cases of this folder; then, if none was left out, whether they refuse often enough.
#define CATCH_CONFIG_RUNNER
#include "tests/schedule/tally.h"

#include <catch2/catch.hpp>

#include <iostream>

int main(int argc, char* argv[]) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0 || argc > 1) return failed;
  return prunerc::testing::tally().report(std::cout);
}
