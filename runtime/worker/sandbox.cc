#include "runtime/worker/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace prunerc::runtime {
namespace {

constexpr rlim_t kMaxOpenFiles = 256;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

void limit(__rlimit_resource_t what, rlim_t value) {
  const rlimit both{.rlim_cur = value, .rlim_max = value};
  setrlimit(what, &both);  // best effort: a lower limit may already be in force
}

// --- Landlock ----------------------------------------------------------------------------------

// Newer than the headers that we build with: numbers of the kernel's interface.
constexpr long kCreateRuleset = 444;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;

struct Ruleset {
  uint64_t files, network, scoped;
};

/// 0 without Landlock.
int landlock_version() {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

/// Everything that a version can refuse is refused, since no rule allows anything.
void refuse_files_and_network() {
  const int version = landlock_version();
  if (version == 0) return;
  constexpr std::array<int, 5> kFileRights = {13, 14, 15, 15, 16};  // of versions 1 to 5
  const size_t known = std::min<size_t>(static_cast<size_t>(version), kFileRights.size());
  const Ruleset rules = {.files = (uint64_t{1} << kFileRights[known - 1]) - 1,
                         .network = version >= 4 ? 3U : 0U,
                         .scoped = version >= 6 ? 3U : 0U};
  const size_t size = version >= 6   ? sizeof rules
                      : version >= 4 ? offsetof(Ruleset, scoped)
                                     : offsetof(Ruleset, network);
  const long fd = syscall(kCreateRuleset, &rules, size, 0);
  if (fd < 0) return;
  syscall(kRestrictSelf, fd, 0);
  close(static_cast<int>(fd));
}

// --- the filter of system calls ----------------------------------------------------------------

/// A filter for classic BPF: a list of tests, each of which may end it.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : otherwise_(otherwise) {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    end(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    // The calls of the x32 interface have numbers of their own, which no list would name.
    constexpr uint32_t kX32 = 0x40000000;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
    end(SECCOMP_RET_KILL_PROCESS);
  }

  void answer(std::initializer_list<long> calls, uint32_t action) {
    for (const long call : calls) {
      if_equal(static_cast<uint32_t>(call), 1);
      end(action);
    }
  }

  /// `call` is answered with `action` unless the low half of its argument equals one of `allowed`.
  void answer_unless(long call, int argument, std::initializer_list<uint32_t> allowed,
                     uint32_t action) {
    const auto count = static_cast<uint8_t>(allowed.size());
    if_equal(static_cast<uint32_t>(call), static_cast<uint8_t>(count + 3));
    load(argument_at(argument));
    uint8_t left = count;
    for (const uint32_t value : allowed)
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0));
    end(action);
    end(SECCOMP_RET_ALLOW);
  }

  /// `call` is answered with `action` unless its argument has one of the bits.
  void answer_without(long call, int argument, uint32_t bits, uint32_t action) {
    if_equal(static_cast<uint32_t>(call), 4);
    load(argument_at(argument));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
    end(action);
    end(SECCOMP_RET_ALLOW);
  }

  void install() {
    end(otherwise_);
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                             .filter = code_.data()};
    // Best effort: a container may refuse filters, and the other layers remain.
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  }

 private:
  static uint32_t argument_at(int argument) {
    return static_cast<uint32_t>(offsetof(seccomp_data, args) +
                                 static_cast<size_t>(argument) * sizeof(uint64_t));
  }
  void load(size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }
  void end(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
  void if_equal(uint32_t value, uint8_t skip_otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip_otherwise));
  }

  uint32_t otherwise_;
  std::vector<sock_filter> code_;
};

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

/// What linking an object, running it on the pool, timing it and answering take.
void allow_computing() {
  Filter filter(SECCOMP_RET_TRAP);
  filter.answer({SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_poll, SYS_ppoll},
                SECCOMP_RET_ALLOW);
  filter.answer({SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_brk},
                SECCOMP_RET_ALLOW);
  filter.answer({SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu, SYS_membarrier,
                 SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_exit_group},
                SECCOMP_RET_ALLOW);
  filter.answer({SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_nanosleep,
                 SYS_clock_nanosleep, SYS_restart_syscall},
                SECCOMP_RET_ALLOW);
  filter.answer({SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_gettid, SYS_getpid,
                 SYS_getrandom},
                SECCOMP_RET_ALLOW);
  // Tile registers, which a kernel that uses them is loaded with.
  constexpr uint32_t kRequestPermission = 0x1023;
  filter.answer_unless(SYS_arch_prctl, 0, {kRequestPermission}, SECCOMP_RET_TRAP);
  // raise() is for oneself.
  filter.answer_unless(SYS_tgkill, 0, {static_cast<uint32_t>(getpid())}, SECCOMP_RET_TRAP);
  filter.install();
}

/// What neither a driver nor a sanitizer needs.
void refuse_meddling(Sandbox sandbox) {
  Filter filter(SECCOMP_RET_ALLOW);
  const auto self = static_cast<uint32_t>(getpid());
  // A driver talks to its daemon over a local socket; local sockets are no network.
  filter.answer_unless(SYS_socket, 0, {AF_UNIX}, kRefuse);
  filter.answer({SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
                 SYS_pidfd_send_signal, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo},
                kRefuse);
  filter.answer_unless(SYS_kill, 0, {self}, kRefuse);
  filter.answer_unless(SYS_tgkill, 0, {self}, kRefuse);
  filter.answer({SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare,
                 SYS_bpf, SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
                 SYS_delete_module, SYS_reboot, SYS_swapon, SYS_keyctl, SYS_add_key,
                 SYS_request_key, SYS_userfaultfd, SYS_open_by_handle_at},
                kRefuse);
  // Its requests are not seen by filters.
  filter.answer({SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}, kRefuse);
  if (sandbox != Sandbox::kSanitizer) {
    filter.answer({SYS_execve, SYS_execveat, SYS_fork, SYS_vfork}, kRefuse);
    filter.answer_without(SYS_clone, 0, CLONE_THREAD, kRefuse);
    // Its flags lie in memory, where no filter can look; the C library falls back to clone.
    filter.answer({SYS_clone3}, SECCOMP_RET_ERRNO | ENOSYS);
  }
  filter.install();
}

}  // namespace

void confine_process(Sandbox sandbox, int64_t memory_limit_bytes) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, kMaxOpenFiles);
  // Sanitizers reserve terabytes of addresses.
  if (memory_limit_bytes > 0 && !has_sanitizer())
    limit(RLIMIT_AS, static_cast<rlim_t>(memory_limit_bytes));
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (sandbox == Sandbox::kCompute && !has_sanitizer()) refuse_files_and_network();
}

void filter_system_calls(Sandbox sandbox) {
  if (has_sanitizer()) sandbox = Sandbox::kSanitizer;
  if (sandbox == Sandbox::kCompute) {
    allow_computing();
  } else {
    refuse_meddling(sandbox);
  }
}

bool has_sanitizer() { return kHasSanitizer; }

const char* system_call_name(int number) {
  switch (number) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2: return "open";
    case SYS_socket: return "socket";
    case SYS_connect: return "connect";
    case SYS_fork:
    case SYS_vfork: return "fork";
    case SYS_clone:
    case SYS_clone3: return "clone";
    case SYS_execve:
    case SYS_execveat: return "execve";
    case SYS_kill: return "kill";
    case SYS_tgkill: return "tgkill";
    case SYS_ptrace: return "ptrace";
    case SYS_close: return "close";
    case SYS_ftruncate: return "ftruncate";
    case SYS_unlink:
    case SYS_unlinkat: return "unlink";
    case SYS_rt_sigaction: return "sigaction";
    case SYS_prlimit64:
    case SYS_setrlimit: return "setrlimit";
    case SYS_arch_prctl: return "arch_prctl";
    default: return "";
  }
}

std::string describe_sandbox() {
  const uint32_t action = SECCOMP_RET_TRAP;
  const bool filters = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  const int landlock = landlock_version();
  std::string layers = filters ? "system call filter" : "";
  if (landlock > 0)
    layers += (layers.empty() ? "" : ", ") + ("Landlock " + std::to_string(landlock));
  return layers.empty() ? "limits only: the system offers no filter of system calls" : layers;
}

}  // namespace prunerc::runtime
