// What ONNX Runtime recorded of operators of its own domain (contrib.py), beside ours.
#include "tests/onnx/cases.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace prunerc::onnx {
namespace {

TEST_CASE("operators of ONNX Runtime's domain give what it records") {
  // Sums are in another order, and of 16 bits rounded otherwise on the way.
  const CaseOptions options = {.relative = 1e-3, .absolute = 1e-5};
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/onnx_contrib")) {
    if (std::filesystem::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  constexpr std::size_t kFewest = 166;
  CHECK(folders.size() >= kFewest);
  for (const std::filesystem::path& folder : folders) {
    const Verdict verdict = run_case(folder, options);
    INFO(folder.filename().string() << ": " << verdict.why);
    CHECK(verdict.kind == "pass");
  }
}

}  // namespace
}  // namespace prunerc::onnx
