// The way to a GPU without one, in numbers: ./dev bench gpu_host [--programs N] [--bugs N]
// [--json OUT]. Programs for a GPU run on the host, under the race checker too, and must give what
// the interpreter gives; NVRTC compiles each, and machine code
// keeps some rules; bugs planted in lowered programs must be noticed.
#include "tests/bench/gpu_host/cases.h"

#include <CLI/CLI.hpp>

#include <string>

namespace prunerc::bench {
namespace {

int run(const GpuHostOptions& options, const std::string& only, const std::string& json) {
  const Group groups[] = {
      {"programs", [&] { return program_rows(options); }, {options.seed}},
      {"cubins", [&] { return cubin_rows(options); }, {options.seed}},
      {"bugs", [&] { return bug_rows(options); }, {options.seed}},
  };
  return report("gpu_host", groups, only, json);
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
  app.add_flag("--on-gpu", options.on_gpu, "run the programs on this machine's GPU instead");
  app.add_option("--keep", options.keep, "a folder for the text of every program");
  app.add_option("--only", only, "programs, cubins or bugs");
  app.add_option("--json", json, "write the results there");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(options, only, json);
}
