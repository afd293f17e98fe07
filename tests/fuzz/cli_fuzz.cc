// Bytes as a command line, an argument a line, and as the values of debugging variables: understood
// or refused with a reason; nothing is done. Whatever prunerc prints of the table of verbs comes of
// the same declarations.
#include "ir/support/options.h"
#include "tests/fuzz/fuzz.h"
#include "tools/prunerc/verbs.h"

#include <vector>

namespace {

using namespace prunerc::fuzz;  // NOLINT: a program of its own

void parse(std::vector<std::string> arguments) {
  CLI::App app{"", "prunerc"};
  app.require_subcommand(0, 1);
  prunerc::cli::Action action;
  prunerc::cli::add_verbs(app, action);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    require(e.get_exit_code() == 0 || std::string_view(e.what()) != "", "no message");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> lines(1);
  for (const char c : as_text(data, size)) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\0') {
      lines.back() += c;
    }
  }
  size_t next = 0;
  const auto options = prunerc::parse_debug_options([&](const char*) -> const char* {
    return next < lines.size() ? lines[next++].c_str() : nullptr;
  });
  require_reason(options, "");
  // CLI11 takes arguments from the back.
  parse(std::vector<std::string>(lines.rbegin(), lines.rend()));
  return 0;
}
