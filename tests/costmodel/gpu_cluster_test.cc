// What blocks in clusters cost by the analyzer.
#include "costmodel/latency/program.h"
#include "costmodel/latency/roofline.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace prunerc::costmodel {
namespace {

const ir::Target kH100 = ir::target_from_string("cuda:h100").value();

// A copy by 132 blocks.
ir::Program copied(const std::string& attrs) {
  return testing::parse_or_die(fmt::format(
      R"(program p(X: f32[132, 128]) -> (Y: f32[132, 128]) {{
  for b in 132 @L0 bind(block.x) {}{{ for t in 128 @L1 bind(thread.x) {{
    block "Y" @B0 [i: S(132) = b, j: S(128) = t] {{ Y[i, j] = X[i, j] }} }} }} }})",
      attrs));
}

TEST_CASE("clusters cost a start, whatever they hold") {
  const double alone = estimate_latency(copied(""), kH100).total_ns;
  const double pairs = estimate_latency(copied("{cluster=2} "), kH100).total_ns;
  CHECK(estimate_latency(copied("{cluster=1} "), kH100).total_ns == alone);
  CHECK(pairs - alone > 1000);
  CHECK(pairs - alone < 4000);
  CHECK(estimate_latency(copied("{cluster=4} "), kH100).total_ns == pairs);
}

TEST_CASE("symbols of a program with clusters say what its estimate says") {
  const ir::Program pairs = copied("{cluster=2} ");
  const SymbolProgram program = derive(pairs, kH100);
  std::array<double, 1> ns = {}, fits = {};
  double* const outputs[] = {ns.data(), fits.data()};
  SymbolScratch scratch;
  program.score.evaluate({}, 1, outputs, scratch, hand_coefficients(ir::TargetKind::kCuda));
  CHECK(ns[0] == Approx(estimate_latency(pairs, kH100).total_ns));
}

}  // namespace
}  // namespace prunerc::costmodel
