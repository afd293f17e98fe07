#include "runtime/cuda_host/warp.h"

#include "runtime/cuda_host/annotate.h"

#include <immintrin.h>

#include <bit>

namespace prunerc::runtime::cuda_host {
namespace {

constexpr int kRowBytes = 16;  // of an 8x8 matrix of 16-bit elements
constexpr uint32_t kTf32Mask = ~uint32_t{0x1fff};

const PrHostCollective& op_of(const Warp& warp, int lane) {
  return warp.lanes[static_cast<size_t>(lane)]->op;
}

void copy_bytes(void* to, const void* from, int num_bytes) {
  auto* dst = static_cast<unsigned char*>(to);
  const auto* src = static_cast<const unsigned char*>(from);
  for (int i = 0; i < num_bytes; ++i) dst[i] = src[i];
}

void shuffle(Warp& warp) {
  // Every lane's value is taken before any result is written: a result may replace a value.
  std::array<uint64_t, kWarpSize> values{};
  for (int lane = 0; lane < warp.size; ++lane)
    copy_bytes(&values[static_cast<size_t>(lane)], op_of(warp, lane).in0, warp.op_size);
  for (int lane = 0; lane < warp.size; ++lane) {
    const int from = op_of(warp, lane).arg;
    if (from >= 0 && from < warp.size)
      copy_bytes(op_of(warp, lane).out, &values[static_cast<size_t>(from)], warp.op_size);
  }
}

/// ldmatrix: row j of matrix i is where lane 8*i + j points; lane l gets elements (l/4, l%4*2
/// ..+1).
void load_matrices(Warp& warp, bool trans) {
  for (int m = 0; m < warp.op_size; ++m) {
    uint16_t rows[8][8];
    for (int i = 0; i < 8; ++i) copy_bytes(rows[i], op_of(warp, m * 8 + i).in0, kRowBytes);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      const uint32_t lo = trans ? rows[j][i] : rows[i][j];
      const uint32_t hi = trans ? rows[j + 1][i] : rows[i][j + 1];
      static_cast<uint32_t*>(op_of(warp, lane).out)[m] = lo | hi << 16;
    }
  }
}

void store_matrices(Warp& warp) {
  for (int m = 0; m < warp.op_size; ++m) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const uint32_t pair = static_cast<const uint32_t*>(op_of(warp, lane).in0)[m];
      auto* const row = static_cast<unsigned char*>(op_of(warp, m * 8 + lane / 4).out);
      copy_bytes(row + lane % 4 * 4, &pair, 4);
    }
  }
}

// ---- Products: gather fragments into matrices, multiply, scatter the result. ----

/// Elements in a fragment: unpacks register `i` of a lane's operand.
struct F16 {
  using Acc = float;
  static constexpr int kPerRegister = 2;
  static float get(const uint32_t* regs, int i) {
    return f16_to_f32(static_cast<uint16_t>(regs[i / 2] >> (i % 2 * 16)));
  }
};
struct BF16 {
  using Acc = float;
  static constexpr int kPerRegister = 2;
  static float get(const uint32_t* regs, int i) {
    return bf16_to_f32(static_cast<uint16_t>(regs[i / 2] >> (i % 2 * 16)));
  }
};
struct TF32 {
  using Acc = float;
  static constexpr int kPerRegister = 1;
  static float get(const uint32_t* regs, int i) {
    return std::bit_cast<float>(regs[i] & kTf32Mask);  // the tensor core does not see the rest
  }
};
struct S8 {
  using Acc = int32_t;
  static constexpr int kPerRegister = 4;
  static int32_t get(const uint32_t* regs, int i) {
    return static_cast<int8_t>(regs[i / 4] >> (i % 4 * 8));
  }
};

/// D[16, 8] += A[16, K] * B[K, 8]. A register holds p = E::kPerRegister neighbours along K: a lane
/// has, of a tile of 8 rows and 4p columns, row lane/4 and columns lane%4*p + 0 .. p-1. A is 2x2
/// such tiles, down first; B two, transposed, along K; D two tiles of pairs.
template <typename E>
void multiply(Warp& warp) {
  using Acc = typename E::Acc;
  constexpr int p = E::kPerRegister;
  constexpr int kK = 8 * p;
  Acc a[16][kK], b[kK][8], d[16][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int row = lane / 4, col = lane % 4;
    const PrHostCollective& op = op_of(warp, lane);
    const auto* ra = static_cast<const uint32_t*>(op.in0);
    const auto* rb = static_cast<const uint32_t*>(op.in1);
    for (int i = 0; i < 4 * p; ++i)
      a[i / p % 2 * 8 + row][i / (2 * p) * 4 * p + col * p + i % p] = E::get(ra, i);
    for (int i = 0; i < 2 * p; ++i) b[i / p * 4 * p + col * p + i % p][row] = E::get(rb, i);
    for (int i = 0; i < 4; ++i)
      d[i / 2 * 8 + row][col * 2 + i % 2] = static_cast<const Acc*>(op.out)[i];
  }
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < kK; ++k) {
      for (int j = 0; j < 8; ++j) d[i][j] += a[i][k] * b[k][j];
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    auto* const rd = static_cast<Acc*>(op_of(warp, lane).out);
    for (int i = 0; i < 4; ++i) rd[i] = d[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2];
  }
}

/// wmma 16x16x16, whose fragments hold elements in the places that prelude_host.cuh gives them.
template <typename E>
void multiply_wmma(Warp& warp) {
  using Acc = typename E::Acc;
  Acc a[16][16], b[16][16], d[16][16];
  const auto row = [](int lane, int i) { return lane / 4 + i / 2 % 2 * 8; };
  const auto col = [](int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; };
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const PrHostCollective& op = op_of(warp, lane);
    for (int i = 0; i < 8; ++i) {
      a[row(lane, i)][col(lane, i)] = E::get(static_cast<const uint32_t*>(op.in0), i);
      b[i / 2 % 2 * 8 + lane % 4 * 2 + i % 2][i / 4 * 8 + lane / 4] =
          E::get(static_cast<const uint32_t*>(op.in1), i);
      d[row(lane, i)][col(lane, i)] = static_cast<const Acc*>(op.out)[i];
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) {
      for (int j = 0; j < 16; ++j) d[i][j] += a[i][k] * b[k][j];
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    auto* const rd = static_cast<Acc*>(op_of(warp, lane).out);
    for (int i = 0; i < 8; ++i) rd[i] = d[row(lane, i)][col(lane, i)];
  }
}

void check_row(Thread& thread, const void* row) {
  if (!is_shared(thread, row, kRowBytes))
    thread.block->fault(thread, "a row of ldmatrix or stmatrix is outside of shared memory");
  if (reinterpret_cast<uintptr_t>(row) % kRowBytes != 0)
    thread.block->fault(thread, "a row of ldmatrix or stmatrix is not aligned to 16 bytes");
}

}  // namespace

float f16_to_f32(uint16_t bits) { return _cvtsh_ss(bits); }
float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

void note_operands(Thread& thread, const PrHostCollective& op) {
  const bool supplies_row = thread.view->lane < op.size * 8;
  if (op.op >= kPrHostLdMatrix && thread.warp->size != kWarpSize)
    thread.block->fault(thread, "a collective on matrices needs a whole warp");
  if ((op.op == kPrHostLdMatrix || op.op == kPrHostLdMatrixTrans) && supplies_row) {
    check_row(thread, op.in0);
    note_read(op.in0, kRowBytes);
  }
  if (op.op == kPrHostStMatrix && supplies_row) {
    check_row(thread, op.out);
    note_write(op.out, kRowBytes);
  }
}

void run_collective(Warp& warp) {
  switch (warp.op) {
    case kPrHostSyncWarp: return;
    case kPrHostShuffle: return shuffle(warp);
    case kPrHostLdMatrix: return load_matrices(warp, false);
    case kPrHostLdMatrixTrans: return load_matrices(warp, true);
    case kPrHostStMatrix: return store_matrices(warp);
    case kPrHostMma16816F16: return multiply<F16>(warp);
    case kPrHostMma16816BF16: return multiply<BF16>(warp);
    case kPrHostMma1688TF32: return multiply<TF32>(warp);
    case kPrHostMma16832S8: return multiply<S8>(warp);
    case kPrHostWmmaF16: return multiply_wmma<F16>(warp);
    case kPrHostWmmaBF16: return multiply_wmma<BF16>(warp);
    case kPrHostWmmaS8: return multiply_wmma<S8>(warp);
  }
}

}  // namespace prunerc::runtime::cuda_host
