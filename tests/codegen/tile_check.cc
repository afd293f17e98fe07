#include "tests/codegen/tile_check.h"

#include "codegen/codegen.h"
#include "ir/printer.h"
#include "runtime/cpu/tiles.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {

using namespace ir;  // NOLINT: a source file of tests

Target sapphire_rapids() { return target_from_string("cpu:sapphirerapids").value(); }

bool has_tiles(const char* feature) {
  const std::string features = codegen::host_target(Target{}).llvm_features;
  const bool has = features.find(feature) != std::string::npos && runtime::allow_tiles();
  if (!has) WARN("skipped: no tile registers here");
  return has;
}

void check_tiles(const Program& reference, const Program& scheduled, uint64_t seed,
                 const char* feature) {
  INFO(print(scheduled));
  REQUIRE_OK(codegen::compile_cpu(scheduled, sapphire_rapids()));
  if (has_tiles(feature)) CHECK(compare_with_interpreter(reference, scheduled, seed) == "");
}

std::string tile_assembly(const Program& program) {
  const Result<std::string> text =
      codegen::emit_cpu(program, sapphire_rapids(), codegen::EmitKind::kAssembly);
  REQUIRE_OK(text);
  return *text;
}

}  // namespace prunerc::testing
