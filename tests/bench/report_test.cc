// Which groups a benchmark measures, and what it writes.
#include "tests/bench/report.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace prunerc::bench {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("a name of no group measures nothing and leaves the file alone") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/kept.json";
  std::ofstream(path) << "kept";
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return std::vector<Row>{{"row", 1, "s", {}, ""}};
  };
  const Group groups[] = {{"first", measure, {1}}, {"second", measure, {2}, true}};
  CHECK(report("bench", groups, "frist", path) == 2);
  CHECK(measured == 0);
  CHECK(read(path) == "kept");

  CHECK(report("bench", groups, "second", path) == 0);
  CHECK(measured == 1);
  CHECK(read(path).find("\"seeds\": [2]") != std::string::npos);
}

TEST_CASE("without a name, groups on request are left out") {
  std::string measured;
  const auto group = [&](const char* name) {
    return [&measured, name] {
      measured += name;
      return std::vector<Row>{};
    };
  };
  const Group groups[] = {
      {"a", group("a"), {}}, {"b", group("b"), {}, true}, {"c", group("c"), {}}};
  CHECK(report("bench", groups, "", "") == 0);
  CHECK(measured == "ac");
}

}  // namespace
}  // namespace prunerc::bench
