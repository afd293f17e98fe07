// What code generation hands to a runtime: the bytes of a compiled kernel and how to call it.
#ifndef PRUNERC_CODEGEN_ARTIFACT_H_
#define PRUNERC_CODEGEN_ARTIFACT_H_

#include "ir/dtype.h"
#include "ir/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

enum class ArtifactKind : uint8_t {
  kCpuObject,   ///< an ELF relocatable object; the entry has the ABI of runtime/kernel.h
  kCudaCubin,   ///< a cubin; the entry is a __global__ function
  kCudaSource,  ///< CUDA C++ text, for targets that are executed on the host
};
inline constexpr int kNumArtifactKinds = 3;

enum class ParamRole : uint8_t { kInput, kOutput };

/// One dense row-major argument of a kernel. A scalar has an empty shape.
struct ArtifactParam {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  ParamRole role = ParamRole::kInput;

  bool operator==(const ArtifactParam&) const = default;
};

/// Plain data; can be cached, sent to another process, and compared.
struct Artifact {
  ArtifactKind kind = ArtifactKind::kCpuObject;
  std::string bytes;   ///< the object file itself
  std::string entry;   ///< symbol of the kernel
  std::string triple;  ///< "x86_64-unknown-linux-gnu"
  std::string cpu;     ///< the CPU or SM that the code was made for: "znver4"
  std::vector<ArtifactParam>
      params;                   ///< in the order of the kernel's arguments, inputs before outputs
  int64_t workspace_bytes = 0;  ///< shared by all workers
  int64_t workspace_bytes_per_worker = 0;  ///< in addition, for each worker
  double flops = 0;  ///< arithmetic of one run, as the operator's definition counts it
  double bytes_moved =
      0;  ///< compulsory traffic of one run: each input and output once. Units: bytes

  bool operator==(const Artifact&) const = default;
};

/// Number of elements: the product of the shape. The artifact must be valid (validate below).
int64_t num_elems(const ArtifactParam& param);
int64_t size_bytes(const ArtifactParam& param);

/// The whole workspace for `num_workers` workers.
int64_t total_workspace_bytes(const Artifact& artifact, int num_workers);

/// Checks what a runtime relies on: an entry, shapes whose sizes do not overflow, workspace sizes
/// that are not absurd. Errors: ArtifactMalformed.
Result<void> validate(const Artifact& artifact);

/// A compact binary form, the same bytes for equal artifacts.
std::string serialize(const Artifact& artifact);

/// Reads what serialize wrote. Total: any bytes give an artifact that passes validate, or an error.
/// Errors: ArtifactMalformed.
Result<Artifact> deserialize(std::string_view bytes);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_ARTIFACT_H_
