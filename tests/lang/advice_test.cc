// What a diagnostic tells people to write compiles as it stands.

#include "tests/lang/case.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace prunerc::testing {
namespace {

std::string op_with(const std::string& body) {
  return "op f<N=4>(X: f32[N], A: f32[N,N], idx: i32[N], len: i32[N]) -> (Y: f32[N]) { " + body +
         " }";
}

lang::LangResult compile(const std::string& text) {
  lang::CompileInput input;
  input.file_name = "advice.prn";
  input.text = text;
  return lang::compile(input);
}

struct Advice {
  const char* wrong;  // statements
  const char* row;    // of lang_diag.def, the first that is reported
  const char* says;   // part of its message
  const char* right;  // the statements as advised, with what the message leaves open filled in
};

const Advice kAdvice[] = {
    {"Y[i] += A[i,k] * X[k];", "NoCompound", "'Y[i] = sum[k] A[i,k] * X[k]'",
     "Y[i] = sum[k] A[i,k] * X[k];"},
    {"Y[i] += A[i,k] - X[k];", "NoCompound", "'Y[i] = sum[k] (A[i,k] - X[k])'",
     "Y[i] = sum[k] (A[i,k] - X[k]);"},
    {"Y[i] *= if A[i,k] > 0 then X[k] else 1;", "NoCompound",
     "'Y[i] = prod[k] (if A[i,k] > 0 then X[k] else 1)'",
     "Y[i] = prod[k] (if A[i,k] > 0 then X[k] else 1);"},
    {"Y[i] += X[i];", "NoCompound", "'let before[i] = ...;', and write 'Y[i] = before[i] + X[i]'",
     "let before[i] = A[i,i]; Y[i] = before[i] + X[i];"},
    {"Y[i] -= X[i] - 1;", "NoCompound", "'Y[i] = before[i] - (X[i] - 1)'",
     "let before[i] = A[i,i]; Y[i] = before[i] - (X[i] - 1);"},
    {"Y[i] = X[i] ** 2;", "NoPower", "'pow(X[i], 2)'", "Y[i] = pow(X[i], 2);"},
    {"Y[i] = A[i,i] * -X[i]**X[i];", "NoPower", "'pow(X[i], X[i])'",
     "Y[i] = A[i,i] * -pow(X[i], X[i]);"},
    {"Y[i] = sum[k] A[i,k]**2;", "NoPower", "'pow(A[i,k], 2)'", "Y[i] = sum[k] pow(A[i,k], 2);"},
    {"Y[i] = X[i] ^ 2;", "BadCharacter", "'pow(x, y)'", "Y[i] = pow(X[i], 2);"},
    {"Y[i] = X[i] > 0 ? X[i] : 0;", "BadCharacter", "'if c then x else y'",
     "Y[i] = if X[i] > 0 then X[i] else 0;"},
    {"Y[i] = if X[i] > 0 & X[i] < 1 then 1 else 0;", "BadCharacter", "'a && b'",
     "Y[i] = if X[i] > 0 && X[i] < 1 then 1 else 0;"},
    {"for i in 0..N { Y[i] = X[i]; }", "NoStatement", "'Y[i] = X[i] + 1;'", "Y[i] = X[i] + 1;"},
    {"for (i = 0; i < N; i = i + 1) { for (k = 0; k < N; k = k + 1) { Y[i] += A[i,k]; } }",
     "NoStatement", "'Y[i] = sum[k] A[i,k];'", "Y[i] = sum[k] A[i,k];"},
    {"return X;", "NoStatement", "'Y[i] = X[i];'", "Y[i] = X[i];"},
    {"Y[idx[i]] = X[i];", "LeftNotIndex", "'Y[j] = sum[i | idx[i] == j] X[i]'",
     "Y[j] = sum[i | idx[i] == j] X[i];"},
    {"Y[i + 1] = X[i];", "LeftNotIndex", "'Y[i] = X[i - 1] or 0'", "Y[i] = X[i - 1] or 0;"},
    {"Y[2 * i] = X[i];", "LeftNotIndex", "shift what is read", "Y[i] = X[i / 2];"},
    {"Y[0] = 1;", "LeftNotIndex", "'Y[i] = if i == 0 then 1 else X[i]'",
     "Y[i] = if i == 0 then 1 else X[i];"},
    {"Y[i] = sum[k in 0..len[i]] X[k];", "NotConstant", "'[k | k < len[i]]'",
     "Y[i] = sum[k | k < len[i]] X[k];"},
    {"Y[i] = sum[k in i..4] X[k];", "NotConstant", "'[k | k >= i]'",
     "Y[i] = sum[k | k >= i] X[k];"},
};

}  // namespace

TEST_CASE("forms of other languages are answered with what compiles here") {
  for (const Advice& advice : kAdvice) {
    const lang::LangResult wrong = compile(op_with(advice.wrong));
    INFO(advice.wrong << "\n" << wrong.rendered);
    CHECK_FALSE(wrong.program.has_value());
    REQUIRE_FALSE(wrong.diagnostics.empty());
    CHECK(wrong.diagnostics[0].name == advice.row);
    CHECK(wrong.diagnostics[0].message.find(advice.says) != std::string::npos);
    const lang::LangResult right = compile(op_with(advice.right));
    INFO(advice.right << "\n" << right.rendered);
    CHECK(right.program.has_value());
  }
}

TEST_CASE("a loop is one mistake, whatever stands in it") {
  for (const char* loop : {"for i in 0..N { Y[i] = X[i]; }", "for (i = 0; i < N; i++) { Y[i]++; }",
                           "while (1) { for k in 0..2 { } }"}) {
    const lang::LangResult result = compile(op_with(loop));
    INFO(result.rendered);
    CHECK(result.diagnostics.size() == 1);
  }
}

TEST_CASE("tensors may be called as statements of other languages are") {
  const lang::LangResult result = compile(
      "op f<N=4>(while: f32[N]) -> (return: f32[N]) { let for[i] = while[i]; return[i] = "
      "for[i]; }");
  INFO(result.rendered);
  CHECK(result.program.has_value());
}

TEST_CASE("names that are not defined are answered with one that is") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"Y[i] = mx(X[i], 0);", "did you mean 'max'?"},
      {"Y[i] = f23(X[i]);", "did you mean 'f32'?"},
      {"Y[i] = x[i];", "did you mean 'X'?"},
      {"Y[i] = X[I];", "did you mean 'i'?"},
      {"Y[i] = Z[i];", "tensors are 'A', 'X', 'Y', 'idx', 'len'"},
      {"Y[i] = gelu(X[i]);", "import \"std/activation.prn\" defines it"},
      {"let t[i]: f23 = X[i]; Y[i] = t[i];", "did you mean 'f32'?"},
      {"let t[i]: float32 = X[i]; Y[i] = t[i];", "a type is one of 'f64', 'f32', "},
      {"let t[i]: float32 = X[i]; Y[i] = t[i];", "'bool'"},
  };
  for (const auto& [body, says] : cases) {
    const lang::LangResult result = compile(op_with(body));
    INFO(body << "\n" << result.rendered);
    REQUIRE_FALSE(result.diagnostics.empty());
    CHECK(result.diagnostics[0].name == "UnknownName");
    CHECK(result.diagnostics[0].message.find(says) != std::string::npos);
  }
  CHECK(compile("op f(X: f32[n]) -> (Y: f32[4]) { Y[i] = 0; }")
            .diagnostics[0]
            .message.find("a size is a number or a parameter: f<n=64>(...)") != std::string::npos);
  const std::string rest = "op f<N=4>(X: f32[N]) -> (Y: f32[N]) { Y[i] = relu(X[i]); }";
  for (const char* path : {"std/activatoin.prn", "activation.prn", "std/Activation.prn"}) {
    const lang::LangResult result = compile("import \"" + std::string(path) + "\";\n" + rest);
    INFO(result.rendered);
    REQUIRE_FALSE(result.diagnostics.empty());
    CHECK(result.diagnostics[0].message.find("did you mean 'std/activation.prn'?") !=
          std::string::npos);
  }
  CHECK(compile("import \"std/activation.prn\";\n" + rest).program.has_value());
  CHECK(compile("opp f() -> () {}").diagnostics[0].message.find("did you mean 'op'?") !=
        std::string::npos);
}

TEST_CASE("a parameter that is not there is answered with those that are") {
  lang::CompileInput input;
  input.file_name = "f.prn";
  input.text = "op f<N=4, Rows=2>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i]; }";
  for (const auto& [name, says] :
       {std::pair("n", "did you mean 'N'?"), std::pair("rows", "did you mean 'Rows'?"),
        std::pair("Q", "it has 'N', 'Rows'")}) {
    input.bindings = {{name, "3"}};
    const lang::LangResult result = lang::compile(input);
    INFO(result.rendered);
    REQUIRE(result.diagnostics.size() == 1);
    CHECK(result.diagnostics[0].message.find(says) != std::string::npos);
  }
  lang::ExpressionInput expression;
  expression.text = "Y[i] = X[i]";
  expression.extents = {{"I", "4"}};
  CHECK(lang::compile_expression(expression).rendered.find("did you mean 'i'?") !=
        std::string::npos);
}

TEST_CASE("a shape that a default contradicts names the binding that fits it") {
  lang::CompileInput input;
  input.file_name = "f.prn";
  input.text = "op f<M, N=7>(X: f32[M,N]) -> (Y: f32[M,N]) { Y[i,j] = X[i,j]; }";
  input.shapes = {{"X", {3, 5}}};
  lang::LangResult result = lang::compile(input);
  INFO(result.rendered);
  CHECK_FALSE(result.program.has_value());
  REQUIRE(result.diagnostics.size() == 1);
  CHECK(result.diagnostics[0].message.find("bind it with -D N=5") != std::string::npos);
  input.bindings = {{"N", "5"}};
  CHECK(lang::compile(input).program.has_value());
  // What was bound is not to be bound again.
  input.bindings = {{"N", "6"}};
  result = lang::compile(input);
  REQUIRE(result.diagnostics.size() == 1);
  CHECK(result.diagnostics[0].message.find("-D") == std::string::npos);
}

}  // namespace prunerc::testing
