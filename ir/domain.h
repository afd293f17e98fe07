// The domain of a sketch: its tile parameters, which values they take, and how many candidates that
// makes.
#ifndef PRUNERC_IR_DOMAIN_H_
#define PRUNERC_IR_DOMAIN_H_

#include "ir/expr.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace prunerc::ir {

/// Perfect: the product of the tiles is the extent. Covering: the outermost tile is ceildiv(extent,
/// product of the rest).
enum class TileKind : uint8_t { kPerfect, kCovering };

/// The tiles of one loop, outermost first; `params[i]` is the extent of level i.
struct TileVector {
  std::span<const ParamId> params;
  int64_t extent = 1;
  TileKind kind = TileKind::kPerfect;
  int64_t max_innermost = 0;  // 0: no cap
};

/// A categorical parameter that does not change the structure.
struct Choice {
  ParamId param;
  std::span<const int64_t> values;
};

/// Lives in a Program's arena; empty for a program without parameters. Every parameter belongs to
/// one tile vector or choice; a constraint is a bool expression over parameters alone.
struct Domain {
  std::span<const std::string_view> names;  // by ParamId
  std::span<const TileVector> tiles;
  std::span<const Choice> choices;
  std::span<const Expr> constraints;
  bool empty() const { return names.empty(); }
};

/// The value of an integer or bool expression over tile parameters and constants alone; nullopt if
/// it holds anything else or divides by zero.
std::optional<int64_t> evaluate_params(Expr e, std::span<const int64_t> params);

/// Whether parameter values meet every constraint of the domain.
bool satisfies_constraints(const Domain& domain, std::span<const int64_t> params);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_DOMAIN_H_
