// Of a library of a net whose weights lie in a file: finds it, maps it, looks whether it is the one, and
// brings it into huge pages. In front of it stand PR_WEIGHTS_NAME, PR_WEIGHTS_BYTES, PR_WEIGHTS_KEY and groups.c.

enum { PR_WEIGHTS_ALIGNMENT = 64, PR_WEIGHTS_LANES = 8, PR_WEIGHTS_GONE = INT_MIN / 2 };

// Without a lock: one that is held while another thread forks would stay locked in the child.
static const void* _Atomic pr_weights;
static void* _Atomic pr_weights_map;   // where they were mapped, and not given
static void* _Atomic pr_weights_copy;  // of PR_COPY_ROOM bytes
static _Atomic int pr_weights_users;   // calls that may read them; once unmapped, below 0
static char pr_no_weights[1];          // a map of no bytes, which no system makes

// The same as weights_key in export_net.cc.
static uint64_t pr_weights_key(const unsigned char* bytes) {
  uint64_t lanes[PR_WEIGHTS_LANES] = {0};
  const int64_t stride = 8 * PR_WEIGHTS_LANES;
  for (int64_t at = 0; at < PR_WEIGHTS_BYTES; at += stride) {
    uint64_t words[PR_WEIGHTS_LANES] = {0};
    const int64_t left = PR_WEIGHTS_BYTES - at;
    memcpy(words, bytes + at, (size_t)(left < stride ? left : stride));
    for (int i = 0; i < PR_WEIGHTS_LANES; ++i) {
      const uint64_t mixed = (lanes[i] ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
      lanes[i] = mixed ^ mixed >> 29;
    }
  }
  uint64_t key = (uint64_t)PR_WEIGHTS_BYTES;
  for (int i = 0; i < PR_WEIGHTS_LANES; ++i) {
    key = (key ^ lanes[i]) * UINT64_C(0xBF58476D1CE4E5B9);
    key ^= key >> 32;
  }
  return key;
}

static int pr_check_weights(const void* bytes, const char* what) {
  if (pr_weights_key((const unsigned char*)bytes) == PR_WEIGHTS_KEY) return PR_OK;
  return pr_fail(PRUNERC_ERROR_WEIGHTS, "%s: not the bytes that this library was compiled with",
                 what);
}

// The path of what this code lies in, which may have been moved since; 0 if it cannot be told.
static int pr_own_path(char* path, size_t room) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return 0;
  const unsigned long own = (unsigned long)(uintptr_t)&pr_own_path;
  char line[PATH_MAX + 128];
  int found = 0;
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from = 0, to = 0;
    int name = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &name) != 2 || name == 0) continue;
    if (own < from || own >= to) continue;
    line[strcspn(line, "\n")] = 0;
    found = line[name] == '/' && strlen(line + name) < room;
    if (found) strcpy(path, line + name);
    break;
  }
  fclose(maps);
  return found;
}

static void* pr_map_file(int file) {
  if (PR_WEIGHTS_BYTES == 0) return pr_no_weights;
  return mmap(NULL, (size_t)PR_WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
}

static void pr_unmap(void* bytes) {
  if (PR_WEIGHTS_BYTES > 0) munmap(bytes, (size_t)PR_WEIGHTS_BYTES);
}

// ---- huge pages ----

#define PR_COPY_ROOM ((size_t)(PR_WEIGHTS_BYTES / PR_HUGE_PAGE + 2) * PR_HUGE_PAGE)
enum { PR_COPY_SHARE = 4 };  // of the process's memory it takes a fourth at most

static int pr_is_copy_wished(void) {
  const char* const wish = getenv("PRUNERC_COPY_WEIGHTS");
  return wish == NULL || strcmp(wish, "0") != 0;
}

static int pr_has_huge_pages(void) {
  FILE* const file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
  if (file == NULL) return 0;
  char line[64];
  const int is_on = fgets(line, sizeof line, file) != NULL && strstr(line, "[never]") == NULL;
  fclose(file);
  return is_on;
}

static void pr_cut_to_limit(const long long* limit, void* most) {
  int64_t* const bytes = (int64_t*)most;
  if (*limit < *bytes) *bytes = *limit;
}

// By what the machine has left, where it says so.
static void pr_cut_to_available(int64_t* most) {
  FILE* const file = fopen("/proc/meminfo", "re");
  if (file == NULL) return;
  char line[128];
  long long kilobytes = INT64_MAX / 1024;
  while (fgets(line, sizeof line, file) != NULL &&
         sscanf(line, "MemAvailable: %lld", &kilobytes) != 1) {
  }
  fclose(file);
  const long long bytes = kilobytes * 1024;
  pr_cut_to_limit(&bytes, most);
}

// Pages of a file can be had back and are shared by processes; those of a copy cannot and are not.
static int pr_has_room_for_copy(void) {
  int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  pr_cut_to_available(&most);
  pr_cut_to_groups("/sys/fs/cgroup", "", "memory.max", 1, pr_cut_to_limit, &most);
  // The first version of control groups.
  pr_cut_to_groups("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", 1, pr_cut_to_limit,
                   &most);
  return PR_WEIGHTS_BYTES <= most / PR_COPY_SHARE;
}

// A file's pages are small, and a kernel that streams through them is held up by the TLB. So calls that
// begin from here on read a copy; the others go on with the map. Without one all do.
static void pr_copy_weights(void* map) {
  if (PR_WEIGHTS_BYTES <= PR_HUGE_PAGE || !pr_is_copy_wished() || !pr_has_huge_pages() ||
      !pr_has_room_for_copy())
    return;
  void* const copy =
      mmap(NULL, PR_COPY_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;
  char* const bytes = (char*)copy + (0 - (uintptr_t)copy) % PR_HUGE_PAGE;
  if (madvise(bytes, PR_COPY_ROOM - PR_HUGE_PAGE, MADV_HUGEPAGE) != 0) {
    munmap(copy, PR_COPY_ROOM);
    return;
  }
  memcpy(bytes, map, (size_t)PR_WEIGHTS_BYTES);
  mprotect(copy, PR_COPY_ROOM, PROT_READ);
  madvise(copy, PR_COPY_ROOM, MADV_DONTDUMP);
  atomic_store_explicit(&pr_weights_copy, copy, memory_order_release);
  atomic_store_explicit(&pr_weights, bytes, memory_order_release);
  madvise(map, (size_t)PR_WEIGHTS_BYTES, MADV_DONTNEED);
}

// The first ones stay. Returns whether these are.
static int pr_publish_weights(const void* bytes) {
  const void* none = NULL;
  return atomic_compare_exchange_strong_explicit(&pr_weights, &none, bytes, memory_order_acq_rel,
                                                 memory_order_acquire);
}

// Threads that come at once each map and read it, and all but one have done so for nothing.
static int pr_map_weights(const char* path) {
  // Not to wait for the other end of a pipe.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return pr_fail(PRUNERC_ERROR_WEIGHTS, "%s: %s; _load_weights takes another path", path,
                   strerror(errno));
  struct stat status;
  const int is_known = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!is_known || status.st_size != PR_WEIGHTS_BYTES) {
    close(file);
    return pr_fail(PRUNERC_ERROR_WEIGHTS, "%s: not a file of %lld bytes, as this library's is",
                   path, (long long)PR_WEIGHTS_BYTES);
  }
  void* const bytes = pr_map_file(file);
  close(file);
  if (bytes == MAP_FAILED)
    return pr_fail(PRUNERC_ERROR_WEIGHTS, "%s: cannot be mapped: %s", path, strerror(errno));
  const int code = pr_check_weights(bytes, path);
  if (code != PR_OK || !pr_publish_weights(bytes)) {
    pr_unmap(bytes);
    return code;
  }
  pr_copy_weights(bytes);
  // Only now: at exit it may be unmapped.
  atomic_store_explicit(&pr_weights_map, bytes, memory_order_release);
  return PR_OK;
}

static int pr_is_loaded(void) {
  return atomic_load_explicit(&pr_weights, memory_order_acquire) != NULL;
}

static int pr_map_from(const char* path) {
  if (path != NULL) return pr_map_weights(path);
  char beside[PATH_MAX + sizeof PR_WEIGHTS_NAME];
  if (!pr_own_path(beside, PATH_MAX))
    return pr_fail(PRUNERC_ERROR_WEIGHTS, "it cannot be told where the file of weights lies");
  strcpy(strrchr(beside, '/') + 1, PR_WEIGHTS_NAME);
  return pr_map_weights(beside);
}

static int pr_load_weights(const char* path) { return pr_is_loaded() ? PR_OK : pr_map_from(path); }

static int pr_use_weights(const void* bytes, int64_t num_bytes) {
  const int is_missing = bytes == NULL && num_bytes != 0;
  if (is_missing || (uintptr_t)bytes % PR_WEIGHTS_ALIGNMENT != 0)
    return pr_fail(PR_ARGUMENT, "the weights are NULL or not aligned to %d bytes",
                   PR_WEIGHTS_ALIGNMENT);
  if (num_bytes != PR_WEIGHTS_BYTES)
    return pr_fail(PRUNERC_ERROR_WEIGHTS, "the weights have %lld bytes, not %lld",
                   (long long)num_bytes, (long long)PR_WEIGHTS_BYTES);
  const int code = pr_check_weights(bytes, "the weights");
  if (code == PR_OK) pr_publish_weights(bytes == NULL ? pr_no_weights : bytes);
  return code;
}

static void pr_unload(void) {
  atomic_fetch_sub_explicit(&pr_weights_users, 1, memory_order_release);
}

static int pr_load(void) {
  // Counted first: what is there from then on stays.
  const int before = atomic_fetch_add_explicit(&pr_weights_users, 1, memory_order_acquire);
  const int code = before >= 0
                       ? pr_load_weights(NULL)
                       : pr_fail(PRUNERC_ERROR_WEIGHTS, "the weights were unmapped at exit");
  if (code != PR_OK) pr_unload();
  return code;
}

// At exit, and before the code goes away by dlclose. Calls that come later are refused.
__attribute__((destructor)) static void pr_unmap_weights(void) {
  void* const bytes = atomic_load_explicit(&pr_weights_map, memory_order_acquire);
  void* const copy = atomic_load_explicit(&pr_weights_copy, memory_order_acquire);
  int none = 0;
  // Users at exit: some thread still computes, and the process ends with it.
  if (bytes != NULL &&
      atomic_compare_exchange_strong_explicit(&pr_weights_users, &none, PR_WEIGHTS_GONE,
                                              memory_order_acquire, memory_order_relaxed)) {
    pr_unmap(bytes);
    if (copy != NULL) munmap(copy, PR_COPY_ROOM);
  }
}
