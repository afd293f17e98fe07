/* Runs a net: a table of kernels and of where their arguments lie. C11, since it is part of libraries
 * that need nothing but libc; the compiler runs the same code, so that what is verified is what is
 * shipped. */
#ifndef PRUNERC_RUNTIME_NET_EXECUTE_H_
#define PRUNERC_RUNTIME_NET_EXECUTE_H_

#include "runtime/kernel.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum PrunercPlace {
  PRUNERC_PLACE_NONE,    /* a parameter that the kernel does not read: the address is null */
  PRUNERC_PLACE_IO,      /* an input or output of the net; `at` is its number, inputs first */
  PRUNERC_PLACE_ARENA,   /* `at` bytes into the arena */
  PRUNERC_PLACE_WEIGHTS, /* `at` bytes into the prepared weights */
} PrunercPlace;

typedef struct PrunercNetArg {
  PrunercPlace place;
  int64_t at;
} PrunercNetArg;

typedef struct PrunercNetStep {
  PrunercKernel kernel;
  const PrunercNetArg* args;
  int32_t num_args; /* at most PRUNERC_NET_MAX_ARGS */
} PrunercNetStep;

enum { PRUNERC_NET_MAX_ARGS = 128 };

/* Runs steps first .. end-1 in order. `io` holds the addresses of the net's inputs, then of its
 * outputs, aligned as their elements are; in `arena` lie its intermediate tensors; `workspace` is as
 * large as the most demanding kernel needs it. Both and `weights` are aligned to PRUNERC_ALIGNMENT.
 * Returns 0, or what the first kernel returned that did not succeed, whose number is then in
 * `*failed`. No allocation; any number of threads at once, each with its own io, arena, workspace and
 * launch. */
int32_t prunerc_net_run(const PrunercNetStep* steps, int32_t first, int32_t end, void* const* io,
                        void* arena, const void* weights, void* workspace,
                        const PrunercLaunch* launch, int32_t* failed);

#ifdef __cplusplus
}
#endif

#endif /* PRUNERC_RUNTIME_NET_EXECUTE_H_ */
