// `dataset import`: what another autotuner measured as a pool.
#include "tools/driver/t4/t4.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"

#include <fmt/format.h>

#include <memory>

namespace prunerc::cli {
namespace {

struct ImportVerb {
  std::string t4, device, out;
};

int import_file(const ImportVerb& verb) {
  const Result<T4File> file = read_t4(verb.t4);
  if (!file.ok()) return fail(file.error());
  const Result<search::Pool> pool = import_t4(*file, verb.t4, verb.device);
  if (!pool.ok()) return fail(pool.error());
  const Result<void> written = search::write_pool(*pool, verb.out);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  fmt::print("{}: {} configurations of {} on {}, best {}; {}\n", verb.out, pool->rows.size(),
             pool->op, target_text(pool->platform), time_text(best_ns(*pool)),
             counts_text(counts_of(*pool)));
  return kSuccess;
}

}  // namespace

void add_dataset_import(CLI::App& verb, Action& action) {
  auto args = std::make_shared<ImportVerb>();
  verb.add_option("--t4", args->t4, "results in the T4 format, or a cache of Kernel Tuner; .gz too")
      ->type_name("FILE")
      ->required();
  verb.add_option("--device", args->device,
                  "GPU that was measured (default: the one that FILE names)")
      ->type_name("TARGET");
  verb.add_option("-o,--output", args->out, "pool to write")->type_name("FILE.pool")->required();
  in_group(verb, "Import");
  verb.callback([args, &action] { action = [args] { return import_file(*args); }; });
}

}  // namespace prunerc::cli
