// Runs ONNX's own cases (folders with model.onnx and test_data_set_*) and says what became of each: the net as it was
// imported, by the interpreter, beside the recorded outputs.
//
// usage: conformance [--verbose] FOLDER...     one line a case on stdout: "pass|unsupported|wrong|error CASE: why"
#include "tests/onnx/cases.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

constexpr unsigned kMaxSeconds = 60;

std::string first_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, 400);
}

// In a process of its own, so that a defect of one case is that case's.
void report(const std::filesystem::path& folder, bool verbose) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kMaxSeconds);
    const Verdict verdict = run_case(folder, {.verbose = verbose});
    fmt::print("{} {}: {}\n", verdict.kind, folder.filename().string(),
               verbose ? verdict.why : first_line(verdict.why));
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fmt::print("error {}: the process ended with status {:#x}\n", folder.filename().string(),
               status);
}

}  // namespace
}  // namespace prunerc::onnx

int main(int argc, char** argv) {
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--verbose") {
      verbose = true;
      continue;
    }
    std::vector<std::filesystem::path> cases;
    if (std::filesystem::exists(std::filesystem::path(argv[i]) / "model.onnx")) {
      cases.push_back(argv[i]);
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
        if (std::filesystem::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
    }
    std::sort(cases.begin(), cases.end());
    for (const std::filesystem::path& folder : cases) prunerc::onnx::report(folder, verbose);
  }
  return 0;
}
