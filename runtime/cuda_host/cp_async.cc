// cp.async: each thread's copies from global to shared memory, in groups.
#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/block.h"

namespace prunerc::runtime::cuda_host {
namespace {

void perform(const CopyOp& op) {
  for (int i = 0; i < op.bytes; ++i) op.dst[i] = op.valid ? op.src[i] : 0;
}

bool is_aligned(const void* at, int bytes) {
  return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace

bool is_shared(const Thread& thread, const void* at, int64_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(thread.view->shared);
  const auto first = reinterpret_cast<uintptr_t>(at);
  const auto room = static_cast<uintptr_t>(thread.view->shared_bytes);
  const auto bytes = static_cast<uintptr_t>(size);
  return first >= begin && bytes <= room && first - begin <= room - bytes;
}

void cp_async(Thread& thread, void* dst, const void* src, int bytes, bool valid) {
  Block& block = *thread.block;
  if (!is_shared(thread, dst, bytes))
    block.fault(thread, "cp.async writes outside of shared memory");
  if (!is_aligned(dst, bytes) || (valid && !is_aligned(src, bytes)))
    block.fault(thread, "cp.async is not aligned to its size");
  if (valid) note_read(src, static_cast<size_t>(bytes));
  note_write(dst, static_cast<size_t>(bytes));
  const CopyOp op{static_cast<unsigned char*>(dst), static_cast<const unsigned char*>(src), bytes,
                  valid};
  if (!thread.copies.ops->push(op)) block.fault(thread, "more than 512 cp.async without a wait");
  ++thread.copies.open;
  if (block.mode() != AsyncMode::kLazy) perform(op);
}

void cp_async_commit(Thread& thread) {
  if (!thread.copies.groups.push(thread.copies.open))
    thread.block->fault(thread, "more than 32 groups of cp.async without a wait");
  thread.copies.open = 0;
}

void cp_async_wait(Thread& thread, int keep) {
  CopyQueue& queue = thread.copies;
  while (queue.groups.size() > keep) {
    for (int left = queue.groups.pop(); left > 0; --left) {
      const CopyOp op = queue.ops->pop();
      // It may have been written until now: who reads before this point races.
      note_write(op.dst, static_cast<size_t>(op.bytes));
      if (thread.block->mode() == AsyncMode::kLazy) perform(op);
    }
  }
}

}  // namespace prunerc::runtime::cuda_host
