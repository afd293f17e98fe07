// Turns a fatal signal of a kernel into one line of text that the parent process can read.
#ifndef PRUNERC_RUNTIME_WORKER_FAULT_H_
#define PRUNERC_RUNTIME_WORKER_FAULT_H_

#include "runtime/worker/buffer.h"

#include <string_view>

namespace prunerc::runtime {

/// Installs handlers for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and for the signals of the
/// sandbox, that write what happened to `detail` and then die of the signal. `detail` must stay mapped.   Threads: once per process,
/// before any kernel runs.
void install_fault_handlers(char* detail, size_t detail_bytes);

/// Gives the calling thread a stack of its own for handlers, so that a stack overflow can be
/// reported.
void prepare_thread_for_faults();

/// Forgets all named buffers.
void clear_fault_regions();

/// Names a buffer, so that an access to its guard pages is reported as one before or after it. The
/// buffer must live until the regions are cleared. Buffers past the first 300 are not named.
void add_fault_region(const GuardedBuffer& buffer, std::string_view name);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_FAULT_H_
