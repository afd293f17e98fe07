// An array of zeros that costs nothing where it is not used. Internal.
#ifndef PRUNERC_IR_FPV_ZERO_ARRAY_H_
#define PRUNERC_IR_FPV_ZERO_ARRAY_H_

#include "ir/support/check.h"

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace prunerc::ir {

/// Memory as the system gives it: pages that nothing touches are never made. Small samples of large
/// programs touch few.
template <typename T>
class ZeroArray {
 public:
  void reset(std::size_t size) {
    items_.reset(static_cast<T*>(std::calloc(size, sizeof(T))));
    PRUNERC_CHECK(items_ != nullptr || size == 0, "memory");
    size_ = size;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return items_.get(); }
  const T* data() const { return items_.get(); }
  T& operator[](std::size_t i) { return items_.get()[i]; }
  const T& operator[](std::size_t i) const { return items_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> items_;
  std::size_t size_ = 0;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_ZERO_ARRAY_H_
