#include "runtime/worker/fault.h"

#include "runtime/worker/sandbox.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace prunerc::runtime {
namespace {

struct Region {
  uintptr_t begin, data, data_end, end;  // accessible pages and the data inside
  std::array<char, 40> name;
};

constexpr size_t kMaxRegions = 300;
constexpr size_t kSignalStackBytes = 64 << 10;
/// An access this close to the stack pointer is one to the stack.
constexpr uintptr_t kStackReach = 1 << 20;

// Plain globals: a handler may touch nothing else.
std::array<Region, kMaxRegions> regions;
size_t num_regions = 0;
char* report = nullptr;
size_t report_bytes = 0;

/// Builds text without allocating.
class Line {
 public:
  Line& operator<<(const char* text) {
    while (*text != '\0') put(*text++);
    return *this;
  }
  Line& operator<<(uint64_t value) {
    std::array<char, 24> digits;
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }

 private:
  void put(char c) {
    if (used_ + 1 >= report_bytes) return;
    report[used_++] = c;
    report[used_] = '\0';
  }
  size_t used_ = 0;
};

const char* signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGSYS: return "SIGSYS";
    case SIGXFSZ: return "SIGXFSZ";
    case SIGXCPU: return "SIGXCPU";
    default: return "a signal";
  }
}

void describe_access(Line& line, uintptr_t address, uintptr_t stack_pointer, bool is_write) {
  line << (is_write ? ": write " : ": read ");
  for (size_t i = 0; i < num_regions; ++i) {
    const Region& region = regions[i];
    if (address >= region.end && address < region.end + kGuardBytes) {
      line << (address - region.data_end) << " bytes past the end of '" << region.name.data()
           << "'";
      return;
    }
    if (address < region.begin && address + kGuardBytes >= region.begin) {
      line << (region.data - address) << " bytes before the start of '" << region.name.data()
           << "'";
      return;
    }
  }
  const uintptr_t distance =
      address > stack_pointer ? address - stack_pointer : stack_pointer - address;
  line << (distance < kStackReach ? "beyond the stack (stack overflow)"
                                  : "of an address that is in no buffer");
}

/// What a limit of the sandbox says; nothing for other signals.
void describe_refusal(Line& line, int signal, const siginfo_t& info) {
  if (signal == SIGXFSZ) line << ": a write beyond the largest file that a job may write";
  if (signal == SIGXCPU) line << ": more CPU time than a job may use";
  if (signal != SIGSYS) return;
  line << ": system call " << static_cast<uint64_t>(info.si_syscall);
  const char* const name = system_call_name(info.si_syscall);
  if (*name != '\0') line << " (" << name << ")";
  line << " is refused";
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (report != nullptr) {
    Line line;
    line << signal_name(signal);
    describe_refusal(line, signal, *info);
    if (signal == SIGSEGV || signal == SIGBUS) {
      const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
      constexpr greg_t kWriteBit = 2;  // of the page fault's error code
      describe_access(line, reinterpret_cast<uintptr_t>(info->si_addr),
                      static_cast<uintptr_t>(registers[REG_RSP]),
                      (registers[REG_ERR] & kWriteBit) != 0);
    }
  }
  // The handler was reset on entry: returning repeats the fault, raise covers signals that were
  // sent.
  raise(signal);
}

}  // namespace

void install_fault_handlers(char* detail, size_t detail_bytes) {
  report = detail;
  report_bytes = detail_bytes;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXFSZ, SIGXCPU})
    sigaction(signal, &action, nullptr);
  prepare_thread_for_faults();
}

void prepare_thread_for_faults() {
  // Never unmapped: threads of a worker live as long as it does.
  void* at =
      mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  const stack_t stack{.ss_sp = at, .ss_flags = 0, .ss_size = kSignalStackBytes};
  sigaltstack(&stack, nullptr);
}

void clear_fault_regions() { num_regions = 0; }

void add_fault_region(const GuardedBuffer& buffer, std::string_view name) {
  if (num_regions == kMaxRegions) return;
  Region& region = regions[num_regions];
  region.begin = reinterpret_cast<uintptr_t>(buffer.begin());
  region.data = reinterpret_cast<uintptr_t>(buffer.data());
  region.data_end = region.data + static_cast<uintptr_t>(buffer.size_bytes());
  region.end = reinterpret_cast<uintptr_t>(buffer.end());
  region.name.fill('\0');
  std::memcpy(region.name.data(), name.data(), std::min(name.size(), region.name.size() - 1));
  ++num_regions;
}

}  // namespace prunerc::runtime
