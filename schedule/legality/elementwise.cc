#include "schedule/legality/elementwise.h"

#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

Error not_simple(const Block& block, std::string what) {
  return error(Diag::kBlockNotSimple, block.id, std::move(what));
}

std::optional<std::vector<int>> variable_subscripts(const Block& block,
                                                    std::span<const Expr> indices) {
  std::vector<int> out;
  for (Expr index : indices) {
    const Var* var = index.as<Var>();
    const auto found = std::find_if(
        block.iters.begin(), block.iters.end(),
        [&](const IterVar& iter) { return var != nullptr && iter.var->id == var->id; });
    const int position = static_cast<int>(found - block.iters.begin());
    if (found == block.iters.end()) {
      if (constant(index) != 0) return std::nullopt;
      out.push_back(-1);
    } else if (std::find(out.begin(), out.end(), position) != out.end()) {
      return std::nullopt;
    } else {
      out.push_back(position);
    }
  }
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const bool used = std::find(out.begin(), out.end(), static_cast<int>(i)) != out.end();
    if (!used && constant(block.iters[i].extent) != 1) return std::nullopt;
  }
  return out;
}

Result<void> check_store_form(const Block& block) {
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial) return not_simple(block, "have spatial variables only");
  }
  if (block.init.defined()) return not_simple(block, "have no init");
  const Store* store = block.body.as<Store>();
  if (store == nullptr) return not_simple(block, "be a single store");
  if (reads(block, store->buffer)) return not_simple(block, "not read what it writes");
  return {};
}

Result<void> check_pure_store(const Dataflow& flow, std::size_t place) {
  PRUNERC_TRY_VOID(check_store_form(*flow[place].block));
  return check_sole_writer(flow, place);
}

Result<std::vector<Expr>> common_subscripts(const Block& block, BufferId buffer) {
  std::optional<std::vector<Expr>> common;
  bool same = true;
  const auto note = [&](Expr e) {
    const Load* load = e.as<Load>();
    if (load == nullptr || load->buffer != buffer) return true;
    if (!common) common.emplace(load->indices.begin(), load->indices.end());
    for (std::size_t d = 0; d < common->size(); ++d) {
      same &= structural_equal((*common)[d], load->indices[d]);
    }
    return true;
  };
  const Store& store = *block.body.as<Store>();
  walk(store.value, note);
  for (Expr index : store.indices) walk(index, note);
  if (!same || !common) return not_simple(block, "read the intermediate at one element");
  return *common;
}

Result<std::vector<int>> load_subscripts(const Block& block, BufferId buffer) {
  PRUNERC_TRY(const std::vector<Expr> indices, common_subscripts(block, buffer));
  const std::optional<std::vector<int>> found = variable_subscripts(block, indices);
  if (!found) return not_simple(block, "read the intermediate at distinct variables");
  return *found;
}

Result<void> check_growth(const Block& block, Expr value, const Block& reader, BufferId buffer) {
  /// Where simplification gives up, and expr_size stops counting.
  constexpr int64_t kMostNodes = 20'000;
  int64_t loads = 0;
  for (const Stmt part : {reader.init, reader.body}) {
    walk(
        part, [](Stmt) { return true; },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            const Load* load = x.as<Load>();
            loads += load != nullptr && load->buffer == buffer ? 1 : 0;
            return true;
          });
        });
  }
  const int64_t size = expr_size(value);
  if (loads <= kMostNodes / size) return {};
  return not_simple(block, "be smaller: block @B" + std::to_string(reader.id.value) +
                               " would have " + std::to_string(loads) + " copies of its " +
                               std::to_string(size) + " operations, at most " +
                               std::to_string(kMostNodes) + " in all are made");
}

}  // namespace prunerc::schedule
