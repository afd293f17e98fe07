// Machine descriptions as text.
#include "ir/target.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

TEST_CASE("every named target reads back from its name") {
  for (const std::string& name : target_names()) {
    const Result<Target> target = target_from_string(name);
    REQUIRE_OK(target);
    CHECK(target->name == name);
    CHECK(to_string(*target) == name);
    CHECK(target->peak_gflops() > 1);
    CHECK((target->kind == TargetKind::kCpu) == (target->warp_size == 0));
  }
}

TEST_CASE("a measured machine survives its text form exactly") {
  Target target = *target_from_string("cpu:znver4");
  target.num_cores = 2;
  target.llvm_features = "+avx2,-avx512f";
  target.platform.fma_gflops = 117.3;
  target.platform.memory_bandwidth_all = 1.0 / 3.0 * 1e11;
  target.platform.launch_ns = 4321.5;
  const Result<Target> read = target_from_string(to_string(target));
  REQUIRE_OK(read);
  CHECK(*read == target);
  CHECK(read->peak_gflops() == 117.3);
}

TEST_CASE("every field can be overridden and is printed") {
  const std::string text =
      "cpu vector_bytes=16 num_vector_registers=8 fma_ports=1 l1d_bytes=1 l2_bytes=2 l3_bytes=3 "
      "num_threads=9 clock_ghz=1.5";
  const Result<Target> target = target_from_string(text);
  REQUIRE_OK(target);
  CHECK(to_string(*target) == text);
  CHECK(target->lanes(4) == 4);
  CHECK(target->lanes(64) == 1);
}

TEST_CASE("unknown targets and fields are refused") {
  for (const char* text :
       {"", "  ", "gpu", "cpu:", "cpu:z80", "cuda", "cuda:sm_1", "cpu:znver4x"}) {
    CHECK_DIAG(target_from_string(text), TargetUnknown);
  }
  for (const char* text :
       {"cpu speed=3", "cpu num_cores", "cpu num_cores=", "cpu num_cores=-1", "cpu num_cores=2x",
        "cpu clock_ghz=fast", "cpu clock_ghz=inf", "cpu clock_ghz=nan", "cpu =", "cpu kind=cuda",
        "cpu num_cores=99999999999999999999"}) {
    CHECK_DIAG(target_from_string(text), TargetField);
  }
}

}  // namespace
}  // namespace prunerc::ir
