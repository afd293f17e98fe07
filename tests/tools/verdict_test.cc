// What becomes of a check whose kernel was not given the time or the machine.
#include "tools/prunerc/verdict.h"

#include "ir/parser.h"
#include "runtime/device.h"
#include "tests/support/check.h"
#include "tools/driver/backend.h"

#include <catch2/catch.hpp>

#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::cli {
namespace {

// Ends every run as it was told to.
class FailingDevice : public runtime::Device {
 public:
  explicit FailingDevice(MeasureStatus status) : status_(status) {}
  runtime::JobOutcome run(const runtime::Job&) override {
    runtime::JobOutcome out;
    out.measurement.status = status_;
    out.measurement.detail = "no answer within 10000 ms while running";
    return out;
  }
  std::vector<runtime::Measurement> compare(std::span<const runtime::Job>,
                                            const runtime::TimingOptions&) override {
    return {};
  }

 private:
  MeasureStatus status_;
};

TEST_CASE("a kernel whose numbers could not be compared is not called right") {
  const ir::Program spec = testing::parse_or_die(
      "program p(X: f32[4]) -> (Y: f32[4]) {\n"
      "  for i in 4 { block \"Y\" [v: S(4) = i] { Y[v] = X[v] + 1f32 } }\n}");
  for (const auto& [status, kind] :
       {std::pair(MeasureStatus::kTimeout, Verdict::Kind::kNotChecked),
        std::pair(MeasureStatus::kDeviceLost, Verdict::Kind::kNotChecked),
        std::pair(MeasureStatus::kCrash, Verdict::Kind::kWrong)}) {
    FailingDevice device(status);
    Verdict verdict;
    const bool has_values = take_values(compare_values(spec, {}, device, 1), &verdict);
    INFO(verdict.values);
    CHECK_FALSE(has_values);
    CHECK(verdict.kind == kind);
  }
}

TEST_CASE("what finite fields decide alone stays as they decided it") {
  Verdict verdict;
  CHECK_FALSE(take_values(error(Diag::kUnsupported, std::string("a large sum")), &verdict));
  CHECK(verdict.kind == Verdict::Kind::kRight);
  CHECK(verdict.values.starts_with("not compared: "));
}

TEST_CASE("a late kernel gets three times its limit, up to an hour more") {
  const ir::Target cpu;
  CHECK(patient_limit_ns({}, cpu) == 3 * own_run_limit_ns(cpu));
  CHECK(patient_limit_ns({.run_limit_ns = 1'000'000}, cpu) == 3'000'000);
  const int64_t two_hours_ns = 7'200'000'000'000;
  CHECK(patient_limit_ns({.run_limit_ns = two_hours_ns}, cpu) == two_hours_ns / 2 * 3);
  const int64_t longest_ns = std::numeric_limits<int64_t>::max() / 4;
  CHECK(patient_limit_ns({.run_limit_ns = longest_ns}, cpu) == longest_ns + two_hours_ns / 2);
}

}  // namespace
}  // namespace prunerc::cli
