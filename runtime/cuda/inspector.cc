#include "runtime/cuda/inspector.h"

#include "runtime/cuda/inspector_kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace prunerc::runtime::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kThreadBytes = 16;
/// Fills every GPU of today; more would only add to the same word.
constexpr int64_t kMaxBlocks = 1024;

}  // namespace

Result<Inspector> Inspector::make(const Driver& api) {
  PRUNERC_TRY(DeviceBuffer answer, DeviceBuffer::allocate(api, sizeof(uint64_t)));
  Inspector inspector(api, std::move(answer));
  Module module = nullptr;
  PRUNERC_CUDA(api, cuModuleLoadData, &module, kInspectorPtx);
  PRUNERC_CUDA(api, cuModuleGetFunction, &inspector.checksum_, module, "prunerc_checksum");
  PRUNERC_CUDA(api, cuModuleGetFunction, &inspector.compare_, module, "prunerc_compare");
  return inspector;
}

Result<uint64_t> Inspector::ask(Function function, int64_t bytes, void** params) const {
  constexpr int64_t kBlockBytes = kThreads * kThreadBytes;
  const auto blocks = static_cast<unsigned>(
      std::clamp<int64_t>((bytes + kBlockBytes - 1) / kBlockBytes, 1, kMaxBlocks));
  PRUNERC_TRY_VOID(answer_.fill(0, nullptr));
  PRUNERC_CUDA(*api_, cuLaunchKernel, function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, params,
               nullptr);
  PRUNERC_TRY(const std::string answer, answer_.download());
  uint64_t word = 0;
  std::memcpy(&word, answer.data(), sizeof word);
  return word;
}

Result<uint64_t> Inspector::checksum(const DeviceBuffer& buffer) const {
  DevicePtr at = buffer.data(), answer = answer_.data();
  int64_t bytes = buffer.bytes();
  void* params[] = {&at, &bytes, &answer};
  return ask(checksum_, bytes, params);
}

Result<bool> Inspector::are_equal(const DeviceBuffer& a, const DeviceBuffer& b) const {
  DevicePtr first = a.data(), second = b.data(), answer = answer_.data();
  int64_t bytes = a.bytes();
  void* params[] = {&first, &second, &bytes, &answer};
  PRUNERC_TRY(const uint64_t differ, ask(compare_, bytes, params));
  return differ == 0;
}

}  // namespace prunerc::runtime::cuda
