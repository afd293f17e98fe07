#include "ir/lexer.h"

#include "ir/support/file.h"

#include <cctype>

namespace prunerc::ir {
namespace {

constexpr std::size_t kMaxShownChars = 40;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

bool is_symbol_pair(std::string_view two) {
  for (std::string_view pair : {"+:", "//", "->", "==", "!=", "<=", ">=", "&&", "||"}) {
    if (two == pair) return true;
  }
  return false;
}

std::size_t number_length(std::string_view s) {
  std::size_t n = 0;
  while (n < s.size() && is_digit(s[n])) ++n;
  if (n + 1 < s.size() && s[n] == '.' && is_digit(s[n + 1])) {
    ++n;
    while (n < s.size() && is_digit(s[n])) ++n;
  }
  if (n < s.size() && (s[n] == 'e' || s[n] == 'E')) {
    std::size_t m = n + 1;
    if (m < s.size() && (s[m] == '+' || s[m] == '-')) ++m;
    if (m < s.size() && is_digit(s[m])) {
      while (m < s.size() && is_digit(s[m])) ++m;
      n = m;
    }
  }
  while (n < s.size() && is_name_char(s[n])) ++n;  // the type suffix
  return n;
}

}  // namespace

std::string describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "end of text";
  std::string shown;
  for (char c : token.text.substr(0, kMaxShownChars)) {
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return "'" + shown + (token.text.size() > kMaxShownChars ? "...'" : "'");
}

Result<std::vector<Token>> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  Locus at{1, 1};
  std::size_t i = 0;
  auto take = [&](TokenKind kind, std::size_t length) {
    tokens.push_back({kind, text.substr(i, length), at});
    i += length;
    at.column += static_cast<int32_t>(length);
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      ++i;
      ++at.line;
      at.column = 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
      ++at.column;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (is_name_start(c)) {
      std::size_t n = 1;
      while (i + n < text.size() && is_name_char(text[i + n])) ++n;
      take(TokenKind::kName, n);
    } else if (is_digit(c)) {
      take(TokenKind::kNumber, number_length(text.substr(i)));
    } else if (c == '"') {
      const std::size_t end = text.find_first_of("\"\n", i + 1);
      if (end == std::string_view::npos || text[end] == '\n') {
        return error_at(at, Diag::kParseExpected, "a closing '\"'", "end of line");
      }
      const std::string_view inside = text.substr(i + 1, end - i - 1);
      if (printable_line(inside) != inside) {
        return error_at(at, Diag::kParseExpected, "printable characters in a name", "others");
      }
      take(TokenKind::kString, end - i + 1);
    } else if (is_symbol_pair(text.substr(i, 2))) {
      take(TokenKind::kSymbol, 2);
    } else if (std::string_view("(){}[],:;=+-*/%<>!@$.").find(c) != std::string_view::npos) {
      take(TokenKind::kSymbol, 1);
    } else {
      return error_at(at, Diag::kParseExpected, "a token",
                      describe({TokenKind::kSymbol, text.substr(i, 1), at}));
    }
  }
  tokens.push_back({TokenKind::kEnd, {}, at});
  return tokens;
}

}  // namespace prunerc::ir
