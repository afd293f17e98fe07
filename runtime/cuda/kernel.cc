#include "runtime/cuda/kernel.h"

#include <algorithm>
#include <utility>

namespace prunerc::runtime::cuda {
namespace {

using codegen::LaunchArgKind;

constexpr unsigned char kRedzone = 0xA5;
/// More dynamic shared memory than this has to be asked for.
constexpr int64_t kSharedWithoutAsking = 48 << 10;

constexpr int kPromoteL2To128Bytes = 2;

// The innermost dimension first.
Result<void> encode_pixels(const Driver& api, const codegen::TensorMap& map,
                           const codegen::PixelBox& pixels, DevicePtr base, TensorMapBits* bits) {
  if (api.cuTensorMapEncodeIm2col == nullptr) return error(Diag::kCudaTensorMap);
  constexpr unsigned kRank = 4;
  const auto pitch = static_cast<uint64_t>(map.pitch_bytes);
  const auto width = static_cast<uint64_t>(pixels.width);
  const auto height = static_cast<uint64_t>(pixels.height);
  const uint64_t extents[kRank] = {static_cast<uint64_t>(map.cols), width, height,
                                   static_cast<uint64_t>(map.rows) / (width * height)};
  const uint64_t strides[kRank - 1] = {pitch, pitch * width, pitch * width * height};
  const int lower[] = {static_cast<int>(pixels.lower[1]), static_cast<int>(pixels.lower[0])};
  const int upper[] = {static_cast<int>(pixels.upper[1]), static_cast<int>(pixels.upper[0])};
  const unsigned steps[kRank] = {1, static_cast<unsigned>(pixels.steps[1]),
                                 static_cast<unsigned>(pixels.steps[0]), 1};
  PRUNERC_CUDA(api, cuTensorMapEncodeIm2col, bits, map.cuda_type(), kRank,
               reinterpret_cast<void*>(base), extents, strides, lower, upper,
               static_cast<unsigned>(map.box_cols), static_cast<unsigned>(map.box_rows), steps, 0,
               map.cuda_swizzle(), kPromoteL2To128Bytes, 0);
  return {};
}

Result<void> encode(const Driver& api, const codegen::TensorMap& map, DevicePtr base,
                    TensorMapBits* bits) {
  if (map.pixels) return encode_pixels(api, map, *map.pixels, base, bits);
  if (api.cuTensorMapEncodeTiled == nullptr) return error(Diag::kCudaTensorMap);
  constexpr unsigned kRank = 2;
  const uint64_t extents[kRank] = {static_cast<uint64_t>(map.cols),
                                   static_cast<uint64_t>(map.rows)};
  const uint64_t strides[kRank - 1] = {static_cast<uint64_t>(map.pitch_bytes)};
  const unsigned box[kRank] = {static_cast<unsigned>(map.box_cols),
                               static_cast<unsigned>(map.box_rows)};
  const unsigned elem_strides[kRank] = {1, 1};
  PRUNERC_CUDA(api, cuTensorMapEncodeTiled, bits, map.cuda_type(), kRank,
               reinterpret_cast<void*>(base), extents, strides, box, elem_strides, 0,
               map.cuda_swizzle(), kPromoteL2To128Bytes, 0);
  return {};
}

/// Which CUDA made a cubin, 0 if it does not say: 12040 for 12.4. Source: the note .note.nv.cuinfo:
/// its owner, then three 16-bit numbers, of which the last is ten times the version.
int toolkit_of(std::string_view cubin) {
  constexpr std::string_view kHeader("\x0c\0\0\0\x08\0\0\0\xe8\x03\0\0NVIDIA Corp\0", 24);
  constexpr size_t kVersionAt = kHeader.size() + 4;
  const size_t at = cubin.find(kHeader);
  if (at == std::string_view::npos || cubin.size() - at < kVersionAt + 2) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(cubin[at + i]); };
  const int tenfold = byte(kVersionAt) + 256 * byte(kVersionAt + 1);
  return tenfold / 10 * 1000 + tenfold % 10 * 10;
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::allocate(const Driver& api, int64_t bytes) {
  DeviceBuffer buffer;
  buffer.api_ = &api;
  buffer.bytes_ = bytes;
  const size_t whole = static_cast<size_t>(bytes) + 2 * kRedzoneBytes;
  DevicePtr at = 0;
  PRUNERC_CUDA(api, cuMemAlloc, &at, whole);
  buffer.base_ = at;
  PRUNERC_CUDA(api, cuMemsetD8Async, at, kRedzone, whole, nullptr);
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : api_(other.api_), base_(std::exchange(other.base_, 0)), bytes_(other.bytes_) {}

DeviceBuffer::~DeviceBuffer() {
  if (base_ != 0) api_->cuMemFree(base_);
}

Result<void> DeviceBuffer::fill(unsigned char value, Stream stream) const {
  if (bytes_ == 0) return {};
  PRUNERC_CUDA(*api_, cuMemsetD8Async, data(), value, static_cast<size_t>(bytes_), stream);
  return {};
}

Result<void> DeviceBuffer::upload(const void* from) const {
  if (bytes_ == 0) return {};
  PRUNERC_CUDA(*api_, cuMemcpyHtoD, data(), from, static_cast<size_t>(bytes_));
  return {};
}

Result<void> DeviceBuffer::copy_from(const DeviceBuffer& from) const {
  if (bytes_ == 0) return {};
  PRUNERC_CUDA(*api_, cuMemcpyDtoD, data(), from.data(), static_cast<size_t>(bytes_));
  return {};
}

Result<std::string> DeviceBuffer::download() const {
  std::string bytes(static_cast<size_t>(bytes_), '\0');
  if (bytes_ > 0) PRUNERC_CUDA(*api_, cuMemcpyDtoH, bytes.data(), data(), bytes.size());
  return bytes;
}

Result<bool> DeviceBuffer::is_redzone_intact() const {
  std::array<unsigned char, 2 * kRedzoneBytes> zones{};
  PRUNERC_CUDA(*api_, cuMemcpyDtoH, zones.data(), base_, kRedzoneBytes);
  PRUNERC_CUDA(*api_, cuMemcpyDtoH, zones.data() + kRedzoneBytes,
               data() + static_cast<DevicePtr>(bytes_), kRedzoneBytes);
  return std::all_of(zones.begin(), zones.end(), [](unsigned char b) { return b == kRedzone; });
}

/// The values of one launch's arguments, and their addresses.
struct DeviceKernel::Bound {
  std::vector<DevicePtr> pointers;
  std::vector<TensorMapBits> maps;
  std::vector<void*> addresses;
};

Result<DeviceKernel> DeviceKernel::load(const Driver& api, const codegen::Artifact& artifact) {
  if (artifact.kind != codegen::ArtifactKind::kCudaCubin)
    return error(Diag::kKernelLoad, artifact.entry, "it is not a cubin");
  DeviceKernel kernel;
  kernel.api_ = &api;
  kernel.launches_ = artifact.launches;
  kernel.bound_ = std::make_unique<std::vector<Bound>>();
  if (const Result<void> loaded = check(
          api, api.cuModuleLoadData(&kernel.module_, artifact.bytes.data()), "cuModuleLoadData");
      !loaded.ok()) {
    kernel.module_ = nullptr;
    int known = 0;
    PRUNERC_CUDA(api, cuDriverGetVersion, &known);
    PRUNERC_TRY_VOID(check_toolkit(known, toolkit_of(artifact.bytes)));
    return error(Diag::kKernelLoad, artifact.entry, loaded.error().message());
  }
  for (const codegen::Launch& launch : kernel.launches_) {
    Function function = nullptr;
    if (api.cuModuleGetFunction(&function, kernel.module_, launch.kernel.c_str()) != 0)
      return error(Diag::kKernelLoad, artifact.entry, "it has no function " + launch.kernel);
    if (launch.shared_bytes > kSharedWithoutAsking) {
      PRUNERC_CUDA(api, cuFuncSetAttribute, function, kFuncMaxDynamicShared,
                   static_cast<int>(launch.shared_bytes));
    }
    kernel.functions_.push_back(function);
  }
  return kernel;
}

DeviceKernel::DeviceKernel(DeviceKernel&& other) noexcept
    : api_(other.api_),
      module_(std::exchange(other.module_, nullptr)),
      launches_(std::move(other.launches_)),
      functions_(std::move(other.functions_)),
      bound_(std::move(other.bound_)) {}

DeviceKernel::~DeviceKernel() {
  if (module_ != nullptr) api_->cuModuleUnload(module_);
}

Result<void> DeviceKernel::bind(const std::vector<DevicePtr>& params, DevicePtr workspace) {
  const auto place_of = [&](const codegen::LaunchArg& arg) {
    return arg.kind == LaunchArgKind::kParam ? params[static_cast<size_t>(arg.value)]
                                             : workspace + static_cast<DevicePtr>(arg.value);
  };
  bound_->clear();
  for (const codegen::Launch& launch : launches_) {
    Bound bound;
    for (const codegen::TensorMap& map : launch.tensor_maps) {
      PRUNERC_TRY_VOID(encode(*api_, map, place_of(map.base), &bound.maps.emplace_back()));
    }
    bound.pointers.resize(launch.args.size());
    for (size_t i = 0; i < launch.args.size(); ++i) {
      const codegen::LaunchArg& arg = launch.args[i];
      if (arg.kind != LaunchArgKind::kTensorMap) bound.pointers[i] = place_of(arg);
      bound.addresses.push_back(
          arg.kind == LaunchArgKind::kTensorMap
              ? static_cast<void*>(&bound.maps[static_cast<size_t>(arg.value)])
              : &bound.pointers[i]);
    }
    bound_->push_back(std::move(bound));  // moving keeps what the addresses point to
  }
  return {};
}

Result<void> DeviceKernel::launch(Stream stream) const {
  for (size_t i = 0; i < launches_.size(); ++i) {
    const codegen::Launch& l = launches_[i];
    const auto extent = [](int64_t n) { return static_cast<unsigned>(n); };
    PRUNERC_CUDA(*api_, cuLaunchKernel, functions_[i], extent(l.grid[0]), extent(l.grid[1]),
                 extent(l.grid[2]), extent(l.block[0]), extent(l.block[1]), extent(l.block[2]),
                 extent(l.shared_bytes), stream, (*bound_)[i].addresses.data(), nullptr);
  }
  return {};
}

}  // namespace prunerc::runtime::cuda
