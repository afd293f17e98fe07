// The standard library, the examples, imports, listings and the parts of the public interface that
// tools use.

#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

/// Compiles every operator of a file with its defaults, verifies the programs and reads back their
/// text.
int compile_all(const std::string& name, const std::string& text) {
  const lang::ListResult list = lang::list_ops(name, text, lang::import_std);
  INFO(list.rendered);
  CHECK(list.ok);
  for (const lang::OpInfo& op : list.ops) {
    INFO(name << " " << op.name);
    const ir::Program program = compile_or_die(text, op.name);
    CHECK(program.name() == op.name);
    CHECK(program.params().size() == op.inputs.size() + op.outputs.size());
    const Result<ir::Program> read_back = ir::parse(ir::print(program));
    REQUIRE_OK(read_back);
    CHECK(ir::structural_equal(*read_back, program));
    CHECK(ir::fingerprint(*read_back) == ir::fingerprint(program));
  }
  return static_cast<int>(list.ops.size());
}

}  // namespace

TEST_CASE("every operator of the standard library compiles with its defaults") {
  int num_ops = 0;
  for (const std::string_view path : lang::std_files()) {
    const Result<std::string> text = lang::import_std(path);
    REQUIRE_OK(text);
    num_ops += compile_all(std::string(path), *text);
  }
  CHECK(num_ops >= 50);
}

TEST_CASE("the built-in library is the folder tools/std") {
  size_t num_files = 0;
  for (const std::string& name : list_test_files("tools/std")) {
    if (name.find(".prn") == std::string::npos) continue;
    ++num_files;
    const Result<std::string> text = lang::import_std("std/" + name);
    REQUIRE_OK(text);
    CHECK(*text == read_test_file("tools/std/" + name));
  }
  CHECK(num_files == lang::std_files().size());
}

TEST_CASE("every example compiles with its defaults") {
  int num_ops = 0;
  for (const std::string& name : list_test_files("tools/examples")) {
    if (name.find(".prn") == std::string::npos) continue;
    num_ops += compile_all(name, read_test_file("tools/examples/" + name));
  }
  CHECK(num_ops >= 5);
}

TEST_CASE("imports are relative to the importing file and read once") {
  std::vector<std::string> asked;
  lang::CompileInput input;
  input.file_name = "lib/ops/main.prn";
  input.text =
      "import \"../fn/a.prn\";\nimport \"b.prn\";\nop f<N=2>(X: f32[N]) -> (Y: f32[N]) { Y[i] = "
      "a(X[i]) + b(X[i]); }";
  input.import = [&](std::string_view path) -> Result<std::string> {
    asked.emplace_back(path);
    if (path == "lib/fn/a.prn") return std::string("const ONE = 1;\nfn a(x) = x + ONE;");
    if (path == "lib/ops/b.prn") return std::string("import \"../fn/a.prn\";\nfn b(x) = a(x) * 2;");
    return error(Diag::kIoError, std::string("open"), std::string(path),
                 std::string("no such file"));
  };
  const lang::LangResult result = lang::compile(input);
  INFO(result.rendered);
  CHECK(result.program.has_value());
  CHECK(asked == std::vector<std::string>{"lib/fn/a.prn", "lib/ops/b.prn"});
}

TEST_CASE("an error in an imported file names that file") {
  lang::CompileInput input;
  input.file_name = "main.prn";
  input.text = "import \"a.prn\";\nop f<N=2>(X: f32[N]) -> (Y: f32[N]) { Y[i] = a(X[i]); }";
  input.import = [](std::string_view) -> Result<std::string> {
    return std::string("fn a(x) = x +;");
  };
  const lang::LangResult result = lang::compile(input);
  REQUIRE_FALSE(result.diagnostics.empty());
  CHECK(result.diagnostics[0].file == "a.prn");
  CHECK(result.diagnostics[0].line == 1);
  CHECK(result.diagnostics[0].column == 14);
  CHECK(result.rendered.find("a.prn:1:14: error: expected an expression, found ';'") == 0);
}

TEST_CASE("an operator of an imported file can be chosen by name") {
  lang::CompileInput input;
  input.file_name = "main.prn";
  input.text = "import \"std/norm.prn\";";
  input.op = "softmax";
  CHECK(lang::compile(input).program.has_value());
}

TEST_CASE("a listing tells parameters, defaults and ports without binding them") {
  const lang::ListResult list =
      lang::list_ops("x.prn",
                     "const C = 3;\nop f<M, N = C*2, E: float = 1e-5, T: type = f16>(X: T[M, N+1], "
                     "s: f32) -> (Y: T[M]) { }");
  REQUIRE(list.ops.size() == 1);
  const lang::OpInfo& op = list.ops[0];
  CHECK(op.line == 2);
  REQUIRE(op.params.size() == 4);
  CHECK(op.params[0].default_text.empty());
  CHECK(op.params[1].default_text == "C*2");
  CHECK(op.params[2].kind == "float");
  CHECK(op.params[3].default_text == "f16");
  REQUIRE(op.inputs.size() == 2);
  CHECK(op.inputs[0].type == "T[M, N+1]");
  CHECK(op.inputs[1].type == "f32");
  CHECK(op.outputs[0].name == "Y");
}

TEST_CASE("a net lists operators with sizes, labels and how often they run") {
  const lang::ListResult list = lang::list_ops("n.prn", R"(import "std/gemm.prn";
net two {
  3 * gemm_nn<M=64, N=-2, K=1> as first;
  scale<T=f16, a=0.5>;   // defined below
}
op scale<N=8, a: float = 2, T: type = f32>(A: T[N]) -> (B: T[N]) { B[i] = A[i] * a; }
net none { }
)",
                                               lang::import_std);
  INFO(list.rendered);
  CHECK(list.ok);
  CHECK(list.ops.size() == 1);
  REQUIRE(list.nets.size() == 2);
  CHECK(list.nets[0].name == "two");
  CHECK(list.nets[1].tasks.empty());
  REQUIRE(list.nets[0].tasks.size() == 2);
  const lang::NetTaskInfo& first = list.nets[0].tasks[0];
  CHECK(first.op == "gemm_nn");
  CHECK(first.label == "first");
  CHECK(first.times == 3);
  CHECK(first.line == 3);
  CHECK(first.bindings == std::map<std::string, std::string>{{"M", "64"}, {"N", "-2"}, {"K", "1"}});
  const lang::NetTaskInfo& second = list.nets[0].tasks[1];
  CHECK(second.label.empty());
  CHECK(second.times == 1);
  CHECK(second.bindings == std::map<std::string, std::string>{{"T", "f16"}, {"a", "0.5"}});
}

TEST_CASE("malformed nets are refused; net is a word for names elsewhere") {
  const std::string op = "op f<N=8>(net: f32[N]) -> (as: f32[N]) { as[i] = net[i]; }\n";
  CHECK(lang::list_ops("n.prn", op + "net n { f; }").ok);
  for (const char* net : {"net n", "net n { f }", "net n { 0 * f; }", "net n { 2 f; }",
                          "net n { f<>; }", "net n { f<N>; }", "net n { f<N=i>; }", "net { f; }",
                          "net n { f as; }", "net n { f; g; }", "net n { f as a; f as a; }",
                          "net n { f; } net n { f; }", "net n { 99999999999999999999 * f; }"}) {
    const lang::ListResult list = lang::list_ops("n.prn", op + net);
    INFO(net);
    CHECK_FALSE(list.ok);
    CHECK(list.rendered.find("n.prn:2:") == 0);
  }
}

TEST_CASE("parameters are bound from the shapes of inputs") {
  lang::CompileInput input;
  input.file_name = "x.prn";
  input.text = "op f<M, N>(X: f32[M,N]) -> (Y: f32[N,M]) { Y[j,i] = X[i,j]; }";
  input.shapes = {{"X", {3, 5}}};
  const lang::LangResult result = lang::compile(input);
  INFO(result.rendered);
  REQUIRE(result.program.has_value());
  CHECK(ir::print(*result.program).find("-> (Y: f32[5, 3])") != std::string::npos);
}

TEST_CASE("every block tells the line of its statement") {
  lang::CompileInput input;
  input.file_name = "x.prn";
  input.text =
      "op f<N=4>(X: f32[N]) -> (Y: f32[N]) {\n  let s = sum[k] X[k];\n  Y[i] = X[i] / (s + sum[k] "
      "X[k]);\n}";
  const lang::LangResult result = lang::compile(input);
  REQUIRE(result.origins.size() == 3);
  CHECK(result.origins[0].block == "s");
  CHECK(result.origins[0].line == 2);
  CHECK(result.origins[1].block == "Y_sum");
  CHECK(result.origins[1].line == 3);
  CHECK(result.origins[2].line == 3);
}

TEST_CASE(
    "the same operator text gives the same program, whatever its layout and names of indices") {
  const std::string one = "op f<N=4>(X: f32[N,N]) -> (Y: f32[N]) { Y[i] = sum[k] X[i,k]; }";
  const std::string two =
      "// rows\nop f<N = 2+2>(X: f32[N,N])\n  -> (Y: f32[N])\n{ Y[row] = sum[column] "
      "X[row,column]; }";
  CHECK(ir::fingerprint(compile_or_die(one)) == ir::fingerprint(compile_or_die(two)));
}

TEST_CASE("statements may stand in any order") {
  const std::string text =
      "op f<N=4>(X: f32[N]) -> (Y: f32[N]) { Y[i] = T[i] * 2; let T[i] = U[i] + 1; let U[i] = "
      "X[i]; }";
  const ir::Program program = compile_or_die(text);
  const std::vector<ir::Tensor> y = interpret_or_die(
      program,
      {ir::tensor_from(ir::DType::kF32, {4}, [](int64_t i) { return static_cast<double>(i); })});
  CHECK(y[0].get(3) == 8);
}

TEST_CASE("an output may be read") {
  const std::string text =
      "op f<N=4>(X: f32[N]) -> (Y: f32[N], Z: f32[N]) { Z[i] = Y[i] + 1; Y[i] = X[i] * 2; }";
  CHECK(compile_or_die(text).params().size() == 3);
}

}  // namespace prunerc::testing
