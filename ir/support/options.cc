#include "ir/support/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace prunerc {
namespace {

constexpr DebugOptionRow kRows[] = {
#define PRUNERC_DEBUG_OPTION(field, variable, form, meaning) {variable, form, meaning},
#include "ir/support/options.def"
#undef PRUNERC_DEBUG_OPTION
};

constexpr std::string_view kAfterLower = "after:lower/";

using Text = std::string_view;

struct Wanted {
  Text variable;
  Text form;
  Error malformed(Text found) const {
    return error(Diag::kUsageOption, std::string(variable),
                 fmt::format("needs {}, found '{}'", form, found));
  }
};

Result<void> parse_dump(const Wanted& wanted, Text text, DebugOptions* options) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const Text item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const bool pass = item.starts_with(kAfterLower) && item.size() > kAfterLower.size();
    if (!pass && item != "llvm" && item != "asm") return wanted.malformed(item);
    options->dump.emplace_back(item);
  }
  return {};
}

Result<void> parse_dump_dir(const Wanted&, Text text, DebugOptions* options) {
  options->dump_dir = text;
  return {};
}

Result<void> parse_time(const Wanted& wanted, Text text, DebugOptions* options) {
  if (text != "passes") return wanted.malformed(text);
  options->time_passes = true;
  return {};
}

Result<void> parse_bisect(const Wanted& wanted, Text text, DebugOptions* options) {
  constexpr Text kPrefix = "lower:";
  if (!text.starts_with(kPrefix)) return wanted.malformed(text);
  const Text digits = text.substr(kPrefix.size());
  const auto [end, code] =
      std::from_chars(digits.data(), digits.data() + digits.size(), options->max_optional_passes);
  const bool whole = code == std::errc() && end == digits.data() + digits.size();
  if (!whole || options->max_optional_passes < 0) return wanted.malformed(text);
  return {};
}

}  // namespace

bool DebugOptions::wants_dump(std::string_view item) const {
  return std::any_of(dump.begin(), dump.end(), [&](const std::string& asked) {
    return asked == item || (asked == "after:lower/*" && item.starts_with(kAfterLower));
  });
}

std::span<const DebugOptionRow> debug_option_rows() { return kRows; }

Result<DebugOptions> parse_debug_options(const std::function<const char*(const char*)>& lookup) {
  DebugOptions options;
  // An empty value counts as unset, as in `PRUNERC_TIME= prunerc ..`.
#define PRUNERC_DEBUG_OPTION(field, variable, form, meaning)                 \
  if (const char* text = lookup(variable); text != nullptr && *text != 0) {  \
    PRUNERC_TRY_VOID(parse_##field(Wanted{variable, form}, text, &options)); \
  }
#include "ir/support/options.def"
#undef PRUNERC_DEBUG_OPTION
  return options;
}

const DebugOptions& debug_options() {
  static const DebugOptions options = [] {
    Result<DebugOptions> parsed =
        parse_debug_options([](const char* name) -> const char* { return std::getenv(name); });
    if (parsed.ok()) return std::move(parsed).value();
    std::fprintf(stderr, "warning: %s\n", parsed.error().message().c_str());
    return DebugOptions{};
  }();
  return options;
}

void write_dump(std::string_view name, std::string_view text) {
  const std::string& dir = debug_options().dump_dir;
  if (dir.empty()) {
    std::fprintf(stderr, "// %.*s\n%.*s", static_cast<int>(name.size()), name.data(),
                 static_cast<int>(text.size()), text.data());
    return;
  }
  // Numbered, since one process may lower many programs.
  static std::atomic<int> count{0};
  std::string file = fmt::format("{:05}-{}", count++, name);
  std::replace_if(
      file.begin(), file.end(), [](char c) { return c == '/' || c == ' ' || c == ':'; }, '-');
  std::error_code code;
  std::filesystem::create_directories(dir, code);
  const std::string path = (std::filesystem::path(dir) / file).string();
  std::FILE* out = std::fopen(path.c_str(), "wb");
  const bool written =
      out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = out != nullptr && std::fclose(out) == 0;
  if (!written || !closed) std::fprintf(stderr, "warning: cannot write '%s'\n", path.c_str());
}

}  // namespace prunerc
