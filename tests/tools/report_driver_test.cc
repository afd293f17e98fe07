// The parts of tools/driver/report/report.h that need no database.
#include "tools/driver/report/report.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

TEST_CASE("rank correlation is 1 for any rising pairs and -1 for falling ones") {
  CHECK(rank_correlation({{1, 10}, {2, 11}, {3, 1000}}) == Approx(1));
  CHECK(rank_correlation({{1, 3}, {2, 2}, {3, 1}}) == Approx(-1));
}

TEST_CASE("rank correlation gives ties their mean rank") {
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
  CHECK(rank_correlation({{1, 1}, {2, 2}, {2, 3}, {3, 4}}) == Approx(0.9486833));
}

TEST_CASE("rank correlation of what cannot be ranked is 0") {
  CHECK(rank_correlation({}) == 0);
  CHECK(rank_correlation({{1, 2}}) == 0);
  CHECK(rank_correlation({{1, 2}, {1, 3}}) == 0);
}

TEST_CASE("an absolute path is cut to its last component") {
  CHECK(without_folders("cannot open '/home/me/a.prn'") == "cannot open 'a.prn'");
  CHECK(without_folders("/home/me/x.prn:3:4: error: here") == "x.prn:3:4: error: here");
  CHECK(without_folders("read (/tmp/k.so), ~/secret/k.so") == "read (k.so), k.so");
  CHECK(without_folders("/home/me/folder/") == "folder/");
}

TEST_CASE("what is no absolute path stays") {
  for (const auto* text :
       {"A[i/4, i%4]", "a / b", "// comment", "std/gemm.prn", "tile/pack", "</script>", ""}) {
    CHECK(without_folders(text) == text);
  }
}

}  // namespace
}  // namespace prunerc
