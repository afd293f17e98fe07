// find_hot_loop: which loop of an assembly text is found, and how its instructions are counted.
#include "tools/driver/report/hot_loop.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc {
namespace {

int64_t of(const HotLoop& loop, InstructionKind kind) {
  return loop.mix[static_cast<std::size_t>(kind)];
}

HotLoop hot_loop(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return find_hot_loop(lines);
}

constexpr std::string_view kNest = R"(kernel:
	.cfi_startproc
	xorl	%eax, %eax
.LBB0_1:                                # outer
	vxorps	%xmm0, %xmm0, %xmm0
.LBB0_2:                                # inner
	vbroadcastss	(%rdi,%rax,4), %zmm1
	vmovups	(%rsi), %zmm2
	vfmadd231ps	%zmm1, %zmm2, %zmm0
	prefetcht0	512(%rsi)
	addq	$64, %rsi
	cmpq	%rsi, %rdx
	jne	.LBB0_2
	vmovups	%zmm0, (%rcx)
	incq	%rax
	jne	.LBB0_1
.LBB0_3:
	vaddps	%zmm0, %zmm0, %zmm0
	jne	.LBB0_3
	retq
)";

TEST_CASE("the innermost loop with the most multiply-adds is the hot one") {
  const HotLoop loop = hot_loop(kNest);
  CHECK(loop.first == 5);
  CHECK(loop.last == 12);
  CHECK(loop.num_instructions == 7);
  CHECK(loop.num_memory_operands == 3);
  CHECK(of(loop, InstructionKind::kMultiplyAdd) == 1);
  CHECK(of(loop, InstructionKind::kShuffle) == 1);
  CHECK(of(loop, InstructionKind::kMove) == 1);
  CHECK(of(loop, InstructionKind::kPrefetch) == 1);
  CHECK(of(loop, InstructionKind::kInteger) == 2);
  CHECK(of(loop, InstructionKind::kBranch) == 1);
}

TEST_CASE("a jump forwards is no loop") {
  CHECK_FALSE(hot_loop("f:\n\tjmp\t.L1\n.L1:\n\tretq\n").found());
  CHECK_FALSE(hot_loop("").found());
}

TEST_CASE("a loop that is entered in the middle is left out") {
  // What is between .L1 and its jump is no loop: .L2 is reached from elsewhere, too.
  const char* const text =
      "\tjmp\t.L2\n.L1:\n\tvaddps\t%ymm0, %ymm1, %ymm0\n.L2:\n\tvaddps\t%ymm0, %ymm2, "
      "%ymm0\n\tjne\t.L1\n";
  CHECK_FALSE(hot_loop(text).found());
}

TEST_CASE("two jumps back to one label are one loop") {
  const HotLoop loop =
      hot_loop(".L1:\n\tvaddps\t%ymm0, %ymm1, %ymm0\n\tjne\t.L1\n\tdecq\t%rax\n\tjne\t.L1\n");
  CHECK(loop.last == 4);
  CHECK(loop.num_instructions == 4);
}

TEST_CASE("a mnemonic says what an instruction is for") {
  const auto check = [](std::string_view mnemonic, InstructionKind kind) {
    INFO(mnemonic);
    CHECK(instruction_kind(mnemonic) == kind);
  };
  for (const auto* m : {"vfmadd213ps", "vfnmadd231sd", "vpdpbusd", "vdpbf16ps", "vpmaddwd"}) {
    check(m, InstructionKind::kMultiplyAdd);
  }
  for (const auto* m : {"vaddps", "vmaxss", "vpaddd", "vdivps", "addss", "mulpd", "vxorps"}) {
    check(m, InstructionKind::kVector);
  }
  for (const auto* m : {"vmovups", "vmovss", "movaps", "movss", "movsd", "kmovw", "vgatherdps"}) {
    check(m, InstructionKind::kMove);
  }
  for (const auto* m : {"vbroadcastss", "vpermilps", "vcvtps2ph", "vinsertf128", "vpmovzxbd"}) {
    check(m, InstructionKind::kShuffle);
  }
  for (const auto* m : {"addq", "leaq", "movq", "movl", "movslq", "cmpq", "shlq"}) {
    check(m, InstructionKind::kInteger);
  }
  for (const auto* m : {"jne", "callq", "retq", "jmp"}) check(m, InstructionKind::kBranch);
}

}  // namespace
}  // namespace prunerc
