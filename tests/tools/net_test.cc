// Files with nets, and the networks that are shipped.
#include "search/space/task.h"
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>

#include <set>

namespace prunerc {
namespace {

std::vector<Operator> load(const OperatorRequest& request) {
  Result<std::vector<Operator>> ops = load_operators(request);
  INFO((ops.ok() ? "" : ops.error().message()));
  REQUIRE(ops.ok());
  return std::move(ops).value();
}

TEST_CASE("ResNet-50 has 27 different operators, 53 convolutions and 4.1 billion multiply-adds") {
  OperatorRequest request;
  request.file = "tools/std/nets/resnet50.prn";
  const std::vector<Operator> ops = load(request);
  CHECK(ops.size() == 27);
  const ir::Target target = *ir::target_from_string("cpu:icelake-server");
  double flops = 0, num_convolutions = 0;
  std::set<std::string> names, programs;
  for (const Operator& op : ops) {
    const search::Task task = search::make_task(op.name, op.program, target);
    flops += op.weight * task.flops;
    names.insert(op.name);
    CHECK(programs.insert(task.key.program).second);
    if (op.name.starts_with("conv")) num_convolutions += op.weight;
    // Weights and biases are the same in every run; activations are not.
    for (const ir::Buffer& buffer : op.program.buffers()) {
      INFO(op.name << " " << buffer.name);
      CHECK(buffer.is_const == (buffer.name == "F" || buffer.name == "b"));
    }
  }
  CHECK(names.size() == 27);
  CHECK(num_convolutions == 53);
  // Biases, sums, ReLU and pools add less than a hundredth.
  CHECK(flops > 2 * 4.08e9);
  CHECK(flops < 2 * 4.14e9);
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
