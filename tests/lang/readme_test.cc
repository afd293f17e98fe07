// ir/lang/README.md is the reference of the language: its examples compile, and what it advises
// against is refused.

#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <sstream>
#include <vector>

namespace prunerc::testing {
namespace {

const std::string kPage = "ir/lang/README.md";

/// The blocks of code that begin with ```INFO.
std::vector<std::string> blocks(const std::string& page, const std::string& info) {
  std::vector<std::string> found;
  std::stringstream lines(page);
  std::string line;
  while (std::getline(lines, line)) {
    if (line != "```" + info) continue;
    std::string text;
    while (std::getline(lines, line) && line != "```") text += line + "\n";
    found.push_back(text);
  }
  return found;
}

std::string all_replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The cells of each row of the page's tables that are one span of code, without it: "`a`" -> "a".
std::vector<std::vector<std::string>> rows(const std::string& page) {
  std::vector<std::vector<std::string>> found;
  std::stringstream lines(page);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind("| ", 0) != 0) continue;
    std::vector<std::string> spans;
    // A bar inside of a cell is written \|.
    std::stringstream cells(all_replaced(line, "\\|", "\x01"));
    std::string cell;
    while (std::getline(cells, cell, '|')) {
      const bool is_code =
          cell.size() > 4 && cell.rfind(" `", 0) == 0 && cell.find('`', 2) == cell.size() - 2;
      if (is_code) spans.push_back(all_replaced(cell.substr(2, cell.size() - 4), "\x01", "|"));
    }
    if (!spans.empty()) found.push_back(spans);
  }
  return found;
}

lang::LangResult compile_body(const std::string& page, const std::string& body) {
  const std::vector<std::string> harness = blocks(page, "prn harness");
  REQUIRE(harness.size() == 1);
  lang::CompileInput input;
  input.file_name = "README.prn";
  input.text = all_replaced(harness[0], "…", body);
  return lang::compile(input);
}

}  // namespace

TEST_CASE("every operator of the reference compiles") {
  const std::string page = read_test_file(kPage);
  int num_ops = 0;
  for (const std::string& text : blocks(page, "prn")) {
    const lang::ListResult listed = lang::list_ops("README.prn", text);
    INFO(listed.rendered);
    REQUIRE(listed.ok);
    REQUIRE(listed.nets.size() == 1);
    if (listed.nets[0].has_ports) {
      lang::CompileInput net;
      net.file_name = "README.prn";
      net.text = text;
      const lang::NetResult result = lang::compile_net(net);
      INFO(result.rendered);
      CHECK(result.net.has_value());
      CHECK(result.rendered.empty());
    }
    for (const lang::OpInfo& op : listed.ops) {
      lang::CompileInput input;
      input.file_name = "README.prn";
      input.text = text;
      input.op = op.name;
      if (listed.nets[0].has_ports) input.bindings["N"] = "8";
      const lang::LangResult result = lang::compile(input);
      INFO(result.rendered);
      CHECK(result.program.has_value());
      CHECK(result.rendered.empty());
      ++num_ops;
    }
  }
  CHECK(num_ops == 3);
}

TEST_CASE("every example of the reference compiles, and what it warns of is refused") {
  const std::string page = read_test_file(kPage);
  int num_examples = 0;
  int num_warnings = 0;
  for (const std::vector<std::string>& row : rows(page)) {
    const lang::LangResult right = compile_body(page, row.back());
    INFO(row.back() << "\n" << right.rendered);
    CHECK(right.program.has_value());
    ++num_examples;
    if (row.size() == 1) continue;
    const lang::LangResult wrong = compile_body(page, row.front());
    INFO(row.front() << "\n" << wrong.rendered);
    CHECK_FALSE(wrong.program.has_value());
    ++num_warnings;
  }
  CHECK(num_examples >= 25);
  CHECK(num_warnings == 7);
}

TEST_CASE("the reference names every function, type, reduction and file of the library") {
  const std::string page = read_test_file(kPage);
  for (const char* word :
       {"f64",    "f32",    "f16",  "bf16",   "i64",     "i32",   "i8",    "u8",
        "bool",   "sum",    "prod", "max",    "min",     "any",   "all",   "argmax",
        "argmin", "exp",    "log",  "sqrt",   "rsqrt",   "tanh",  "erf",   "sigmoid",
        "sin",    "cos",    "abs",  "floor",  "ceil",    "round", "pow",   "fma",
        "clamp",  "select", "inf",  "lowest", "highest", "where", "const", "import"}) {
    INFO(word);
    CHECK(page.find(word) != std::string::npos);
  }
  for (const std::string_view path : lang::std_files()) {
    const std::string stem(path.substr(4, path.size() - 8));
    INFO(stem);
    CHECK(page.find(stem) != std::string::npos);
  }
}

}  // namespace prunerc::testing
