// swizzle(@P, 0, 128): rows of 128 bytes, or multiples, are cut into the widest panels of 128, 64
// or 32 bytes that divide that, in which 16-byte pieces change places with the row. Needs: the
// written buffer is an intermediate in scope shared, of two dimensions or more, with rows that
// long, not aligned. After: elements keep their indices; only addresses change.
//   block @P [v: S(8) = i, w: S(64) = j] { T[v, w] = X[v, w] }
// ~>
//   block @P [v: S(8) = i, w: S(64) = j] {swizzle_0 = 128} { T[v, w] = X[v, w] }
#include "ir/tensor/bulk_copy.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/site.h"

#include <optional>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<Site> plan_swizzle(const Program& program, BlockId id, int64_t index, int64_t bytes) {
  PRUNERC_TRY(Site site, find_block(program, id));
  PRUNERC_TRY(const Buffer buffer, written_intermediate(program, *site.block(), index));
  const auto unfit = [&](std::string why) {
    return error(Diag::kSwizzleForm, std::string(buffer.name), bytes, std::move(why));
  };
  if (panel_of(bytes) == 0) return unfit("panels have 32, 64 or 128 bytes");
  if (buffer.scope != Scope::kShared) return unfit("it is not in scope shared");
  if (buffer.shape.size() < 2) return unfit("it has no rows");
  const std::optional<int64_t> columns = constant(buffer.shape.back());
  if (columns && *columns * byte_size(buffer.dtype) < bytes) return unfit("its rows are shorter");
  if (layout_attr(program, buffer.id, kAlignFactor)) return unfit("its rows are aligned already");
  return site;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSwizzle>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site,
              plan_swizzle(program, call.block(0), call.integer(1), call.integer(2)));
  const std::string key = std::string(kSwizzle) + std::to_string(call.integer(1));
  return with_attr_at(program, site, key, call.integer(2));
}

}  // namespace prunerc::schedule
