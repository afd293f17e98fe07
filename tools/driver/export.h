// Files that other programs use: one compiled operator in all of its forms.
#ifndef PRUNERC_TOOLS_DRIVER_EXPORT_H_
#define PRUNERC_TOOLS_DRIVER_EXPORT_H_

#include "ir/support/result.h"
#include "tools/driver/prunerc.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// What `prunerc compile -o` can write.
enum class ExportForm : uint8_t {
  kShared,    ///< .so: a library that checks its arguments, brings its threads and workspace
  kArchive,   ///< .a: the same for static linking
  kObject,    ///< .o: the same as one object
  kHeader,    ///< .h: declares what these have
  kSource,    ///< .c: what they have besides the kernel
  kAssembly,  ///< .s: the kernel alone
  kLlvmText,  ///< .ll
  kCudaText,  ///< .cu
  kPtx,       ///< .ptx
  kCubin,     ///< .cubin
  kWeights,   ///< .weights: of a net, what its library then has beside it
};

/// By the suffix.
std::optional<ExportForm> export_form_of(std::string_view path);
/// Whether kernels for such a target have that form.
bool has_form(const ir::Target& target, ExportForm form);

/// The name of the file of weights that a net's library among `outputs` looks for in its own folder; empty: they
/// lie within it. Adds that file where they are too large for that, as code addresses 2 GiB at most.
std::string weights_beside(int64_t prepared_bytes, std::vector<std::string>* outputs);

struct ExportOptions {
  std::string symbol;  ///< of the function; empty: "op_" and the operator's name
};

/// A kernel that is compiled when the first file needs it, and once whatever files are asked for.
/// Movable. Threads: one call at a time.
class Exported {
 public:
  /// Errors: UsageOption (the symbol).
  static Result<Exported> make(const Session& session, const Operator& op, const Choice& choice,
                               const ExportOptions& options = {});
  Exported(Exported&&) noexcept;
  Exported& operator=(Exported&&) noexcept;
  ~Exported();

  /// The contents of a file. Errors: Unsupported (a form that has_form denies); those of compile_cpu
  /// or compile_cubin; HostCompiler, HostRejected, IoError.
  Result<std::string> file(ExportForm form);

 private:
  struct Impl;
  explicit Exported(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_EXPORT_H_
