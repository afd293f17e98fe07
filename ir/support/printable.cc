// What texts of others look like on a terminal.
#include "ir/support/file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace prunerc {
namespace {

struct CodePoint {
  uint32_t value = 0;
  std::size_t num_bytes = 0;  // 0: these bytes are no UTF-8
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || value > 0x10FFFF || is_surrogate) return {};
  return {value, length};
}

struct Span {
  uint32_t first, last;
};
/// Controls, and what Unicode calls format characters and separators of lines.
constexpr Span kUnprintable[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x061C, 0x061C}, {0x180E, 0x180E},
    {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB},
    {0xE000, 0xF8FF}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF},
};

bool shows(uint32_t value) {
  for (const Span& span : kUnprintable) {
    if (value >= span.first && value <= span.last) return false;
  }
  return true;
}

enum class Lines : uint8_t { kKeep, kSpellOut };

std::string spelled_out(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const std::size_t length = point.num_bytes == 0 ? 1 : point.num_bytes;
    const bool is_space = text[0] == '\n' || text[0] == '\t';
    char shown[16];
    if (is_space ? lines == Lines::kKeep : point.num_bytes > 0 && shows(point.value)) {
      out += text.substr(0, length);
    } else if (point.value < 0x80) {
      std::snprintf(shown, sizeof shown, "\\x%02x", static_cast<unsigned char>(text[0]));
      out += shown;
    } else {
      std::snprintf(shown, sizeof shown, "\\u{%x}", static_cast<unsigned>(point.value));
      out += shown;
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return spelled_out(text, Lines::kKeep); }
std::string printable_line(std::string_view text) { return spelled_out(text, Lines::kSpellOut); }

}  // namespace prunerc
