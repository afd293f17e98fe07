// Loads a compiled object into this process and finds its entry point.
#ifndef PRUNERC_RUNTIME_CPU_ORC_H_
#define PRUNERC_RUNTIME_CPU_ORC_H_

#include "codegen/artifact.h"
#include "ir/support/result.h"
#include "runtime/kernel.h"

#include <memory>

namespace prunerc::runtime {

/// A kernel whose code is mapped into this process. Movable; the code is unmapped on destruction.
/// Threads: entry() may be called from any thread while the object lives.
class LoadedKernel {
 public:
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&&) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) noexcept;

  PrunercKernel entry() const { return entry_; }
  /// What fills the prepared memory from const inputs; null for a kernel without any.
  PrunercKernel prepare_entry() const { return prepare_entry_; }

 private:
  friend Result<LoadedKernel> load_kernel(const codegen::Artifact& artifact);
  struct Impl;
  LoadedKernel();

  std::unique_ptr<Impl> impl_;
  PrunercKernel entry_ = nullptr;
  PrunercKernel prepare_entry_ = nullptr;
};

/// Links the artifact's object and returns its kernel. The object may refer only to the few memory
/// and math functions that code generation emits (see allowed_symbols in orc.cc), never to the
/// process at large. One that uses tile registers has them allowed first. Errors: KernelLoad (also if
/// the system refuses tile registers), CpuFeatures (the CPU has none).   Cost: about a millisecond.
/// Threads: one load at a time.
Result<LoadedKernel> load_kernel(const codegen::Artifact& artifact);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_ORC_H_
