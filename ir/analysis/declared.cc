#include "ir/analysis/declared.h"

#include "ir/analysis/region.h"
#include "ir/arith/loop_index.h"
#include "ir/visit.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace prunerc::ir {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program), index_(program), b_(program) {}

  // The weakest answer, with the first access that is not proved.
  Proof run(BlockId* culprit, BufferId* buffer) {
    Proof all = Proof::kYes;
    for (const Block* block : index_.blocks()) {
      VarRanges ranges = ranges_around(program_, index_, block->id);
      bind_iters(ranges, *block);
      const Regions touched =
          infer_block_accesses(b_, block->iters, block->init, block->body, ranges);
      for (const BufferRegion& write : touched.writes) {
        note(declared(write, block->writes, ranges), *block, write.buffer, &all, culprit, buffer);
      }
      for (const BufferRegion& read : touched.reads) {
        note(declared(read, block->reads, ranges), *block, read.buffer, &all, culprit, buffer);
      }
    }
    return all;
  }

 private:
  static void note(Proof found, const Block& block, BufferId where, Proof* all, BlockId* culprit,
                   BufferId* buffer) {
    const bool worse =
        found == Proof::kNo ? *all != Proof::kNo : found == Proof::kUnknown && *all == Proof::kYes;
    if (!worse) return;
    *all = found;
    if (culprit != nullptr) *culprit = block.id;
    if (buffer != nullptr) *buffer = where;
  }

  Proof declared(const BufferRegion& touched, std::span<const Access> list,
                 const VarRanges& ranges) {
    std::optional<BufferRegion> all;
    for (const Access& access : list) {
      if (access.buffer != touched.buffer) continue;
      const BufferRegion one{access.buffer, {access.region.begin(), access.region.end()}};
      all = all ? hull(b_, *all, one, ranges) : one;
    }
    return all ? covers(b_, *all, touched, ranges) : Proof::kNo;
  }

  const Program& program_;
  const LoopIndex index_;
  IrBuilder b_;
};

// Looks for accesses that no block can declare.
class StrayAccess {
 public:
  explicit StrayAccess(const Program& program) : program_(program) {
    walk(
        program.root(),
        [&](Stmt s) {
          const Block* block = s.as<Block>();
          if (block != nullptr) visit(*block);
          const Store* store = s.as<Store>();
          if (store != nullptr) outside_.insert(store->buffer);
          return block == nullptr;
        },
        [&](Expr e) { loads(e, &outside_); });
  }

  /// What is wrong; empty if nothing is.
  std::string fault() const {
    if (!fault_.empty()) return fault_;
    for (const BufferId id : outside_) {
      // Inputs are what they are, whoever reads them.
      if (inside_.count(id) == 0 || program_.buffer(id).role == BufferRole::kInput) continue;
      return "buffer '" + std::string(program_.buffer(id).name) +
             "' is accessed in a block and outside of blocks, where nothing declares it";
    }
    return {};
  }

 private:
  static void loads(Expr e, std::set<BufferId>* to) {
    walk(e, [&](Expr part) {
      if (const Load* load = part.as<Load>()) to->insert(load->buffer);
      return true;
    });
  }

  void visit(const Block& block) {
    for (const auto* list : {&block.reads, &block.writes}) {
      for (const Access& access : *list) inside_.insert(access.buffer);
    }
    std::set<BufferId> deciding;
    if (block.guard.defined()) loads(block.guard, &deciding);
    for (const IterVar& iter : block.iters) loads(iter.binding, &deciding);
    if (deciding.empty()) return;
    fault_ = "block @B" + std::to_string(block.id.value) + " reads '" +
             std::string(program_.buffer(*deciding.begin()).name) +
             "' to find out whether or where it runs; a select in its body may do so";
  }

  const Program& program_;
  std::set<BufferId> inside_, outside_;
  std::string fault_;
};

}  // namespace

Proof check_declared_regions(const Program& program, BlockId* culprit, BufferId* buffer) {
  if (!StrayAccess(program).fault().empty()) return Proof::kNo;
  return Checker(program).run(culprit, buffer);
}

Result<void> verify_declared_regions(const Program& program) {
  if (std::string fault = StrayAccess(program).fault(); !fault.empty()) {
    return error(Diag::kVerifyStructure, std::move(fault));
  }
  BlockId block;
  BufferId buffer;
  if (Checker(program).run(&block, &buffer) != Proof::kNo) return {};
  return error(Diag::kVerifyUndeclaredAccess, block, std::string(program.buffer(buffer).name));
}

}  // namespace prunerc::ir
