// A worker for kernels on the host and nothing else, for tests.
#include "runtime/cuda_host/worker.h"

int main(int argc, char** argv) {
  return prunerc::runtime::cuda_host::dispatch_host_worker(argc, argv).value_or(2);
}
