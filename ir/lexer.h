// Tokens of program text. Used by parser.cc alone.
#ifndef PRUNERC_IR_LEXER_H_
#define PRUNERC_IR_LEXER_H_

#include "ir/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

enum class TokenKind : uint8_t { kName, kNumber, kString, kSymbol, kEnd };

/// A view into the text; a symbol is one or two characters ("+:", "//", "->", "==").
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  Locus locus;
};

/// All tokens, kEnd last. Comments run from '#' to the end of the line. Errors: ParseExpected.
Result<std::vector<Token>> tokenize(std::string_view text);

/// The token as an error message shows it: "'+'", "end of text". Control characters are replaced.
std::string describe(const Token& token);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_LEXER_H_
