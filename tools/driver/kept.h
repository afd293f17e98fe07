// KeptKernels: the kernels that were asked for last, so that finals and verification build nothing
// twice.
#ifndef PRUNERC_TOOLS_DRIVER_KEPT_H_
#define PRUNERC_TOOLS_DRIVER_KEPT_H_

#include "codegen/artifact.h"
#include "ir/support/hash.h"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace prunerc {

/// Threads: any.
class KeptKernels {
 public:
  /// The one that nobody asked for longest goes first.
  explicit KeptKernels(std::size_t capacity) : capacity_(capacity) {}

  /// Null if it is not there.
  std::shared_ptr<const codegen::Artifact> find(const Fingerprint& program) {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(program);
    if (at == places_.end()) return nullptr;
    order_.splice(order_.begin(), order_, at->second);
    return at->second->second;
  }

  void keep(const Fingerprint& program, std::shared_ptr<const codegen::Artifact> kernel) {
    const std::lock_guard lock(mutex_);
    if (capacity_ == 0 || places_.contains(program)) return;
    order_.emplace_front(program, std::move(kernel));
    places_[program] = order_.begin();
    if (order_.size() <= capacity_) return;
    places_.erase(order_.back().first);
    order_.pop_back();
  }

 private:
  using Entry = std::pair<Fingerprint, std::shared_ptr<const codegen::Artifact>>;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> order_;  // the latest first
  std::map<Fingerprint, std::list<Entry>::iterator> places_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_KEPT_H_
