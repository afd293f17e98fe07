// The wrapper around every lowering pass.
#include "codegen/pipeline.h"

#include "ir/builder.h"
#include "ir/printer.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

Program copy_program() {
  return parse_or_die(R"(program p(A: f32[4]) -> (B: f32[4]) {
    for i in 4 @L0 { block "B" @B0 [v: S(4) = i] { reads A[v] writes B[v] B[v] = A[v] } }
  })");
}

// A faulty pass: it forgets the loop whose variable the block is bound to.
Result<Program> drop_loop(const Program& program, const Target&) {
  return IrBuilder(program).finish(program.root().as<Loop>()->body);
}
Result<Program> keep(const Program& program, const Target&) { return program; }

TEST_CASE("a pass that makes a malformed program is named, with the program") {
  const Target target = *target_from_string("cpu");
  const codegen::Pass passes[] = {{"keep", keep, true}, {"drop", drop_loop, true}};
  const Result<Program> lowered = codegen::run_passes(passes, copy_program(), target);
  REQUIRE_FALSE(lowered.ok());
  CHECK(lowered.error().id() == Diag::kInternal);
  const std::string message = lowered.error().message();
  INFO(message);
  CHECK(message.find("after:lower/drop") != std::string::npos);
  CHECK(message.find("outside its scope") != std::string::npos);
  CHECK(message.find("block \"B\"") != std::string::npos);
}

TEST_CASE("optional passes are left out by name and by number") {
  const Target target = *target_from_string("cpu");
  const codegen::Pass passes[] = {
      {"first", keep, false}, {"second", keep, true}, {"third", keep, false}};
  const auto names = [&](codegen::PipelineOptions options) {
    std::vector<codegen::PassTime> times;
    options.times = &times;
    REQUIRE_OK(codegen::run_passes(passes, copy_program(), target, options));
    std::string text;
    for (const codegen::PassTime& time : times) text += std::string(time.name) + " ";
    return text;
  };
  CHECK(names({}) == "first second third ");
  CHECK(names({.max_optional_passes = 1, .disabled = {}, .times = nullptr}) == "first second ");
  const std::string_view disabled[] = {"first"};
  CHECK(names({.max_optional_passes = -1, .disabled = disabled, .times = nullptr}) ==
        "second third ");
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_CASE("a pass, its function and its file have one name; what both lists have is in common/") {
  std::map<std::string, std::set<std::string>> folders;
  for (const codegen::Pass& pass : codegen::cpu_passes()) {
    folders[std::string(pass.name)].insert("cpu");
  }
  for (const codegen::Pass& pass : codegen::gpu_passes()) {
    folders[std::string(pass.name)].insert("gpu");
  }
  for (const auto& [name, users] : folders) {
    const std::string folder = users.size() == 2 ? "common" : *users.begin();
    const std::string text = read_file("codegen/lower/" + folder + "/" + name + ".cc");
    INFO(folder << "/" << name << ".cc");
    // A sentence, what holds before and after, a picture; then the code.
    const std::string comment = text.substr(0, text.find("#include"));
    const auto num_lines = std::count(comment.begin(), comment.end(), '\n');
    CHECK((num_lines >= 2 && num_lines <= 8));
    for (const char* part : {"Before", "After", "\n//     "}) {
      CHECK(comment.find(part) != std::string::npos);
    }
    CHECK(std::regex_search(text, std::regex("\nResult<(ir::)?Program> " + name + "\\(const")));
  }
}

}  // namespace
}  // namespace prunerc
