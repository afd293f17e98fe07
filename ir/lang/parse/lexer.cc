#include "ir/lang/parse/lexer.h"

#include "ir/lang/lang.h"

#include <utility>

namespace prunerc::lang {
namespace {

using Kind = TokenKind;

struct Spelling {
  std::string_view text;
  Kind kind;
};

// clang-format off: tables of spellings
constexpr Spelling kWords[] = {
    {"import", Kind::kImport},   {"const", Kind::kConst},    {"fn", Kind::kFn},
    {"op", Kind::kOp},           {"where", Kind::kWhere},    {"let", Kind::kLet},
    {"in", Kind::kIn},           {"if", Kind::kIf},          {"then", Kind::kThen},
    {"else", Kind::kElse},       {"or", Kind::kOrElse},      {"true", Kind::kTrue},
    {"false", Kind::kFalse},     {"inf", Kind::kInf},        {"lowest", Kind::kLowest},
    {"highest", Kind::kHighest}, {"int", Kind::kIntKind},    {"float", Kind::kFloatKind},
    {"type", Kind::kTypeKind},   {"f64", Kind::kDtype},      {"f32", Kind::kDtype},
    {"f16", Kind::kDtype},       {"bf16", Kind::kDtype},     {"i64", Kind::kDtype},
    {"i32", Kind::kDtype},       {"i8", Kind::kDtype},       {"u8", Kind::kDtype},
    {"bool", Kind::kDtype},      {"sum", Kind::kReducer},    {"prod", Kind::kReducer},
    {"max", Kind::kReducer},     {"min", Kind::kReducer},    {"any", Kind::kReducer},
    {"all", Kind::kReducer},     {"argmax", Kind::kReducer}, {"argmin", Kind::kReducer},
    {"exp", Kind::kBuiltin},     {"log", Kind::kBuiltin},    {"sqrt", Kind::kBuiltin},
    {"rsqrt", Kind::kBuiltin},   {"tanh", Kind::kBuiltin},   {"erf", Kind::kBuiltin},
    {"sigmoid", Kind::kBuiltin}, {"sin", Kind::kBuiltin},    {"cos", Kind::kBuiltin},
    {"abs", Kind::kBuiltin},     {"floor", Kind::kBuiltin},  {"ceil", Kind::kBuiltin},
    {"round", Kind::kBuiltin},   {"pow", Kind::kBuiltin},    {"fma", Kind::kBuiltin},
    {"clamp", Kind::kBuiltin},   {"select", Kind::kBuiltin},
};

// Longer spellings first, so that the first match is the longest.
constexpr Spelling kSymbols[] = {
    {"->", Kind::kArrow},     {"..", Kind::kDotDot},     {"==", Kind::kEqual},
    {"!=", Kind::kNotEqual},  {"<=", Kind::kLessEqual},  {">=", Kind::kGreaterEqual},
    {"&&", Kind::kAnd},       {"||", Kind::kOr},         {"(", Kind::kLeftParen},
    {")", Kind::kRightParen}, {"[", Kind::kLeftBracket}, {"]", Kind::kRightBracket},
    {"{", Kind::kLeftBrace},  {"}", Kind::kRightBrace},  {",", Kind::kComma},
    {";", Kind::kSemicolon},  {":", Kind::kColon},       {"|", Kind::kBar},
    {"=", Kind::kAssign},     {"<", Kind::kLess},        {">", Kind::kGreater},
    {"+", Kind::kPlus},       {"-", Kind::kMinus},       {"*", Kind::kStar},
    {"/", Kind::kSlash},      {"%", Kind::kPercent},     {"!", Kind::kNot},
};
// clang-format on

// Locale-free, and total on negative chars.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Lexer {
 public:
  Lexer(const SourceSet& sources, uint32_t file, DiagSink& sink)
      : text_(sources.text(file)), file_(file), sink_(sink) {}

  std::vector<Token> run() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin files so
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    while (!sink_.is_full()) {
      skip_blanks();
      if (at_ >= text_.size()) break;
      next();
    }
    at_ = text_.size();
    push(Kind::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  SourceRange range_from(size_t begin) const {
    return {file_, static_cast<uint32_t>(begin), static_cast<uint32_t>(at_)};
  }

  void push(Kind kind, size_t begin) {
    tokens_.push_back({kind, range_from(begin), text_.substr(begin, at_ - begin)});
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_space(peek())) {
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  void next() {
    const size_t begin = at_;
    if (is_letter(peek())) {
      while (is_word(peek())) ++at_;
      push(classify_word(text_.substr(begin, at_ - begin)), begin);
    } else if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) {
      number();
    } else if (peek() == '"') {
      string();
    } else {
      symbol();
    }
  }

  void digits() {
    while (is_digit(peek())) ++at_;
  }

  void number() {
    const size_t begin = at_;
    Kind kind = Kind::kInt;
    digits();
    const bool bare_fraction = at_ == begin;
    if (peek() == '.' && is_digit(peek(1))) {
      kind = Kind::kFloat;
      ++at_;
      digits();
    } else if (peek() == '.' && peek(1) != '.') {
      ++at_;
      sink_
          .report<LangDiag::kBadNumber>(range_from(begin),
                                        "a digit must follow the point of a number")
          .fix(end_of(range_from(begin)), "0");
      kind = Kind::kFloat;
    }
    const size_t sign = (peek(1) == '+' || peek(1) == '-') ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      kind = Kind::kFloat;
      at_ += 1 + sign;
      digits();
    }
    if (is_word(peek())) {
      const size_t suffix = at_;
      while (is_word(peek())) ++at_;
      sink_.report<LangDiag::kBadNumber>(
          range_from(suffix),
          fmt::format("'{}' cannot follow a number",
                      text_.substr(suffix, std::min<size_t>(at_ - suffix, 40))));
    }
    if (bare_fraction) {
      sink_.report<LangDiag::kBadNumber>(range_from(begin), "a digit must stand before the point")
          .fix(start_of(range_from(begin)), "0");
    }
    push(kind, begin);
  }

  void string() {
    const size_t begin = at_++;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') ++at_;
    if (peek() == '"') {
      ++at_;
      push(Kind::kString, begin);
    } else {
      sink_.report<LangDiag::kUnterminatedString>(range_from(begin))
          .fix(end_of(range_from(begin)), "\"");
      push(Kind::kBad, begin);
    }
  }

  void symbol() {
    const size_t begin = at_;
    for (const Spelling& symbol : kSymbols) {
      if (text_.substr(at_, symbol.text.size()) == symbol.text) {
        at_ += symbol.text.size();
        push(symbol.kind, begin);
        return;
      }
    }
    // One report for a run of bytes that start nothing: a line of UTF-8 is one mistake, not forty.
    while (at_ < text_.size() && !is_space(peek()) && !is_word(peek()) && !starts_symbol()) ++at_;
    if (at_ == begin) ++at_;
    const std::string_view bytes = text_.substr(begin, at_ - begin);
    SourceDiagnostic& diagnostic =
        sink_.report<LangDiag::kBadCharacter>(range_from(begin), show_bytes(bytes));
    if (bytes == "^") diagnostic.message += "; a power is 'pow(x, y)'";
    if (bytes == "?") diagnostic.message += "; a choice is 'if c then x else y'";
    if (bytes == "&") diagnostic.message += "; a conjunction is 'a && b'";
    push(Kind::kBad, begin);
  }

  bool starts_symbol() const {
    if (peek() == '"') return true;
    for (const Spelling& symbol : kSymbols) {
      if (text_.substr(at_, symbol.text.size()) == symbol.text) return true;
    }
    return false;
  }

  static std::string show_bytes(std::string_view bytes) {
    constexpr size_t kShown = 8;
    std::string shown;
    for (const char c : bytes.substr(0, kShown)) {
      const bool printable = c > ' ' && c < '\x7f';
      shown += printable ? fmt::format("'{}' ", c)
                         : fmt::format("0x{:02x} ", static_cast<unsigned char>(c));
    }
    if (bytes.size() > kShown) return shown + "...";
    shown.pop_back();
    return shown;
  }

  std::string_view text_;
  uint32_t file_;
  DiagSink& sink_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const SourceSet& sources, uint32_t file, DiagSink& sink) {
  return Lexer(sources, file, sink).run();
}

TokenKind classify_word(std::string_view word) {
  for (const Spelling& row : kWords) {
    if (row.text == word) return row.kind;
  }
  return Kind::kName;
}

bool is_free_name(std::string_view word) {
  if (word.empty() || (word[0] >= '0' && word[0] <= '9')) return false;
  for (const char c : word) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && (c < '0' || c > '9')) return false;
  }
  return classify_word(word) == Kind::kName;
}

void append_words(TokenKind kind, std::vector<std::string_view>& words) {
  for (const Spelling& row : kWords) {
    const bool is_both = row.text == "max" || row.text == "min";
    if (row.kind == kind || (kind == Kind::kBuiltin && is_both)) words.push_back(row.text);
  }
}

std::string describe(const Token& token) {
  constexpr size_t kShown = 40;
  if (token.kind == Kind::kEnd) return "the end of the file";
  if (token.text.size() > kShown) return fmt::format("'{}...'", token.text.substr(0, kShown));
  return fmt::format("'{}'", token.text);
}

std::string_view describe(TokenKind kind) {
  switch (kind) {
    case Kind::kEnd: return "the end of the file";
    case Kind::kBad: return "a character";
    case Kind::kName: return "a name";
    case Kind::kBuiltin: return "a function";
    case Kind::kDtype: return "a type";
    case Kind::kReducer: return "a reduction";
    case Kind::kInt:
    case Kind::kFloat: return "a number";
    case Kind::kString: return "a string";
    case Kind::kLeftParen: return "'('";
    case Kind::kRightParen: return "')'";
    case Kind::kLeftBracket: return "'['";
    case Kind::kRightBracket: return "']'";
    case Kind::kLeftBrace: return "'{'";
    case Kind::kRightBrace: return "'}'";
    case Kind::kComma: return "','";
    case Kind::kSemicolon: return "';'";
    case Kind::kColon: return "':'";
    case Kind::kArrow: return "'->'";
    case Kind::kDotDot: return "'..'";
    case Kind::kBar: return "'|'";
    case Kind::kAssign: return "'='";
    case Kind::kStar: return "'*'";
    case Kind::kThen: return "'then'";
    case Kind::kElse: return "'else'";
    case Kind::kGreater: return "'>'";
    case Kind::kImport:
    case Kind::kConst:
    case Kind::kFn:
    case Kind::kOp:
    case Kind::kWhere:
    case Kind::kLet:
    case Kind::kIn:
    case Kind::kIf:
    case Kind::kOrElse:
    case Kind::kTrue:
    case Kind::kFalse:
    case Kind::kInf:
    case Kind::kLowest:
    case Kind::kHighest:
    case Kind::kIntKind:
    case Kind::kFloatKind:
    case Kind::kTypeKind: return "a keyword";
    case Kind::kEqual:
    case Kind::kNotEqual:
    case Kind::kLess:
    case Kind::kLessEqual:
    case Kind::kGreaterEqual:
    case Kind::kPlus:
    case Kind::kMinus:
    case Kind::kSlash:
    case Kind::kPercent:
    case Kind::kNot:
    case Kind::kAnd:
    case Kind::kOr: return "an operator";
  }
  return "a token";
}

}  // namespace prunerc::lang
