// tests/golden/schedule/*.prc: lines "# run: primitive" and a program; after the line "# gives"
// what becomes of it. PRUNERC_UPDATE_GOLDEN=<folder> writes the expectations there.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <string>

namespace prunerc::testing {
namespace {

constexpr std::string_view kMark = "# gives\n";
const std::string kFolder = "tests/golden/schedule";

std::string steps_of(std::string_view text) {
  const std::string_view prefix = "# run: ";
  std::string steps;
  while (text.substr(0, prefix.size()) == prefix) {
    const std::size_t end = text.find('\n');
    steps += std::string(text.substr(prefix.size(), end - prefix.size() + 1));
    text.remove_prefix(end + 1);
  }
  return steps;
}

TEST_CASE("primitives rewrite the golden programs as written") {
  const std::vector<std::string> names = list_test_files(kFolder);
  int checked = 0;
  for (const std::string& name : names) {
    if (name.size() < 4 || name.substr(name.size() - 4) != ".prc") continue;
    const std::string text = read_test_file(kFolder + "/" + name);
    INFO(name);
    const std::size_t mark = text.find(kMark);
    REQUIRE(mark != std::string::npos);
    const std::string input = text.substr(0, mark);
    const std::size_t start = input.find("program");
    REQUIRE(start != std::string::npos);
    const schedule::Schedule s = check_steps(input.substr(start), steps_of(input));
    const std::string result = print(s.program());
    if (const char* folder = std::getenv("PRUNERC_UPDATE_GOLDEN")) {
      std::ofstream(std::string(folder) + "/" + name) << input << kMark << result;
    } else {
      CHECK(result == text.substr(mark + kMark.size()));
    }
    ++checked;
  }
  CHECK(checked >= 8);
}

}  // namespace
}  // namespace prunerc::testing
