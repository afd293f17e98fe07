// Text of one file -> syntax tree. Recursive descent with precedence climbing; recovers at ';' and
// '}'.
#ifndef PRUNERC_IR_LANG_PARSE_PARSER_H_
#define PRUNERC_IR_LANG_PARSE_PARSER_H_

#include "ir/lang/limits.h"
#include "ir/lang/parse/ast.h"
#include "ir/lang/source.h"

namespace prunerc::lang {

/// Parses a whole file. What could be understood is returned even if there were errors.
AstFile parse_file(const SourceSet& sources, uint32_t file, DiagSink& sink,
                   size_t max_bytes = kMaxFileBytes);

/// Parses `[let] name[indices] = expr` with an optional ';', as `-e` takes it; nullopt after an
/// error.
std::optional<AstStmt> parse_statement(const SourceSet& sources, uint32_t file, AstFile& arena,
                                       DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PARSE_PARSER_H_
