#include "tests/lang/case.h"

#include "ir/verify.h"

#include <catch2/catch.hpp>

#include <sstream>

namespace prunerc::testing {
namespace {

std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  std::stringstream items(text);
  std::string item;
  while (std::getline(items, item, ',')) shape.push_back(std::stoll(item));
  return shape;
}

}  // namespace

lang::LangResult compile_case(const std::string& name, const std::string& text) {
  const bool is_expression = text.rfind("// expr:", 0) == 0;
  lang::CompileInput file;
  lang::ExpressionInput expression;
  file.file_name = name;
  file.text = text;
  file.import = lang::import_std;
  expression.text = text.substr(is_expression ? text.find('\n') + 1 : 0);
  std::map<std::string, std::vector<int64_t>> shapes;
  if (is_expression || text.rfind("// run:", 0) == 0) {
    std::stringstream words(text.substr(text.find(':') + 1, text.find('\n') - text.find(':') - 1));
    std::string word;
    while (words >> word) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const std::string value = word.substr(equals + 1);
      if (key == "op") {
        file.op = value;
      } else if (key == "dtype") {
        expression.dtype = value;
      } else if (key.rfind("shape:", 0) == 0) {
        shapes[key.substr(6)] = parse_shape(value);
      } else {
        file.bindings[key] = value;
        expression.extents[key] = value;
      }
    }
  }
  file.shapes = shapes;
  expression.shapes = shapes;
  return is_expression ? lang::compile_expression(expression) : lang::compile(file);
}

ir::Program compile_or_die(const std::string& text, const std::string& op,
                           const std::map<std::string, std::string>& bindings) {
  lang::CompileInput input;
  input.file_name = "test.prn";
  input.text = text;
  input.op = op;
  input.bindings = bindings;
  const lang::LangResult result = lang::compile(input);
  INFO(result.rendered);
  REQUIRE(result.program.has_value());
  CHECK(result.rendered.empty());
  const Result<void> verified = ir::verify(*result.program);
  INFO((verified.ok() ? std::string() : verified.error().message()));
  REQUIRE(verified.ok());
  return *result.program;
}

}  // namespace prunerc::testing
