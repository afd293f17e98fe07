// Programs of the system that codegen runs: linkers and compilers.
#ifndef PRUNERC_CODEGEN_SUBPROCESS_H_
#define PRUNERC_CODEGEN_SUBPROCESS_H_

#include "ir/support/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::codegen {

/// A temporary folder, removed at the end with what is in it.
class ScratchFolder {
 public:
  /// Errors: IoError.
  static Result<ScratchFolder> make();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Empty if there is none.
std::string read_file(const std::string& path);
/// Errors: IoError.
Result<void> write_file(const std::string& path, std::string_view bytes);

inline constexpr int kNotStarted = -1;
/// Exit status (1 for a signal), or kNotStarted. What the program prints goes to the file `output`.
int run_program(const std::vector<std::string>& command, const std::string& output);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_SUBPROCESS_H_
