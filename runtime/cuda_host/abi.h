// The border between a CUDA kernel compiled for the host and the runtime that executes it. Kernels
// are compiled on their own by the user's C++ compiler (C++17, this text pasted in front): plain
// structs and function pointers, no includes.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_ABI_H_
#define PRUNERC_RUNTIME_CUDA_HOST_ABI_H_

/// A CUDA thread runs on a stack of its own, aligned to its size, with its PrHostThread at the top:
/// any function finds it from the address of its frame, and no thread-local storage is needed.
constexpr unsigned long kPrHostStackBytes = 256ul << 10;

struct PrHostThread {
  int thread[3];  ///< position in the block
  int block[3];   ///< position of the block in the grid
  int lane;       ///< position in the warp
  unsigned char* shared;
  long long shared_bytes;
  void* runtime;  ///< the runtime's record of this thread
};

/// What CUDA calls CUtensorMap; 128 bytes as there.
struct alignas(64) PrHostTensorMap {
  unsigned char* base;
  long long rows, cols, pitch_bytes;
  long long box_rows, box_cols, elem_bytes, swizzle_bytes;
  /// Of images whose pixels are rows, else 0. Pairs are along h and w.
  long long height, width;
  long long lower[2], upper[2], steps[2];
};

/// Where the first window of an im2col copy stands, and what its pixel is away from that.
struct PrHostPixel {
  int w, h, n;
  int offset_w, offset_h;
};

/// What the threads of a warp (of a warpgroup) do together.
enum PrHostOp : int {
  kPrHostSyncWarp,
  kPrHostShuffle,   ///< out of `size` bytes = in0 of lane `arg`, if it exists
  kPrHostLdMatrix,  ///< in0: row; out: `size` registers
  kPrHostLdMatrixTrans,
  kPrHostStMatrix,     ///< in0: `size` registers; out: row
  kPrHostMma16816F16,  ///< in0: a, in1: b, out: d
  kPrHostMma16816BF16,
  kPrHostMma1688TF32,
  kPrHostMma16832S8,
  kPrHostWmmaF16,  ///< fragments of the wmma wrappers
  kPrHostWmmaBF16,
  kPrHostWmmaS8,
};

struct PrHostCollective {
  PrHostOp op;
  int size;
  int arg;
  const void* in0;
  const void* in1;
  void* out;
};

enum PrHostMmaType : int { kPrHostF16, kPrHostBF16, kPrHostTF32, kPrHostS8 };

struct PrHostWgmma {
  PrHostMmaType type;
  int n;
  int trans_a, trans_b;
  int scale_d;
  unsigned long long a, b;  ///< descriptors
  void* d;
};

/// What the runtime does for a kernel. `self` is the calling thread.
struct PrHostApi {
  /// Barrier `id`; 0 threads: all of the block that have not ended. `wait` is 0 for arriving only.
  void (*barrier)(PrHostThread* self, int id, int threads, int wait);
  /// Of all threads of the cluster that have not ended.
  void (*cluster_barrier)(PrHostThread* self);
  void (*warp)(PrHostThread* self, const PrHostCollective* op);
  void (*cp_async)(PrHostThread* self, void* dst, const void* src, int bytes, int valid);
  void (*cp_async_commit)(PrHostThread* self);
  void (*cp_async_wait)(PrHostThread* self, int keep);
  void (*mbar_init)(PrHostThread* self, unsigned long long* bar, int count);
  void (*mbar_arrive)(PrHostThread* self, unsigned long long* bar);
  /// At the mbarrier in the same place of block `rank` of the cluster.
  void (*mbar_arrive_at)(PrHostThread* self, unsigned long long* bar, int rank);
  void (*mbar_expect_tx)(PrHostThread* self, unsigned long long* bar, int bytes);
  void (*mbar_wait)(PrHostThread* self, unsigned long long* bar, int parity);
  void (*tma_load)(PrHostThread* self, void* dst, const PrHostTensorMap* map, int x, int y,
                   unsigned long long* bar);
  /// To the same place, with the mbarrier in the same place, of each block of the cluster whose bit
  /// is set.
  void (*tma_load_multicast)(PrHostThread* self, void* dst, const PrHostTensorMap* map, int x,
                             int y, unsigned long long* bar, int mask);
  void (*tma_load_im2col)(PrHostThread* self, void* dst, const PrHostTensorMap* map, int c,
                          const PrHostPixel* at, unsigned long long* bar);
  void (*tma_store)(PrHostThread* self, const PrHostTensorMap* map, const void* src, int x, int y);
  void (*tma_store_commit)(PrHostThread* self);
  void (*tma_store_wait)(PrHostThread* self, int keep);
  void (*wgmma)(PrHostThread* self, const PrHostWgmma* op);
  void (*wgmma_commit)(PrHostThread* self);
  void (*wgmma_wait)(PrHostThread* self, int keep);
  /// Ends the launch; does not return.
  void (*fault)(PrHostThread* self, const char* what);
};

/// Names in a kernel's shared object: `attach` takes the API before the first launch, `kernel` with
/// the function's name behind it runs one thread with the addresses of its arguments.
using PrHostAttach = void (*)(const PrHostApi*);
using PrHostKernel = void (*)(void** args);
#define PR_HOST_ATTACH pr_host_attach
#define PR_HOST_KERNEL_PREFIX pr_host_kernel_

#endif  // PRUNERC_RUNTIME_CUDA_HOST_ABI_H_
