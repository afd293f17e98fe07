// Which groups a benchmark measures, and what it writes.
#include "tests/bench/report.h"

#include "runtime/cpu/host.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace prunerc::bench {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("the median of an even number is between the two in the middle") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({4, 1}) == 2.5);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({9, 1, 2, 4}) == 3);
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
  CHECK(read(path).find(runtime::host_name()) != std::string::npos);
}

TEST_CASE("without a name, groups on request are left out") {
  std::string measured;
  const auto group = [&](const char* name) {
    return [&measured, name] {
      measured += name;
      return std::vector<Row>{{name, 1, "s", {}, ""}};
    };
  };
  const Group groups[] = {
      {"a", group("a"), {}}, {"b", group("b"), {}, true}, {"c", group("c"), {}}};
  CHECK(report("bench", groups, "", "") == 0);
  CHECK(measured == "ac");
}

TEST_CASE("what gives no rows fails and leaves the file alone") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/no_rows.json";
  std::ofstream(path) << "kept";
  const auto nothing = [] { return std::vector<Row>{}; };
  const auto something = [] { return std::vector<Row>{{"row", 1, "s", {}, ""}}; };
  const Group none[] = {{"none", nothing, {1}}};
  CHECK(report("bench", none, "", path) == 1);
  CHECK(read(path) == "kept");

  const Group some[] = {{"none", nothing, {1}}, {"some", something, {2}}};
  CHECK(report("bench", some, "", path) == 0);
  CHECK(read(path).find("\"row\"") != std::string::npos);
  CHECK(!std::filesystem::exists(path + ".draft"));
}

TEST_CASE("a value that is no number is written as none and fails") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/no_number.json";
  const Group groups[] = {
      {"a",
       [] {
         return std::vector<Row>{{"x", std::numeric_limits<double>::quiet_NaN(), "s", {}, ""}};
       },
       {1}}};
  CHECK(report("bench", groups, "", path) == 1);
  CHECK(read(path).find("\"value\":null") != std::string::npos);
}

TEST_CASE("a goal that is an upper limit says so in the file") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/at_most.json";
  const auto measure = [] {
    return std::vector<Row>{{"faults", 0, "", 0.0, "", true}, {"rate", 2, "", 1.0, ""}};
  };
  const Group groups[] = {{"a", measure, {1}}};
  CHECK(report("bench", groups, "", path) == 0);
  const std::string text = read(path);
  const std::string::size_type at = text.find("\"at_most\":true");
  CHECK(at < text.find("\"rate\""));
  CHECK(text.find("at_most", at + 10) == std::string::npos);
}

TEST_CASE("a file that cannot be written fails") {
  const Group groups[] = {{"a", [] { return std::vector<Row>{{"x", 1, "s", {}, ""}}; }, {1}}};
  CHECK(report("bench", groups, "", std::string(std::getenv("TEST_TMPDIR")) + "/none/x.json") == 1);
}

}  // namespace
}  // namespace prunerc::bench
