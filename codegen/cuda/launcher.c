// Launches the kernels of an exported library. In front of it stand the tables, the cubin that they
// describe and codegen/arguments.c; behind it the exported functions. Needs nothing but
// libcuda.so.1, at the first call.

enum { PR_CUDA = 2 };
enum { PR_MAX_DEVICES = 64, PR_TENSOR_ALIGNMENT = 16 };
enum { PR_DLPACK_CUDA = 2, PR_DLPACK_CUDA_MANAGED = 13 };
enum { PR_MAX_DYNAMIC_SHARED = 8, PR_SHARED_WITHOUT_ASKING = 48 << 10, PR_NO_BINARY = 209 };

// ---- the driver ----

typedef struct {
  _Alignas(64) unsigned char opaque[128];
} pr_map_bits;

#define PR_DRIVER(X)                                                                               \
  X(cuInit, cuInit, (unsigned))                                                                    \
  X(cuGetErrorName, cuGetErrorName, (int, const char**))                                           \
  X(cuDeviceGet, cuDeviceGet, (int*, int))                                                         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void**, int))                             \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (void*))                                                \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (void**))                                                 \
  X(cuModuleLoadData, cuModuleLoadData, (void**, const void*))                                     \
  X(cuModuleUnload, cuModuleUnload, (void*))                                                       \
  X(cuModuleGetFunction, cuModuleGetFunction, (void**, void*, const char*))                        \
  X(cuFuncSetAttribute, cuFuncSetAttribute, (void*, int, int))                                     \
  X(cuMemAllocAsync, cuMemAllocAsync, (pr_address*, size_t, void*))                                \
  X(cuMemFreeAsync, cuMemFreeAsync, (pr_address, void*))                                           \
  X(cuLaunchKernel, cuLaunchKernel,                                                                \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,   \
     void**))

#define PR_DECLARE(name, symbol, params) static int(*pr_##name) params;
PR_DRIVER(PR_DECLARE)
#undef PR_DECLARE
// NULL in drivers before CUDA 12: what only kernels with maps need.
static int (*pr_cuTensorMapEncodeTiled)(pr_map_bits*, int, unsigned, void*, const uint64_t*,
                                        const uint64_t*, const unsigned*, const unsigned*, int, int,
                                        int, int);
static int (*pr_cuTensorMapEncodeIm2col)(pr_map_bits*, int, unsigned, void*, const uint64_t*,
                                         const uint64_t*, const int*, const int*, unsigned,
                                         unsigned, const unsigned*, int, int, int, int);

static int pr_cuda(int code, const char* call) {
  if (code == 0) return PR_OK;
  const char* name = NULL;
  if (pr_cuGetErrorName(code, &name) != 0 || name == NULL) name = "an unknown error";
  return pr_fail(PR_CUDA, "%s: %s (%d)", call, name, code);
}
#define PR_TRY(name, ...)                                        \
  do {                                                           \
    const int pr_code = pr_cuda(pr_##name(__VA_ARGS__), #name);  \
    if (pr_code != PR_OK) return pr_code;                        \
  } while (0)

static int pr_open_driver(void) {
  const char* path = getenv("PRUNERC_LIBCUDA");
  if (path == NULL || *path == 0) path = "libcuda.so.1";
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return pr_fail(PR_CUDA, "no CUDA driver: %s", dlerror());
#define PR_FIND(name, symbol, params)                                        \
  *(void**)&pr_##name = dlsym(library, #symbol);                             \
  if (pr_##name == NULL) return pr_fail(PR_CUDA, "%s lacks " #symbol, path);
  PR_DRIVER(PR_FIND)
#undef PR_FIND
  *(void**)&pr_cuTensorMapEncodeTiled = dlsym(library, "cuTensorMapEncodeTiled");
  *(void**)&pr_cuTensorMapEncodeIm2col = dlsym(library, "cuTensorMapEncodeIm2col");
  return pr_cuda(pr_cuInit(0), "cuInit");
}

// ---- the module, once for each device; kept until the process ends ----

typedef struct {
  int ready;
  void* context;
  void* functions[PR_NUM_LAUNCHES];
} pr_loaded;

static pr_loaded pr_devices[PR_MAX_DEVICES];
static int pr_driver_ready;
static pthread_mutex_t pr_lock = PTHREAD_MUTEX_INITIALIZER;

static int pr_find_functions(void* module, pr_loaded* loaded) {
  for (int i = 0; i < PR_NUM_LAUNCHES; ++i) {
    const pr_launch* const launch = &pr_launches[i];
    PR_TRY(cuModuleGetFunction, &loaded->functions[i], module, launch->kernel);
    if (launch->shared_bytes > PR_SHARED_WITHOUT_ASKING) {
      PR_TRY(cuFuncSetAttribute, loaded->functions[i], PR_MAX_DYNAMIC_SHARED,
             (int)launch->shared_bytes);
    }
  }
  return PR_OK;
}

static int pr_load_module(pr_loaded* loaded) {
  void* module = NULL;
  int loaded_code = pr_cuModuleLoadData(&module, pr_cubin);
  // A cubin runs on later GPUs of its generation only; the driver compiles PTX for all later ones.
  if (loaded_code == PR_NO_BINARY && sizeof pr_ptx > 1) {
    loaded_code = pr_cuModuleLoadData(&module, pr_ptx);
  }
  if (loaded_code != 0) return pr_cuda(loaded_code, "cuModuleLoadData");
  const int code = pr_find_functions(module, loaded);
  if (code != PR_OK) pr_cuModuleUnload(module);
  return code;
}

static int pr_prepare(int device, pr_loaded* loaded) {
  if (!pr_driver_ready) {
    const int code = pr_open_driver();
    if (code != PR_OK) return code;
    pr_driver_ready = 1;
  }
  if (loaded->ready) return PR_OK;
  int handle = 0;
  PR_TRY(cuDeviceGet, &handle, device);
  if (loaded->context == NULL) PR_TRY(cuDevicePrimaryCtxRetain, &loaded->context, handle);
  PR_TRY(cuCtxPushCurrent, loaded->context);
  const int code = pr_load_module(loaded);
  void* popped = NULL;
  pr_cuCtxPopCurrent(&popped);
  loaded->ready = code == PR_OK;
  return code;
}

static int pr_on_device(int device, const pr_loaded** out) {
  pthread_mutex_lock(&pr_lock);
  const int code = pr_prepare(device, &pr_devices[device]);
  pthread_mutex_unlock(&pr_lock);
  *out = &pr_devices[device];
  return code;
}

// ---- arguments ----

static int pr_check(const pr_tensor* t, const pr_param* p, int i, int device) {
  if (t == NULL) return pr_fail(PR_ARGUMENT, "argument %d (%s) is NULL", i, p->name);
  if (t->device_type != PR_DLPACK_CUDA && t->device_type != PR_DLPACK_CUDA_MANAGED)
    return pr_fail(PR_ARGUMENT, "argument %d (%s) is not on a CUDA device", i, p->name);
  if (t->device_id < 0 || t->device_id >= PR_MAX_DEVICES || (i > 0 && t->device_id != device))
    return pr_fail(PR_ARGUMENT, "argument %d (%s) is on device %d", i, p->name, (int)t->device_id);
  int code = pr_check_type(t, p, i);
  if (code == PR_OK) code = pr_check_shape(t, p, i);
  if (code == PR_OK) code = pr_check_address(pr_address_of(t), PR_TENSOR_ALIGNMENT, p, i);
  return code;
}

// ---- launching ----

static pr_address pr_place(const pr_arg* arg, const pr_address* at, pr_address workspace) {
  return arg->kind == PR_PARAM ? at[arg->value] : workspace + (pr_address)arg->value;
}

enum { PR_PROMOTE_TO_128_BYTES = 2 };

// The innermost dimension first.
static int pr_encode_pixels(const pr_map* map, pr_address base, pr_map_bits* bits) {
  if (pr_cuTensorMapEncodeIm2col == NULL)
    return pr_fail(PR_CUDA, "the CUDA driver lacks cuTensorMapEncodeIm2col: it is too old");
  const uint64_t width = (uint64_t)map->width, height = (uint64_t)map->height;
  const uint64_t pitch = (uint64_t)map->pitch_bytes;
  const uint64_t extents[4] = {(uint64_t)map->cols, width, height,
                               (uint64_t)map->rows / (width * height)};
  const uint64_t strides[3] = {pitch, pitch * width, pitch * width * height};
  const int lower[2] = {map->lower[1], map->lower[0]}, upper[2] = {map->upper[1], map->upper[0]};
  const unsigned steps[4] = {1, map->steps[1], map->steps[0], 1};
  PR_TRY(cuTensorMapEncodeIm2col, bits, map->type, 4, (void*)(uintptr_t)base, extents, strides,
         lower, upper, (unsigned)map->box_cols, (unsigned)map->box_rows, steps, 0, map->swizzle,
         PR_PROMOTE_TO_128_BYTES, 0);
  return PR_OK;
}

static int pr_encode(const pr_map* map, pr_address base, pr_map_bits* bits) {
  if (map->width != 0) return pr_encode_pixels(map, base, bits);
  if (pr_cuTensorMapEncodeTiled == NULL)
    return pr_fail(PR_CUDA, "the CUDA driver lacks cuTensorMapEncodeTiled: it is too old");
  const uint64_t extents[2] = {(uint64_t)map->cols, (uint64_t)map->rows};
  const uint64_t strides[1] = {(uint64_t)map->pitch_bytes};
  const unsigned box[2] = {(unsigned)map->box_cols, (unsigned)map->box_rows};
  const unsigned steps[2] = {1, 1};
  PR_TRY(cuTensorMapEncodeTiled, bits, map->type, 2, (void*)(uintptr_t)base, extents, strides, box,
         steps, 0, map->swizzle, PR_PROMOTE_TO_128_BYTES, 0);
  return PR_OK;
}

static int pr_launch_one(const pr_launch* launch, void* function, const pr_address* at,
                         pr_address workspace, void* stream) {
  pr_map_bits maps[PR_MAX_MAPS];
  pr_address values[PR_MAX_ARGS];
  void* addresses[PR_MAX_ARGS];
  for (int m = 0; m < launch->num_maps; ++m) {
    const int code = pr_encode(&launch->maps[m], pr_place(&launch->maps[m].base, at, workspace),
                               &maps[m]);
    if (code != PR_OK) return code;
  }
  for (int a = 0; a < launch->num_args; ++a) {
    const pr_arg* const arg = &launch->args[a];
    if (arg->kind == PR_MAP) {
      addresses[a] = &maps[arg->value];
    } else {
      values[a] = pr_place(arg, at, workspace);
      addresses[a] = &values[a];
    }
  }
  PR_TRY(cuLaunchKernel, function, launch->grid[0], launch->grid[1], launch->grid[2],
         launch->block[0], launch->block[1], launch->block[2], (unsigned)launch->shared_bytes,
         stream, addresses, NULL);
  return PR_OK;
}

static int pr_launch_all(const pr_loaded* loaded, const pr_address* at, void* stream) {
  pr_address workspace = 0;
  if (PR_WORKSPACE_BYTES > 0) PR_TRY(cuMemAllocAsync, &workspace, PR_WORKSPACE_BYTES, stream);
  int code = PR_OK;
  for (int i = 0; code == PR_OK && i < PR_NUM_LAUNCHES; ++i) {
    code = pr_launch_one(&pr_launches[i], loaded->functions[i], at, workspace, stream);
  }
  if (workspace != 0) {
    const int freed = pr_cuda(pr_cuMemFreeAsync(workspace, stream), "cuMemFreeAsync");
    if (code == PR_OK) code = freed;
  }
  return code;
}

static int pr_run(const pr_tensor* const* args, int num_args, void* stream) {
  if (num_args != PR_NUM_PARAMS || args == NULL)
    return pr_fail(PR_ARGUMENT, "%d arguments, not %d", args == NULL ? 0 : num_args, PR_NUM_PARAMS);
  pr_address at[PR_NUM_PARAMS];
  for (int i = 0; i < PR_NUM_PARAMS; ++i) {
    const int code = pr_check(args[i], &pr_params[i], i, i > 0 ? args[0]->device_id : 0);
    if (code != PR_OK) return code;
    at[i] = pr_address_of(args[i]);
  }
  int code = pr_check_overlap(pr_params, at);
  if (code != PR_OK) return code;
  const pr_loaded* loaded = NULL;
  code = pr_on_device(args[0]->device_id, &loaded);
  if (code != PR_OK) return code;
  PR_TRY(cuCtxPushCurrent, loaded->context);
  code = pr_launch_all(loaded, at, stream);
  void* popped = NULL;
  pr_cuCtxPopCurrent(&popped);
  return code;
}
