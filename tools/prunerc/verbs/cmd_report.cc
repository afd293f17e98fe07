#include "ir/support/file.h"
#include "tools/driver/report/report.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/report_json.h"
#include "tools/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

namespace prunerc::cli {
namespace {

struct ReportVerb {
  std::vector<std::string> what;  // numbers of records, operator files
  OperatorOptions op;
  std::string database;
  std::string output;
  int threads = 0;
  bool json = false;
};

std::optional<int64_t> record_id(const std::string& word) {
  int64_t id = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, code] = std::from_chars(word.data(), end, id);
  return code == std::errc() && stop == end ? std::optional(id) : std::nullopt;
}

Result<ReportRequest> request_of(const ReportVerb& verb) {
  ReportRequest request;
  request.threads = verb.threads;
  OperatorOptions options = verb.op;
  for (const std::string& word : verb.what) {
    if (const std::optional<int64_t> id = record_id(word)) {
      request.records.push_back(*id);
    } else {
      (options.file.empty() ? options.file : options.more_files.emplace_back()) = word;
    }
  }
  if (options.file.empty()) {
    if (options.op.empty() && options.bindings.empty()) return request;
    return error(Diag::kUsageOption, options.op.empty() ? "-D" : "--op",
                 std::string("belongs to an operator file, and none is given"));
  }
  PRUNERC_TRY(request.ops, options.load());
  return request;
}

int no_record(const ReportVerb& verb, const TuningReport& report, const std::string& database) {
  const std::string threads =
      verb.threads > 0 ? fmt::format(" for {} thread(s)", verb.threads) : "";
  std::string what = report.missing.empty() ? "no record" : "no record of ";
  if (!report.missing.empty() && report.missing[0].starts_with("record ")) what = "no ";
  const std::size_t num_named = std::min<std::size_t>(report.missing.size(), 3);
  what +=
      fmt::format("{}", fmt::join(report.missing.begin(),
                                  report.missing.begin() + static_cast<int64_t>(num_named), ", "));
  if (report.missing.size() > num_named) {
    what += fmt::format(" and {} more", report.missing.size() - num_named);
  }
  return fail(fmt::format("{}{} in '{}'", what, threads, database),
              "`prunerc tune FILE` with the same sizes makes records; `prunerc db ls` lists what "
              "there is, `prunerc db best` the numbers of records",
              kCacheMiss);
}

int report(const ReportVerb& verb) {
  if (verb.output.empty() && !verb.json) {
    return fail(error(Diag::kUsageOption, "-o", std::string("name the page to write, or --json")));
  }
  const Result<ReportRequest> request = request_of(verb);
  if (!request.ok()) return fail(request.error());
  Result<search::Database> database =
      search::Database::open_to_read(verb.database.empty() ? default_database() : verb.database);
  if (!database.ok()) return fail(database.error());
  const Result<TuningReport> made = report_of(*database, *request);
  if (!made.ok()) return fail(made.error());
  const auto is_record = [](const std::string& what) { return what.starts_with("record "); };
  const bool lacks_record = std::any_of(made->missing.begin(), made->missing.end(), is_record);
  if (made->operators.empty() || lacks_record) return no_record(verb, *made, database->path());
  const std::string json = report_json(*made);
  if (verb.json) fmt::print("{}\n", json);
  if (verb.output.empty()) return kSuccess;
  const std::string page = report::page(json);
  if (verb.output == "-") {
    fmt::print("{}", page);
    return kSuccess;
  }
  const Result<void> written = replace_file(verb.output, page);
  if (!written.ok()) return fail(written.error());
  fmt::print(stderr, "{}: {} operator(s), {:.0f} KB\n", verb.output, made->operators.size(),
             static_cast<double>(page.size()) / 1000);
  for (const std::string& name : made->missing) fmt::print(stderr, "no record of {}\n", name);
  return kSuccess;
}

}  // namespace

void add_report(CLI::App& verb, Action& action) {
  auto args = std::make_shared<ReportVerb>();
  verb.add_option("what", args->what,
                  "operator files, or numbers of records (`prunerc db best`), whose operators are "
                  "meant; none: all of the database")
      ->type_name("ID|FILE.prn|prc|onnx");
  args->op.add_choice_to(verb);
  args->op.add_net_options_to(verb);
  in_group(verb, "Operator");
  verb.add_option("--threads", args->threads, "only records of kernels with so many threads")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_database_to(verb, &args->database);
  in_group(verb, "Records");
  verb.add_option("-o,--output", args->output, "page to write, - for stdout")
      ->type_name("FILE.html");
  verb.add_flag("--json", args->json, "the same data as one JSON object on stdout");
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return report(*args); }; });
}

}  // namespace prunerc::cli
