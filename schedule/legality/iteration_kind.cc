#include "schedule/legality/iteration_kind.h"

#include "ir/analysis/carried.h"
#include "ir/arith/loop_index.h"
#include "ir/builder.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

/// Enough for all of the standard library; a program that needs more is loaded unchecked.
constexpr ProveOptions kLoadEffort = {.max_points = 20'000};

// Every variable has the value that the loops give it, where the guard lets the block run.
InstanceLimits limits_of(IrBuilder& b, const Program& program, const Block& block) {
  InstanceLimits out;
  out.loops = LoopIndex(program).enclosing_loops(block.id);
  for (const IterVar& iter : block.iters) {
    out.conditions.push_back(b.eq(Expr(iter.var), iter.binding));
  }
  if (block.guard.defined()) out.conditions.push_back(block.guard);
  return out;
}

// Whether a load or store of the body need not happen.
bool is_conditional(const Block& block) {
  bool found = false;
  const auto look = [&](Expr e) {
    walk(e, [&](Expr x) {
      found = found || x.as<Select>() != nullptr;
      return !found;
    });
  };
  for (Stmt part : {block.init, block.body}) {
    if (!part.defined()) continue;
    walk(
        part,
        [&](Stmt s) {
          found = found || s.as<If>() != nullptr;
          return !found;
        },
        look);
  }
  return found;
}

class KindProof {
 public:
  KindProof(const Program& program, const Block& block, const ProveOptions& options)
      : b_(program), program_(program), block_(block), options_(options) {}

  KindCheck run() {
    bool commute = true;  // instances touch nothing in common, whatever their kinds
    for (const Access& write : block_.writes) {
      for (const auto* list : {&block_.writes, &block_.reads}) {
        const bool both_write = list == &block_.writes;
        for (const Access& other : *list) {
          if (other.buffer != write.buffer) continue;
          note(meet(write, other),
               both_write ? "instances that differ in a spatial variable write one element"
                          : "an instance reads what one of another spatial position writes");
          commute = commute && instances_meet(block_, write, other, InstancePairs::kAll,
                                              options_) == Proof::kNo;
        }
      }
    }
    if (has_reduce_iters(block_) && !commute && !accumulation_fault(b_, block_).empty()) {
      note(Proof::kUnknown, "its reduction is no accumulation that is known to commute");
    }
    return out_;
  }

 private:
  void note(Proof meets, const char* reason) {
    if (meets == Proof::kNo || out_.proof == Proof::kNo) return;
    out_ = {meets == Proof::kYes ? Proof::kNo : Proof::kUnknown, reason};
  }

  // Of instances in the domain, and if those do, of instances that run.
  Proof meet(const Access& write, const Access& other) {
    const Proof in_domain = instances_meet(block_, write, other, InstancePairs::kSpatial, options_);
    if (in_domain != Proof::kYes) return in_domain;
    const Proof found = instances_meet(block_, write, other, InstancePairs::kSpatial, options_,
                                       limits_of(b_, program_, block_));
    return found == Proof::kYes && is_conditional(block_) ? Proof::kUnknown : found;
  }

  IrBuilder b_;
  const Program& program_;
  const Block& block_;
  ProveOptions options_;
  KindCheck out_;
};

// Does the instance that starts a result certainly occur at two points of the loops that feed its
// reduction? Then it starts again in between, and what lowering makes of that is another sum.
bool starts_twice(const Program& program, const Block& block) {
  if (!block.init.defined()) return false;
  IrBuilder b(program);
  Touch touch;
  for (const Loop* loop : LoopIndex(program).enclosing_loops(block.id)) {
    (feeds_reduction(*loop, block) ? touch.chain : touch.inner)
        .push_back({loop->var, loop->extent});
  }
  if (block.guard.defined()) touch.conditions.push_back(block.guard);
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kReduce) {
      touch.conditions.push_back(b.eq(iter.binding, b.int_imm(0)));
    } else {
      touch.region.box.push_back({iter.binding, b.int_imm(1)});
    }
  }
  return share_element(touch, touch, PointOrder::kDifferent, VarRanges(), kLoadEffort) ==
         Proof::kYes;
}

}  // namespace

KindCheck check_iteration_kinds(const Program& program, const Block& block,
                                const ProveOptions& options) {
  return KindProof(program, block, options).run();
}

std::vector<DoubtfulKinds> doubtful_kinds(const Program& program, const ProveOptions& options) {
  std::vector<DoubtfulKinds> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        if (block == nullptr) return true;
        KindCheck check = check_iteration_kinds(program, *block, options);
        if (check.proof != Proof::kYes) out.push_back({block->id, std::move(check)});
        return true;
      },
      [](Expr) {});
  return out;
}

Result<void> verify_iteration_kinds(const Program& program) {
  for (const DoubtfulKinds& one : doubtful_kinds(program, kLoadEffort)) {
    if (one.check.proof == Proof::kNo) {
      return error(Diag::kIterationKind, one.block, one.check.reason);
    }
  }
  for (const Block* block : leaf_blocks(program.root())) {
    if (!starts_twice(program, *block)) continue;
    return error(Diag::kIterationKind, block->id,
                 std::string("the instance that starts its reduction occurs twice"));
  }
  return {};
}

}  // namespace prunerc::schedule
