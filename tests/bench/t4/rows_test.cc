#include "tests/bench/t4/rows.h"

#include "costmodel/latency/calibrate.h"
#include "tests/bench/draft/order.h"
#include "tests/support/check.h"
#include "tools/driver/t4/t4.h"

#include <catch2/catch.hpp>

#include <map>

namespace prunerc::bench {
namespace {

// Times that fall with the tile: of both devices alike, of the second twice as long.
NamedPool made_up(const std::string& name, const std::string& device, double scale) {
  T4File file;
  file.params = {"block_size_x", "block_size_y", "filter_height", "filter_width", "read_only",
                 "tile_size_x",  "tile_size_y",  "use_cmem",      "use_padding",  "use_shmem"};
  for (int64_t tile = 1; tile <= 4; ++tile) {
    for (const int64_t width : {32, 64, 128}) {
      T4Row row;
      row.values = {width, 2, 15, 15, 0, tile, tile, 1, 0, 1};
      row.measurement.status = MeasureStatus::kOk;
      row.measurement.samples_ns = {scale * 1e6 / static_cast<double>(tile * tile + width % 5)};
      search::summarize_samples(row.measurement);
      file.rows.push_back(row);
    }
  }
  file.rows[0].measurement.status = MeasureStatus::kRunError;
  return {name, "conv", import_t4(file, name, device).value()};
}

TEST_CASE("rows of a made-up file are those of its order") {
  const std::vector<NamedPool> pools = {made_up("conv_a", "cuda:a4000", 1),
                                        made_up("conv_b", "cuda:a6000", 2)};
  T4BenchOptions options;
  options.fit = {"conv_a"};
  options.seeds = {1, 2, 3};
  std::map<std::string, double> rows;
  for (const Row& row : t4_rows(pools, options)) rows[row.name] = row.value;
  CHECK(rows.at("rows/conv_a") == 11);
  CHECK(rows.at("spearman/conv_b/from_a") == Approx(1));
  CHECK(rows.at("best1/conv_b/from_a") == Approx(1));
  CHECK(rows.at("best64/conv_a/random") == Approx(1));
  CHECK(rows.at("best1/conv_a/random") < 0.9);
  for (const char* method : {"roofline", "paper", "release", "ours"}) {
    CHECK(rows.at(std::string("best64/conv_a/") + method) == Approx(1));
  }
  // What coefficients were fitted to is not judged by them.
  CHECK(rows.count("best1/conv_a/fitted") == 0);
  CHECK(rows.count("best1/conv_b/fitted") == 1);
}

TEST_CASE("ties are broken by the seeds, and order decides otherwise") {
  const std::vector<double> measured = {1, 2, 4, 8};
  const std::vector<uint64_t> seeds = seeds_from(1, 400);
  CHECK(best_of_first(measured, std::vector<double>{1, 2, 3, 4}, 1, seeds) == 1);
  CHECK(best_of_first(measured, std::vector<double>{4, 3, 2, 1}, 1, seeds) == 0.125);
  CHECK(best_of_first(measured, std::vector<double>{4, 3, 2, 1}, 3, seeds) == 0.5);
  const double drawn = best_of_drawn(measured, 1);
  CHECK(drawn == Approx((1 + 0.5 + 0.25 + 0.125) / 4));
  CHECK(best_of_first(measured, std::vector<double>(4, 7), 1, seeds) == Approx(drawn).margin(0.06));
  CHECK(costmodel::rank_correlation(measured, std::vector<double>{1, 3, 5, 7}) == Approx(1));
  CHECK(costmodel::rank_correlation(measured, std::vector<double>{7, 5, 3, 1}) == Approx(-1));
  CHECK(costmodel::rank_correlation(measured, std::vector<double>(4, 7)) == 0);
}

}  // namespace
}  // namespace prunerc::bench
