// A search whose candidates somebody else chooses, over lines on stdin and stdout: the space, checks, measurer, finals
// and database of `prunerc tune`.
//
// usage: space FILE.prn OP TRIALS SEED THREADS DATABASE
//
// Out {"sketches": [[{"values": 36, "tile": true}, ..], ..]}: by sketch and decision, how many values there are. Then
// {"ask": true} wants a line "SKETCH VALUE...", one number for each decision, or "end". What is no legal candidate, or
// was asked for before, is answered by {"refused": why} and another {"ask": true}, and is no trial, as such draws of the
// strategy `random` are none; else by {"id": n}. {"told": n, "ns": x, "status": why} is its answer: x is null where it
// failed. At the end {"report": {..}}.
#include "search/space/gene_table.h"
#include "search/strategy/strategy.h"
#include "tools/driver/prunerc.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace prunerc::bench {
namespace {

using Json = nlohmann::ordered_json;

void say(const Json& line) { std::cout << line.dump() << std::endl; }

/// Asks for one candidate at a time, which answers say everything about.
class Asked : public search::Strategy {
 public:
  explicit Asked(const search::StrategyContext& context) : context_(context) {}

  /// Says what may be chosen.
  void describe(uint64_t seed) {
    Json sketches = Json::array();
    for (const search::Sketch& sketch : context_.space.sketches) {
      tables_.emplace_back();
      Json decisions = Json::array();
      for (const schedule::DecisionSpace& space : sketch.spaces) {
        const search::GeneTable& table = tables_.back().emplace_back(space, seed);
        const bool is_choice = space.primitive == schedule::PrimitiveKind::kSampleCategorical ||
                               space.primitive == schedule::PrimitiveKind::kSampleComputeLocation;
        decisions.push_back({{"values", table.num_drawn()}, {"tile", !is_choice}});
      }
      sketches.push_back(std::move(decisions));
    }
    say({{"sketches", std::move(sketches)}});
  }

  std::vector<search::Candidate> ask(std::size_t n) override {
    std::vector<search::Candidate> out;
    std::string line;
    while (out.size() < n) {
      say({{"ask", true}});
      if (!std::getline(std::cin, line) || line == "end") break;
      ++num_drafted_;
      Result<search::Candidate> made = candidate(line);
      if (!made.ok()) {
        say({{"refused", made.error().message()}});
      } else if (!seen_.insert(made->fingerprint).second) {
        say({{"refused", "asked for before"}});
      } else {
        say({{"id", num_asked_++}});
        out.push_back(*std::move(made));
      }
    }
    return out;
  }

  void tell(std::span<const search::Candidate> candidates,
            std::span<const search::Measurement> measurements) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const search::Measurement& m = measurements[i];
      say({{"told", num_told_++},
           {"ns", m.ok() ? Json(m.median_ns) : Json(nullptr)},
           {"status", std::string(to_string(m.status))}});
    }
  }

  int64_t num_drafted() const override { return num_drafted_; }

 private:
  Result<search::Candidate> candidate(const std::string& line) const {
    std::istringstream words(line);
    std::size_t sketch = 0;
    words >> sketch;
    if (!words || sketch >= tables_.size()) return error(Diag::kUsageOption, "sketch", line);
    std::vector<schedule::Decision> decisions;
    for (const search::GeneTable& table : tables_[sketch]) {
      int32_t value = -1;
      words >> value;
      if (!words || value < 0 || value >= table.num_drawn()) {
        return error(Diag::kUsageOption, "decision", line);
      }
      decisions.push_back(table.decision(value));
    }
    return search::instantiate(context_.task, context_.space, static_cast<int>(sketch), decisions);
  }

  search::StrategyContext context_;
  std::vector<std::vector<search::GeneTable>> tables_;  // by sketch and decision
  std::set<Fingerprint> seen_;
  int64_t num_drafted_ = 0, num_asked_ = 0, num_told_ = 0;
};

Json report_json(const search::TuneReport& report) {
  const search::TaskReport& task = report.tasks[0];
  Json curve = Json::array();
  for (const search::CurvePoint& p : task.curve) curve.push_back({p.trial, p.best_ns, p.seconds});
  return {{"best_ns", task.best_ns},
          {"trials", task.trials},
          {"verified", task.verified},
          {"seconds", report.seconds.total},
          {"curve", std::move(curve)}};
}

int fail(const Error& error) {
  fmt::print(stderr, "space: {}\n", error.message());
  return 1;
}

int run(char** argv) {
  OperatorRequest request;
  request.file = argv[1];
  request.op = argv[2];
  const Result<Operator> op = load_operator(request);
  if (!op.ok()) return fail(op.error());
  SessionOptions where;
  where.threads = std::atoi(argv[5]);
  where.database = argv[6];
  Result<Session> session = Session::open(where);
  if (!session.ok()) return fail(session.error());
  search::TuneOptions options;
  options.trials = std::atoll(argv[3]);
  options.seed = std::strtoull(argv[4], nullptr, 10);
  options.strategy = search::StrategyKind::kRandom;  // needs no network
  options.batch = options.batches_in_flight = 1;     // who chooses knows every answer so far
  options.fresh = true;
  options.make_strategy = [&](const search::StrategyContext& context) {
    auto strategy = std::make_unique<Asked>(context);
    strategy->describe(options.seed);
    return Result<std::unique_ptr<search::Strategy>>(std::move(strategy));
  };
  const Result<search::TuneReport> report = session->tune({&*op, 1}, options);
  if (!report.ok()) return fail(report.error());
  say({{"report", report_json(*report)}});
  return report->tasks[0].best_ns > 0 ? 0 : 1;
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  constexpr int kArguments = 7;
  if (argc != kArguments) {
    fmt::print(stderr, "usage: space FILE.prn OP TRIALS SEED THREADS DATABASE\n");
    return 2;
  }
  return prunerc::bench::run(argv);
}
