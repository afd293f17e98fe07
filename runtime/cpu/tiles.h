// The system's leave to use tile registers (AMX).
#ifndef PRUNERC_RUNTIME_CPU_TILES_H_
#define PRUNERC_RUNTIME_CPU_TILES_H_

namespace prunerc::runtime {

/// Asks for tile registers, for all threads of this process and the children that it forks; without
/// that their first instruction is SIGILL. False if the CPU has none or the system refuses, as it does
/// while a thread's stack for signals is too small for them. Cost: a system call until it says yes.
/// Threads: any number at once.
bool allow_tiles();

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_TILES_H_
