#include "tools/driver/t4/t4.h"

#include "costmodel/latency/roofline.h"
#include "ir/equal.h"
#include "ir/fpv/fpv.h"
#include "schedule/schedule.h"
#include "search/record/restore.h"
#include "search/space/draft_space.h"
#include "tests/support/check.h"
#include "tools/driver/t4/t4_kernel.h"

#include <catch2/catch.hpp>
#include <zlib.h>

#include <array>
#include <set>
#include <string>

namespace prunerc {
namespace {

using testing::check_same_result;
using testing::read_test_file;

constexpr const char* kExample = "tools/examples/convolution_t4.json";

std::string gzipped(const std::string& text) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string cache_of(const std::string& rows) {
  return R"({"device_name": "NVIDIA RTX A4000", "problem_size": [8, 9],
             "tune_params_keys": ["y", "x"], "cache": {)" +
         rows + "}}";
}

std::string t4_of(const std::string& row) {
  return R"({"metadata": {"timeunit": "milliseconds"}, "results": [)" + row + "]}";
}

T4Values xgemm_values(std::initializer_list<std::pair<const char*, int64_t>> changed) {
  T4Values values = {{"MWG", 32},  {"NWG", 32},  {"KWG", 32}, {"MDIMC", 8}, {"NDIMC", 8},
                     {"MDIMA", 8}, {"NDIMB", 8}, {"KWI", 2},  {"VWM", 1},   {"VWN", 1},
                     {"STRM", 0},  {"STRN", 0},  {"SA", 0},   {"SB", 0},    {"PRECISION", 32}};
  for (const auto& [name, value] : changed) values[name] = value;
  return values;
}

T4Values convolution_values(std::initializer_list<std::pair<const char*, int64_t>> changed) {
  T4Values values = {{"block_size_x", 16}, {"block_size_y", 2}, {"tile_size_x", 1},
                     {"tile_size_y", 1},   {"read_only", 0},    {"use_padding", 0},
                     {"use_shmem", 0},     {"use_cmem", 1},     {"filter_height", 15},
                     {"filter_width", 15}};
  for (const auto& [name, value] : changed) values[name] = value;
  return values;
}

const T4Kernel& kernel_of(std::string_view op) {
  for (const T4Kernel& kernel : t4_kernels()) {
    if (kernel.op == op) return kernel;
  }
  FAIL("no kernel " << op);
  return t4_kernels()[0];
}

// The configuration's program at a small size computes what the operator does.
void check_configuration(const T4Kernel& kernel, const std::map<std::string, std::string>& sizes,
                         const T4Values& values) {
  const ir::Program base = t4_program(kernel, sizes).value();
  const std::vector<search::Sketch> sketches = kernel.sketches(t4_program(kernel).value()).value();
  const std::optional<T4Point> point = kernel.point(values);
  REQUIRE(point.has_value());
  const search::Sketch& sketch = sketches[static_cast<std::size_t>(point->sketch)];
  INFO(sketch.name);
  const auto decisions = t4_decisions(sketch, *point);
  REQUIRE(decisions.has_value());
  const Result<schedule::Schedule> made = schedule::replay(
      base, sketch.trace, {.decisions = *decisions, .verify = schedule::Verify::kEachStep});
  REQUIRE_OK(made);
  check_same_result(base, made->program(), 1);
  const ir::FpvVerdict verdict = ir::check_equivalent(base, made->program());
  INFO(ir::to_string(verdict));
  CHECK(verdict.ok());
}

TEST_CASE("configurations of CLBlast's product compute it") {
  const T4Kernel& kernel = kernel_of("xgemm");
  const std::map<std::string, std::string> sizes = {{"M", "64"}, {"N", "64"}, {"K", "64"}};
  for (const int64_t sa : {0, 1}) {
    for (const int64_t sb : {0, 1}) {
      check_configuration(kernel, sizes, xgemm_values({{"SA", sa}, {"SB", sb}}));
      check_configuration(kernel, sizes,
                          xgemm_values({{"SA", sa},
                                        {"SB", sb},
                                        {"MWG", 64},
                                        {"MDIMC", 16},
                                        {"MDIMA", 8},
                                        {"NDIMB", 16},
                                        {"VWM", 4},
                                        {"VWN", 2}}));
    }
  }
}

TEST_CASE("configurations of the convolution compute it, ragged tiles too") {
  const T4Kernel& kernel = kernel_of("convolution");
  const std::map<std::string, std::string> sizes = {{"H", "18"}, {"W", "70"}};
  for (const int64_t shared : {0, 1}) {
    check_configuration(kernel, sizes, convolution_values({{"use_shmem", shared}}));
    check_configuration(kernel, sizes,
                        convolution_values({{"use_shmem", shared},
                                            {"use_padding", shared},
                                            {"block_size_x", 48},
                                            {"tile_size_x", 2},
                                            {"tile_size_y", 3},
                                            {"read_only", 1}}));
  }
}

TEST_CASE("configurations that kernels do not take are none of ours") {
  const T4Kernel& gemm = kernel_of("xgemm");
  const T4Values bad_gemm[] = {
      xgemm_values({{"STRM", 1}}),
      xgemm_values({{"KWG", 16}}),
      xgemm_values({{"PRECISION", 64}}),
      xgemm_values({{"MDIMC", 0}}),
      xgemm_values({{"VWM", 0}}),
      xgemm_values({{"MWG", -32}}),
      xgemm_values({{"MWG", 48}, {"MDIMC", 32}}),
      xgemm_values({{"SA", 2}}),
      xgemm_values({{"MDIMC", 32}, {"NDIMC", 32}, {"MDIMA", 8}, {"NDIMB", 8}}),
      xgemm_values({{"MWG", int64_t{1} << 62}})};
  for (const T4Values& values : bad_gemm) CHECK(!gemm.point(values).has_value());
  const T4Kernel& convolution = kernel_of("convolution");
  const T4Values bad_convolution[] = {
      convolution_values({{"filter_width", 17}}), convolution_values({{"use_cmem", 0}}),
      convolution_values({{"use_padding", 1}}), convolution_values({{"use_shmem", 2}})};
  for (const T4Values& values : bad_convolution) CHECK(!convolution.point(values).has_value());
  // Values that no file of this kernel has.
  const std::vector<search::Sketch> sketches =
      convolution.sketches(t4_program(convolution).value()).value();
  const auto odd = convolution.point(convolution_values({{"block_size_x", 17}}));
  REQUIRE(odd.has_value());
  CHECK(!t4_decisions(sketches[0], *odd).has_value());
}

TEST_CASE("both formats keep parameters, samples and failures") {
  const T4File cache =
      parse_t4(cache_of(R"("1,2": {"y": 1, "x": 2, "time": 5.0, "times": [4.0, 3.0, 8.0],
                                   "compile_time": 1500.0, "benchmark_time": 20.0},
                           "1,3": {"y": 1, "x": 3, "time": "CompilationFailedConfig"},
                           "1,4": {"y": 1, "x": 4, "time": 0.5})"),
               "c.json")
          .value();
  CHECK(cache.device == "NVIDIA RTX A4000");
  CHECK(cache.problem_size == std::vector<int64_t>{8, 9});
  CHECK(cache.params == std::vector<std::string>{"y", "x"});
  REQUIRE(cache.rows.size() == 3);
  CHECK(cache.rows[0].values == std::vector<int64_t>{1, 2});
  CHECK(cache.rows[0].measurement.median_ns == 4e6);
  CHECK(cache.rows[0].measurement.samples_ns.size() == 3);
  CHECK(cache.rows[0].measurement.build_s == 1.5);
  CHECK(cache.rows[0].measurement.measure_s == Approx(0.02));
  CHECK(cache.rows[1].measurement.status == MeasureStatus::kBuildError);
  CHECK(cache.rows[1].measurement.detail == "CompilationFailedConfig");
  CHECK(cache.rows[2].measurement.median_ns == 5e5);

  const std::string text = t4_of(
      R"({"configuration": {"x": 2, "y": 1}, "times": {"runtimes": [1.0, 2.0, 9.0],
          "compilation": 30}, "invalidity": "correct"},
         {"configuration": {"x": 3, "y": 1}, "times": {}, "invalidity": "timeout"},
         {"configuration": {"x": 4, "y": 1}, "times": {}, "invalidity": "correct",
          "measurements": [{"name": "energy", "value": 1}, {"name": "time", "value": 0.25}]})");
  for (const std::string& bytes : {text, gzipped(text)}) {
    const T4File t4 = parse_t4(bytes, "t.json").value();
    CHECK(t4.device.empty());
    CHECK(t4.params == std::vector<std::string>{"x", "y"});
    REQUIRE(t4.rows.size() == 3);
    CHECK(t4.rows[0].measurement.median_ns == 2e6);
    CHECK(t4.rows[1].measurement.status == MeasureStatus::kTimeout);
    CHECK(t4.rows[2].measurement.median_ns == 2.5e5);
  }
}

TEST_CASE("what is no result is refused with its row") {
  const std::pair<std::string, std::string> cases[] = {
      {"", "no JSON"},
      {"[]", "no JSON object"},
      {"{}", R"(neither "cache" nor "results")"},
      {R"({"results": []})", "no rows"},
      {R"({"cache": {"a": {}}})", R"("tune_params_keys")"},
      {R"({"cache": {}, "tune_params_keys": [1]})", "is no text"},
      {cache_of(R"("a": 3)"), "row 1: it is no object"},
      {cache_of(R"("a": {"y": 1, "time": 1.0})"), "row 1: parameter 'x' is no integer"},
      {cache_of(R"("a": {"y": 1, "x": 1.5, "time": 1.0})"), "parameter 'x' is no integer"},
      {cache_of(R"("a": {"y": 1, "x": 2})"), R"(row 1: it has no "time")"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": "soon"})"), "unknown failure 'soon'"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": null})"), "a time is no positive number"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": 0})"), "a time is no positive number"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": 1e-7})"), "a time is no positive number"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": 1e307})"), "a time is no positive number"},
      {cache_of(R"("a": {"y": 1, "x": 2, "time": 1, "times": [1, "x"]})"), "no positive number"},
      {t4_of("7"), R"(row 1: it has no "configuration")"},
      {t4_of(R"({"configuration": {"x": 1}})"), R"(row 1: it has no "invalidity")"},
      {t4_of(R"({"configuration": {"x": 1}, "invalidity": "odd"})"), "unknown failure 'odd'"},
      {t4_of(R"({"configuration": {"x": 1}, "invalidity": "correct"})"), "no positive number"},
      {t4_of(R"({"configuration": {"x": 1}, "invalidity": "timeout"},
                {"configuration": {"x": 1, "y": 2}, "invalidity": "timeout"})"),
       "row 2: it has parameters that the first one has not"},
      {R"({"metadata": {"timeunit": "s"}, "results": [1]})", "read are milliseconds"},
      {R"({"cache": {}, "tune_params_keys": [")" + std::string(200, 'x') + R"("]})",
       "too long names"},
      {std::string(100, '['), "nested too deep"},
      {"\x1f\x8b not zipped", "cannot be decompressed"},
  };
  for (const auto& [text, reason] : cases) {
    INFO(text);
    const Result<T4File> read = parse_t4(text, "bad.json");
    CHECK_DIAG(read, T4Damaged);
    if (!read.ok()) CHECK(read.error().message().find(reason) != std::string::npos);
  }
}

TEST_CASE("no beginning of a file and no changed byte does more than fail") {
  const std::string text = read_test_file(kExample);
  const std::string packed = gzipped(text);
  for (std::size_t size = 0; size < packed.size(); size += 7) {
    CHECK(!parse_t4(packed.substr(0, size), "part.gz").ok());
  }
  for (std::size_t size = 0; size + 4 < text.size(); size += 31) {
    CHECK(!parse_t4(text.substr(0, size), "part.json").ok());
  }
  for (std::size_t at = 0; at < text.size(); at += 37) {
    for (const char byte : {'"', '9', '}', '\0', '\xff'}) {
      std::string changed = text;
      changed[at] = byte;
      const Result<T4File> read = parse_t4(changed, "changed.json");
      if (read.ok()) static_cast<void>(import_t4(*read, "changed.json", "cuda:a100-40"));
    }
  }
}

TEST_CASE("a file that unpacks to too much is not unpacked") {
  const std::string bomb = gzipped(std::string(std::size_t{65} << 20, ' '));
  CHECK(bomb.size() < 100'000);
  CHECK_DIAG(parse_t4(bomb, "bomb.gz"), TooMany);
}

TEST_CASE("an imported pool is whole, and what it says of each row is the analyzer's own") {
  const T4File file = parse_t4(read_test_file(kExample), kExample).value();
  const search::Pool pool = import_t4(file, kExample, "cuda:a100-40").value();
  REQUIRE(pool.rows.size() == file.rows.size());
  const search::Pool read = search::parse_pool(search::serialize(pool), "x.pool").value();
  const search::Task task = read.task().value();
  CHECK(task.target == ir::target_from_string("cuda:a100-40").value());
  search::DraftSpace draft =
      search::make_draft_space(task, read.space(), search::Analyzer::kPrunerc, 1);
  CHECK(draft.not_parametric.empty());
  std::set<int> sketches;
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    const search::PoolRow& row = read.rows[i];
    CHECK(row.ok() == file.rows[i].measurement.ok());
    CHECK(row.median_ns == Approx(file.rows[i].measurement.median_ns).epsilon(1e-3));
    sketches.insert(row.sketch);
    const search::Sketch& from = read.sketches[static_cast<std::size_t>(row.sketch)];
    const ir::Program program = ir::compact(
        schedule::replay(task.base, from.trace, {.decisions = row.decisions}).value().program());
    CHECK(search::low_bits(ir::fingerprint(program)) == row.fingerprint);
    search::DraftSketch& sketch = draft.sketches[static_cast<std::size_t>(row.sketch)];
    const std::vector<int32_t> genes = search::genes_of(sketch, row.decisions);
    const auto columns = search::columns_of(sketch, std::array{genes});
    std::vector<const double*> inputs;
    for (const std::vector<double>& column : columns) inputs.push_back(column.data());
    double ns = 0, fits = 0;
    double* const outputs[] = {&ns, &fits};
    costmodel::SymbolScratch scratch;
    sketch.symbols.score.evaluate(inputs, 1, outputs, scratch,
                                  costmodel::hand_coefficients(ir::TargetKind::kCuda));
    CHECK(fits == 1);
    CHECK(ns == Approx(costmodel::estimate_latency(program, task.target).total_ns).epsilon(0.02));
  }
  CHECK(sketches.size() == 3);
}

TEST_CASE("an import says which kernel, device or size it does not know") {
  T4File file = parse_t4(read_test_file(kExample), kExample).value();
  CHECK_DIAG(import_t4(file, kExample, ""), T4Device);
  CHECK_DIAG(import_t4(file, kExample, "cuda:a101"), T4Device);
  CHECK_DIAG(import_t4(file, kExample, "cpu"), T4Device);
  CHECK(t4_device("NVIDIA GeForce RTX 3090").value().num_sms == 82);
  T4File other = file;
  other.params[0] = "block_size_z";
  CHECK_DIAG(import_t4(other, kExample, "cuda:a100"), T4Kernel);
  T4File larger = file;
  larger.problem_size = {8192, 8192};
  CHECK_DIAG(import_t4(larger, kExample, "cuda:a100"), T4Damaged);
  for (T4Row& row : file.rows) row.values.assign(row.values.size(), 3);
  CHECK_DIAG(import_t4(file, kExample, "cuda:a100"), T4Damaged);
}

}  // namespace
}  // namespace prunerc
