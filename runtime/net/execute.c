#include "runtime/net/execute.h"

#include <stddef.h>

static void* address_of(const PrunercNetArg* arg, void* const* io, void* arena,
                        const void* weights) {
  switch (arg->place) {
    case PRUNERC_PLACE_IO: return io[arg->at];
    case PRUNERC_PLACE_ARENA: return (char*)arena + arg->at;
    /* The ABI has one array of pointers; kernels only read prepared memory. */
    case PRUNERC_PLACE_WEIGHTS: return (char*)(uintptr_t)weights + arg->at;
    case PRUNERC_PLACE_NONE: break;
  }
  return NULL;
}

int32_t prunerc_net_run(const PrunercNetStep* steps, int32_t first, int32_t end, void* const* io,
                        void* arena, const void* weights, void* workspace,
                        const PrunercLaunch* launch, int32_t* failed) {
  for (int32_t i = first; i < end; ++i) {
    void* args[PRUNERC_NET_MAX_ARGS];
    for (int32_t a = 0; a < steps[i].num_args; ++a)
      args[a] = address_of(&steps[i].args[a], io, arena, weights);
    const int32_t code = steps[i].kernel(args, workspace, launch);
    if (code == 0) continue;
    if (failed != NULL) *failed = i;
    return code;
  }
  return 0;
}
