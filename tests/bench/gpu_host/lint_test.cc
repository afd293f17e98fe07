// Machine code as text: no tool of NVIDIA's is needed.
#include "tests/bench/gpu_host/lint.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string_view>

namespace prunerc::bench {
namespace {

// A prologue, a loop of two batches' worth of wgmma fed by threads, and an epilogue.
constexpr const char* kText = R"(
	.target	sm_90a
	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
	.section	.text.k0,"ax",@progbits
.text.k0:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_2) ;
        /*0020*/                   USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8 ;
.L_x_1:
        /*0030*/                   STS.128 [R2], R4 ;
        /*0040*/                   FENCE.VIEW.ASYNC.S ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/                   WARPGROUP.ARRIVE ;
        /*0070*/                   HGMMA.64x128x16.F32 R24, gdesc[UR12].tnspB, R24 ;
        /*0080*/                   HGMMA.64x128x16.F32 R24, gdesc[UR12].tnspB, R24, gsb0 ;
        /*0090*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*00a0*/               @P0 BRA `(.L_x_1) ;
        /*00b0*/                   STG.E.128 desc[UR4][R2.64], R24 ;
        /*00c0*/                   EXIT ;
.L_x_2:
        /*00d0*/                   USETMAXREG.DEALLOC.CTAPOOL 0x28 ;
        /*00e0*/                   BRA `(.L_x_3);
.L_x_3:
)";

LintedKernel good_kernel() {
  LintedKernel kernel;
  kernel.sass = parse_sass(kText).at(1);
  kernel.resources.registers = 168;
  kernel.launch.block = {128, 3, 1};
  kernel.launch.tensor_maps.resize(2);
  codegen::TensorMap& map = kernel.launch.tensor_maps[1];
  map.pitch_bytes = 8192;
  map.box_rows = map.box_cols = 64;
  kernel.text =
      "  pr_mbar_expect_tx(full0 + at0, 16384);\n"
      "  pr_tma_load_2d(sh1, &map1, i1 * 64, 0, full0);\n"
      "  pr_tma_load_2d(sh1 + 4096, &map1, i1 * 64, 64, full0);\n}\n";
  return kernel;
}

bool finds(const LintedKernel& kernel, LintRule rule) {
  const std::vector<Violation> found = lint(kernel);
  return std::any_of(found.begin(), found.end(), [rule](const auto& v) { return v.rule == rule; });
}

TEST_CASE("machine code is read with its branches and its main loop") {
  const std::vector<SassKernel> kernels = parse_sass(kText);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "other");
  const SassKernel& k = kernels[1];
  CHECK(k.name == "k0");
  REQUIRE(k.code.size() == 15);
  CHECK(k.code[1].opcode == "BRA");
  CHECK(k.code[1].branches_to == 13);
  CHECK(k.code[14].branches_to == 15);
  CHECK(k.code[7].name() == "HGMMA");
  CHECK(k.code[7].has("F32"));
  CHECK_FALSE(k.code[7].has("F3"));
  const CodeRange loop = main_loop(k);
  CHECK(loop.begin == 3);
  CHECK(loop.end == 11);
  CHECK(count(k, loop, "HGMMA") == 2);
  CHECK(count(k, {0, k.code.size()}, "STG", "128") == 1);
  CHECK(count(k, loop, "STG") == 0);
  CHECK(parse_sass("no code at all\n /* broken").empty());
  CHECK(parse_sass(".text.k:\n /*0000*/ BRA `(.L_nowhere) ;").at(0).code.at(0).branches_to == -1);
}

TEST_CASE("a kernel that keeps the rules has no violation, and each one planted is found") {
  const LintedKernel kernel = good_kernel();
  for (const Violation& v : lint(kernel)) FAIL(to_string(v.rule) << ": " << v.what);
  for (int r = 0; r < kNumLintRules; ++r) {
    const auto rule = static_cast<LintRule>(r);
    CAPTURE(to_string(rule));
    LintedKernel broken = kernel;
    REQUIRE(plant_violation(rule, &broken));
    CHECK(finds(broken, rule));
  }
}

TEST_CASE("boxes that blocks bring each other count as well") {
  LintedKernel kernel = good_kernel();
  kernel.text =
      "  pr_mbar_expect_tx(full0 + at0, 16384);\n"
      "  if (pr_block_x() % 2 == 0) pr_tma_load_2d_multicast(sh1, &map1, i1 * 64, 0, full0, 3);\n"
      "  if (pr_block_x() % 2 == 1) pr_tma_load_2d_multicast(sh1 + 4096, &map1, 64, 0, full0, "
      "3);\n";
  CHECK(lint(kernel).empty());
  CHECK(plant_violation(LintRule::kExpectTx, &kernel));
  CHECK(finds(kernel, LintRule::kExpectTx));
}

TEST_CASE("windows of images count as boxes do") {
  LintedKernel kernel = good_kernel();
  const std::string_view box = "pr_tma_load_2d(sh1, &map1, i1 * 64, 0, full0)";
  kernel.text.replace(kernel.text.find(box), box.size(),
                      "pr_tma_load_im2col(sh1, &map1, i1 * 64, -1, -1, 0, 2, 1, full0)");
  CHECK(lint(kernel).empty());
  CHECK(plant_violation(LintRule::kExpectTx, &kernel));
  CHECK(finds(kernel, LintRule::kExpectTx));
}

TEST_CASE("what a kernel has no place for is not planted") {
  LintedKernel plain = good_kernel();
  plain.sass = parse_sass(kText).at(0);
  plain.launch.tensor_maps.clear();
  plain.text.clear();
  for (const LintRule rule :
       {LintRule::kSetmaxnreg, LintRule::kArrive, LintRule::kDepbar, LintRule::kCommit,
        LintRule::kFence, LintRule::kGpuFence, LintRule::kExpectTx, LintRule::kMapPitch}) {
    CAPTURE(to_string(rule));
    LintedKernel copy = plain;
    CHECK_FALSE(plant_violation(rule, &copy));
    CHECK(lint(copy).empty());
  }
}

TEST_CASE("plain writes of a later tile may stand behind the fence") {
  LintedKernel kernel = good_kernel();
  std::vector<Instruction>& code = kernel.sass.code;
  std::swap(code[3], code[5]);  // written behind the barrier
  CHECK_FALSE(finds(kernel, LintRule::kFence));
  code[4].opcode = "NOP";
  code[0].opcode = "STS";
  CHECK(finds(kernel, LintRule::kFence));
}

TEST_CASE("two batches may stand behind one fence, with nothing written between them") {
  LintedKernel kernel = good_kernel();
  std::vector<Instruction>& code = kernel.sass.code;
  const auto closing = std::find_if(code.begin(), code.end(), [](const Instruction& i) {
    return i.operands.find("gsb0") != std::string::npos && i.name() == "HGMMA";
  });
  REQUIRE(closing != code.end());
  const Instruction batch = *closing, write = code[3];
  REQUIRE(write.name() == "STS");
  const auto second = code.insert(closing + 1, batch);
  CHECK(lint(kernel).empty());
  code.insert(second, write);
  CHECK(finds(kernel, LintRule::kFence));
}

}  // namespace
}  // namespace prunerc::bench
