// What the code of a worker process may ask of the operating system: limits and filters that it
// puts on itself and cannot take off.
#ifndef PRUNERC_RUNTIME_WORKER_SANDBOX_H_
#define PRUNERC_RUNTIME_WORKER_SANDBOX_H_

#include <cstdint>
#include <string>

namespace prunerc::runtime {

/// How much a kind of worker needs. Each keeps what the one before it refuses.
enum class Sandbox : uint8_t {
  kCompute,  ///< memory, the threads and descriptors that it has, clocks: a list of what is allowed
  kDevice,   ///< files, devices, threads: no network, no other program, no other process
  kSanitizer,  ///< starts a symbolizer as well: no network, no meddling with other processes
};

/// Limits that hold from the start: no core dump, few descriptors, `memory_limit_bytes` of address
/// space (0: any), no new privileges; for kCompute also no file by name (Landlock). Threads made
/// later inherit all of it.
void confine_process(Sandbox sandbox, int64_t memory_limit_bytes);

/// Refuses system calls in all threads of the process: the one that kCompute does not allow raises
/// SIGSYS, those that the others refuse fail with EPERM.
void filter_system_calls(Sandbox sandbox);

/// True if the program is made with a sanitizer, whose runtime needs more than any kernel does.
bool has_sanitizer();

/// "socket" for its number; "" for calls that no one needs to be told about by name.
const char* system_call_name(int number);

/// Which optional layers this machine has, for people: "system call filter, Landlock 7".
std::string describe_sandbox();

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_SANDBOX_H_
