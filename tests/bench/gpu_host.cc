// The way to a GPU without one, in numbers: ./dev bench gpu_host [--programs N] [--bugs N]
// [--json OUT]. Programs for a GPU run on the host, under the race checker too, and must give what
// the interpreter gives; NVRTC compiles each; bugs planted in lowered programs must be noticed.
#include "tests/bench/gpu_host.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <thread>

namespace prunerc::bench {
namespace {

int run(const GpuHostOptions& options, const std::string& only, const std::string& json) {
  std::vector<Row> rows;
  if (only.empty() || only == "programs") rows = program_rows(options);
  if (only.empty() || only == "bugs") {
    for (Row& row : bug_rows(options)) rows.push_back(std::move(row));
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    fmt::print("{:<32} {:>10.4g} {:<10} {}\n", row.name, row.value, row.unit, row.note);
    out.push_back(
        {{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"note", row.note}});
  }
  if (json.empty()) return 0;
  std::ofstream file(json);
  file << nlohmann::ordered_json{{"bench", "gpu_host"},
                                 {"threads", std::thread::hardware_concurrency()},
                                 {"seed", options.seed},
                                 {"rows", out}}
              .dump(1)
       << "\n";
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  CLI::App app("programs for a GPU, executed and checked on the host");
  prunerc::bench::GpuHostOptions options;
  std::string json, only;
  app.add_option("--programs", options.programs, "how many programs, those of the tests included");
  app.add_option("--bugs", options.bugs, "how many planted bugs");
  app.add_option("--seed", options.seed, "of the draws");
  app.add_option("--arch", options.arch, "the GPU, as in sm_80; default: what a program needs");
  app.add_option("--keep", options.keep, "a folder for the text of every program");
  app.add_option("--only", only, "programs or bugs");
  app.add_option("--json", json, "write the results there");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(options, only, json);
}
