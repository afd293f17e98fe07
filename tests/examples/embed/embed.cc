// A program that brings its own operator, tunes it and calls it.
#include "tools/driver/prunerc.h"

#include <cmath>
#include <cstdio>

namespace {

constexpr int kM = 24;
constexpr int kN = 40;
constexpr int kK = 32;
alignas(64) float a[kM * kK];
alignas(64) float b[kK * kN];
alignas(64) float c[kM * kN];

constexpr const char* kText = R"(
op matmul<M, N, K>(A: f32[M,K], B: f32[K,N]) -> (C: f32[M,N]) {
  C[i,j] = sum[k] A[i,k] * B[k,j];
}
)";

int fail(const char* what, const prunerc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.message().c_str());
  return 1;
}

bool is_right() {
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int k = 0; k < kK; ++k) sum += double{a[i * kK + k]} * double{b[k * kN + j]};
      if (std::fabs(sum - double{c[i * kN + j]}) > 1e-4) return false;
    }
  }
  return true;
}

int call(prunerc::Session& session, const prunerc::Operator& op, const char* when) {
  prunerc::Result<prunerc::Kernel> kernel = session.kernel(op);
  if (!kernel.ok()) return fail("kernel", kernel.error());
  for (float& x : c) x = -1;
  const void* const inputs[] = {a, b};
  void* const outputs[] = {c};
  const prunerc::Result<void> ran = kernel->run(inputs, outputs);
  if (!ran.ok()) return fail("run", ran.error());
  std::printf("%s: %s\n", when, is_right() ? "right" : "WRONG");
  return is_right() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  for (int i = 0; i < kM * kK; ++i) a[i] = static_cast<float>(i % 11) / 11;
  for (int i = 0; i < kK * kN; ++i) b[i] = static_cast<float>(i % 7) / 7;
  prunerc::OperatorRequest request;
  request.text = kText;
  request.bindings = {
      {"M", std::to_string(kM)}, {"N", std::to_string(kN)}, {"K", std::to_string(kK)}};
  const prunerc::Result<prunerc::Operator> op = prunerc::load_operator(request);
  if (!op.ok()) return fail("operator", op.error());
  prunerc::SessionOptions options;
  options.database = ":memory:";
  prunerc::Result<prunerc::Session> session = prunerc::Session::open(options);
  if (!session.ok()) return fail("session", session.error());
  if (const int status = call(*session, *op, "heuristic schedule")) return status;
  prunerc::search::TuneOptions tuning;
  tuning.trials = 4;
  const auto report = session->tune({&*op, 1}, tuning);
  if (!report.ok()) return fail("tune", report.error());
  std::printf("tuned: %.0f ns, %s\n", report->tasks[0].best_ns, report->tasks[0].evidence.c_str());
  if (!report->tasks[0].verified) return 1;
  return call(*session, *op, "tuned schedule");
}
