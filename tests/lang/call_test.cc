// Calls of operators and nets with ports.
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(
const HALF = 0.5;
fn soft(x) = x * HALF;
op dense<M, N, K>(X: f32[M,K], W: f32[K,N], b: f32[N]) -> (Y: f32[M,N]) {
  let a[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = a[i,j] + b[j];
}
op scale<M, N, S: float = 1.0>(X: f32[M,N]) -> (Y: f32[M,N]) { Y[i,j] = soft(X[i,j]) * S; }
op split<M, N, P=N/2>(X: f32[M,N]) -> (A: f32[M,P], B: f32[M,P]) where 2*P == N {
  A[i,j] = X[i,j+0];
  B[i,j] = X[i,j+P];
}
)";

constexpr const char* kNet = R"(
net mlp<M=4>(x: f32[M,8]) -> (y: f32[M,8], left: f32[M,4]) weights "mlp.safetensors" {
  const W1: f32[8,8] = "layer.1/weight";
  const b1: f32[8] = 0.25;
  const W2: f32[8,8]; const b2: f32[8];
  let left, right = split(h);
  let g = scale<S=M*0.5>(h) as act;
  let h = dense(x, W1, b1);
  let z = dense(g, W2, b2);
  y = dense(z, W2, b2) as last;
}
)";

lang::NetResult compile_net(const std::string& text, const std::string& name = "") {
  lang::CompileInput input;
  input.file_name = "net.prn";
  input.text = text;
  input.op = name;
  return lang::compile_net(input);
}

std::vector<std::string> names_of(const lang::NetResult& result) {
  std::vector<std::string> names;
  for (const lang::Diagnostic& item : result.diagnostics) names.push_back(item.name);
  return names;
}

const net::Tensor& tensor(const net::Net& net, std::string_view name) {
  for (const net::Tensor& item : net.tensors) {
    if (item.name == name) return item;
  }
  FAIL("no tensor " << name);
  return net.tensors[0];
}

}  // namespace

TEST_CASE("an inlined operator computes what its statements written in place compute") {
  const std::string called = std::string(kOps) +
                             "op f<M=3, N=5, K=7>(X: f32[M,K], W: f32[K,N], b: f32[N]) -> (Y: "
                             "f32[M,N]) { let h = dense(X, W, b); Y = scale<S=3>(h); }";
  const std::string written =
      "op f<M=3, N=5, K=7>(X: f32[M,K], W: f32[K,N], b: f32[N]) -> (Y: f32[M,N]) { let h_a[i,j] = "
      "sum[k] X[i,k] * W[k,j]; let h[i,j] = h_a[i,j] + b[j]; Y[i,j] = h[i,j] * 0.5 * 3; }";
  CHECK(ir::print(compile_or_die(called, "f")) == ir::print(compile_or_die(written, "f")));
}

TEST_CASE("a net has its tensors, its calls in order, and one program for equal calls") {
  const lang::NetResult result = compile_net(std::string(kOps) + kNet);
  INFO(result.rendered);
  REQUIRE(result.net.has_value());
  const net::Net& net = *result.net;
  CHECK(net.name == "mlp");
  CHECK(net.weights == "mlp.safetensors");
  CHECK(net.inputs.size() == 1);
  CHECK(net.outputs.size() == 2);
  CHECK(tensor(net, "W1").weight == "layer.1/weight");
  CHECK(tensor(net, "W2").weight == "W2");
  CHECK(tensor(net, "b1").value == 0.25);
  CHECK(tensor(net, "W1").is_const);
  CHECK_FALSE(tensor(net, "x").is_const);
  CHECK(tensor(net, "g").shape == std::vector<int64_t>{4, 8});
  REQUIRE(net.calls.size() == 5);
  // dense three times: the arguments that are const are the same everywhere.
  CHECK(net.programs.size() == 3);
  std::vector<bool> is_known(net.tensors.size());
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    const net::Role role = net.tensors[i].role;
    is_known[i] = role == net::Role::kInput || role == net::Role::kConst;
  }
  for (const net::Call& call : net.calls) {
    for (const std::size_t arg : call.args) CHECK(is_known[arg]);
    for (const std::size_t out : call.results) is_known[out] = true;
  }
  // A let that nobody reads is told.
  CHECK(names_of(result) == std::vector<std::string>{"UnusedLet"});
}

TEST_CASE("the text of a net compiles to the same net") {
  const lang::NetResult first = compile_net(std::string(kOps) + kNet);
  REQUIRE(first.net.has_value());
  const std::string text = net::to_text(*first.net);
  INFO(text);
  const lang::NetResult second = compile_net(text);
  INFO(second.rendered);
  REQUIRE(second.net.has_value());
  CHECK(net::to_text(*second.net) == text);
  REQUIRE(second.net->programs.size() == first.net->programs.size());
  for (std::size_t i = 0; i < first.net->programs.size(); ++i)
    CHECK(ir::print(first.net->programs[i]) == ir::print(second.net->programs[i]));
}

TEST_CASE("whether a tensor is const is known in the net") {
  const std::string ops =
      "op add<N>(const A: f32[N], B: f32[N]) -> (C: f32[N]) { C[i] = A[i] + "
      "B[i]; }\n";
  const lang::NetResult result =
      compile_net(ops +
                  "net n(x: f32[4], const s: f32[4]) -> (y: f32[4]) { const W: f32[4]; let a "
                  "= add(x, W); let b = add(W, a); y = add(s, b); }");
  INFO(result.rendered);
  REQUIRE(result.net.has_value());
  const auto consts = [&](std::size_t call) {
    std::string text;
    const ir::Program& program = result.net->programs[result.net->calls[call].program];
    for (const ir::BufferId id : program.params()) text += program.buffer(id).is_const ? 'c' : '-';
    return text;
  };
  CHECK(consts(0) == "-c-");
  CHECK(consts(1) == "c--");
  CHECK(consts(2) == "c--");
}

TEST_CASE("what const arguments give is const, unless it is an output") {
  const lang::NetResult result = compile_net(
      "op add<N>(A: f32[N], B: f32[N]) -> (C: f32[N]) { C[i] = A[i] + B[i]; }\n"
      "op two<N>(A: f32[N]) -> (B: f32[N], C: f32[N]) { B[i] = A[i] * 2; C[i] = A[i]; }\n"
      "op ones<N>() -> (A: f32[N]) { A[i] = 1; }\n"
      "net n(x: f32[4], const s: f32[4]) -> (y: f32[4], z: f32[4]) {\n"
      "  const W: f32[4]; let d = add(x, c); let c = add(a, s); let a = add(W, b);\n"
      "  let b = ones<N=4>(); let e, z = two(c); let f = add(e, d); y = add(f, z); }");
  INFO(result.rendered);
  REQUIRE(result.net.has_value());
  const net::Net& net = *result.net;
  std::string names;
  for (const net::Tensor& item : net.tensors) names += item.is_const ? item.name : "";
  CHECK(names == "sWcab");
  CHECK(net::run_calls(net).size() == 4);
  for (const net::Call& call : net.calls) {
    // Const calls have no const inputs; others those that are const here.
    const ir::Program& program = net.programs[call.program];
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      CHECK(program.buffer(program.params()[i]).is_const ==
            (net.tensors[call.args[i]].is_const && !net::is_const(net, call)));
    }
  }
}

TEST_CASE("nets that say too little, too much or what cannot be are refused") {
  const auto refused = [&](const std::string& from, const std::string& to) {
    const lang::NetResult result = compile_net(std::string(kOps) + replaced(kNet, from, to));
    INFO(to << "\n" << result.rendered);
    CHECK_FALSE(result.net.has_value());
    CHECK_FALSE(result.rendered.empty());
    return result.diagnostics.empty() ? std::string() : names_of(result)[0];
  };
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g = scael<S=2>(h)") == "UnknownOperator");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g = scale<S=2>(gg)") == "UnknownName");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g = scale<R=2>(h)") == "UnknownParameter");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g = scale<S=f16>(h)") == "BadParameterValue");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g = scale<S=1, S=2>(h)") == "Redefined");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "let g[i,j] = h[i,j]") == "Expected");
  CHECK(refused("let g = scale<S=M*0.5>(h)", "g = scale(h)") == "NotAnOutput");
  CHECK(refused("dense(g, W2, b2)", "dense(z, W2, b2)") == "DependencyCycle");
  CHECK(refused("dense(g, W2, b2)", "dense(g, b2, b2)") == "ShapeMismatch");
  CHECK(refused("dense(g, W2, b2)", "dense(g, W2)") == "WrongArgCount");
  CHECK(refused("W2: f32[8,8]", "W2: f32[9,8]") == "ShapeMismatch");
  CHECK(refused("W2: f32[8,8]", "W2: f16[8,8]") == "CallType");
  CHECK(refused("W2: f32[8,8]", "W2: f32[0,8]") == "ExtentTooSmall");
  CHECK(refused("const W2: f32[8,8]", "const x: f32[8,8]") == "Redefined");
  CHECK(refused("y = dense(z, W2, b2) as last;", "") == "NeverAssigned");
  CHECK(refused("y = dense(z, W2, b2) as last;", "y = scale(x); y = scale(z);") == "AssignedTwice");
  CHECK(refused("y = dense(z, W2, b2) as last;", "x = scale(x);") == "AssignsInput");
  CHECK(refused("as last", "as act") == "Redefined");
  CHECK(refused("as last;", "as last") == "Expected");
  CHECK(refused("left: f32[M,4]", "left: f32[M,5]") == "CallResult");
  CHECK(refused("weights \"mlp.safetensors\"", "weights mlp") == "Expected");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: f32[8] = M > 2;") == "Expected");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: f32[8] = 1/2;") == "InexactQuotient");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: f32[8] = 1e300;") == "ConstantDoesNotFit");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: i8[8] = 300;") == "ConstantDoesNotFit");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: i64[8] = 9007199254740993;") ==
        "ConstantDoesNotFit");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: f32[8] = true;") == "NoImplicitCast");
  CHECK(refused("const b1: f32[8] = 0.25;", "const b1: bool[8] = 1;") == "NoImplicitCast");
}

TEST_CASE("numbers of a net's const tensors are printed as they are read") {
  const std::string text =
      "op f<N>(x: f32[N], i: i64[N], b: bool[N]) -> (y: f32[N]) { y[k] = if b[k] then x[k] else "
      "f32(i[k]); }\n\n"
      "net n(x: f32[4]) -> (y: f32[4]) {\n"
      "  const i: i64[4] = 9007199254740992;\n  const b: bool[4] = true;\n  y = f(x, i, b);\n}\n";
  const lang::NetResult result = compile_net(text);
  INFO(result.rendered);
  REQUIRE(result.net.has_value());
  CHECK(net::to_text(*result.net) == text);
}

TEST_CASE("each line of a net that is wrong is told, and nothing that follows from it") {
  const std::string two =
      replaced(replaced(kNet, "as act;", "as act"), "dense(g, W2, b2)", "dense(g, W2");
  CHECK(names_of(compile_net(kOps + two)) == std::vector<std::string>{"Expected", "Expected"});
  CHECK(names_of(compile_net(kOps + replaced(kNet, "x: f32[M,8]", "x f32[M,8]"))) ==
        std::vector<std::string>{"Expected"});
  const lang::NetResult listed = compile_net(
      "op f<N>(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; }\n"
      "net n { 0 * f<N=4>; 3 f<N=4>; f<N=4> }");
  CHECK(names_of(listed) == std::vector<std::string>{"Expected", "Expected", "Expected"});
  CHECK(listed.diagnostics[1].message == "expected '*', found 'f'");
}

TEST_CASE("an operator that is called like a reduction can be called") {
  const std::string op = "op argmax<N>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i]; }\n";
  CHECK(compile_net(op + "net n(x: f32[4]) -> (y: f32[4]) { y = argmax(x); }").net.has_value());
  compile_or_die(op + "op f(X: f32[4]) -> (Y: f32[4]) { Y = argmax<N=4>(X); }", "f");
}

TEST_CASE("a net is chosen by its name, or alone in its file") {
  const std::string two = std::string(kOps) + kNet + replaced(kNet, "net mlp", "net other");
  CHECK(names_of(compile_net(two)) == std::vector<std::string>{"ChooseNet"});
  CHECK(compile_net(two, "other").net.has_value());
  CHECK(names_of(compile_net(two, "third")) == std::vector<std::string>{"NoNet"});
  CHECK(names_of(compile_net(kOps)) == std::vector<std::string>{"NoNet"});
}

}  // namespace prunerc::testing
