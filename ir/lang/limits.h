// What a text may hold at most: more of it is reported, never tried.
#ifndef PRUNERC_IR_LANG_LIMITS_H_
#define PRUNERC_IR_LANG_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace prunerc::lang {

/// Deeper expressions are refused, so that no input can exhaust the stack.
inline constexpr uint32_t kMaxExprDepth = 200;
/// Longer lists of indices, dimensions or arguments are refused.
inline constexpr std::size_t kMaxListLength = 32;
/// Operators of more statements are refused: what is proved of them takes the square.
inline constexpr std::size_t kMaxStatements = 256;
/// Nets of more calls are refused.
inline constexpr std::size_t kMaxNetCalls = 100'000;
/// Larger texts are refused, so that every input is answered in under a second.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
/// The same of nets that a program writes: an importer, or a pass.
inline constexpr std::size_t kMaxNetBytes = std::size_t{1} << 26;

/// Every tensor stays below this, and what an inner reduction is kept in.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_LIMITS_H_
