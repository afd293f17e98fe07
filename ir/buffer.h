// A tensor: parameters of a program and its intermediates.
#ifndef PRUNERC_IR_BUFFER_H_
#define PRUNERC_IR_BUFFER_H_

#include "ir/expr.h"

#include <optional>
#include <span>
#include <string_view>

namespace prunerc::ir {

/// Where a buffer lives. Global: memory of the whole program. Shared and local: per thread block,
/// per thread.
enum class Scope : uint8_t { kGlobal, kShared, kLocal };
std::string_view to_string(Scope scope);
std::optional<Scope> scope_from_string(std::string_view name);

/// Parameters come in declared order; intermediates are uninitialised until written.
enum class BufferRole : uint8_t { kInput, kOutput, kIntermediate };

/// Dense, row-major. Shape: one extent of at least 1 per dimension; none for a scalar (one
/// element).
struct Buffer {
  BufferId id;
  std::string_view name;  // unique in the program; an identifier
  DType dtype = DType::kF32;
  std::span<const Expr> shape;
  Scope scope = Scope::kGlobal;
  BufferRole role = BufferRole::kIntermediate;
  /// An input that holds the same in every call: what follows from such inputs alone may be computed
  /// once (analysis/prologue.h). Everything else sees an input like others.
  bool is_const = false;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_BUFFER_H_
