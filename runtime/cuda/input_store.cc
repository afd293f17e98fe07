#include "runtime/cuda/input_store.h"

#include <algorithm>
#include <utility>

namespace prunerc::runtime::cuda {

Result<uint64_t> InputStore::fill(const Inspector& inspector, const Key& key, const Make& make,
                                  const DeviceBuffer& to) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end()) {
    PRUNERC_TRY_VOID(to.copy_from(found->copy));
    PRUNERC_TRY(const uint64_t checksum, inspector.checksum(to));
    if (checksum == found->checksum) {
      entries_.splice(entries_.end(), entries_, found);
      return checksum;
    }
    erase(found);  // an earlier kernel wrote far outside of its memory
  }
  PRUNERC_TRY(const std::string bytes, make());
  PRUNERC_TRY_VOID(to.upload(bytes.data()));
  PRUNERC_TRY(const uint64_t checksum, inspector.checksum(to));
  if (key.fill != Fill::kBytes) keep(key, to, checksum);
  return checksum;
}

void InputStore::keep(const Key& key, const DeviceBuffer& from, uint64_t checksum) {
  if (from.bytes() > max_bytes_) return;
  while (bytes_ + from.bytes() > max_bytes_) evict_oldest();
  // No room is no error: the next job fills it again.
  Result<DeviceBuffer> copy = DeviceBuffer::allocate(*api_, from.bytes());
  if (!copy.ok() || !copy->copy_from(from).ok()) return;
  bytes_ += from.bytes();
  entries_.push_back({.key = key, .copy = std::move(copy).value(), .checksum = checksum});
}

bool InputStore::evict_oldest() {
  if (entries_.empty()) return false;
  erase(entries_.begin());
  return true;
}

void InputStore::erase(std::list<Entry>::iterator at) {
  bytes_ -= at->copy.bytes();
  entries_.erase(at);
}

}  // namespace prunerc::runtime::cuda
