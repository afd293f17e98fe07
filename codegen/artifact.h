// What code generation hands to a runtime: the bytes of a compiled kernel and how to call it.
#ifndef PRUNERC_CODEGEN_ARTIFACT_H_
#define PRUNERC_CODEGEN_ARTIFACT_H_

#include "ir/dtype.h"
#include "ir/support/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

enum class ArtifactKind : uint8_t {
  kCpuObject,       ///< an ELF relocatable object; the entry has the ABI of runtime/kernel.h
  kCudaCubin,       ///< a cubin; the entry is a __global__ function
  kCudaSource,      ///< emitted kernel text, to be compiled for a GPU or for the host
  kCudaHostObject,  ///< the same, compiled for the host: a shared object for runtime/cuda_host
};
inline constexpr int kNumArtifactKinds = 4;

enum class ParamRole : uint8_t { kInput, kOutput };

/// One dense row-major argument of a kernel. A scalar has an empty shape.
struct ArtifactParam {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  ParamRole role = ParamRole::kInput;
  bool is_const = false;  ///< an input that only the prepare entry reads

  bool operator==(const ArtifactParam&) const = default;
};

/// What one argument of a __global__ function is.
enum class LaunchArgKind : uint8_t {
  kParam,      ///< address of the artifact's parameter number `value`
  kWorkspace,  ///< address `value` bytes into the workspace, a multiple of kWorkspaceAlignment
  kTensorMap,  ///< the launch's tensor map number `value`, by value
};

struct LaunchArg {
  LaunchArgKind kind = LaunchArgKind::kParam;
  int64_t value = 0;

  bool operator==(const LaunchArg&) const = default;
};

/// How rows of a matrix are pixels of NHWC images, for copies in the engine's im2col mode: windows
/// stand at pixels `steps` apart, from `lower` behind the first one of an image to `upper` behind
/// the last; a copy's rows are pixels of windows that follow each other. Pairs are along h and w.
struct PixelBox {
  int64_t height = 0, width = 0;  ///< of an image
  std::array<int64_t, 2> lower{0, 0}, upper{0, 0}, steps{1, 1};

  bool operator==(const PixelBox&) const = default;
};

/// A dense row-major matrix of which TMA copies boxes to and from shared memory. What lies outside
/// of the matrix reads as zero and is not written.
struct TensorMap {
  LaunchArg base;  ///< a parameter or a place in the workspace
  ir::DType dtype = ir::DType::kF16;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t pitch_bytes = 0;  ///< from a row to the next; a multiple of 16
  int64_t box_rows = 0;     ///< of one copy; at most 256
  int64_t box_cols = 0;
  int64_t swizzle_bytes = 0;  ///< 0, 32, 64 or 128; a box's row is no longer unless it is 0
  std::optional<PixelBox> pixels = {};

  bool operator==(const TensorMap&) const = default;
  int cuda_type() const;     ///< CUtensorMapDataType
  int cuda_swizzle() const;  ///< CUtensorMapSwizzle
};

/// Where buffers of a workspace may start. Units: bytes.
inline constexpr int64_t kWorkspaceAlignment = 256;

/// One launch of a __global__ function. An artifact's launches run in order, each after the end of
/// the one before.
struct Launch {
  std::string kernel;  ///< the function's name
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> block{1, 1, 1};
  int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  int64_t cluster = 1;       ///< blocks along x that the kernel was compiled to run together
  std::vector<LaunchArg> args;
  std::vector<TensorMap> tensor_maps;

  bool operator==(const Launch&) const = default;
};

/// Plain data; can be cached, sent to another process, and compared.
struct Artifact {
  ArtifactKind kind = ArtifactKind::kCpuObject;
  std::string bytes;  ///< the object file, the cubin or the text itself
  std::string entry;  ///< symbol of the kernel; with several launches that of the first
  /// Symbol of what must run once before it, with the same ABI: reads the const inputs and fills the
  /// prepared memory, whose address is the argument behind the last parameter's. Empty: there is no
  /// const input, and no such argument. CPU only.
  std::string prepare_entry;
  std::string triple;  ///< "x86_64-unknown-linux-gnu"
  std::string cpu;     ///< the CPU or SM that the code was made for: "znver4", "sm_90a"
  /// Of the CPU, if there are instructions on tile registers (AMX): LLVM's names, "amx-tile" first. A
  /// process must ask the system for these registers before it runs the code.
  std::vector<std::string> tile_features;
  std::vector<ArtifactParam>
      params;                    ///< in the order of the kernel's arguments, inputs before outputs
  std::vector<Launch> launches;  ///< of CUDA kinds, at least one; none for kCpuObject
  int64_t workspace_bytes = 0;   ///< shared by all workers
  int64_t workspace_bytes_per_worker = 0;  ///< in addition, for each worker
  int64_t prepared_bytes = 0;              ///< written by prepare_entry, read by entry
  /// Of one thread's stack, in an entry and a task of its loops together; 0 of CUDA kinds.
  int64_t stack_bytes = 0;
  double flops = 0;  ///< arithmetic of one run, as the operator's definition counts it
  double bytes_moved =
      0;  ///< compulsory traffic of one run: each input and output once. Units: bytes

  bool operator==(const Artifact&) const = default;
};

/// The name with `_` for all that C identifiers do not have: names are identifiers already, but
/// compilers read what they are written into, so be sure.
std::string c_name(std::string_view name);

/// Number of elements: the product of the shape. The artifact must be valid (validate below).
int64_t num_elems(const ArtifactParam& param);
int64_t size_bytes(const ArtifactParam& param);

/// The whole workspace for `num_workers` workers.
int64_t total_workspace_bytes(const Artifact& artifact, int num_workers);

/// Checks what a runtime relies on: an entry, shapes whose sizes do not overflow, workspace sizes
/// that are not absurd, launches whose arguments exist and whose sizes CUDA can express, tensor
/// maps within what they describe. Errors: ArtifactMalformed.
Result<void> validate(const Artifact& artifact);

/// A compact binary form, the same bytes for equal artifacts.
std::string serialize(const Artifact& artifact);

/// Reads what serialize wrote. Total: any bytes give an artifact that passes validate, or an error.
/// Errors: ArtifactMalformed.
Result<Artifact> deserialize(std::string_view bytes);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_ARTIFACT_H_
