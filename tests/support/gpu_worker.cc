// A worker that owns a GPU's context and nothing else, for tests.
#include "runtime/cuda/worker.h"

int main(int argc, char** argv) {
  return prunerc::runtime::cuda::dispatch_cuda_worker(argc, argv).value_or(2);
}
