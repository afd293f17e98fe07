/* What the libraries that prunerc compiles for CPUs have in common; each one's header repeats it. */
#ifndef PRUNERC_LIBRARY_H_
#define PRUNERC_LIBRARY_H_

#include <stdint.h>

/* What a call returns when it has done nothing; 0 is success. */
enum {
  PRUNERC_ERROR_ARGUMENT =
      1,                    /* a null or misaligned array, an overlap, a tensor that does not fit */
  PRUNERC_ERROR_CPU = 2,    /* this CPU lacks features that the code needs, or the system refuses
                               them: tile registers (AMX) want 12 KB of each signal stack. A
                               process that got them, at its first call, keeps them: from then on
                               sigaltstack fails with a smaller one */
  PRUNERC_ERROR_MEMORY = 3, /* no memory for the workspace */
  PRUNERC_ERROR_LAUNCH = 4, /* the given parallel_for failed, or numbers its workers otherwise:
                               outputs are unfinished */
  PRUNERC_ERROR_SIZES = 5,  /* none of the sizes that the library was compiled for */
  PRUNERC_ERROR_WEIGHTS = 6 /* the file of weights is missing, or is not the library's */
};

typedef struct PrunercParam {
  const char* name;
  const char* dtype; /* "f32" */
  int32_t is_output;
  int32_t ndim; /* 0: one element */
  const int64_t* shape;
} PrunercParam;

typedef struct PrunercInfo {
  const char* name;           /* of the operator */
  const char* symbol;         /* of the function */
  const char* bindings;       /* "M=512,N=512"; empty if there are none */
  const char* version;        /* of the prunerc that compiled it */
  int64_t record_id;          /* of the tuning record, in the database it came from; 0: none */
  const char* record_version; /* of the prunerc that tuned it; empty without a record */
  double tuned_ns;            /* what one call took when it was tuned; 0 without a record */
  double flops;               /* of one call */
  const char* target;         /* "cpu", "cpu:haswell" */
  const char* cpu;            /* "znver4" */
  const char* features;       /* that the CPU must have: "avx2,fma" */
  int32_t num_threads;        /* that it was tuned for; 1: it has no pool */
  int32_t num_params;
  const PrunercParam* params;         /* in the order of the arguments */
  int64_t workspace_bytes;            /* of the low-level entry, for all workers */
  int64_t workspace_bytes_per_worker; /* and for each one more */
  int32_t num_constants;              /* inputs that are given to _prepare and not to the call */
  const PrunercParam* constants;      /* in the order of _prepare's arguments */
  int64_t prepared_bytes;             /* that _prepare fills; 0: there is no _prepare */
  int32_t num_sizes; /* so many of these stand one behind the other: one for each combination of
                        the sizes that a net was compiled for, which `bindings` says */
} PrunercInfo;

#endif /* PRUNERC_LIBRARY_H_ */
