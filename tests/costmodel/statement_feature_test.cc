#include "costmodel/feature/statement.h"
#include "ir/support/rng.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <cmath>
#include <set>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test

ir::Target cpu() { return *ir::target_from_string("cpu:icelake-server"); }

// A feature by name; the test fails if there is none.
double get(const StatementFeatures& features, const std::string& name) {
  const int index = find_feature(FeatureGroup::kStatement, name);
  INFO(name);
  REQUIRE(index >= 0);
  return static_cast<double>(features[static_cast<std::size_t>(index)]);
}

double slog(double x) { return std::log2(x + 1); }

void check_features(const StatementFeatures& features,
                    const std::vector<std::pair<std::string, double>>& expected) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(get(features, name) == Approx(value).margin(1e-5));
  }
}

constexpr const char* kGemm = R"(program gemm(A: f32[4, 16], B: f32[16, 8]) -> (C: f32[4, 8]) {
  for i in 4 { for j in 8 { for k in 16 {
    block "C" [vi: S(4) = i, vj: S(8) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } })";

TEST_CASE("there are 164 features, each with its own name and a unit") {
  CHECK(feature_names(FeatureGroup::kStatement).size() == kNumStatementFeatures);
  std::set<std::string> names;
  for (const FeatureName& f : feature_names(FeatureGroup::kStatement)) {
    CHECK(names.insert(f.name).second);
    const bool known = f.unit == "log2" || f.unit == "flag" || f.unit == "ratio";
    CHECK(known);
  }
  CHECK(find_feature(FeatureGroup::kStatement, "float_mad") == 0);
  CHECK(find_feature(FeatureGroup::kStatement, "B0.read") == 57);
  CHECK(find_feature(FeatureGroup::kStatement, "B1.read") == 57 + 18);
  CHECK(find_feature(FeatureGroup::kStatement, "intensity_0") == 57 + 5 * 18);
  CHECK(find_feature(FeatureGroup::kStatement, "unroll_max_step") == 163);
  CHECK(find_feature(FeatureGroup::kStatement, "none") == -1);
}

TEST_CASE("a matrix product, by hand") {
  const ir::Program program = parse_or_die(kGemm);
  const std::vector<StatementFeatures> features = statement_features(program, cpu());
  REQUIRE(features.size() == 2);
  // The init runs once an element, outside of the reduction.
  check_features(features[0], {{"outer_prod", slog(32)},
                               {"num_loops", slog(2)},
                               {"float_add_sub", 0},
                               {"B0.write", 1},
                               {"B0.read_write", 0},
                               {"B1.bytes", 0}});
  check_features(features[1], {{"float_mad", 0},
                               {"float_add_sub", slog(512)},
                               {"float_mul", slog(512)},
                               {"int_add_sub", 0},
                               {"vectorize_num", 0},
                               {"vectorize_none", 1},
                               {"parallel_none", 1},
                               {"is_gpu", 0},
                               {"thread_x", 0},
                               {"alloc_bytes", slog(128)},
                               {"alloc_bytes_prod", slog(128)},
                               {"alloc_outer_prod", slog(1)},
                               {"alloc_inner_prod", slog(512)},
                               {"outer_prod", slog(512)},
                               {"num_loops", slog(3)},
                               {"unroll_max_step", 0}});
}

TEST_CASE("the buffers of a matrix product, by hand, nearest reuse first") {
  const std::vector<StatementFeatures> features = statement_features(parse_or_die(kGemm), cpu());
  // C stands still along k: touched again after one iteration, which touches three elements.
  check_features(features[1], {{"B0.read_write", 1},
                               {"B0.read", 0},
                               {"B0.bytes", slog(2048)},
                               {"B0.unique_bytes", slog(128)},
                               {"B0.lines", slog(2)},
                               {"B0.unique_lines", slog(2)},
                               {"B0.reuse_by_loop", 1},
                               {"B0.reuse_distance_iterations", slog(1)},
                               {"B0.reuse_distance_bytes", slog(12)},
                               {"B0.reuse_count", slog(16)},
                               {"B0.bytes_per_reuse", slog(2048 / 16)},
                               {"B0.unique_lines_per_reuse", slog(2.0 / 16)},
                               {"B0.stride", 0}});
  // A's row comes again with the next j, after 16 iterations over it and a column of B.
  check_features(features[1], {{"B1.read", 1},
                               {"B1.unique_bytes", slog(256)},
                               {"B1.lines", slog(32)},
                               {"B1.unique_lines", slog(4)},
                               {"B1.reuse_distance_iterations", slog(16)},
                               {"B1.reuse_distance_bytes", slog(4 + 64 + 64)},
                               {"B1.reuse_count", slog(8)},
                               {"B1.stride", slog(1)}});
  // B comes again with the next i; a step along k is a row of eight.
  check_features(features[1], {{"B2.unique_bytes", slog(512)},
                               {"B2.lines", slog(256)},
                               {"B2.reuse_distance_iterations", slog(128)},
                               {"B2.reuse_distance_bytes", slog(32 + 64 + 512)},
                               {"B2.reuse_count", slog(4)},
                               {"B2.stride", slog(8)},
                               {"B3.bytes", 0},
                               {"B3.reuse_none", 0},
                               {"B4.read", 0}});
}

TEST_CASE("the arithmetic intensity of a matrix product, by hand") {
  const StatementFeatures f = statement_features(parse_or_die(kGemm), cpu())[1];
  // 2^5 operations over 132 bytes, 2^8 over 608, 2^10 over 896.
  const double inner = 5 / std::log2(132), middle = 8 / std::log2(608), all = 10 / std::log2(896);
  check_features(f, {{"intensity_0", inner / 5},
                     {"intensity_4", inner},
                     {"intensity_5", inner + (middle - inner) / 3},
                     {"intensity_7", middle},
                     {"intensity_8", (middle + all) / 2},
                     {"intensity_9", all}});
}

TEST_CASE("loop kinds, an intermediate and operations of every kind") {
  const ir::Program program = parse_or_die(R"(program p(X: f32[6, 32]) -> (Y: f32[6, 32]) {
  buffer T: f32[6, 32] global
  for i in 6 parallel {
    for j in 4 unrolled { for v in 8 vectorized {
      block "T" [vi: S(6) = i, vj: S(32) = j * 8 + v] {
        T[vi, vj] = exp(X[vi, vj]) - select(X[vi, vj] < 0f32, 1f32, X[vi, vj] / 2f32) } } }
    for j1 in 32 {
      block "Y" [wi: S(6) = i, wj: S(32) = j1] { Y[wi, wj] = max(T[wi, wj], T[wi, 31 - wj]) } } } })");
  const std::vector<StatementFeatures> features = statement_features(program, cpu());
  REQUIRE(features.size() == 2);
  check_features(features[0], {{"float_math", slog(192)},
                               {"float_add_sub", slog(192)},
                               {"float_div_mod", slog(192)},
                               {"float_compare", slog(192)},
                               {"select", slog(192)},
                               {"vectorize_num", slog(1)},
                               {"vectorize_prod", slog(8)},
                               {"vectorize_len", slog(8)},
                               {"vectorize_none", 0},
                               {"vectorize_mixed", 1},
                               {"unroll_prod", slog(4)},
                               {"unroll_max_step", slog(4)},
                               {"parallel_len", slog(6)},
                               {"parallel_mixed", 1},
                               // T lives inside of i.
                               {"alloc_outer_prod", slog(6)},
                               {"alloc_inner_prod", slog(32)},
                               {"alloc_bytes", slog(6 * 32 * 4)}});
  // Y is not touched again; T is read twice in one iteration, half of which lies between.
  check_features(features[1], {{"float_compare", slog(192)},
                               {"int_add_sub", slog(192)},
                               {"B0.write", 1},
                               {"B0.reuse_none", 1},
                               {"B0.bytes_per_reuse", slog(2 * 192 * 4)},
                               {"B1.read", 1},
                               {"B1.reuse_serial", 1},
                               {"B1.reuse_count", slog(1)},
                               {"B1.reuse_distance_iterations", slog(0.5)}});
}

TEST_CASE("a launch on a GPU") {
  const ir::Program program = parse_or_die(R"(program p(X: f32[512]) -> (Y: f32[512]) {
  for b in 4 bind(block.x) { for t in 64 bind(thread.x) { for v in 2 bind(vthread.x) {
    block "Y" [vi: S(512) = b * 128 + v * 64 + t] { Y[vi] = X[vi] + 1f32 } } } } })");
  const ir::Target gpu = *ir::target_from_string("cuda:sm_80");
  check_features(statement_features(program, gpu)[0], {{"is_gpu", 1},
                                                       {"block_x", slog(4)},
                                                       {"block_y", slog(1)},
                                                       {"thread_x", slog(64)},
                                                       {"vthread", slog(2)},
                                                       {"float_add_sub", slog(512)}});
}

TEST_CASE("every program has finite features, one vector a store") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed, 77);
    const ir::Program program = random_program(rng, {});
    const std::vector<StatementFeatures> features = statement_features(program, cpu());
    CHECK(!features.empty());
    for (const StatementFeatures& statement : features) {
      for (const float value : statement) CHECK(std::isfinite(value));
    }
    CHECK(features == statement_features(program, cpu()));
  }
}

}  // namespace
}  // namespace prunerc
