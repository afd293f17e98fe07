// One primitive, one file: each row of primitive.def has primitive/NAME.cc, which opens with what the
// primitive needs, what holds after it, and a picture; and primitive/ holds nothing else. Rows that
// differ only in being of a loop or a block (annotate_loop, annotate_block) share a file.
#include "tests/support/check.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {
namespace {

constexpr std::string_view kRows[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) text,
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

std::string without_suffix(std::string name, std::string_view suffix) {
  const bool has = name.size() > suffix.size() &&
                   std::string_view(name).substr(name.size() - suffix.size()) == suffix;
  return has ? name.substr(0, name.size() - suffix.size()) : name;
}

// The lines of comment that a file begins with.
std::vector<std::string> opening(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; text.substr(at, 2) == "//";) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = std::min(end + 1, text.size());
  }
  return out;
}

// "" or what the opening lacks.
std::string fault(const std::vector<std::string>& lines) {
  std::string all;
  std::size_t arrow = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() > 100) return "a line has more than 100 columns";
    if (lines[i].substr(0, 5) == "// ~>") arrow = i;
    all += lines[i] + "\n";
  }
  if (lines.size() < 2 || lines.size() > 8) return "it has not 2 to 8 lines";
  for (const char* word : {"Needs:", "After:"}) {
    if (all.find(word) == std::string::npos) return std::string("it says nothing of ") + word;
  }
  const bool drawn = arrow > 0 && arrow + 1 < lines.size() &&
                     lines[arrow - 1].substr(0, 5) == "//   " &&
                     lines[arrow + 1].substr(0, 5) == "//   ";
  return drawn ? "" : "it has no picture of before ~> after";
}

TEST_CASE("each primitive has its file, and the folder holds nothing else") {
  const std::vector<std::string> names = list_test_files("schedule/primitive");
  const std::set<std::string> files(names.begin(), names.end());
  std::set<std::string> wanted;
  for (const std::string_view row : kRows) {
    std::string file = std::string(row) + ".cc";
    for (const std::string_view suffix : {"_loop", "_block"}) {
      if (files.count(file) == 0) file = without_suffix(std::string(row), suffix) + ".cc";
    }
    INFO(row);
    CHECK(files.count(file) == 1);
    wanted.insert(file);
  }
  CHECK(files == wanted);
}

TEST_CASE("each primitive's file opens with its needs, its result and its picture") {
  for (const std::string& name : list_test_files("schedule/primitive")) {
    const std::vector<std::string> lines = opening(read_test_file("schedule/primitive/" + name));
    INFO(name);
    CHECK(fault(lines) == "");
    const std::string signature = "// " + without_suffix(name, ".cc");
    CHECK((!lines.empty() && lines[0].substr(0, signature.size()) == signature));
  }
}

TEST_CASE("an opening without needs, picture or room is found out") {
  CHECK(fault({"// split(@L)"}) == "it has not 2 to 8 lines");
  CHECK(fault({"// split(@L)", "// After: all."}) == "it says nothing of Needs:");
  CHECK(fault({"// split(@L)", "// Needs: nothing. After: all.", "// ~>"}) ==
        "it has no picture of before ~> after");
  CHECK(fault({"// x. Needs: nothing. After: all.", "//   a", "// ~>", "//   b"}) == "");
}

}  // namespace
}  // namespace prunerc::testing
