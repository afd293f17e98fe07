#include "ir/support/options.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <map>
#include <string>

namespace prunerc {
namespace {

Result<DebugOptions> parsed(const std::map<std::string, std::string>& environment) {
  return parse_debug_options([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("debugging switches are off unless set") {
  const Result<DebugOptions> options = parsed({{"PRUNERC_TIME", ""}});
  REQUIRE_OK(options);
  CHECK(options->dump.empty());
  CHECK_FALSE(options->time_passes);
  CHECK(options->max_optional_passes < 0);
  CHECK_FALSE(options->wants_dump("after:lower/lower_init"));
}

TEST_CASE("dump items name a pass, all passes, or a form of the code") {
  const Result<DebugOptions> one = parsed({{"PRUNERC_DUMP", "after:lower/lower_init,asm"}});
  REQUIRE_OK(one);
  CHECK(one->wants_dump("after:lower/lower_init"));
  CHECK_FALSE(one->wants_dump("after:lower/place_allocs"));
  CHECK(one->wants_dump("asm"));
  CHECK_FALSE(one->wants_dump("llvm"));
  const Result<DebugOptions> all = parsed({{"PRUNERC_DUMP", "after:lower/*"}});
  REQUIRE_OK(all);
  CHECK(all->wants_dump("after:lower/place_allocs"));
  CHECK_FALSE(all->wants_dump("llvm"));
}

TEST_CASE("the other switches are read") {
  const Result<DebugOptions> options = parsed(
      {{"PRUNERC_TIME", "passes"}, {"PRUNERC_BISECT", "lower:3"}, {"PRUNERC_DUMP_DIR", "d"}});
  REQUIRE_OK(options);
  CHECK(options->time_passes);
  CHECK(options->max_optional_passes == 3);
  CHECK(options->dump_dir == "d");
}

TEST_CASE("a malformed switch is refused by its name") {
  for (const auto& [variable, text] : std::map<std::string, std::string>{
           {"PRUNERC_DUMP", "after:lower/"},
           {"PRUNERC_TIME", "pass"},
           {"PRUNERC_BISECT", "lower:99999999999999999999"},
       }) {
    const Result<DebugOptions> options = parsed({{variable, text}});
    REQUIRE_FALSE(options.ok());
    CHECK(options.error().id() == Diag::kUsageOption);
    CHECK(options.error().message().find(variable) != std::string::npos);
  }
  CHECK_FALSE(parsed({{"PRUNERC_DUMP", "llvm,,asm"}}).ok());
  CHECK_FALSE(parsed({{"PRUNERC_BISECT", "lower:-1"}}).ok());
  CHECK_FALSE(parsed({{"PRUNERC_BISECT", "simplify:1"}}).ok());
}

TEST_CASE("every switch has a row that explains it") {
  CHECK(debug_option_rows().size() == 4);
  for (const DebugOptionRow& row : debug_option_rows()) CHECK_FALSE(row.meaning.empty());
}

}  // namespace
}  // namespace prunerc
