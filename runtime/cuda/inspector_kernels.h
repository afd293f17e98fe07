// The kernels of the inspector, as PTX that every driver since CUDA 11 compiles.
#ifndef PRUNERC_RUNTIME_CUDA_INSPECTOR_KERNELS_H_
#define PRUNERC_RUNTIME_CUDA_INSPECTOR_KERNELS_H_

namespace prunerc::runtime::cuda {

/// A thread takes 16 bytes at a time, a grid apart; what remains is less than 16 bytes, one for each
/// of the first threads. Buffers are aligned to 16 bytes. prunerc_checksum adds a hash of each
/// piece and its place to the word at `sum`, once a warp; so the order does not count.
/// prunerc_compare writes 1 to the word at `differ` if a bit differs.
inline constexpr const char* kInspectorPtx = R"ptx(
.version 7.0
.target sm_70
.address_size 64

.visible .entry prunerc_checksum(.param .u64 at, .param .u64 bytes, .param .u64 sum) {
  .reg .b32 %thread, %threads, %block, %blocks, %lane, %offset, %lo, %hi;
  .reg .b64 %i, %stride, %pieces, %rest, %total, %at, %from, %x, %y, %h, %u, %sum;
  .reg .pred %done, %more, %first;
  ld.param.u64 %at, [at];
  ld.param.u64 %total, [bytes];
  ld.param.u64 %sum, [sum];
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %u, %thread;
  add.u64 %i, %i, %u;
  mul.wide.u32 %stride, %blocks, %threads;
  shr.u64 %pieces, %total, 4;
  and.b64 %rest, %total, 15;
  mov.u64 %h, 0;
  setp.ge.u64 %more, %i, %rest;
  @%more bra PIECES;
  shl.b64 %from, %pieces, 4;
  add.u64 %from, %from, %i;
  mad.lo.u64 %u, %from, 0x9E3779B97F4A7C15, 0x632BE59BD9B4E019;
  add.u64 %from, %from, %at;
  ld.global.u8 %x, [%from];
  add.u64 %h, %x, %u;
  shr.u64 %u, %h, 30;
  xor.b64 %h, %h, %u;
  mul.lo.u64 %h, %h, 0xBF58476D1CE4E5B9;
  shr.u64 %u, %h, 27;
  xor.b64 %h, %h, %u;
PIECES:
  setp.ge.u64 %done, %i, %pieces;
  @%done bra REDUCE;
  shl.b64 %from, %i, 4;
  add.u64 %from, %from, %at;
  ld.global.v2.u64 {%x, %y}, [%from];
  mad.lo.u64 %x, %i, 0x9E3779B97F4A7C15, %x;
  shr.u64 %u, %x, 30;
  xor.b64 %x, %x, %u;
  mul.lo.u64 %x, %x, 0xBF58476D1CE4E5B9;
  shr.u64 %u, %x, 27;
  xor.b64 %x, %x, %u;
  add.u64 %x, %x, %y;
  mul.lo.u64 %x, %x, 0x94D049BB133111EB;
  shr.u64 %u, %x, 31;
  xor.b64 %x, %x, %u;
  add.u64 %h, %h, %x;
  add.u64 %i, %i, %stride;
  bra PIECES;
REDUCE:
  mov.u32 %offset, 16;
HALVE:
  mov.b64 {%lo, %hi}, %h;
  shfl.sync.bfly.b32 %lo, %lo, %offset, 31, -1;
  shfl.sync.bfly.b32 %hi, %hi, %offset, 31, -1;
  mov.b64 %u, {%lo, %hi};
  add.u64 %h, %h, %u;
  shr.u32 %offset, %offset, 1;
  setp.ne.u32 %more, %offset, 0;
  @%more bra HALVE;
  and.b32 %lane, %thread, 31;
  setp.eq.u32 %first, %lane, 0;
  @%first red.global.add.u64 [%sum], %h;
  ret;
}

.visible .entry prunerc_compare(.param .u64 a, .param .u64 b, .param .u64 bytes,
                                .param .u64 differ) {
  .reg .b32 %thread, %threads, %block, %blocks;
  .reg .b64 %i, %stride, %pieces, %rest, %total, %a, %b, %from, %x, %y, %v, %w, %u, %d, %differ;
  .reg .pred %done, %more, %same;
  ld.param.u64 %a, [a];
  ld.param.u64 %b, [b];
  ld.param.u64 %total, [bytes];
  ld.param.u64 %differ, [differ];
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %i, %block, %threads;
  cvt.u64.u32 %u, %thread;
  add.u64 %i, %i, %u;
  mul.wide.u32 %stride, %blocks, %threads;
  shr.u64 %pieces, %total, 4;
  and.b64 %rest, %total, 15;
  mov.u64 %d, 0;
  setp.ge.u64 %more, %i, %rest;
  @%more bra PIECES;
  shl.b64 %u, %pieces, 4;
  add.u64 %u, %u, %i;
  add.u64 %from, %a, %u;
  ld.global.u8 %x, [%from];
  add.u64 %from, %b, %u;
  ld.global.u8 %v, [%from];
  xor.b64 %d, %x, %v;
PIECES:
  setp.ge.u64 %done, %i, %pieces;
  @%done bra ANSWER;
  shl.b64 %u, %i, 4;
  add.u64 %from, %a, %u;
  ld.global.v2.u64 {%x, %y}, [%from];
  add.u64 %from, %b, %u;
  ld.global.v2.u64 {%v, %w}, [%from];
  xor.b64 %x, %x, %v;
  xor.b64 %y, %y, %w;
  or.b64 %d, %d, %x;
  or.b64 %d, %d, %y;
  add.u64 %i, %i, %stride;
  bra PIECES;
ANSWER:
  setp.eq.u64 %same, %d, 0;
  @%same ret;
  mov.u64 %u, 1;
  st.global.u64 [%differ], %u;
  ret;
}
)ptx";

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_INSPECTOR_KERNELS_H_
