#include "ir/analysis/declared.h"

#include "ir/analysis/loop_index.h"
#include "ir/analysis/region.h"

#include <algorithm>
#include <optional>
#include <string>

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
        if (block->init.defined() && writes(*block, read.buffer)) continue;
        note(declared(read, block->reads, ranges), *block, read.buffer, &all, culprit, buffer);
      }
    }
    return all;
  }

 private:
  static bool writes(const Block& block, BufferId buffer) {
    return std::any_of(block.writes.begin(), block.writes.end(),
                       [&](const Access& a) { return a.buffer == buffer; });
  }

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

}  // namespace

Proof check_declared_regions(const Program& program, BlockId* culprit, BufferId* buffer) {
  return Checker(program).run(culprit, buffer);
}

Result<void> verify_declared_regions(const Program& program) {
  BlockId block;
  BufferId buffer;
  if (check_declared_regions(program, &block, &buffer) != Proof::kNo) return {};
  return error(Diag::kVerifyUndeclaredAccess, block, std::string(program.buffer(buffer).name));
}

}  // namespace prunerc::ir
