// The cases of algebra_tune_test.cc, whose kernels run in a child that is this program.
#define CATCH_CONFIG_RUNNER
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>

int main(int argc, char* argv[]) {
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  return Catch::Session().run(argc, argv);
}
