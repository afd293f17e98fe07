// Kernels that do what a kernel should, and each of the things that it should not. Compiled to a
// bare object.
#include "runtime/kernel.h"

#include <stddef.h>

namespace {

constexpr int64_t kSize = 1000;  // elements of A and C in every kernel here

const float* in(void* const* args) { return static_cast<const float*>(args[0]); }
float* out(void* const* args) { return static_cast<float*>(args[1]); }

void add_one(void* const* args, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) out(args)[i] = in(args)[i] + 1;
}

long system_call(long number, long first, long second = 0, long third = 0) {
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(first), "S"(second), "d"(third)
               : "rcx", "r11", "memory");
  return result;
}

__attribute__((noinline)) int64_t recurse(int64_t depth, volatile char* above) {
  volatile char frame[4000];
  frame[depth % 4000] = above == nullptr ? '\1' : above[0];
  return depth < 0 ? 0 : recurse(depth + 1, frame) + frame[(depth * 7) % 4000];
}

// Written through this, so that the compiler cannot see what is out of bounds.
volatile int64_t zero = 0;

}  // namespace

extern "C" {

int32_t good(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, kSize);
  return 0;
}

int32_t good_parallel(void* const* args, void*, const PrunercLaunch* launch) {
  return launch->parallel_for(
      launch, 10,
      [](int64_t task, int32_t, void* closure) {
        add_one(static_cast<void* const*>(closure), task * kSize / 10, (task + 1) * kSize / 10);
      },
      const_cast<void**>(args));
}

int32_t slow_by_factor_20(void* const* args, void*, const PrunercLaunch*) {
  for (int i = 0; i < 20; ++i) {
    add_one(args, 0, kSize);
    asm volatile("" ::: "memory");
  }
  return 0;
}

int32_t sleeps_for_30_ms(void* const* args, void*, const PrunercLaunch*) {
  const long time[2] = {0, 30'000'000};
  system_call(35, reinterpret_cast<long>(time));  // nanosleep
  add_one(args, 0, kSize);
  return 0;
}

int32_t reports_failure(void* const*, void*, const PrunercLaunch*) { return 7; }

int32_t reads_past_the_end(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, kSize);
  out(args)[0] += in(args)[kSize + 512 + zero];
  return 0;
}

int32_t writes_past_the_end(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, kSize + 1 + zero);
  return 0;
}

int32_t writes_before_the_start(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, kSize);
  out(args)[-1 + zero] = 0;
  return 0;
}

int32_t writes_far_away(void* const*, void*, const PrunercLaunch*) {
  *reinterpret_cast<volatile int*>(0x10 + zero) = 1;
  return 0;
}

int32_t writes_an_input(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, kSize);
  static_cast<float*>(args[0])[17] += 1;
  return 0;
}

int32_t leaves_one_unwritten(void* const* args, void*, const PrunercLaunch*) {
  add_one(args, 0, 500);
  add_one(args, 501, kSize);
  return 0;
}

int32_t reads_its_output(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i) {
    const int32_t old_bits = static_cast<int32_t*>(args[1])[i];
    static_cast<int32_t*>(args[1])[i] = old_bits / 2 + 1;
  }
  return 0;
}

int32_t divides_by_zero(void* const*, void*, const PrunercLaunch*) {
  int quotient = 1;
  asm volatile("cltd\n\t idivl %1" : "+a"(quotient) : "r"(static_cast<int>(zero)) : "edx", "cc");
  return quotient;
}

int32_t runs_an_illegal_instruction(void* const*, void*, const PrunercLaunch*) { __builtin_trap(); }

int32_t hangs(void* const*, void*, const PrunercLaunch*) {
  while (zero == 0) {
  }
  return 0;
}

int32_t hangs_in_a_worker(void* const*, void*, const PrunercLaunch* launch) {
  return launch->parallel_for(
      launch, 2,
      [](int64_t, int32_t, void*) {
        while (zero == 0) {
        }
      },
      nullptr);
}

int32_t overflows_the_stack(void* const* args, void*, const PrunercLaunch*) {
  out(args)[0] = static_cast<float>(recurse(0, nullptr));
  return 0;
}

int32_t overflows_in_a_worker(void* const* args, void*, const PrunercLaunch* launch) {
  return launch->parallel_for(
      launch, 64,
      [](int64_t, int32_t worker, void* closure) {
        if (worker == 1) *static_cast<float*>(closure) = static_cast<float>(recurse(0, nullptr));
        for (int64_t i = 0; i < 100000; ++i) asm volatile("");
      },
      out(args));
}

int32_t exits_with_success(void* const*, void*, const PrunercLaunch*) {
  system_call(231, 0);  // exit_group
  return 0;
}

int32_t forks(void* const* args, void*, const PrunercLaunch*) {
  system_call(57, 0);  // the child goes on as a second worker on the same pipes
  add_one(args, 0, kSize);
  return 0;
}

int32_t opens_a_socket(void* const* args, void*, const PrunercLaunch*) {
  system_call(41, 2, 1);  // socket(AF_INET, SOCK_STREAM)
  add_one(args, 0, kSize);
  return 0;
}

int32_t reads_a_file(void* const* args, void*, const PrunercLaunch*) {
  system_call(2, reinterpret_cast<long>("/etc/passwd"));  // open
  add_one(args, 0, kSize);
  return 0;
}

int32_t reads_a_file_in_a_worker(void* const* args, void*, const PrunercLaunch* launch) {
  add_one(args, 0, kSize);
  return launch->parallel_for(
      launch, 64,
      [](int64_t, int32_t worker, void*) {
        if (worker == 1) system_call(2, reinterpret_cast<long>("/etc/passwd"));
        for (int64_t i = 0; i < 100000; ++i) asm volatile("");
      },
      nullptr);
}

int32_t starts_a_program(void* const* args, void*, const PrunercLaunch*) {
  const char* const argv[] = {"/bin/true", nullptr};
  system_call(59, reinterpret_cast<long>(argv[0]), reinterpret_cast<long>(argv));  // execve
  add_one(args, 0, kSize);
  return 0;
}

int32_t kills_its_parent(void* const* args, void*, const PrunercLaunch*) {
  system_call(62, system_call(39, 0) - 1, 9);  // kill
  add_one(args, 0, kSize);
  return 0;
}

int32_t moves_its_thread_pointer(void* const* args, void*, const PrunercLaunch*) {
  system_call(158, 0x1002);  // arch_prctl(ARCH_SET_FS)
  add_one(args, 0, kSize);
  return 0;
}

// On each thread: one register of 16 rows of 64 bytes.
int32_t uses_tiles(void* const* args, void*, const PrunercLaunch* launch) {
  return launch->parallel_for(
      launch, 10,
      [](int64_t task, int32_t, void* closure) {
        alignas(64) unsigned char config[64] = {1};
        config[16] = 64;
        config[48] = 16;
        asm volatile("ldtilecfg (%0)\n\ttilezero %%tmm0\n\ttilerelease" : : "r"(config) : "memory");
        add_one(static_cast<void* const*>(closure), task * kSize / 10, (task + 1) * kSize / 10);
      },
      const_cast<void**>(args));
}

int32_t raises_its_limits(void* const* args, void*, const PrunercLaunch*) {
  const long none[2] = {-1, -1};
  system_call(160, 1, reinterpret_cast<long>(none));  // setrlimit(RLIMIT_FSIZE)
  add_one(args, 0, kSize);
  return 0;
}

// Of the descriptors that it has, one holds what it prints and one its tensors.
int32_t writes_a_gibibyte(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t written = 0; written < (1 << 30); written += 4 * kSize)
    system_call(1, 1, reinterpret_cast<long>(args[0]), 4 * kSize);
  add_one(args, 0, kSize);
  return 0;
}

// Computes once for each place that its input lies in; after that it has nothing to do.
int32_t remembers_by_address(void* const* args, void*, const PrunercLaunch*) {
  static const void* seen[8] = {};
  for (const void*& place : seen) {
    if (place == args[0]) return 0;
    if (place != nullptr) continue;
    place = args[0];
    break;
  }
  add_one(args, 0, kSize);
  return 0;
}

// The same with a copy of the result, which fills outputs that were poisoned.
int32_t remembers_results_by_address(void* const* args, void*, const PrunercLaunch*) {
  static const void* seen[8] = {};
  static float results[8][kSize];
  for (int n = 0; n < 8; ++n) {
    if (seen[n] == nullptr) {
      seen[n] = args[0];
      for (int64_t i = 0; i < kSize; ++i) results[n][i] = in(args)[i] + 1;
    }
    if (seen[n] != args[0]) continue;
    for (int64_t i = 0; i < kSize; ++i) out(args)[i] = results[n][i];
    break;
  }
  return 0;
}

// Gives what it computed in the run before.
int32_t answers_one_late(void* const* args, void*, const PrunercLaunch*) {
  static float last[kSize];
  static bool has_last = false;
  if (!has_last) add_one(args, 0, kSize);
  for (int64_t i = 0; has_last && i < kSize; ++i) out(args)[i] = last[i];
  for (int64_t i = 0; i < kSize; ++i) last[i] = in(args)[i] + 1;
  has_last = true;
  return 0;
}

int32_t sends_half_a_frame(void* const*, void*, const PrunercLaunch*) {
  static const unsigned half[4] = {0x46435250, 5, 2, 1000};
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(1L), "D"(4L), "S"(half), "d"(16L)
               : "rcx", "r11", "memory");
  while (zero == 0) {
  }
  return 0;
}

int32_t closes_the_pipe(void* const* args, void*, const PrunercLaunch*) {
  for (long fd = 0; fd < 16; ++fd) system_call(3, fd);
  add_one(args, 0, kSize);
  return 0;
}

int32_t writes_to_the_pipe(void* const* args, void*, const PrunercLaunch*) {
  static char garbage[64] = "PRCFPRCFthis is not a frame";
  for (long fd = 0; fd < 6; ++fd) {
    long result = 0;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(1L), "D"(fd), "S"(garbage), "d"(64L)
                 : "rcx", "r11", "memory");
  }
  add_one(args, 0, kSize);
  return 0;
}

int32_t abuses_the_workspace(void* const* args, void* workspace, const PrunercLaunch*) {
  add_one(args, 0, kSize);
  static_cast<char*>(workspace)[100 + zero] = 1;
  return 0;
}

int32_t uses_its_workspace(void* const* args, void* workspace, const PrunercLaunch* launch) {
  for (int64_t i = 0; i < 100 + 28 * launch->num_workers; ++i) static_cast<char*>(workspace)[i] = 1;
  add_one(args, 0, kSize);
  return 0;
}

float expf(float);
int32_t calls_expf(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i) out(args)[i] = expf(in(args)[i]);
  return 0;
}

// Kernels of (A, const W, C) with prepared memory behind them, f32[1000] each: C = A + 2 * W.

int32_t doubles(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i)
    static_cast<float*>(args[3])[i] = 2 * static_cast<const float*>(args[1])[i];
  return 0;
}

int32_t adds_prepared(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i)
    static_cast<float*>(args[2])[i] = in(args)[i] + static_cast<const float*>(args[3])[i];
  return 0;
}

int32_t reads_a_constant(void* const* args, void*, const PrunercLaunch*) {
  for (int64_t i = 0; i < kSize; ++i)
    static_cast<float*>(args[2])[i] = in(args)[i] + 2 * static_cast<const float*>(args[1])[i];
  return 0;
}

int32_t changes_prepared(void* const* args, void* workspace, const PrunercLaunch* launch) {
  static_cast<float*>(args[3])[zero + 7] += 1;
  return adds_prepared(args, workspace, launch);
}

int32_t doubles_too_much(void* const* args, void* workspace, const PrunercLaunch* launch) {
  static_cast<float*>(args[3])[zero + kSize] = 1;
  return doubles(args, workspace, launch);
}

int32_t doubles_an_input(void* const* args, void* workspace, const PrunercLaunch* launch) {
  static_cast<float*>(args[3])[0] = in(args)[0];
  return doubles(args, workspace, launch);
}

int32_t fails_to_prepare(void* const*, void*, const PrunercLaunch*) { return 7; }

// Wrong once its constants have been in the same place for a while.
int32_t wants_constants_to_move(void* const* args, void* workspace, const PrunercLaunch* launch) {
  static const void* last = nullptr;
  static int calls = 0;
  calls = args[3] == last ? calls + 1 : 0;
  last = args[3];
  const int32_t code = adds_prepared(args, workspace, launch);
  if (calls > 20) static_cast<float*>(args[2])[0] += 1;
  return code;
}

}  // extern "C"
