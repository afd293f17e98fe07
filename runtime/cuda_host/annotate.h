// What the sanitizers cannot see in a runtime of fibers, told to them: switches of stacks, the
// order that barriers make, and accesses that an operation of the GPU makes on a thread's behalf.
// Empty functions in the plain build. The runtime itself is never instrumented.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_ANNOTATE_H_
#define PRUNERC_RUNTIME_CUDA_HOST_ANNOTATE_H_

#include <cstddef>

#if defined(PRUNERC_CUDA_HOST_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_set_fiber_name(void* fiber, const char* name);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_read_range(void* address, size_t size);
void __tsan_write_range(void* address, size_t size);
}
#elif defined(PRUNERC_CUDA_HOST_ASAN)
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
void* __asan_region_is_poisoned(void* begin, size_t size);
void __asan_report_load_n(void* address, size_t size);
void __asan_report_store_n(void* address, size_t size);
}
#endif

namespace prunerc::runtime::cuda_host {

/// Which checker this build of the runtime works with.
enum class Checker : unsigned char { kNone, kRace, kBounds };

#if defined(PRUNERC_CUDA_HOST_TSAN)
inline constexpr Checker kChecker = Checker::kRace;
inline void* current_fiber() { return __tsan_get_current_fiber(); }
inline void* create_fiber() { return __tsan_create_fiber(0); }
inline void* create_fiber(const char* name) {
  void* const fiber = __tsan_create_fiber(0);
  __tsan_set_fiber_name(fiber, name);
  return fiber;
}
inline void destroy_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
/// Without an order between the two: only barriers make one.
inline void note_switch(void* to) { __tsan_switch_to_fiber(to, 1); }
inline void acquire(void* sync) { __tsan_acquire(sync); }
inline void release(void* sync) { __tsan_release(sync); }
inline void note_read(const void* at, size_t size) {
  __tsan_read_range(const_cast<void*>(at), size);
}
inline void note_write(void* at, size_t size) { __tsan_write_range(at, size); }
#else
inline void* current_fiber() { return nullptr; }
inline void* create_fiber() { return nullptr; }
inline void* create_fiber(const char*) { return nullptr; }
inline void destroy_fiber(void*) {}
inline void note_switch(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
#if defined(PRUNERC_CUDA_HOST_ASAN)
inline constexpr Checker kChecker = Checker::kBounds;
inline void note_read(const void* at, size_t size) {
  void* const begin = const_cast<void*>(at);
  if (__asan_region_is_poisoned(begin, size) != nullptr) __asan_report_load_n(begin, size);
}
inline void note_write(void* at, size_t size) {
  if (__asan_region_is_poisoned(at, size) != nullptr) __asan_report_store_n(at, size);
}
#else
inline constexpr Checker kChecker = Checker::kNone;
inline void note_read(const void*, size_t) {}
inline void note_write(void*, size_t) {}
#endif
#endif

#if defined(PRUNERC_CUDA_HOST_ASAN)
/// Around a switch: before it on the old stack (null `fake_stack`: that stack ends), after it on
/// the new one.
inline void start_switch(void** fake_stack, const void* bottom, size_t size) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}
inline void finish_switch(void* fake_stack, const void** old_bottom, size_t* old_size) {
  __sanitizer_finish_switch_fiber(fake_stack, old_bottom, old_size);
}
#else
inline void start_switch(void**, const void*, size_t) {}
inline void finish_switch(void*, const void**, size_t*) {}
#endif

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_ANNOTATE_H_
