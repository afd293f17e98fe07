// Names of kinds, from the single lists.
#include "ir/buffer.h"
#include "ir/expr.h"
#include "ir/stmt.h"

namespace prunerc::ir {
namespace {

constexpr std::string_view kExprNames[] = {
#define PRUNERC_EXPR(name, text) text,
#include "ir/expr_kind.def"
#undef PRUNERC_EXPR
};
constexpr std::string_view kStmtNames[] = {
#define PRUNERC_STMT(name, text) text,
#include "ir/stmt_kind.def"
#undef PRUNERC_STMT
};
constexpr std::string_view kLoopNames[] = {
#define PRUNERC_LOOP_KIND(name, text) text,
#include "ir/loop_kind.def"
#undef PRUNERC_LOOP_KIND
};
constexpr std::string_view kIntrinsicNames[] = {
#define PRUNERC_INTRINSIC(name, text, num_args) text,
#include "ir/intrinsic.def"
#undef PRUNERC_INTRINSIC
};
constexpr int kIntrinsicArgs[] = {
#define PRUNERC_INTRINSIC(name, text, num_args) num_args,
#include "ir/intrinsic.def"
#undef PRUNERC_INTRINSIC
};
constexpr std::string_view kScopeNames[] = {"global", "shared", "local"};

}  // namespace

std::string_view to_string(ExprKind kind) { return kExprNames[static_cast<std::size_t>(kind)]; }
std::string_view to_string(StmtKind kind) { return kStmtNames[static_cast<std::size_t>(kind)]; }
std::string_view to_string(LoopKind kind) { return kLoopNames[static_cast<std::size_t>(kind)]; }
std::string_view to_string(Intrinsic i) { return kIntrinsicNames[static_cast<std::size_t>(i)]; }
int num_args(Intrinsic i) { return kIntrinsicArgs[static_cast<std::size_t>(i)]; }
std::string_view to_string(Scope scope) { return kScopeNames[static_cast<std::size_t>(scope)]; }

std::optional<Scope> scope_from_string(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kScopeNames); ++i) {
    if (kScopeNames[i] == name) return static_cast<Scope>(i);
  }
  return std::nullopt;
}

}  // namespace prunerc::ir
