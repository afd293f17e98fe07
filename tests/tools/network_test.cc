// Nets in this process: what they compute is what the interpreter computes, call by call.
#include "tools/driver/network/network.h"

#include "ir/interp/interpreter.h"
#include "ir/net/weights.h"
#include "ir/support/file.h"
#include "tools/driver/aligned.h"
#include "tools/driver/npy.h"
#include "tools/driver/reference.h"

#include <catch2/catch.hpp>
#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace prunerc {
namespace {

constexpr const char* kText = R"(
op dense<M, N, K>(X: f32[M,K], W: f32[K,N], b: f32[N]) -> (Y: f32[M,N]) {
  let a[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = a[i,j] + b[j];
}
op halves<M, N>(X: f32[M,N]) -> (A: f32[M,P], B: f32[M,P]) where P = N/2, N % 2 == 0 {
  A[i,j] = X[i,j+0];
  B[i,j] = X[i,j+P];
}
op gate<M, N>(A: f32[M,N], B: f32[M,N]) -> (Y: f32[M,N]) { Y[i,j] = max(A[i,j], 0) * B[i,j]; }
net swish<M=5>(x: f32[M,7], const s: f32[M,6]) -> (y: f32[M,7], z: f32[M,6]) {
  const W1: f32[7,12]; const b1: f32[12] = 0.5;
  const W2: f32[6,7] = "down.weight"; const b2: f32[7];
  let h = dense(x, W1, b1);
  let a, b = halves(h);
  let g = gate(a, b);
  let again = gate(g, s);
  z = gate(again, g);
  y = dense(z, W2, b2);
}
)";

LoadedNet load(const std::string& text) {
  OperatorRequest request;
  request.text = text;
  Result<std::optional<LoadedNet>> net = load_net(request);
  INFO((net.ok() ? "" : net.error().message()));
  REQUIRE(net.ok());
  REQUIRE(net->has_value());
  return std::move(**net);
}

ir::Tensor random_tensor(const net::Tensor& tensor, uint64_t seed) {
  ir::Tensor out(tensor.dtype, tensor.shape);
  REQUIRE(fill(out, "rand:uniform(-1,1):seed=" + std::to_string(seed)).ok());
  return out;
}

// All tensors of the net by the interpreter.
std::vector<ir::Tensor> interpreted(const net::Net& net, std::vector<ir::Tensor> known) {
  for (const net::Call& call : net.calls) {
    std::vector<ir::Tensor> args;
    for (const std::size_t arg : call.args) args.push_back(known[arg]);
    Result<std::vector<ir::Tensor>> results = ir::interpret(net.programs[call.program], args);
    REQUIRE(results.ok());
    for (std::size_t i = 0; i < call.results.size(); ++i)
      known[call.results[i]] = std::move((*results)[i]);
  }
  return known;
}

void check_close(const ir::Tensor& want, const void* got) {
  ir::Tensor tensor = want;
  std::memcpy(tensor.data.data(), got, want.data.size());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    INFO("element " << i);
    CHECK(std::fabs(tensor.get(i) - want.get(i)) < 1e-4);
  }
}

Result<Session> open_session() {
  SessionOptions options;
  options.threads = 2;
  options.database = ":memory:";
  return Session::open(options);
}

ir::Target host() { return open_session()->target(); }

// As schedules are chosen without records.
Result<ir::Program> heuristic(const Operator& op) {
  PRUNERC_TRY(Session session, open_session());
  PRUNERC_TRY(const Choice choice, session.choose(op));
  return choice.program;
}

struct Run {
  net::Net net;
  std::vector<ir::Tensor> known;  // inputs and constants; others empty
  std::string weight_bytes;
};

Run prepare_run(const std::string& text, uint64_t seed) {
  Run run;
  run.net = load(text).net;
  run.known.resize(run.net.tensors.size());
  std::vector<net::WeightToWrite> weights;
  for (std::size_t i = 0; i < run.net.tensors.size(); ++i) {
    const net::Tensor& tensor = run.net.tensors[i];
    if (tensor.role != net::Role::kInput && tensor.role != net::Role::kConst) continue;
    run.known[i] = random_tensor(tensor, seed + i);
    if (tensor.value) {
      for (int64_t e = 0; e < run.known[i].num_elements(); ++e) run.known[i].set(e, *tensor.value);
    }
    if (tensor.role != net::Role::kConst || tensor.value) continue;
    const auto* bytes = reinterpret_cast<const char*>(run.known[i].data.data());
    weights.push_back(
        {tensor.weight, tensor.dtype, tensor.shape, {bytes, run.known[i].data.size()}});
  }
  run.weight_bytes = *net::weight_file_bytes(weights);
  return run;
}

void check_run(const std::string& text, net::Reuse reuse, uint64_t seed,
               const Network::Schedules& schedules) {
  const Run run = prepare_run(text, seed);
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/net.safetensors";
  REQUIRE(replace_file(path, run.weight_bytes).ok());
  Result<WeightSource> weights = WeightSource::open(run.net, "net.prn", path);
  REQUIRE(weights.ok());
  Result<Network> network = Network::build(run.net, {host(), 2, reuse}, schedules);
  INFO((network.ok() ? "" : network.error().message()));
  REQUIRE(network.ok());
  std::vector<AlignedArray> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  // One element behind the alignment of workspaces: aligned as its elements are, and not better.
  const auto array_of = [&](std::size_t tensor) -> void* {
    const int64_t element_bytes = ir::byte_size(run.net.tensors[tensor].dtype);
    const int64_t bytes = net::size_bytes(run.net.tensors[tensor]);
    memory.push_back(AlignedArray::make(bytes + element_bytes).value());
    return static_cast<char*>(memory.back().data()) + element_bytes;
  };
  for (const std::size_t i : run.net.inputs) {
    if (run.net.tensors[i].is_const) {
      weights->set(run.net.tensors[i].name, run.known[i]);
      continue;
    }
    void* const input = array_of(i);
    std::memcpy(input, run.known[i].data.data(), run.known[i].data.size());
    inputs.push_back(input);
  }
  for (const std::size_t i : run.net.outputs) outputs.push_back(array_of(i));
  CHECK(network->run(inputs, outputs).error().id() == Diag::kKernelArguments);  // not prepared
  REQUIRE(network->prepare(*weights).ok());
  CHECK(network->run(outputs, outputs).error().id() == Diag::kKernelArguments);
  const std::vector<ir::Tensor> want = interpreted(run.net, run.known);
  for (int again = 0; again < 2; ++again) {
    REQUIRE(network->run(inputs, outputs).ok());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      check_close(want[run.net.outputs[i]], outputs[i]);
  }
  std::vector<int64_t> times_ns;
  REQUIRE(network->run_timed(inputs, outputs, &times_ns).ok());
  CHECK(times_ns.size() == net::run_calls(run.net).size());
  if (reuse != net::Reuse::kKept) return;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (run.net.tensors[i].role == net::Role::kIntermediate && !run.net.tensors[i].is_const)
      check_close(want[i], network->intermediate(i).data());
  }
}

TEST_CASE("a net computes what the interpreter computes call by call") {
  check_run(kText, net::Reuse::kShared, 1, heuristic);
  check_run(kText, net::Reuse::kKept, 2, heuristic);
  check_run(kText, net::Reuse::kKept, 3, [](const Operator& op) {
    return Result<ir::Program>(reference_schedule(op.program, host()));
  });
}

// Chains of const calls, a result of two readers, a call without arguments, an output that is const,
// a call that gives an output and a let, const inputs.
constexpr const char* kConstCalls = R"(
op steps<N>() -> (Y: f32[N]) { Y[i] = f32(i) * 0.25; }
op turned<M, N>(X: f32[M,N]) -> (Y: f32[N,M]) { Y[i,j] = X[j,i]; }
op scaled<M, N>(X: f32[M,N], s: f32[N]) -> (Y: f32[M,N]) { Y[i,j] = X[i,j] * s[j]; }
op both<N>(s: f32[N], t: f32[N]) -> (A: f32[N], B: f32[N]) { A[i] = s[i] + t[i]; B[i] = s[i] - t[i]; }
op dense<M, N, K>(X: f32[M,K], W: f32[K,N]) -> (Y: f32[M,N]) { Y[i,j] = sum[k] X[i,k] * W[k,j]; }
net made(x: f32[3,5], const u: f32[4]) -> (y: f32[3,4], copy: f32[4], W4: f32[3,4]) {
  const W: f32[4,5]; const s: f32[4];
  let n = steps<N=4>();
  let a, b = both(s, n);
  let rest, copy = both(a, u);
  let V = turned(W);
  let V2 = scaled(V, a);
  let V3 = scaled(V2, b);
  let h = dense(x, V2) as first;
  let g = dense(x, V3) as second;
  let g2 = scaled(g, rest);
  let same = turned(h);
  let back = turned(same);
  let total = both_rows(back, g2);
  y = scaled(total, a);
  let Z = ones<M=3, N=4>();
  W4 = scaled(Z, u);
}
op both_rows<M, N>(X: f32[M,N], Y: f32[M,N]) -> (Z: f32[M,N]) { Z[i,j] = X[i,j] + Y[i,j]; }
op ones<M, N>() -> (Y: f32[M,N]) { Y[i,j] = 1; }
)";

TEST_CASE("calls of const arguments are made once, and give what they give in a run") {
  const net::Net net = load(kConstCalls).net;
  CHECK(net.calls.size() == 15);
  CHECK(net::run_calls(net).size() == 9);
  std::vector<std::size_t> of_call;
  for (const Operator& op : operators_of(net, &of_call)) CHECK(op.name != "V2");
  CHECK(std::count(of_call.begin(), of_call.end(), kNoTask) == 6);
  check_run(kConstCalls, net::Reuse::kShared, 21, heuristic);
  check_run(kConstCalls, net::Reuse::kKept, 22, [](const Operator& op) {
    return Result<ir::Program>(reference_schedule(op.program, host()));
  });
}

TEST_CASE("calls of constants round as those of a run do, whatever the caller has set") {
  const Run run = prepare_run(R"(
op half<N>(W: f32[N]) -> (V: f32[N]) { V[i] = W[i] * 0.5; }
op scaled<N>(X: f32[N], s: f32[N], V: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] * s[i] + V[i]; }
net tiny(x: f32[4]) -> (y: f32[4]) {
  const W: f32[4] = 1.2e-38; const s: f32[4];
  let V = half(W);
  y = scaled(x, s, V);
})",
                              5);
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/tiny.safetensors";
  REQUIRE(replace_file(path, run.weight_bytes).ok());
  const WeightSource weights = WeightSource::open(run.net, "net.prn", path).value();
  Network network = Network::build(run.net, {host(), 1}, heuristic).value();
  const unsigned before = _mm_getcsr();
  constexpr unsigned kFlushToZero = 1U << 15;
  _mm_setcsr(before | kFlushToZero);
  const bool prepared = network.prepare(weights).ok();
  _mm_setcsr(before);
  REQUIRE(prepared);
  const AlignedArray x = AlignedArray::make(16).value(), y = AlignedArray::make(16).value();
  std::memset(x.data(), 0, 16);
  const void* const inputs[] = {x.data()};
  void* const outputs[] = {y.data()};
  REQUIRE(network.run(inputs, outputs).ok());
  CHECK(static_cast<const float*>(y.data())[3] == 0.6e-38F);
}

TEST_CASE("what follows from constants is made anew with other weights") {
  const net::Net net = load(R"(
op half<N>(W: f32[N]) -> (V: f32[N]) { V[i] = W[i] * 0.5; }
op add<N>(X: f32[N], V: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] + V[i]; }
net tiny(x: f32[4]) -> (y: f32[4]) {
  const W: f32[4];
  let V = half(W);
  y = add(x, V);
})")
                           .net;
  Network network = Network::build(net, {host(), 1}, heuristic).value();
  const AlignedArray x = AlignedArray::make(16).value(), y = AlignedArray::make(16).value();
  std::memset(x.data(), 0, 16);
  const void* const inputs[] = {x.data()};
  void* const outputs[] = {y.data()};
  for (const auto& [weights, want] : {std::pair("ones", 0.5F), {"zeros", 0.0F}, {"ones", 0.5F}}) {
    REQUIRE(network.prepare(WeightSource::open(net, "", weights).value()).ok());
    REQUIRE(network.run(inputs, outputs).ok());
    CHECK(static_cast<const float*>(y.data())[3] == want);
  }
}

TEST_CASE("a net that no memory holds says so") {
  const net::Net net = load(
                           "op relu<N>(X: f32[N]) -> (Y: f32[N]) { Y[i] = max(X[i], 0); }\n"
                           "net huge(x: f32[200000000000]) -> (y: f32[200000000000]) { let a = "
                           "relu(x); y = relu(a); }")
                           .net;
  const Result<Network> network = Network::build(net, {host(), 2}, heuristic);
  REQUIRE(!network.ok());
  CHECK(network.error().id() == Diag::kKernelArguments);
}

TEST_CASE("a net is of CPUs, whether this machine has the GPU or not") {
  for (const char* name : {"cuda:sm_80", "cuda-host:sm_80"}) {
    const Result<Network> network =
        Network::build(load(kText).net, {*ir::target_from_string(name), 1}, heuristic);
    REQUIRE(!network.ok());
    CHECK(network.error().id() == Diag::kNetTarget);
  }
}

TEST_CASE("equal calls are one task, whichever operator they name") {
  const std::string ops = std::string(kText).substr(0, std::string(kText).find("net swish"));
  const net::Net net = load(ops + R"(
op dense_too<A, B, C>(P: f32[A,C], Q: f32[C,B], r: f32[B]) -> (S: f32[A,B]) {
  let t[i,j] = sum[k] P[i,k] * Q[k,j];
  S[i,j] = t[i,j] + r[j];
}
net two(x: f32[8,8]) -> (y: f32[8,8]) {
  const W: f32[8,8]; const V: f32[8,8]; const b: f32[8];
  let h = dense(x, W, b) as first;
  let g = dense_too(h, V, b) as second;
  let f = gate(g, h);
  y = dense(f, h, b);
})")
                           .net;
  std::vector<std::size_t> of_call;
  const std::vector<Operator> ops_of_net = operators_of(net, &of_call);
  // The last product has no constant matrix.
  CHECK(of_call == std::vector<std::size_t>{0, 0, 1, 2});
  REQUIRE(ops_of_net.size() == 3);
  CHECK(ops_of_net[0].name == "first");
  CHECK(ops_of_net[0].weight == 2);
  CHECK(ops_of_net[2].weight == 1);
  // Two matrices and a vector, each once.
  for (const Operator& op : ops_of_net) CHECK(op.net_constants_bytes == (64 + 64 + 8) * 4);
}

TEST_CASE("constants come from the file that the net names, a given one, or a fill") {
  const Run run = prepare_run(kText, 5);
  const std::string folder = std::getenv("TEST_TMPDIR");
  REQUIRE(replace_file(folder + "/w.safetensors", run.weight_bytes).ok());
  net::Net net = run.net;
  const auto tensor = [&](std::string_view name) {
    for (const net::Tensor& item : net.tensors) {
      if (item.name == name) return item;
    }
    FAIL("no tensor " << name);
    return net::Tensor();
  };
  const auto open = [&](const std::string& given) {
    return WeightSource::open(net, folder + "/net.prn", given);
  };
  CHECK(open("")->get(tensor("W1")).error().id() == Diag::kWeightsNotGiven);
  CHECK(open("")->get(tensor("b1"))->get(3) == 0.5);
  net.weights = "w.safetensors";
  const Result<WeightSource> named = open("");
  REQUIRE(named.ok());
  CHECK(named->get(tensor("W2")).ok());
  net::Tensor other = tensor("W2");
  other.shape = {7, 6};
  CHECK(named->get(other).error().id() == Diag::kUsageShape);
  other.shape = {6, 7};
  other.dtype = ir::DType::kF16;
  CHECK(named->get(other).error().id() == Diag::kUsageShape);
  other = tensor("W2");
  other.weight = "up.weight";
  CHECK(named->get(other).error().id() == Diag::kWeightMissing);
  const Result<WeightSource> filled = open("rand:normal(0,0.05):seed=4");
  REQUIRE(filled.ok());
  CHECK(filled->get(tensor("W1")).value() == filled->get(tensor("W1")).value());
  CHECK(filled->get(tensor("W1"))->get(0) != filled->get(tensor("W2"))->get(0));
  // Constants that are one weight hold the same.
  other = tensor("W2");
  other.name = "tied";
  CHECK(filled->get(other).value() == filled->get(tensor("W2")).value());
  CHECK(open("rand:normal(0").error().id() == Diag::kFillUnknown);
  CHECK(open(folder + "/none").error().id() == Diag::kIoError);
  for (const char* outside : {"../w.safetensors", "/w.safetensors"}) {
    net.weights = outside;
    CHECK(open("").error().id() == Diag::kImportOutside);
  }
}

}  // namespace
}  // namespace prunerc
