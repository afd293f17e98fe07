// What one warp asks of memory with one access: pieces of memory that it touches and banks that it
// meets twice.
#ifndef PRUNERC_COSTMODEL_LATENCY_WARP_H_
#define PRUNERC_COSTMODEL_LATENCY_WARP_H_

#include "costmodel/latency/nest.h"

namespace prunerc::costmodel {

/// Widest access of a thread.
inline constexpr double kAccessBytes = 16;

/// One instruction of a warp of 32: lanes of a vector and threads along x, y, z together.
struct WarpRequest {
  Sym lane_bytes = 0;    // of one thread
  Sym useful_bytes = 0;  // different bytes
  Sym sectors = 0;       // of `granule` bytes that hold them
  /// Rounds that shared memory needs: 1 for 4 bytes of each lane without conflicts, 128 bytes each.
  Sym shared_wavefronts = 1;
};

/// granule: bytes that memory moves at once. In closed form from the steps of the loops: strides
/// are taken as aligned and regular.
WarpRequest warp_request(const NestTable& table, const Nest& nest, const NestAccess& access,
                         double granule);
/// The same where each thread's access is `width` neighbours wide.
WarpRequest warp_request(const NestTable& table, const Nest& nest, const NestAccess& access,
                         double granule, Sym width);

/// Threads along x, y and z, then what else there is.
struct ThreadExtents {
  Sym blocks = 1, threads = 1, vthreads = 1;
  Sym per_thread = 1;  // iterations of one thread, virtual threads among them
};
ThreadExtents thread_extents(const Nest& nest);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_WARP_H_
