// tests/golden/prc: texts that are refused, each with its message, and texts that print as they are
// written.
#include "ir/interp/interpreter.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

namespace prunerc::ir {
namespace {

using testing::list_test_files;
using testing::read_test_file;

const std::string kFolder = "tests/golden/prc";

std::vector<std::string> files_with_prefix(const std::string& prefix) {
  std::vector<std::string> out;
  for (const std::string& name : list_test_files(kFolder)) {
    if (name.rfind(prefix, 0) == 0) out.push_back(name);
  }
  return out;
}

// Parsed, verified and, if both accept it, run on zeros with a small budget: the first message.
std::string refusal(const std::string& text) {
  const Result<Program> program = parse(text);
  if (!program.ok()) return program.error().message();
  const Result<void> verified = verify(*program);
  if (!verified.ok()) return verified.error().message();
  std::vector<Tensor> inputs;
  for (BufferId id : program->params()) {
    const Buffer& buffer = program->buffer(id);
    if (buffer.role == BufferRole::kInput) inputs.emplace_back(buffer.dtype, shape_of(buffer));
  }
  InterpretOptions options;
  options.max_steps = 100'000;
  const Result<std::vector<Tensor>> outputs = interpret(*program, inputs, options);
  return outputs.ok() ? "accepted" : outputs.error().message();
}

TEST_CASE("every malformed program is refused at once with its message") {
  const std::vector<std::string> names = files_with_prefix("fail_");
  REQUIRE(names.size() >= 35);
  for (const std::string& name : names) {
    const std::string text = read_test_file(kFolder + "/" + name);
    const std::string marker = "# expect: ";
    REQUIRE(text.rfind(marker, 0) == 0);
    const std::string first_line = text.substr(0, text.find('\n'));
    const auto start = std::chrono::steady_clock::now();
    const std::string found = refusal(text);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    INFO(name);
    CHECK(found == first_line.substr(marker.size()));
    CHECK(found != "accepted");
    CHECK(elapsed.count() < 1.0);
    if (std::getenv("PRUNERC_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(kFolder + "/" + name) << marker << found << text.substr(first_line.size());
    }
  }
}

TEST_CASE("golden programs print exactly as they are written") {
  const std::vector<std::string> names = files_with_prefix("ok_");
  REQUIRE(!names.empty());
  for (const std::string& name : names) {
    const std::string text = read_test_file(kFolder + "/" + name);
    INFO(name);
    const Program program = testing::parse_or_die(text);
    CHECK(print(program) == text);
    CHECK(verify(program).ok());
  }
}

}  // namespace
}  // namespace prunerc::ir
