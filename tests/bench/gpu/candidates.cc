// Candidates of operators as libraries, for a GPU that is elsewhere and for minutes only: what costs time, drafting and
// compiling, happens here; candidates.py calls them there, and of their times pools are made here.
//   candidates draft FOLDER --like POOL --op NAME=FILE,OP,BINDINGS... [--per-sketch 3] [--random 12]
//   candidates pools FOLDER TIMES.json
#include "costmodel/latency/coefficients.h"
#include "ir/support/file.h"
#include "ir/support/parallel.h"
#include "search/record/pool.h"
#include "search/space/draft_space.h"
#include "search/space/sampler.h"
#include "search/strategy/drafter.h"
#include "search/tune/instant.h"
#include "tools/driver/export.h"
#include "tools/driver/prunerc.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace prunerc::bench {
namespace {

constexpr uint64_t kSeed = 0;
constexpr int64_t kDrafted = 8192;
constexpr std::size_t kMade = 192;  // of a sketch whose candidates are made one by one
constexpr int kSamples = 15;        // candidates.py: RUNS

struct Options {
  std::string folder, times;
  std::string like;  // a pool whose platform is the device
  std::vector<std::string> operators;
  std::size_t per_sketch = 3, random = 12;
};

// What a sketch gives: those that the analyzer likes best, and some of the uniform draws.
struct Drawn {
  std::vector<search::Candidate> best, random;
};

void draft_sketch(const search::Task& task, const search::SearchSpace& space,
                  search::DraftSketch& sketch, std::size_t best, std::size_t random, Drawn* out) {
  search::Drafter drafter(sketch, 64, costmodel::hand_coefficients(task.target.kind), kSeed);
  drafter.draw(kDrafted);
  drafter.breed(kDrafted);
  const auto add = [&](std::span<const search::Drafted> from, std::size_t most,
                       std::vector<search::Candidate>* to) {
    for (const search::Drafted& drafted : from) {
      if (most == 0) return;
      std::vector<schedule::Decision> decisions;
      for (std::size_t d = 0; d < drafted.genes.size(); ++d) {
        decisions.push_back(sketch.tables[d].decision(drafted.genes[d]));
      }
      Result<search::Candidate> made = search::instantiate(task, space, sketch.sketch, decisions);
      if (!made.ok() || made->predicted_ns <= 0) continue;
      to->push_back(*std::move(made));
      --most;
    }
  };
  add(drafter.best(), best, &out->best);
  add(drafter.sample(), random, &out->random);
}

// The same of a sketch without a parametric form.
void make_sketch(const search::Task& task, const search::SearchSpace& space, int sketch,
                 std::size_t best, std::size_t random, ThreadPool& pool, Drawn* out) {
  Rng rng(kSeed);
  std::vector<search::Genome> genomes = {search::default_genome(space, sketch)};
  while (genomes.size() < kMade) genomes.push_back(search::random_genome(space, sketch, rng));
  std::vector<search::Candidate> made;
  for (std::optional<search::Candidate>& c : search::instantiate_all(task, space, genomes, pool)) {
    if (c && c->predicted_ns > 0) made.push_back(*std::move(c));
  }
  out->random.insert(out->random.end(), made.begin(),
                     made.begin() + static_cast<std::ptrdiff_t>(std::min(random, made.size())));
  std::stable_sort(made.begin(), made.end(),
                   [](const auto& a, const auto& b) { return a.predicted_ns < b.predicted_ns; });
  if (made.size() > best) made.erase(made.begin() + static_cast<std::ptrdiff_t>(best), made.end());
  out->best.insert(out->best.end(), made.begin(), made.end());
}

// What -O1 chooses, then each sketch's best by the analyzer's order, then the others; each program once.
Result<std::vector<search::Candidate>> candidates_of(const search::Task& task,
                                                     const search::SearchSpace& space,
                                                     const Options& options, ThreadPool& pool) {
  PRUNERC_TRY(const search::Candidate chosen, search::instant_candidate(task, space, pool));
  PRUNERC_TRY(search::Candidate first,
              search::instantiate(task, space, chosen.sketch, chosen.trace.decisions));
  search::DraftSpace draft =
      search::make_draft_space(task, space, search::Analyzer::kPrunerc, kSeed, {}, &pool);
  const std::size_t random = (options.random + space.sketches.size() - 1) / space.sketches.size();
  Drawn drawn;
  for (search::DraftSketch& sketch : draft.sketches) {
    draft_sketch(task, space, sketch, options.per_sketch, random, &drawn);
  }
  for (const search::DraftSpace::NotParametric& sketch : draft.not_parametric) {
    make_sketch(task, space, sketch.sketch, options.per_sketch, random, pool, &drawn);
  }
  std::stable_sort(drawn.best.begin(), drawn.best.end(),
                   [](const auto& a, const auto& b) { return a.predicted_ns < b.predicted_ns; });
  std::vector<search::Candidate> all = {std::move(first)};
  all.insert(all.end(), drawn.best.begin(), drawn.best.end());
  all.insert(all.end(), drawn.random.begin(), drawn.random.end());
  std::set<Fingerprint> seen;
  std::erase_if(all,
                [&](const search::Candidate& c) { return !seen.insert(c.fingerprint).second; });
  return all;
}

search::PoolRow row_of(const search::Candidate& candidate) {
  search::PoolRow row;
  row.sketch = candidate.sketch;
  row.decisions = candidate.trace.decisions;
  row.fingerprint = static_cast<uint32_t>(candidate.fingerprint.low);
  return row;
}

// NAME.N.so of each candidate, NAME.h, NAME.pool without times, and a line each of the manifest.
Result<std::string> draft(const Session& session, const std::string& name, const Operator& op,
                          const Options& options) {
  const search::Task task = session.task(op);
  ThreadPool pool(0);
  PRUNERC_TRY(const search::SearchSpace space, search::make_space(task));
  PRUNERC_TRY(const std::vector<search::Candidate> all, candidates_of(task, space, options, pool));
  const std::string stem = options.folder + "/" + name;
  std::vector<std::string> failed(all.size()), headers(all.size());
  pool.for_each(all.size(), [&](std::size_t i) {
    Choice choice;
    choice.program = all[i].program;
    choice.trace = all[i].trace;
    const Result<void> written = [&]() -> Result<void> {
      PRUNERC_TRY(Exported exported, Exported::make(session, op, choice));
      PRUNERC_TRY(const std::string library, exported.file(ExportForm::kShared));
      PRUNERC_TRY(headers[i], exported.file(ExportForm::kHeader));
      return replace_file(fmt::format("{}.{}.so", stem, i), library);
    }();
    if (!written.ok()) failed[i] = written.error().message();
  });
  // All declare the same.
  for (const std::string& header : headers) {
    if (header.empty()) continue;
    const Result<void> declared = replace_file(stem + ".h", header);
    if (!declared.ok()) return declared.error();
    break;
  }
  search::Pool out = search::make_pool(task, space);
  std::string manifest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.rows.push_back(row_of(all[i]));
    manifest += fmt::format(
        "{}\t{}\t{}\t{:.0f}\t{}\n", name, i,
        space.sketches[static_cast<std::size_t>(all[i].sketch)].name, all[i].predicted_ns,
        failed[i].empty() ? fmt::format("{}.{}.so", name, i)
                          : "error: " + failed[i].substr(0, failed[i].find('\n')));
  }
  const Result<void> kept = search::write_pool(out, stem + ".pool");
  if (!kept.ok()) return kept.error();
  return manifest;
}

// "NAME=FILE,OP,M=64,N=64".
OperatorRequest request_of(const std::string& text, std::string* name) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t comma = text.find(',', at);
    parts.push_back(text.substr(at, comma - at));
    at = comma == std::string::npos ? comma : comma + 1;
  }
  const auto halves = [](const std::string& part) {
    const std::size_t equal = std::min(part.find('='), part.size() - 1);
    return std::pair(part.substr(0, equal), part.substr(equal + 1));
  };
  OperatorRequest out;
  std::tie(*name, out.file) = halves(parts[0]);
  if (parts.size() > 1) out.op = parts[1];
  for (std::size_t i = 2; i < parts.size(); ++i) out.bindings.insert(halves(parts[i]));
  return out;
}

Result<void> draft_all(const Options& options) {
  std::error_code exists;
  std::filesystem::create_directories(options.folder, exists);
  PRUNERC_TRY(const search::Pool like, search::read_pool(options.like));
  SessionOptions session_options;
  session_options.target = like.platform;
  session_options.database = ":memory:";
  session_options.limits = Limits::kAsDescribed;
  PRUNERC_TRY(const Session session, Session::open(session_options));
  std::string manifest;
  for (const std::string& text : options.operators) {
    std::string name;
    PRUNERC_TRY(const Operator op, load_operator(request_of(text, &name)));
    PRUNERC_TRY(const std::string lines, draft(session, name, op, options));
    fmt::print("{}: {} candidates\n", name, std::count(lines.begin(), lines.end(), '\n'));
    std::fflush(stdout);
    manifest += lines;
  }
  return replace_file(options.folder + "/manifest.tsv", manifest);
}

// Puts the times of candidates.py into the pools. A candidate that did not run counts as crashed.
Result<void> fill_pools(const Options& options) {
  PRUNERC_TRY(const std::string text, read_file(options.times));
  const nlohmann::json all = nlohmann::json::parse(text);
  for (const auto& [name, candidates] : all.items()) {
    const std::string path = options.folder + "/" + name + ".pool";
    PRUNERC_TRY(search::Pool pool, search::read_pool(path));
    for (const nlohmann::json& candidate : candidates) {
      search::PoolRow& row = pool.rows.at(candidate.at("index").get<std::size_t>());
      const bool ran = candidate.value("right", false);
      row.status = ran ? MeasureStatus::kOk : MeasureStatus::kCrash;
      row.median_ns = ran ? candidate.at("ns").get<double>() : 0;
      row.spread = ran ? candidate.at("spread").get<double>() : 0;
      row.num_samples = ran ? kSamples : 0;
      row = search::rounded(row);
    }
    pool.timer = "CUDA events, cold";
    const Result<void> written = search::write_pool(pool, path);
    if (!written.ok()) return written;
  }
  return {};
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  using namespace prunerc::bench;  // NOLINT: a benchmark
  CLI::App app("candidates for a GPU that is elsewhere");
  Options options;
  app.require_subcommand(1);
  CLI::App& draft = *app.add_subcommand("draft", "libraries of candidates");
  draft.add_option("folder", options.folder)->required();
  draft.add_option("--like", options.like, "a pool whose platform is that GPU")->required();
  draft.add_option("--op", options.operators, "NAME=FILE,OP,BINDINGS")->required();
  draft.add_option("--per-sketch", options.per_sketch, "of each sketch, by the analyzer");
  draft.add_option("--random", options.random, "of all sketches together, drawn uniformly");
  CLI::App& pools = *app.add_subcommand("pools", "their times as pools");
  pools.add_option("folder", options.folder)->required();
  pools.add_option("times", options.times, "by candidates.py")->required();
  CLI11_PARSE(app, argc, argv);
  const prunerc::Result<void> done = draft.parsed() ? draft_all(options) : fill_pools(options);
  if (!done.ok()) fmt::print(stderr, "{}\n", done.error().message());
  return done.ok() ? 0 : 1;
}
