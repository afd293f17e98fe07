#include "schedule/rewrite/buffer.h"

#include "ir/query.h"
#include "ir/visit.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<BufferId> accessed_buffer(const Block& block, std::span<const Access> accesses,
                                 int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(accesses.size())) {
    return error(Diag::kAccessIndexRange, block.id, static_cast<int64_t>(accesses.size()), index);
  }
  return accesses[static_cast<std::size_t>(index)].buffer;
}

Result<void> check_intermediate(const Program& program, BufferId buffer) {
  if (program.buffer(buffer).role == BufferRole::kIntermediate) return {};
  return error(Diag::kBufferNotIntermediate, std::string(program.buffer(buffer).name));
}

Result<Buffer> written_intermediate(const Program& program, const Block& block, int64_t index) {
  PRUNERC_TRY(const BufferId id, accessed_buffer(block, block.writes, index));
  PRUNERC_TRY_VOID(check_intermediate(program, id));
  return program.buffer(id);
}

std::optional<int64_t> layout_attr(const Program& program, BufferId buffer,
                                   std::string_view prefix) {
  std::optional<int64_t> found;
  for (const Block* block : leaf_blocks(program.root())) {
    for (std::size_t w = 0; w < block->writes.size(); ++w) {
      if (block->writes[w].buffer != buffer) continue;
      const std::string key = std::string(prefix) + std::to_string(w);
      for (const Attr& attr : block->attrs) {
        if (attr.key == key || attr.key.substr(0, key.size() + 1) == key + "_") found = attr.value;
      }
    }
  }
  return found;
}

bool accessed_outside_blocks(const Program& program, BufferId buffer) {
  bool outside = false;
  const auto expr = [&](Expr e) { outside = outside || loads_from(e, buffer); };
  walk(
      program.root(),
      [&](Stmt s) {
        const Store* store = s.as<Store>();
        outside = outside || (store != nullptr && store->buffer == buffer);
        const Block* block = s.as<Block>();
        if (block == nullptr) return true;
        if (block->guard.defined()) expr(block->guard);
        for (const IterVar& iter : block->iters) expr(iter.binding);
        return false;
      },
      expr);
  return outside;
}

std::optional<std::vector<int64_t>> constant_shape(const Buffer& buffer) {
  std::vector<int64_t> out;
  for (Expr extent : buffer.shape) {
    const std::optional<int64_t> known = constant(extent);
    if (!known) return std::nullopt;
    out.push_back(*known);
  }
  return out;
}

}  // namespace prunerc::schedule
