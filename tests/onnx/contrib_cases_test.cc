// What ONNX Runtime recorded (contrib.py), most of it of operators of its own domain, beside ours.
#include "tests/onnx/cases.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace prunerc::onnx {
namespace {

namespace fs = std::filesystem;

// Writes the files of a tar archive into the folder. Format: ustar of POSIX, files alone, short names.
void unpack(const fs::path& archive, const fs::path& folder) {
  constexpr std::size_t kBlock = 512, kName = 100, kSizeAt = 124, kSizeDigits = 11;
  std::ifstream in(archive, std::ios::binary);
  for (std::array<char, kBlock> header{}; in.read(header.data(), kBlock) && header[0] != '\0';) {
    const fs::path path = folder / std::string(header.data(), ::strnlen(header.data(), kName));
    const std::string digits(header.data() + kSizeAt, kSizeDigits);
    std::string bytes(std::stoul(digits, nullptr, 8), '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    in.ignore(static_cast<std::streamsize>((kBlock - bytes.size() % kBlock) % kBlock));
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
}

TEST_CASE("operators give what ONNX Runtime records") {
  // Sums are in another order, and of 16 bits rounded otherwise on the way.
  const CaseOptions options = {.relative = 1e-3, .absolute = 1e-5};
  const fs::path unpacked = fs::path(std::getenv("TEST_TMPDIR")) / "onnx_contrib";
  for (const auto& entry : fs::directory_iterator("tests/data/onnx_contrib"))
    unpack(entry.path(), unpacked);
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(unpacked)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  constexpr std::size_t kFewest = 194;
  CHECK(folders.size() >= kFewest);
  for (const fs::path& folder : folders) {
    const Verdict verdict = run_case(folder, options);
    INFO(folder.filename().string() << ": " << verdict.why);
    CHECK(verdict.kind == "pass");
  }
}

}  // namespace
}  // namespace prunerc::onnx
