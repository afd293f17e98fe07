#include "tests/golden/behavior/golden_lines.h"

#include "tests/support/check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace prunerc::testing {

void keep_output(const std::string& name, const std::string& text) {
  const char* const folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (folder == nullptr) return;
  std::ofstream(std::filesystem::path(folder) / name, std::ios::binary) << text;
}

void check_golden_lines(const std::string& path, const std::map<std::string, std::string>& actual) {
  std::map<std::string, std::string> expected;
  std::istringstream lines(read_test_file(path));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#') continue;
    REQUIRE(colon != std::string::npos);
    expected[line.substr(0, colon)] = line.substr(colon + 2);
  }
  std::string now;
  for (const auto& [name, value] : actual) now += name + ": " + value + "\n";
  if (expected != actual) keep_output(std::filesystem::path(path).filename(), now);
  for (const auto& [name, value] : actual) {
    INFO(name);
    const auto found = expected.find(name);
    CHECK((found == expected.end() ? "not in " + path : found->second) == value);
  }
  for (const auto& [name, value] : expected) {
    INFO(name << " is in " << path << " and no longer a case");
    CHECK(actual.count(name) == 1);
  }
}

}  // namespace prunerc::testing
