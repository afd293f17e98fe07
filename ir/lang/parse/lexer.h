// The tokens of the operator language.
#ifndef PRUNERC_IR_LANG_PARSE_LEXER_H_
#define PRUNERC_IR_LANG_PARSE_LEXER_H_

#include "ir/lang/source.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace prunerc::lang {

enum class TokenKind : uint8_t {
  kEnd,
  kBad,      // was reported by the lexer; the parser stays silent about it
  kName,     // a name that is not reserved
  kBuiltin,  // a built-in function that is not a reducer: exp, fma, ...
  kDtype,    // f64 ... bool
  kReducer,  // sum ... argmin; max and min are functions too
  kInt,
  kFloat,
  kString,
  kImport,
  kConst,
  kFn,
  kOp,
  kWhere,
  kLet,
  kIn,
  kIf,
  kThen,
  kElse,
  kOrElse,
  kTrue,
  kFalse,
  kInf,
  kLowest,
  kHighest,
  kIntKind,
  kFloatKind,
  kTypeKind,
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kSemicolon,
  kColon,
  kArrow,
  kDotDot,
  kBar,
  kAssign,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kPercent,
  kNot,
  kAnd,
  kOr,
};

/// One token; its text is the range's text.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  SourceRange range;
  std::string_view text;
};

/// Splits the text of one file into tokens, the last of which is kEnd. Bad characters and numbers
/// are reported.
std::vector<Token> tokenize(const SourceSet& sources, uint32_t file, DiagSink& sink);

/// How a message names a token: 'text', or what stands there instead.
std::string describe(const Token& token);
/// How a message names a kind of token that was required.
std::string_view describe(TokenKind kind);

/// What a word is when it is not free to be a name; kName otherwise.
TokenKind classify_word(std::string_view word);
/// Appends the words of a kind; `max` and `min` are among the built-in functions.
void append_words(TokenKind kind, std::vector<std::string_view>& words);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PARSE_LEXER_H_
