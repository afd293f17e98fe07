// Files with nets, and the networks that are shipped.
#include "search/space/task.h"
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <set>

namespace prunerc {
namespace {

std::vector<Operator> load(const OperatorRequest& request) {
  Result<std::vector<Operator>> ops = load_operators(request);
  INFO((ops.ok() ? "" : ops.error().message()));
  REQUIRE(ops.ok());
  return std::move(ops).value();
}

TEST_CASE("networks have the operators and multiply-adds that were published") {
  struct Published {
    const char* file;
    std::size_t operators;
    double convolutions, multiply_adds;
  };
  const auto [file, operators, convolutions, multiply_adds] =
      GENERATE(Published{"resnet50", 27, 53, 4.09e9}, Published{"mobilenet_v2", 32, 52, 0.301e9});
  OperatorRequest request;
  request.file = fmt::format("tools/std/nets/{}.prn", file);
  const std::vector<Operator> ops = load(request);
  CHECK(ops.size() == operators);
  const ir::Target target = *ir::target_from_string("cpu:icelake-server");
  double flops = 0, num_convolutions = 0;
  std::set<std::string> names, programs;
  for (const Operator& op : ops) {
    const search::Task task = search::make_task(op.name, op.program, target);
    flops += op.weight * task.flops;
    names.insert(op.name);
    CHECK(programs.insert(task.key.program).second);
    if (!op.name.starts_with("pool") && op.name != "fc") num_convolutions += op.weight;
    // Weights and biases are the same in every run; activations are not.
    for (const ir::Buffer& buffer : op.program.buffers()) {
      INFO(op.name << " " << buffer.name);
      CHECK(buffer.is_const == (buffer.name == "F" || buffer.name == "b"));
    }
  }
  CHECK(names.size() == operators);
  CHECK(num_convolutions == convolutions);
  // Biases, sums, ReLU and pools add some hundredths.
  CHECK(flops > 2 * multiply_adds);
  CHECK(flops < 2.1 * multiply_adds);
}

TEST_CASE("the lines of a net are operators; the command line binds what they name") {
  OperatorRequest request;
  request.text = R"(op scale<N=8>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }
net n { 3 * scale<N=16> as first; scale; })";
  std::vector<Operator> ops = load(request);
  REQUIRE(ops.size() == 2);
  CHECK(ops[0].name == "first");
  CHECK(ops[0].weight == 3);
  CHECK(ops[0].bindings == "N=16");
  CHECK(ops[1].name == "scale");
  CHECK(ops[1].weight == 1);
  CHECK(ops[1].bindings.empty());
  request.bindings["N"] = "32";
  ops = load(request);
  CHECK(ops[0].bindings == "N=32");
  CHECK(ops[1].bindings.empty());
  request.bindings["M"] = "3";
  CHECK(load_operators(request).error().id() == Diag::kUsageOption);
  request.bindings.clear();
  request.op = "scale";
  CHECK(load(request).size() == 1);
  request.op.clear();
  request.text += "net broken { scale<M=3>; }";
  CHECK(!load_operators(request).ok());
}

TEST_CASE("several files are one list; each operator takes the bindings that it knows") {
  OperatorRequest a, b;
  a.text = "op a<N=8>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }";
  b.text = "op b<M=4>(A: f32[M]) -> (B: f32[M]) { B[i] = A[i] + 1; }";
  a.bindings = b.bindings = {{"N", "16"}, {"M", "32"}};
  const OperatorRequest both[] = {a, b};
  const Result<std::vector<Operator>> ops = load_operators(both);
  REQUIRE(ops.ok());
  REQUIRE(ops->size() == 2);
  CHECK((*ops)[0].bindings == "N=16");
  CHECK((*ops)[1].bindings == "M=32");
  a.bindings["Q"] = "1";
  const OperatorRequest nobody[] = {a, b};
  CHECK(load_operators(nobody).error().id() == Diag::kUsageOption);
  // One file alone is told of what it does not know.
  CHECK(!load_operators(std::span(both, 1)).ok());
}

}  // namespace
}  // namespace prunerc
