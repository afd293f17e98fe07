// The system's leave to use tile registers (AMX).
#ifndef PRUNERC_RUNTIME_CPU_TILES_H_
#define PRUNERC_RUNTIME_CPU_TILES_H_

namespace prunerc::runtime {

/// Asks for tile registers, for all threads of this process and the children that it forks; without
/// that their first instruction is SIGILL. False, with the system's reason in errno, if the CPU has
/// none or the system refuses: ENOSPC while a thread's stack for signals has less than 12 KB. Once
/// it is true, sigaltstack takes no smaller ones. Cost: a system call until it says yes. Threads: any
/// number at once.
bool allow_tiles();

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_TILES_H_
