// Programs lowered for a GPU are still programs: each pass keeps what they compute.
#include "codegen/cuda/print.h"
#include "codegen/pipeline.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

ir::Target gpu(const std::string& arch) {
  const Result<ir::Target> target = ir::target_from_string("cuda-host:" + arch);
  REQUIRE(target.ok());
  return *target;
}

TEST_CASE("hand-written GPU schedules keep their meaning in every pass", "[gpu]") {
  for (const GpuProgram& p : gpu_programs()) {
    CAPTURE(p.name);
    const ir::Target target = gpu(p.arch);
    ir::Program now = p.scheduled;
    for (const codegen::Pass& pass : codegen::gpu_passes()) {
      CAPTURE(pass.name);
      const Result<ir::Program> next = pass.run(now, target);
      REQUIRE_OK(next);
      const ir::FpvVerdict verdict = ir::check_equivalent(p.base, *next);
      INFO(ir::to_string(verdict));
      INFO(ir::print(*next));
      CHECK(verdict.ok());
      now = *next;
    }
    const Result<codegen::CudaText> text = codegen::print_cuda(now, target, "k");
    REQUIRE_OK(text);
    CHECK(text->kernels.size() == 1);
    // Names of people do not reach the text.
    CHECK(text->text.find("_local") == std::string::npos);
  }
}

}  // namespace
}  // namespace prunerc::testing
