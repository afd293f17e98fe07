#include "ir/equal.h"
#include "tools/driver/export.h"
#include "tools/driver/platform.h"
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>
#include <immintrin.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace prunerc {
namespace {

constexpr const char* kTwo = R"(
op scale<N=6>(A: f32[N], s: f32) -> (B: f32[N]) { B[i] = A[i] * s; }
op add<M=3, N=6>(A: f32[M,N], b: f32[N]) -> (C: f32[M,N], D: f32[M,N]) {
  C[i,j] = A[i,j] + b[j];
  D[i,j] = A[i,j] - b[j];
}
)";

// Measured limits are kept for the whole run of the tests.
void use_own_cache() {
  const char* const folder = std::getenv("TEST_TMPDIR");
  ::setenv("XDG_CACHE_HOME", folder == nullptr ? "/tmp" : folder, 1);
}

OperatorRequest request(const std::string& op, std::map<std::string, std::string> bindings = {}) {
  OperatorRequest r;
  r.text = kTwo;
  r.op = op;
  r.bindings = std::move(bindings);
  return r;
}

Session open_session(int threads = 1) {
  use_own_cache();
  SessionOptions options;
  options.database = ":memory:";
  options.threads = threads;
  Result<Session> session = Session::open(options);
  REQUIRE(session.ok());
  return std::move(session).value();
}

struct alignas(64) Array {
  float at[64] = {};
};

TEST_CASE("an operator is loaded, scheduled, compiled and called in this process") {
  for (const int threads : {1, 2}) {
    Session session = open_session(threads);
    const Result<Operator> op = load_operator(request("add"));
    REQUIRE(op.ok());
    CHECK(op->name == "add");
    Result<Kernel> kernel = session.kernel(*op);
    REQUIRE(kernel.ok());
    Array a, b, c, d;
    for (int i = 0; i < 18; ++i) a.at[i] = static_cast<float>(i);
    for (int i = 0; i < 6; ++i) b.at[i] = static_cast<float>(100 * i);
    const void* const inputs[] = {a.at, b.at};
    void* const outputs[] = {c.at, d.at};
    REQUIRE(kernel->run(inputs, outputs).ok());
    for (int i = 0; i < 18; ++i) {
      CHECK(c.at[i] == a.at[i] + b.at[i % 6]);
      CHECK(d.at[i] == a.at[i] - b.at[i % 6]);
    }
    CHECK(c.at[18] == 0);
    CHECK(d.at[18] == 0);
  }
}

TEST_CASE("calls that do not fit the kernel are refused before it runs") {
  Session session = open_session();
  const Result<Operator> op = load_operator(request("scale"));
  REQUIRE(op.ok());
  Result<Kernel> kernel = session.kernel(*op);
  REQUIRE(kernel.ok());
  Array a, s, b;
  const auto refused = [&](std::vector<const void*> inputs, std::vector<void*> outputs) {
    const Result<void> ran = kernel->run(inputs, outputs);
    return !ran.ok() && ran.error().id() == Diag::kKernelArguments;
  };
  CHECK(refused({a.at}, {b.at}));
  CHECK(refused({a.at, s.at, s.at}, {b.at}));
  CHECK(refused({a.at, s.at}, {}));
  CHECK(refused({a.at, s.at}, {b.at, b.at}));
  CHECK(refused({a.at, nullptr}, {b.at}));
  const auto byte_behind = [](float* at) {
    return static_cast<void*>(reinterpret_cast<char*>(at) + 1);
  };
  CHECK(refused({byte_behind(a.at), s.at}, {b.at}));
  CHECK(refused({a.at, s.at}, {byte_behind(b.at)}));
  // As a vector of the program would lie.
  CHECK_FALSE(refused({a.at + 1, s.at + 3}, {b.at + 1}));
  // Inputs may be one array, an output is nobody else's: six floats are a part of a line of 64 bytes.
  CHECK(refused({a.at, s.at}, {a.at}));
  CHECK(refused({a.at, b.at}, {b.at}));
  CHECK_FALSE(refused({a.at, a.at}, {b.at}));
  CHECK_FALSE(refused({a.at, s.at}, {b.at}));
}

TEST_CASE(
    "a kernel has a thread for each CPU unless a number is given, and rounds as it was verified") {
  Session session = open_session(/*threads=*/2);
  OperatorRequest halves = request("");
  halves.text = "op f<N=16>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 0.5; }";
  const Operator op = load_operator(halves).value();
  const codegen::Artifact artifact = session.compile(session.choose(op).value()).value();
  for (const int threads : {0, 1, 3}) {
    Kernel kernel = Kernel::load(artifact, threads).value();
    Array a, b;
    a.at[0] = std::numeric_limits<float>::min();
    const void* const inputs[] = {a.at};
    void* const outputs[] = {b.at};
    const unsigned before = _mm_getcsr();
    constexpr unsigned kFlushToZero = 1U << 15;
    _mm_setcsr(before | kFlushToZero);
    const bool ran = kernel.run(inputs, outputs).ok();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    CHECK(ran);
    CHECK((after & kFlushToZero) != 0);
    CHECK(b.at[0] > 0);
  }
}

TEST_CASE("kernels of a session share its threads, also of several callers, and outlive it") {
  const auto num_threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = num_threads();
  std::vector<Kernel> kernels;
  {
    Session session = open_session(/*threads=*/2);
    OperatorRequest twice = request("");
    twice.text = "op f<N=16>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }";
    const Operator op = load_operator(twice).value();
    for (int i = 0; i < 8; ++i) kernels.push_back(session.kernel(op).value());
  }
  CHECK(num_threads() == before + 1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (Kernel& kernel : kernels) {
    callers.emplace_back([&wrong, &kernel] {
      Array a, b;
      const void* const inputs[] = {a.at};
      void* const outputs[] = {b.at};
      for (int i = 0; i < 200; ++i) {
        a.at[15] = static_cast<float>(i);
        if (!kernel.run(inputs, outputs).ok() || b.at[15] != 2 * a.at[15]) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("a kernel with a const input is prepared once and called without it") {
  for (const int threads : {1, 2}) {
    Session session = open_session(threads);
    OperatorRequest weighted = request("");
    weighted.text =
        "op f<M=3, N=6>(A: f32[M,N], const w: f32[N]) -> (B: f32[M,N]) { B[i,j] = A[i,j] * w[j]; }";
    const Result<Operator> op = load_operator(weighted);
    REQUIRE(op.ok());
    Result<Kernel> kernel = session.kernel(*op);
    REQUIRE(kernel.ok());
    Array a, w, b;
    for (int i = 0; i < 18; ++i) a.at[i] = static_cast<float>(i);
    const void* const inputs[] = {a.at};
    void* const outputs[] = {b.at};
    const auto refused = [](const Result<void>& result) {
      return !result.ok() && result.error().id() == Diag::kKernelArguments;
    };
    CHECK(refused(kernel->run(inputs, outputs)));
    for (const float weight : {2.0F, 3.0F}) {
      for (int i = 0; i < 6; ++i) w.at[i] = weight;
      const void* constants[] = {w.at};
      REQUIRE(kernel->prepare(constants).ok());
      // The array may go away.
      for (float& value : w.at) value = -1;
      REQUIRE(kernel->run(inputs, outputs).ok());
      for (int i = 0; i < 18; ++i) CHECK(b.at[i] == weight * a.at[i]);
    }
    const void* const both[] = {a.at, w.at};
    CHECK(refused(kernel->run(both, outputs)));
    CHECK(refused(kernel->prepare(both)));
    CHECK(refused(kernel->prepare({})));
    const void* const null[] = {nullptr};
    CHECK(refused(kernel->prepare(null)));
  }
  Session session = open_session();
  const Result<Operator> op = load_operator(request("scale"));
  REQUIRE(op.ok());
  Result<Kernel> kernel = session.kernel(*op);
  REQUIRE(kernel.ok());
  CHECK_FALSE(kernel->prepare({}).ok());
}

TEST_CASE("without a record the choice is the heuristic, at once, and the model's if asked") {
  Session session = open_session();
  const Result<Operator> op = load_operator(request("add"));
  REQUIRE(op.ok());
  const Result<Choice> heuristic = session.choose(*op);
  REQUIRE(heuristic.ok());
  CHECK(heuristic->origin == Choice::Origin::kHeuristic);
  CHECK(heuristic->best_ns == 0);
  const Result<Choice> model = session.choose(*op, Effort::kO1);
  REQUIRE(model.ok());
  CHECK(model->origin == Choice::Origin::kModel);
}

TEST_CASE("a verified record is chosen, and one that no longer fits is not") {
  Session session = open_session();
  const Result<Operator> op = load_operator(request("add"));
  REQUIRE(op.ok());
  const Result<Choice> heuristic = session.choose(*op);
  REQUIRE(heuristic.ok());
  const Result<int64_t> task = session.database().put_task(session.task(*op));
  REQUIRE(task.ok());
  search::Record record;
  record.fingerprint = ir::fingerprint(heuristic->program).to_string();
  record.trace = schedule::print(heuristic->trace);
  record.measurement.status = MeasureStatus::kOk;
  record.measurement.samples_ns = {5};
  record.measurement.median_ns = 5;
  REQUIRE(session.database().put_records(*task, {&record, 1}).ok());
  // Not verified: not chosen.
  CHECK(session.choose(*op)->origin == Choice::Origin::kHeuristic);
  record.measurement.evidence = "compared";
  REQUIRE(session.database().put_records(*task, {&record, 1}).ok());
  const Result<Choice> chosen = session.choose(*op);
  REQUIRE(chosen.ok());
  CHECK(chosen->origin == Choice::Origin::kRecord);
  CHECK(chosen->best_ns == 5);
  CHECK(chosen->left_aside.empty());
  // A faster one whose trace means nothing here.
  record.fingerprint = std::string(32, '2');
  record.trace = "split(@L999, [2, 3]) -> @L1000, @L1001\n";
  record.measurement.samples_ns = {1};
  record.measurement.median_ns = 1;
  REQUIRE(session.database().put_records(*task, {&record, 1}).ok());
  const std::string why = session.choose(*op)->left_aside;
  CHECK(
      why.starts_with("1 stored record(s) left aside: record 3 gives no program in this build: "));
  // And one whose trace makes another program than the one that was measured.
  record.trace = schedule::print(heuristic->trace);
  REQUIRE(session.database().put_records(*task, {&record, 1}).ok());
  const Result<Choice> next = session.choose(*op);
  REQUIRE(next.ok());
  CHECK(next->origin == Choice::Origin::kRecord);
  CHECK(next->best_ns == 5);
}

TEST_CASE("records of other threads are told of, those within a network are not") {
  Session session = open_session();
  const Operator add = load_operator(request("add")).value();
  search::Record record;
  record.fingerprint = std::string(32, '1');
  record.measurement.status = MeasureStatus::kOk;
  record.measurement.samples_ns = {5};
  record.measurement.median_ns = 5;
  record.measurement.evidence = "compared";
  const auto put = [&](const ir::Target& target) {
    const search::Task task = search::make_task("add", add.program, target);
    const int64_t id = session.database().put_task(task).value();
    REQUIRE(session.database().put_records(id, {&record, 1}).ok());
  };
  ir::Target target = session.target();
  target.network = std::string(32, 'a');
  put(target);
  CHECK(session.other_records(add)->empty());
  target.network.clear();
  ++target.num_threads;
  put(target);
  const std::vector<OtherRecord> others = session.other_records(add).value();
  REQUIRE(others.size() == 1);
  CHECK(others[0].differs_in_threads);
}

TEST_CASE("constants of a network are as far away as all of them make them") {
  Session session = open_session();
  const int64_t large = session.target().l2_bytes / 2 + 1;
  OperatorRequest text;
  text.text = "op scale<N=6>(A: f32[N], const s: f32[N]) -> (B: f32[N]) { B[i] = A[i] * s[i]; }";
  Operator scale = load_operator(text).value();
  Operator add = load_operator(request("add")).value();
  add.net_constants_bytes = large;
  CHECK(session.task(add).target == session.target());
  const search::Task warm = session.task(scale);
  CHECK(warm.target == session.target());
  scale.net_constants_bytes = large - 1;
  CHECK(session.task(scale).key == warm.key);
  scale.net_constants_bytes = large;
  const search::Task cold = session.task(scale);
  CHECK(cold.target.constants_bytes >= large);
  CHECK(cold.target.constants_bytes < 2 * large);
  scale.net_constants_bytes = int64_t{1} << 40;
  CHECK(session.task(scale).target.constants_bytes == int64_t{256} << 20);
  scale.net_constants_bytes = large;
  CHECK_FALSE(cold.key == warm.key);
  CHECK(cold.key.program == warm.key.program);

  // A record of either regime gives a schedule; only one of its own gives its time.
  const auto put = [&](const search::Task& task, double ns) {
    const Choice model = session.choose(scale, Effort::kO1).value();
    search::Record record;
    record.fingerprint = ir::fingerprint(model.program).to_string();
    record.trace = schedule::print(model.trace);
    record.measurement.status = MeasureStatus::kOk;
    record.measurement.samples_ns = {ns};
    record.measurement.median_ns = ns;
    record.measurement.evidence = "compared";
    const Result<int64_t> id = session.database().put_task(task);
    REQUIRE(id.ok());
    REQUIRE(session.database().put_records(*id, {&record, 1}).ok());
  };
  CHECK(session.choose(scale)->origin == Choice::Origin::kHeuristic);
  put(warm, 5);
  CHECK(session.choose(scale)->origin == Choice::Origin::kRecord);
  CHECK(session.choose(scale)->best_ns == 0);
  put(cold, 7);
  CHECK(session.choose(scale)->best_ns == 7);
}

TEST_CASE("operators that cannot be loaded say why") {
  OperatorRequest missing;
  missing.file = "/nonexistent/x.prn";
  CHECK(load_operator(missing).error().id() == Diag::kIoError);
  missing.file = "model.onnx";
  CHECK(load_operator(missing).error().id() == Diag::kOnnxNotOperator);
  CHECK(load_operator(request("")).error().id() == Diag::kOperatorText);
  CHECK(load_operator(request("nosuch")).error().id() == Diag::kOperatorText);
  CHECK(load_operator(request("scale", {{"Q", "3"}})).error().id() == Diag::kOperatorText);
  CHECK(load_operator(request("scale", {{"N", "-3"}})).error().id() == Diag::kOperatorText);
  OperatorRequest shape = request("scale");
  for (const char* text : {"", "x", "4x", "x4", "0", "-1", "4y5", "99999999999999999999"}) {
    shape.shapes["A"] = text;
    CHECK(load_operator(shape).error().id() == Diag::kUsageOption);
  }
  OperatorRequest program;
  program.file = "x.prc";
  program.text = "program f(";
  CHECK(load_operator(program).error().id() == Diag::kOperatorText);
  // A program has its sizes and its name.
  program.text =
      "program f(A: f32[1]) -> (B: f32[1]) {\n  block \"B\" @B0 [] {\n    reads A[0]\n"
      "    writes B[0]\n    B[0] = A[0]\n  }\n}\n";
  program.op = "f";
  CHECK(load_operator(program).ok());
  program.op = "g";
  CHECK(load_operator(program).error().id() == Diag::kUsageOption);
  program.op.clear();
  program.bindings["N"] = "2";
  CHECK(load_operator(program).error().id() == Diag::kUsageOption);
}

TEST_CASE("all operators of a text are loaded, each with the bindings that it knows") {
  const Result<std::vector<Operator>> ops = load_operators(request("", {{"M", "2"}, {"N", "8"}}));
  REQUIRE(ops.ok());
  REQUIRE(ops->size() == 2);
  CHECK((*ops)[0].bindings == "N=8");
  CHECK((*ops)[1].bindings == "M=2,N=8");
  CHECK(load_operators(request("", {{"Q", "2"}})).error().id() == Diag::kUsageOption);
  const Result<std::vector<Operator>> one = load_operators(request("add"));
  REQUIRE(one.ok());
  CHECK(one->size() == 1);
}

TEST_CASE("targets are this machine, a name of the table, or refused") {
  use_own_cache();
  const Result<ir::Target> host = resolve_target("cpu", 1);
  REQUIRE(host.ok());
  CHECK(host->num_threads == 1);
  CHECK(host->platform.fma_gflops > 0);
  CHECK(runs_here(*host));
  const Result<ir::Target> sse4 = resolve_target("cpu:x86-64-v2", 1);
  REQUIRE(sse4.ok());
  CHECK(sse4->vector_bytes == 16);
  CHECK(sse4->l2_bytes == host->l2_bytes);
  CHECK(sse4->platform.fma_gflops > 0);
  CHECK(sse4->platform.fma_gflops < host->platform.fma_gflops);
  CHECK(runs_here(*sse4));
  // "cuda" is the device of this machine, if it has one; described ones are always there.
  const Result<ir::Target> gpu = resolve_target("cuda num_sms=3", 0);
  if (gpu.ok()) CHECK(gpu->num_sms == 3);
  if (!gpu.ok()) CHECK(gpu.error().id() == Diag::kCudaMissing);
  CHECK(resolve_target("cuda:a100 num_sms=3", 0)->num_sms == 3);
  CHECK(resolve_target("cuda:sm_90a fma_gflops=7", 0)->platform.fma_gflops == 7);
  CHECK(resolve_target("cuda:sm_90a fast=7", 0).error().id() == Diag::kTargetField);
  CHECK(resolve_target("z80", 0).error().id() == Diag::kTargetUnknown);
  CHECK(resolve_target("cpu:haswell vector_bytes=many", 0).error().id() == Diag::kTargetField);
  SessionOptions options;
  options.database = ":memory:";
  options.target = "cuda:sm_90a";
  Result<Session> session = Session::open(options);
  REQUIRE(session.ok());
  CHECK_FALSE(session->is_host());
  const Result<Operator> op = load_operator(request("add"));
  CHECK(session->kernel(*op).error().id() == Diag::kTargetNotHost);
  CHECK(session->tune({&*op, 1}, {}).error().id() == Diag::kTargetNotHost);
}

TEST_CASE("an operator becomes files of other programs, in the forms that its target has") {
  Session session = open_session();
  const Result<Operator> op = load_operator(request("scale"));
  REQUIRE(op.ok());
  const Result<Choice> choice = session.choose(*op);
  REQUIRE(choice.ok());
  Result<Exported> exported = Exported::make(session, *op, *choice);
  REQUIRE(exported.ok());
  const Result<std::string> header = exported->file(ExportForm::kHeader);
  REQUIRE(header.ok());
  CHECK(header->find("int op_scale(const float* A, const float* s, float* B);") !=
        std::string::npos);
  CHECK(exported->file(ExportForm::kCubin).error().id() == Diag::kUnsupported);
  CHECK(Exported::make(session, *op, *choice, {.symbol = "a-b"}).error().id() ==
        Diag::kUsageOption);
  CHECK(export_form_of("a.b/lib.so") == ExportForm::kShared);
  CHECK(export_form_of("so") == std::nullopt);
}

TEST_CASE("weights that are too large for a library get a file beside it") {
  constexpr int64_t kMostInside = int64_t{1} << 30;
  std::vector<std::string> outputs = {"a/net.h", "a/libnet.so", "net.a"};
  const std::vector<std::string> asked = outputs;
  CHECK(weights_beside(kMostInside, &outputs).empty());
  CHECK(outputs == asked);
  for (const int64_t bytes :
       {kMostInside + 1, int64_t{1} << 31, int64_t{1} << 32, int64_t{5} << 32}) {
    outputs = asked;
    CHECK(weights_beside(bytes, &outputs) == "libnet.weights");
    REQUIRE(outputs.size() == asked.size() + 1);
    CHECK(outputs.back() == "a/libnet.weights");
  }
  // Where one is asked for, whatever their size.
  outputs = {"net.o", "b/other.weights"};
  CHECK(weights_beside(1, &outputs) == "other.weights");
  CHECK(weights_beside(int64_t{5} << 32, &outputs) == "other.weights");
  CHECK(outputs.size() == 2);
}

}  // namespace
}  // namespace prunerc
