// Strong integer ids: a loop id cannot be passed where a block id is wanted.
#ifndef PRUNERC_IR_SUPPORT_IDS_H_
#define PRUNERC_IR_SUPPORT_IDS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace prunerc::ir {

/// An id is an index with a type; -1 means "none". Ids are unique within a Program and survive
/// rewriting.
template <typename Tag>
struct Id {
  int32_t value = -1;
  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

using VarId = Id<struct VarTag>;
using LoopId = Id<struct LoopTag>;
using BlockId = Id<struct BlockTag>;
using BufferId = Id<struct BufferTag>;
using ParamId = Id<struct ParamTag>;  // a tile parameter of a sketch

}  // namespace prunerc::ir

template <typename Tag>
struct std::hash<prunerc::ir::Id<Tag>> {
  std::size_t operator()(prunerc::ir::Id<Tag> id) const noexcept {
    return static_cast<std::size_t>(static_cast<uint32_t>(id.value)) * 0x9E3779B97F4A7C15ULL;
  }
};

#endif  // PRUNERC_IR_SUPPORT_IDS_H_
