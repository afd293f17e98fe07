// A worker that is linked with a sanitizer: it runs kernels that are compiled with the same one.
#include "runtime/cuda_host/worker.h"

// Read by the sanitizers' runtimes before main. One finding is enough, and a process that ends with
// this status is a finding, not a crash. Fibers free memory that others allocated only in the
// runtime, which is not checked.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1:exitcode=66:report_thread_leaks=0:history_size=4";
}
extern "C" const char* __asan_default_options() {
  return "halt_on_error=1:exitcode=66:detect_leaks=0:print_legend=0:detect_stack_use_after_return="
         "0";
}
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:exitcode=66:print_stacktrace=1";
}

int main(int argc, char** argv) {
  return prunerc::runtime::cuda_host::dispatch_host_worker(argc, argv).value_or(2);
}
