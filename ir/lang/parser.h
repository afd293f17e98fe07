// Text of one file -> syntax tree. Recursive descent with precedence climbing; recovers at ';' and
// '}'.
#ifndef PRUNERC_IR_LANG_PARSER_H_
#define PRUNERC_IR_LANG_PARSER_H_

#include "ir/lang/ast.h"
#include "ir/lang/source.h"

namespace prunerc::lang {

/// Deeper expressions are refused, so that no input can exhaust the stack.
inline constexpr uint32_t kMaxExprDepth = 200;
/// Longer lists of indices, dimensions or arguments are refused.
inline constexpr size_t kMaxListLength = 32;
/// Operators of more statements are refused: what is proved of them takes the square.
inline constexpr size_t kMaxStatements = 256;
/// Nets of more calls are refused.
inline constexpr size_t kMaxNetCalls = 100'000;
/// Larger texts are refused, so that every input is answered in under a second.
inline constexpr size_t kMaxFileBytes = size_t{1} << 20;

/// Parses a whole file. What could be understood is returned even if there were errors.
AstFile parse_file(const SourceSet& sources, uint32_t file, DiagSink& sink);

/// Parses `[let] name[indices] = expr` with an optional ';', as `-e` takes it; nullopt after an
/// error.
std::optional<AstStmt> parse_statement(const SourceSet& sources, uint32_t file, AstFile& arena,
                                       DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PARSER_H_
