// Properties of whole programs, with the interpreter as the oracle.
#include "ir/analysis/dependence.h"
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/interp/interpreter.h"
#include "ir/map.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

using testing::num_cases;

constexpr testing::GenPolicy kSmall = {.max_elements = 128, .max_iterations = 1024};

// Says the same in a roundabout way: e = (e // c) * c + e % c, and true as a condition that always
// holds.
class Obfuscator {
 public:
  Obfuscator(IrBuilder& b, Rng& rng) : b_(b), rng_(rng) {}

  Expr rewrite(Expr e) {
    if (e.kind() == ExprKind::kVar && rng_.chance(0.5)) {
      const Expr c = b_.int_imm(rng_.between(2, 9));
      return b_.add(b_.mul(b_.floordiv(e, c), c), b_.floormod(e, c));
    }
    const Expr inner = map_children(b_, e, [this](Expr child) { return rewrite(child); });
    if (e.dtype() == DType::kI64 && e.kind() == ExprKind::kAdd && rng_.chance(0.3)) {
      return b_.sub(b_.add(inner, b_.int_imm(7)), b_.int_imm(7));
    }
    return inner;
  }

  Stmt rewrite(Stmt s) {
    return map_children(
        b_, s,
        [this](Stmt child) {
          const Stmt inner = rewrite(child);
          return inner.kind() == StmtKind::kBlock ? guarded(*inner.as<Block>()) : inner;
        },
        [this](Expr e) { return rewrite(e); });
  }

 private:
  Stmt guarded(const Block& block) {
    if (block.guard.defined() || block.iters.empty() || !rng_.chance(0.5)) return &block;
    Block copy = block;
    copy.guard = b_.lt(block.iters[0].binding, block.iters[0].extent);
    return b_.block(copy);
  }

  IrBuilder& b_;
  Rng& rng_;
};

// Rebuilds the declared regions of every leaf block.
Stmt with_rebuilt_accesses(IrBuilder& b, Stmt s) {
  const Stmt inner = map_children(
      b, s, [&](Stmt child) { return with_rebuilt_accesses(b, child); }, [](Expr e) { return e; });
  const Block* block = inner.as<Block>();
  if (block == nullptr) return inner;
  Block copy = *block;
  rebuild_accesses(b, copy);
  return b.block(copy);
}

}  // namespace

TEST_CASE("simplified programs are well-formed, stable and compute the same") {
  for (int i = 0; i < num_cases(150); ++i) {
    Rng rng(static_cast<uint64_t>(i), 21);
    const Program p = testing::random_program(rng, kSmall);
    const Program simple = simplify(p);
    INFO(print(p));
    REQUIRE_OK(verify(simple));
    CHECK(simplify(simple).is(simple));
    testing::check_same_result(p, simple, static_cast<uint64_t>(i));
  }
}

TEST_CASE("roundabout index arithmetic simplifies to the same program") {
  int num_equal = 0;
  const int total = num_cases(150);
  for (int i = 0; i < total; ++i) {
    Rng rng(static_cast<uint64_t>(i), 22);
    const Program p = testing::random_program(rng, kSmall);
    IrBuilder b(p);
    const Program roundabout = b.finish(Obfuscator(b, rng).rewrite(p.root()));
    const Program simple = simplify(roundabout);
    INFO(print(roundabout));
    REQUIRE_OK(verify(simple));
    testing::check_same_result(p, simple, static_cast<uint64_t>(i));
    num_equal += structural_equal(simple, simplify(p)) ? 1 : 0;
  }
  CHECK(num_equal == total);
}

TEST_CASE("rebuilt regions are accepted wherever the declared ones were") {
  for (int i = 0; i < num_cases(150); ++i) {
    Rng rng(static_cast<uint64_t>(i), 23);
    const Program p = testing::random_program(rng, kSmall);
    IrBuilder b(p);
    const Program rebuilt = b.finish(with_rebuilt_accesses(b, p.root()));
    INFO(print(p));
    REQUIRE_OK(verify(rebuilt));
    testing::check_same_result(p, rebuilt, static_cast<uint64_t>(i));
    IrBuilder again(rebuilt);
    const Program twice = again.finish(with_rebuilt_accesses(again, rebuilt.root()));
    CHECK(structural_equal(twice, rebuilt));
  }
}

TEST_CASE("unscheduled programs never read what is not written before") {
  int num_covered = 0;
  int num_blocks = 0;
  for (int i = 0; i < num_cases(150); ++i) {
    Rng rng(static_cast<uint64_t>(i), 24);
    const Program p = testing::random_program(rng, kSmall);
    const LoopIndex index(p);
    INFO(print(p));
    for (const Block* block : index.blocks()) {
      const BlockFault fault = check_region_cover(p, index, block->id);
      CHECK(fault != BlockFault::kNotCovered);
      num_covered += fault == BlockFault::kNone ? 1 : 0;
      ++num_blocks;
    }
  }
  CHECK(num_covered > num_blocks * 8 / 10);
}

}  // namespace prunerc::ir
