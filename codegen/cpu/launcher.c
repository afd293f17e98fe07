// Calls the kernel of an exported CPU library. In front of it stand the library's header, its
// tables and arguments.c; behind it, where it was tuned for several threads, pool.c, and the exported
// functions. A net that was compiled for several sizes has a kernel for each combination of them, whose
// number is `sizes`; others have the kernel number 0. Built without flags for a CPU, so that it runs where the kernel does not.
// PR_USES_TILES: the kernel uses tile registers (AMX).

enum { PR_DLPACK_CPU = 1, PR_DLPACK_CUDA_HOST = 3, PR_DLPACK_ROCM_HOST = 11 };
enum { PR_MXCSR = 0x1f80, PR_MXCSR_FLAGS = 0x3f };  // what a process starts with

static PrunercKernel pr_kernel_of(int sizes);
#ifdef PR_WEIGHTS_NAME
// Makes sure of what is not in the library itself: PR_OK, or why it cannot run. After PR_OK it
// stays until pr_unload.
static int pr_load(void);
static void pr_unload(void);
#else
static int pr_load(void) { return PR_OK; }
static void pr_unload(void) {}
#endif

#if PR_NUM_CONSTANTS > 0
__attribute__((visibility("hidden"))) int32_t PR_PREPARE(void* const* args, void* workspace,
                                                         const PrunercLaunch* launch);
#endif

static int32_t pr_run_serially(int64_t num_tasks, PrunercTask body, void* closure) {
  for (int64_t task = 0; task < num_tasks; ++task) body(task, 0, closure);
  return 0;
}

// ---- the CPU ----

static int pr_has(const pr_feature* feature) {
  unsigned registers[4];
  if (!__get_cpuid_count(feature->leaf, feature->subleaf, &registers[0], &registers[1],
                         &registers[2], &registers[3]))
    return 0;
  return (registers[feature->where] >> feature->bit & 1) != 0;
}

// The registers that the operating system keeps when it switches threads.
static uint64_t pr_kept_registers(void) {
  unsigned a = 0, b = 0, c = 0, d = 0, high = 0;
  const unsigned has_xgetbv = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & has_xgetbv) == 0) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | a;
}

static int pr_say_missing(void) {
  const uint64_t kept = pr_kept_registers();
  char names[400] = "";
  size_t length = 0;
  for (int i = 0; i < PR_NUM_FEATURES; ++i) {
    const pr_feature* const f = &pr_features[i];
    if (pr_has(f) && (kept & f->registers) == f->registers) continue;
    const size_t more = strlen(f->name) + (length == 0 ? 0 : 2);
    if (length + more >= sizeof names) break;
    snprintf(names + length, sizeof names - length, "%s%s", length == 0 ? "" : ", ", f->name);
    length += more;
  }
  if (length == 0) return PR_OK;
  return pr_fail(PRUNERC_ERROR_CPU, "the code needs %s, which this CPU lacks", names);
}

// The system keeps tile registers for the threads of a process that has asked for them, once; a
// forked child may use them, too.
static int pr_ask_for_tiles(void) {
#if PR_USES_TILES
  enum { PR_ARCH_REQ_XCOMP_PERM = 0x1023, PR_TILE_DATA = 18 };
  if (syscall(SYS_arch_prctl, PR_ARCH_REQ_XCOMP_PERM, PR_TILE_DATA) != 0)
    return pr_fail(PRUNERC_ERROR_CPU,
                   "the code needs amx-tile, which the system does not let this process use%s",
                   errno == ENOSPC ? ": a thread's signal stack has less than 12 KB" : "");
#endif
  return PR_OK;
}

static int pr_check_cpu(void) {
  static _Atomic int is_fine;
  if (atomic_load_explicit(&is_fine, memory_order_relaxed)) return PR_OK;
  int code = pr_say_missing();
  if (code == PR_OK) code = pr_ask_for_tiles();
  if (code == PR_OK) atomic_store_explicit(&is_fine, 1, memory_order_relaxed);
  return code;
}

// ---- workspaces: one for each caller, kept for the next ones ----

enum { PR_WORKSPACE_ALIGNMENT = 64, PR_HUGE_PAGE = 2 << 20, PR_MAX_KEPT = 16 };

// In front of a workspace, in one alignment's room.
typedef struct {
  int64_t bytes;
} pr_block;

static _Atomic(pr_block*) pr_kept[PR_MAX_KEPT];

static void* pr_take_workspace(int64_t bytes) {
  for (int i = 0; i < PR_MAX_KEPT; ++i) {
    if (atomic_load_explicit(&pr_kept[i], memory_order_relaxed) == NULL) continue;
    pr_block* const block = atomic_exchange_explicit(&pr_kept[i], NULL, memory_order_acquire);
    if (block != NULL && block->bytes >= bytes) return (char*)block + PR_WORKSPACE_ALIGNMENT;
    free(block);
  }
  const size_t room = (size_t)bytes + PR_WORKSPACE_ALIGNMENT;
  const int is_large = bytes >= 2 * PR_HUGE_PAGE;
  void* memory = NULL;
  if (posix_memalign(&memory, is_large ? PR_HUGE_PAGE : PR_WORKSPACE_ALIGNMENT, room) != 0)
    return NULL;
  // Fewer misses of the TLB. The end may share its page with others' memory, and stays as it is.
  if (is_large) madvise(memory, room / PR_HUGE_PAGE * PR_HUGE_PAGE, MADV_HUGEPAGE);
  ((pr_block*)memory)->bytes = bytes;
  return (char*)memory + PR_WORKSPACE_ALIGNMENT;
}

static void pr_give_workspace(void* workspace) {
  pr_block* const block = (pr_block*)(void*)((char*)workspace - PR_WORKSPACE_ALIGNMENT);
  for (int i = 0; i < PR_MAX_KEPT; ++i) {
    pr_block* empty = NULL;
    if (atomic_compare_exchange_strong_explicit(&pr_kept[i], &empty, block, memory_order_release,
                                                memory_order_relaxed))
      return;
  }
  free(block);
}

__attribute__((destructor)) static void pr_free_workspaces(void) {
  for (int i = 0; i < PR_MAX_KEPT; ++i)
    free(atomic_exchange_explicit(&pr_kept[i], NULL, memory_order_acquire));
}

// ---- the call ----

static int32_t pr_parallel_for(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                               void* closure);
static int32_t pr_num_workers(void);
static const PrunercLaunch* _Atomic pr_given_launch;

enum { PR_NUM_ARGUMENTS = PR_NUM_PARAMS - PR_NUM_CONSTANTS };

static const pr_param* pr_params_of(int sizes) { return pr_params + sizes * PR_NUM_PARAMS; }

// `args` has a place for each parameter and one for prepared memory. Those of parameters with
// another `is_const` are empty.
static int pr_check_arrays(int sizes, void* const* args, int is_const) {
  const pr_param* const params = pr_params_of(sizes);
  pr_address at[PR_NUM_PARAMS];
  for (int i = 0; i < PR_NUM_PARAMS; ++i) {
    at[i] = (pr_address)(uintptr_t)args[i];
    if (params[i].is_const != is_const) continue;
    const int code = pr_check_address(at[i], params[i].bits / 8, &params[i], params[i].number);
    if (code != PR_OK) return code;
  }
  return pr_check_overlap(params, at);
}

// From the arguments of a call to those of the code.
static void pr_place(void* const* given, int is_const, void** args) {
  int next = 0;
  for (int i = 0; i < PR_NUM_PARAMS; ++i)
    args[i] = pr_params[i].is_const == is_const ? given[next++] : NULL;
}

static int pr_check_launch(const PrunercLaunch* launch) {
  if (launch == NULL || launch->parallel_for == NULL || launch->num_workers < 1)
    return pr_fail(PR_ARGUMENT, "a launch needs a parallel_for and at least 1 worker");
  return PR_OK;
}

// Kernels round to nearest and keep subnormal numbers, whatever a thread has set. Returns what it had.
static unsigned pr_set_mode(void) {
  const unsigned before = _mm_getcsr();
  if ((before & ~(unsigned)PR_MXCSR_FLAGS) != PR_MXCSR) _mm_setcsr(PR_MXCSR);
  return before;
}

static void pr_restore_mode(unsigned before) {
  if ((before & ~(unsigned)PR_MXCSR_FLAGS) != PR_MXCSR) _mm_setcsr(before);
}

// A launch of the user's, whose threads have settings of their own, and which may number them wrongly.
typedef struct {
  const PrunercLaunch* launch;
  _Atomic int has_other_workers;
} pr_given;

typedef struct {
  pr_given* given;
  PrunercTask body;
  void* closure;
} pr_loop;

static void pr_run_given_task(int64_t task, int32_t worker, void* loop) {
  const pr_loop* const of = (const pr_loop*)loop;
  // Each has a place of its own in the workspace, if there is any for workers.
  if (PR_WORKSPACE_BYTES_PER_WORKER > 0 &&
      (worker < 0 || worker >= of->given->launch->num_workers)) {
    atomic_store_explicit(&of->given->has_other_workers, 1, memory_order_relaxed);
    return;
  }
  const unsigned before = pr_set_mode();
  of->body(task, worker, of->closure);
  pr_restore_mode(before);
}

static int32_t pr_parallel_for_given(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                                     void* closure) {
  pr_given* const given = (pr_given*)self->context;
  pr_loop loop = {given, body, closure};
  const int32_t code =
      given->launch->parallel_for(given->launch, num_tasks, pr_run_given_task, &loop);
  // The kernel gives up.
  const int is_wrong = atomic_load_explicit(&given->has_other_workers, memory_order_relaxed);
  return code == 0 && is_wrong ? -1 : code;
}

static int pr_compute(PrunercKernel code_of, void* const* args, void* workspace,
                      const PrunercLaunch* launch) {
  pr_given given = {launch, 0};
  const PrunercLaunch checked = {pr_parallel_for_given, launch->num_workers, &given};
  const unsigned before = pr_set_mode();
  const int32_t code =
      code_of(args, workspace, launch->parallel_for == pr_parallel_for ? launch : &checked);
  pr_restore_mode(before);
  if (atomic_load_explicit(&given.has_other_workers, memory_order_relaxed))
    return pr_fail(PRUNERC_ERROR_LAUNCH, "the given parallel_for has other workers than 0 to %d",
                   (int)launch->num_workers - 1);
  if (code == 0) return PR_OK;
  return pr_fail(PRUNERC_ERROR_LAUNCH, "the given parallel_for returned %d", (int)code);
}

static int pr_launch(PrunercKernel code_of, void* const* args) {
  const PrunercLaunch own = {pr_parallel_for, pr_num_workers(), NULL};
  const PrunercLaunch* const given = atomic_load_explicit(&pr_given_launch, memory_order_acquire);
  const PrunercLaunch* const launch = given != NULL ? given : &own;
  int code = pr_check_launch(launch);
  if (code != PR_OK) return code;
  if (PR_WORKSPACE_BYTES + PR_WORKSPACE_BYTES_PER_WORKER == 0)
    return pr_compute(code_of, args, NULL, launch);
  const int64_t bytes =
      PR_WORKSPACE_BYTES + PR_WORKSPACE_BYTES_PER_WORKER * (int64_t)launch->num_workers;
  void* const workspace = pr_take_workspace(bytes);
  if (workspace == NULL)
    return pr_fail(PRUNERC_ERROR_MEMORY, "no memory for a workspace of %lld bytes",
                   (long long)bytes);
  code = pr_compute(code_of, args, workspace, launch);
  pr_give_workspace(workspace);
  return code;
}

#if PR_NUM_CONSTANTS > 0
// ---- constants ----

enum { PR_PREPARED_ALIGNMENT = 64 };

// In front of prepared constants, in one alignment's room: who wrote them.
typedef struct {
  uint64_t key;  // PR_PREPARED_KEY once all is written
} pr_prepared;

static int pr_check_memory(const void* prepared) {
  if (prepared == NULL) return pr_fail(PR_ARGUMENT, "the prepared memory is NULL");
  if ((uintptr_t)prepared % PR_PREPARED_ALIGNMENT != 0)
    return pr_fail(PR_ARGUMENT, "the prepared memory is not aligned to %d bytes",
                   PR_PREPARED_ALIGNMENT);
  return PR_OK;
}

static int pr_check_prepared(const void* prepared) {
  const int code = pr_check_memory(prepared);
  if (code != PR_OK || ((const pr_prepared*)prepared)->key == PR_PREPARED_KEY) return code;
  return pr_fail(PR_ARGUMENT, "the prepared memory was not filled by this library's %s",
                 PR_PREPARE_NAME);
}

// Of the prepared memory with arrays that are written, or where it is written itself, with all.
static int pr_check_apart(const void* prepared, void* const* args, int is_written) {
  const pr_address from = (pr_address)(uintptr_t)prepared, to = from + PR_PREPARED_BYTES;
  for (int i = 0; i < PR_NUM_PARAMS; ++i) {
    const pr_address at = (pr_address)(uintptr_t)args[i];
    if (at == 0 || (!is_written && !pr_params[i].is_output)) continue;
    if (at >= to || from >= at + (pr_address)pr_size(&pr_params[i])) continue;
    return pr_fail(PR_ARGUMENT, "the prepared memory overlaps argument %d (%s)", pr_params[i].number,
                   pr_params[i].name);
  }
  return PR_OK;
}

static void* pr_payload(const void* prepared) {
  return (char*)(uintptr_t)prepared + PR_PREPARED_ALIGNMENT;
}

static int pr_prepare_constants(void* const* constants, void* prepared) {
  void* args[PR_NUM_PARAMS + 1];
  pr_place(constants, 1, args);
  int code = pr_check_cpu();
  if (code == PR_OK) code = pr_check_arrays(0, args, 1);
  if (code == PR_OK) code = pr_check_memory(prepared);
  if (code == PR_OK) code = pr_check_apart(prepared, args, 1);
  if (code != PR_OK) return code;
  args[PR_NUM_PARAMS] = pr_payload(prepared);
  ((pr_prepared*)prepared)->key = 0;
  code = pr_launch(PR_PREPARE, args);
  if (code == PR_OK) ((pr_prepared*)prepared)->key = PR_PREPARED_KEY;
  return code;
}
#endif

// `prepared` is NULL and not looked at in a library without constants.
static int pr_run(int sizes, void* const* given, const void* prepared) {
  void* args[PR_NUM_PARAMS + 1];
  pr_place(given, 0, args);
  args[PR_NUM_PARAMS] = NULL;
  int code = pr_check_cpu();
  if (code == PR_OK) code = pr_check_arrays(sizes, args, 0);
#if PR_NUM_CONSTANTS > 0
  if (code == PR_OK) code = pr_check_prepared(prepared);
  if (code == PR_OK) code = pr_check_apart(prepared, args, 0);
  if (code == PR_OK) args[PR_NUM_PARAMS] = pr_payload(prepared);
#else
  (void)prepared;
#endif
  if (code == PR_OK) code = pr_load();
  if (code != PR_OK) return code;
  code = pr_launch(pr_kernel_of(sizes), args);
  pr_unload();
  return code;
}

static int pr_check_tensor(const pr_tensor* t, const pr_param* p, int i) {
  if (t == NULL) return pr_fail(PR_ARGUMENT, "argument %d (%s) is NULL", i, p->name);
  if (t->device_type != PR_DLPACK_CPU && t->device_type != PR_DLPACK_CUDA_HOST &&
      t->device_type != PR_DLPACK_ROCM_HOST)
    return pr_fail(PR_ARGUMENT, "argument %d (%s) is not in the memory of the CPU", i, p->name);
  const int code = pr_check_type(t, p, i);
  return code == PR_OK ? pr_check_shape(t, p, i) : code;
}

// The addresses of tensors that are the parameters with this `is_const`.
static int pr_addresses(int sizes, const pr_tensor* const* tensors, int32_t num_tensors,
                        int is_const, void** args) {
  const pr_param* const params = pr_params_of(sizes);
  const int wanted = is_const ? PR_NUM_CONSTANTS : PR_NUM_ARGUMENTS;
  if (num_tensors != wanted || tensors == NULL)
    return pr_fail(PR_ARGUMENT, "%d arguments, not %d", tensors == NULL ? 0 : (int)num_tensors,
                   wanted);
  int next = 0;
  for (int i = 0; i < PR_NUM_PARAMS; ++i) {
    if (params[i].is_const != is_const) continue;
    const int code = pr_check_tensor(tensors[next], &params[i], params[i].number);
    if (code != PR_OK) return code;
    args[next] = (void*)(uintptr_t)pr_address_of(tensors[next]);
    ++next;
  }
  return PR_OK;
}

static int pr_run_tensors(int sizes, const pr_tensor* const* tensors, int32_t num_tensors,
                          const void* prepared) {
  void* args[PR_NUM_PARAMS];
  const int code = pr_addresses(sizes, tensors, num_tensors, 0, args);
  return code == PR_OK ? pr_run(sizes, args, prepared) : code;
}

#if PR_NUM_CONSTANTS > 0
static int pr_prepare_tensors(const pr_tensor* const* tensors, int32_t num_tensors,
                              void* prepared) {
  void* args[PR_NUM_PARAMS];
  const int code = pr_addresses(0, tensors, num_tensors, 1, args);
  return code == PR_OK ? pr_prepare_constants(args, prepared) : code;
}
#endif

static int pr_run_kernel(int sizes, void* const* given, void* workspace,
                         const PrunercLaunch* launch) {
  int code = pr_check_cpu();
  if (code == PR_OK) code = pr_check_launch(launch);
  if (code != PR_OK) return code;
  if (given == NULL) return pr_fail(PR_ARGUMENT, "there are no arguments");
  const int has_workspace = PR_WORKSPACE_BYTES + PR_WORKSPACE_BYTES_PER_WORKER > 0;
  if (has_workspace && workspace == NULL) return pr_fail(PR_ARGUMENT, "there is no workspace");
  if (has_workspace && (uintptr_t)workspace % PR_WORKSPACE_ALIGNMENT != 0)
    return pr_fail(PR_ARGUMENT, "the workspace is not aligned to %d bytes", PR_WORKSPACE_ALIGNMENT);
#if PR_NUM_CONSTANTS > 0
  void* args[PR_NUM_PARAMS + 1];
  pr_place(given, 0, args);
  code = pr_check_prepared(given[PR_NUM_ARGUMENTS]);
  if (code != PR_OK) return code;
  args[PR_NUM_PARAMS] = pr_payload(given[PR_NUM_ARGUMENTS]);
  given = args;
#endif
  code = pr_load();
  if (code != PR_OK) return code;
  code = pr_compute(pr_kernel_of(sizes), given, workspace, launch);
  pr_unload();
  return code;
}

#if PR_NUM_THREADS == 1
static int32_t pr_parallel_for(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                               void* closure) {
  (void)self;
  return pr_run_serially(num_tasks, body, closure);
}
static int32_t pr_num_workers(void) { return 1; }
#endif
