// Two kernels of the measuring process itself, as PTX that every driver since CUDA 11 compiles.
#ifndef PRUNERC_RUNTIME_CUDA_CANARY_H_
#define PRUNERC_RUNTIME_CUDA_CANARY_H_

namespace prunerc::runtime::cuda {

/// prunerc_empty does nothing: what a launch costs when it is timed by events. prunerc_canary runs
/// a fixed chain of 4000 dependent multiply-adds in one thread: its time tells the clock.
inline constexpr const char* kCanaryPtx = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.visible .entry prunerc_empty() { ret; }

.visible .entry prunerc_canary(.param .u64 out) {
  .reg .b32 %i;
  .reg .f32 %x, %c;
  .reg .b64 %at;
  .reg .pred %more;
  mov.f32 %x, 0f3F800000;
  mov.f32 %c, 0f3F000000;
  mov.u32 %i, 0;
AGAIN:
  fma.rn.f32 %x, %x, %c, %c;
  fma.rn.f32 %x, %x, %c, %c;
  fma.rn.f32 %x, %x, %c, %c;
  fma.rn.f32 %x, %x, %c, %c;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, 1000;
  @%more bra AGAIN;
  ld.param.u64 %at, [out];
  st.global.f32 [%at], %x;
  ret;
}
)ptx";

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_CANARY_H_
