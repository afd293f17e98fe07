// Inputs that no small text file holds: huge, deep, hostile or random texts. None may crash or take
// a second.

#include "ir/support/rng.h"
#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <ctime>

namespace prunerc::testing {
namespace {

std::string repeat(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

/// Compiles, checks the time, and gives the names of the diagnostics.
std::vector<std::string> refused(const std::string& text) {
  const std::clock_t start = std::clock();  // of this process: the machine may be busy
  const lang::LangResult result = compile_case("input.prn", text);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1.0);
  CHECK_FALSE(result.program.has_value());
  std::vector<std::string> names;
  for (const lang::Diagnostic& item : result.diagnostics) {
    if (item.is_error) names.push_back(item.name);
  }
  CHECK_FALSE(names.empty());
  CHECK(names.size() <= 21);  // 20 errors, and the remark that there are more
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string op_with(const std::string& value) {
  return "op f<N=4>(X: f32[N]) -> (Y: f32[N]) { Y[i] = " + value + "; }";
}

constexpr int kDeep = 100'000;

}  // namespace

TEST_CASE("arithmetic of indices that leaves i64 is refused wherever it stands") {
  for (const char* value : {"X[(if i * 4611686018427387904 > 0 then 1 else 0) + i * 0]",
                            "X[0] + f32(i64(f32(i)) + i * 9223372036854775807)",
                            "X[0] + f32(i64(i > 1) + i * 9223372036854775807)",
                            "X[select(i * 4611686018427387904 > 0, 1, 0) + i % 2]",
                            "f32(i64(i * 4611686018427387904 > 0) + i)",
                            "f32((sum[k in 0..2 | k * 9223372036854775807 * 3 > 5] k) + i)"}) {
    INFO(value);
    CHECK(contains(refused(op_with(value)), "IndexWraps"));
  }
}

TEST_CASE("a const that lost its fraction is no float, but it is an extent") {
  const std::string text = "const HALF = 1/2; const N = 9/2; op f(X: f32[N]) -> (Y: f32[N]) {";
  CHECK(contains(refused(text + " Y[i] = X[i] * HALF; }"), "InexactQuotient"));
  const ir::Program program = compile_or_die(text + " Y[i] = X[i + HALF]; }");
  CHECK(program.buffers()[0].shape[0].as<ir::IntImm>()->value == 4);
}

TEST_CASE("what an inner reduction is kept in has a size, too") {
  const std::string outer =
      "sum[a in 0..1048576, b in 0..1048576, c in 0..1048576, d in 0..1048576]";
  CHECK(contains(refused(op_with(outer + " (max[k] (X[k] * f32(a + b + c + d)))")),
                 "TensorTooLarge"));
}

TEST_CASE("nesting of a hundred thousand levels is refused and does not overflow the stack") {
  const std::string open[] = {"(",       "-",    "!",        "if true then 1 else ",
                              "f32(",    "exp(", "X[",       "sum[k",
                              "max(1, ", "1 + ", "1 * (2 + "};
  for (const std::string& token : open) {
    INFO(token);
    const int count = std::min(kDeep, static_cast<int>(900'000 / token.size()));
    const std::vector<std::string> names = refused(op_with(repeat(token, count) + "1"));
    CHECK((contains(names, "TooDeep") || contains(names, "Expected")));
  }
  CHECK(contains(refused(op_with(repeat("(", kDeep) + "1" + repeat(")", kDeep))), "TooDeep"));
  CHECK(contains(refused(op_with("1" + repeat(" + 1", kDeep))), "TooDeep"));
  CHECK(contains(refused(op_with("true" + repeat(" || true", kDeep))), "TooDeep"));
  CHECK(contains(refused(op_with("X[i] or " + repeat("X[i] or ", kDeep) + "0")), "TooDeep"));
}

TEST_CASE("a file of more than a megabyte is refused") {
  CHECK(refused(repeat("// nothing\n", kDeep) + op_with("X[i]")) ==
        std::vector<std::string>{"FileTooLarge"});
}

TEST_CASE("long runs of one token are refused quickly") {
  const std::string tokens[] = {"{",
                                "}",
                                "[",
                                "]",
                                ";",
                                ",",
                                "op ",
                                "let ",
                                "a ",
                                "0 ",
                                "..",
                                "|",
                                "\"",
                                "@",
                                "\xff",
                                "import \"x\";",
                                "const c = 1;",
                                "fn f(x) = x;",
                                "op f() -> (x: f32) {",
                                "op f<"};
  for (const std::string& token : tokens) {
    INFO(token);
    refused(repeat(token, kDeep / 2));
    refused("op f<N=4>(X: f32[N]) -> (Y: f32[N]) { " + repeat(token, kDeep / 2));
  }
}

TEST_CASE("a zero byte is a character like any other") {
  const std::string text = op_with("X[i] + 1");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string broken = text;
    broken[at] = '\0';
    refused(broken);
  }
}

TEST_CASE("operators with very many names are answered quickly") {
  std::string lets, reads = "X[i]", consts, params = "N=4", fns;
  for (int i = 0; i < 9000; ++i) {
    const std::string n = std::to_string(i);
    lets += "let t" + n + "[i] = " + (i == 0 ? "X[i]" : "t" + std::to_string(i - 1) + "[i]") +
            " + w" + n + ";\n";
    consts += "const c" + n + " = 1;\n";
    fns += "fn g" + n + "(x) = x + c" + n + " * y;\n";
    params += ", P" + n + "=1";
  }
  CHECK(refused("op f<N=4>(X: f32[N]) -> (Y: f32[N]) {\n" + lets + "Y[i] = X[i]; }") ==
        std::vector<std::string>{"TooManyStatements"});
  CHECK(contains(refused(consts + fns + op_with("X[i]")), "TooManyErrors"));
  CHECK(contains(refused("op f<" + params + ">(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[k]; }"),
                 "UnknownName"));
}

TEST_CASE("functions that double their argument cannot exhaust the memory") {
  std::string fns = "fn d0(x) = x + x;\n";
  for (int i = 1; i < 60; ++i) {
    const std::string previous = std::to_string(i - 1);
    fns += "fn d" + std::to_string(i) + "(x) = d" + previous + "(d" + previous + "(x));\n";
  }
  CHECK(contains(refused(fns + op_with("d59(X[i])")), "ExpansionTooLarge"));
  std::string stmts;
  for (int i = 0; i < 250; ++i) stmts += "let t" + std::to_string(i) + "[i] = d3(d3(d3(X[i])));\n";
  refused(fns + "op f<N=4>(X: f32[N]) -> (Y: f32[N]) {\n" + stmts + "Y[i] = X[i]; }");
}

TEST_CASE("an operator with more guarded reads than can be proved in time is refused") {
  std::string fns = "fn d0(x) = x + x;\n";
  for (int i = 1; i < 12; ++i)
    fns += "fn d" + std::to_string(i) + "(x) = d" + std::to_string(i - 1) + "(x + x);\n";
  std::string stmts;
  for (int i = 0; i < 250; ++i) {
    stmts += "let t" + std::to_string(i) + "[i] = if i > 0 && i < 3 then d11(X[i - 1]) else 0;\n";
  }
  const std::vector<std::string> names =
      refused(fns + "op f<N=4>(X: f32[N]) -> (Y: f32[N]) {\n" + stmts + "Y[i] = X[i]; }");
  CHECK((contains(names, "ProofLimit") || contains(names, "ExpansionTooLarge")));
}

TEST_CASE("a net of many operators in a file of many functions is answered quickly") {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "fn g" + std::to_string(i) + "(x)=x;";
  text += "op f<N,M>(X:f32[N])->(Y:f32[N]){Y[i]=X[i]*M;}\nnet n(x:f32[4])->(y:f32[4]){";
  for (int i = 0; i < 1'000; ++i) {
    const std::string n = std::to_string(i);
    text += "let a" + n + "=f<M=" + n + ">(" + (i == 0 ? "x" : "a" + std::to_string(i - 1)) + ");";
  }
  lang::CompileInput input;
  input.text = text + "y=f<M=7>(a999);}";
  const std::clock_t start = std::clock();
  CHECK(lang::compile_net(input).net.has_value());
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1.0);
}

TEST_CASE("a net of many lines that name nothing is refused quickly") {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "op a" + std::to_string(i) + "()->(Y:f32){Y=1;}";
  CHECK(contains(refused(text + "net n {" + repeat("zzzz;", 100'000) + "}"), "TooManyErrors"));
}

TEST_CASE("imports are limited in number") {
  lang::CompileInput input;
  input.file_name = "a0.prn";
  input.text = "import \"a1.prn\";\n" + op_with("X[i]");
  int num_files = 64;
  input.import = [&](std::string_view path) -> Result<std::string> {
    const int number = std::stoi(std::string(path.substr(1)));
    if (number == num_files) return std::string();
    return "import \"a" + std::to_string(number + 1) + ".prn\";";
  };
  CHECK(lang::compile(input).program.has_value());
  num_files = 65;
  const lang::LangResult result = lang::compile(input);
  REQUIRE(result.diagnostics.size() == 1);
  CHECK(result.diagnostics[0].name == "TooManyImports");
}

TEST_CASE("a given shape must fit the declaration") {
  const std::string text = "op f<M, N=3>(X: f32[M,N]) -> (Y: f32[M,N]) { Y[i,j] = X[i,j]; }";
  const std::vector<std::vector<int64_t>> bad_shapes = {{2}, {4, 3}, {0, 3}, {2, 3, 1}};
  for (const std::vector<int64_t>& shape : bad_shapes) {
    lang::CompileInput input;
    input.file_name = "f.prn";
    input.text = text;
    input.shapes = {{"X", shape}};
    if (shape[0] != 0) input.bindings = {{"M", "2"}};
    const lang::LangResult result = lang::compile(input);
    INFO(result.rendered);
    CHECK_FALSE(result.program.has_value());
    REQUIRE_FALSE(result.diagnostics.empty());
    CHECK((result.diagnostics[0].name == "ShapeMismatch" ||
           result.diagnostics[0].name == "ExtentTooSmall"));
  }
}

TEST_CASE("texts with random damage are refused or compiled, never more") {
  const std::vector<std::string> files = list_test_files("tools/std");
  Rng rng(first_seed(), 0, 0);
  const int num = num_cases(300);
  for (int i = 0; i < num; ++i) {
    const std::string& name = files[static_cast<size_t>(rng.next() % files.size())];
    if (name.find(".prn") == std::string::npos) continue;
    std::string text = read_test_file("tools/std/" + name);
    for (int edit = 0; edit < 3; ++edit) {
      const size_t at = static_cast<size_t>(rng.next() % text.size());
      const size_t from = static_cast<size_t>(rng.next() % text.size());
      switch (rng.next() % 3) {
        case 0: text.erase(at, 1 + static_cast<size_t>(rng.next() % 8)); break;
        case 1: text.insert(at, text.substr(from, static_cast<size_t>(rng.next() % 8))); break;
        default: text[at] = text[from]; break;
      }
    }
    // A file of several operators is bound only if one is chosen.
    const std::vector<lang::OpInfo> ops = lang::list_ops(name, text, lang::import_std).ops;
    if (!ops.empty()) text = "// run: op=" + ops[rng.below(ops.size())].name + "\n" + text;
    const std::clock_t start = std::clock();
    const lang::LangResult result = compile_case(name, text);
    INFO(text);
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1.0);
    CHECK(result.program.has_value() ==
          std::none_of(result.diagnostics.begin(), result.diagnostics.end(),
                       [](const lang::Diagnostic& d) { return d.is_error; }));
  }
}

}  // namespace prunerc::testing
