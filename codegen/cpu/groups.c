// What control groups allow the process. Stands behind launcher.c in libraries that ask for it: those with
// pool.c or weights.c.

enum { PR_GROUP_ROOM = 1024 };

// Takes the numbers of a file into account.
typedef void (*pr_cut)(const long long* numbers, void* most);

static int pr_read_numbers(const char* path, long long* numbers, int most) {
  FILE* const file = fopen(path, "re");
  if (file == NULL) return 0;
  int count = 0;
  while (count < most && fscanf(file, "%lld", &numbers[count]) == 1) ++count;
  fclose(file);
  return count;
}

// The control group of the process in the controller's hierarchy, as "/a/b"; "" if there is none. The
// unified one has no controller's name.
static void pr_own_group(const char* controller, char* group, int room) {
  *group = 0;
  FILE* const file = fopen("/proc/self/cgroup", "re");
  if (file == NULL) return;
  const size_t length = strlen(controller);
  char line[PR_GROUP_ROOM];
  while (*group == 0 && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    // "4:memory:/a/b"
    const char* const names = strchr(line, ':');
    if (names != NULL && strncmp(names + 1, controller, length) == 0 && names[1 + length] == ':')
      snprintf(group, (size_t)room, "%s", names + 2 + length);
  }
  fclose(file);
}

// By the file of that name in the process's group and in those around it, below `root`, where it has
// `num` numbers, two at most.
static void pr_cut_to_groups(const char* root, const char* controller, const char* name, int num,
                             pr_cut cut, void* most) {
  long long numbers[2];
  char group[PR_GROUP_ROOM], path[PR_GROUP_ROOM + 64];
  pr_own_group(controller, group, sizeof group);
  for (;;) {
    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    if (pr_read_numbers(path, numbers, num) == num) cut(numbers, most);
    char* const last = strrchr(group, '/');
    if (last == NULL) break;
    *last = 0;
  }
}
