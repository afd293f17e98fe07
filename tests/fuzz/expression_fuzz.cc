// Lines as `-e EXPRESSION`, `--dtype`, one `-D NAME=VALUE` and `--shape`: a program exactly when
// there is no error, and one that is well formed.
#include "ir/lang/lang.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/fuzz/fuzz.h"

#include <array>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prunerc;
  using namespace prunerc::fuzz;
  std::array<std::string, 4> lines;
  size_t line = 0;
  for (const char c : as_text(data, size)) {
    if (c == '\n' && line + 1 < lines.size()) {
      ++line;
    } else {
      lines[line] += c;
    }
  }
  lang::ExpressionInput input;
  input.text = lines[0];
  if (!lines[1].empty()) input.dtype = lines[1];
  input.extents = {{"i", "4"}, {"j", "4"}, {"k", "4"}};
  const size_t equals = lines[2].find('=');
  if (equals != std::string::npos)
    input.extents[lines[2].substr(0, equals)] = lines[2].substr(equals + 1);
  for (const char name : lines[3].substr(0, 3)) input.shapes[std::string(1, name)] = {4, 4};
  const lang::LangResult result = lang::compile_expression(input);
  bool has_errors = false;
  for (const lang::Diagnostic& item : result.diagnostics) {
    has_errors |= item.is_error;
    require(!item.message.empty(), "no message", input.text);
  }
  require(result.program.has_value() != has_errors, "a program with errors, or neither",
          input.text);
  if (!result.program) return 0;
  require(ir::verify(*result.program).ok(), "the program is not well formed", input.text);
  const std::string printed = ir::print(*result.program);
  const auto again = ir::parse(printed);
  require(again.ok() && ir::print(*again) == printed, "printing changes", printed);
  return 0;
}
