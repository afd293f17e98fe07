// A worker process and nothing else, for tests.
#include "runtime/cpu/worker.h"

int main(int argc, char** argv) {
  return prunerc::runtime::dispatch_worker(argc, argv).value_or(2);
}
