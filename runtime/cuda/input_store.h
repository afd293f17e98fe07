// Copies of inputs that stay on the device from job to job.
#ifndef PRUNERC_RUNTIME_CUDA_INPUT_STORE_H_
#define PRUNERC_RUNTIME_CUDA_INPUT_STORE_H_

#include "ir/dtype.h"
#include "runtime/cuda/inspector.h"
#include "runtime/fill.h"

#include <functional>
#include <list>
#include <string>

namespace prunerc::runtime::cuda {

/// Filling an input on the host and bringing it over takes a hundred times as long as a copy on the
/// device, and the jobs of a search ask for the same few inputs. No kernel gets a copy itself.
class InputStore {
 public:
  /// What determines the contents of an input.
  struct Key {
    Fill fill = Fill::kUniform;
    uint64_t seed = 0;
    ir::DType dtype = ir::DType::kF32;
    int64_t num_elems = 0;

    bool operator==(const Key&) const = default;
  };
  /// The contents on the host.
  using Make = std::function<Result<std::string>()>;

  /// Keeps at most `max_bytes` in all.
  InputStore(const Driver& api, int64_t max_bytes) : api_(&api), max_bytes_(max_bytes) {}

  /// Fills `to` from a copy if there is one and no kernel wrote into it, else with what `make` gives,
  /// and keeps a copy if it fits. Fill::kBytes is never kept. Returns the checksum of what `to` now
  /// holds. Errors: CudaCall and those of `make`.
  Result<uint64_t> fill(const Inspector& inspector, const Key& key, const Make& make,
                        const DeviceBuffer& to);
  /// Frees what was not used for the longest time; false if there is nothing.
  bool evict_oldest();

 private:
  struct Entry {
    Key key;
    DeviceBuffer copy;
    uint64_t checksum = 0;
  };
  void keep(const Key& key, const DeviceBuffer& from, uint64_t checksum);
  void erase(std::list<Entry>::iterator at);

  const Driver* api_;
  int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  ///< the latest used comes last
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_INPUT_STORE_H_
