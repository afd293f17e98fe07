#include "ir/printer.h"
#include "ir/support/file.h"
#include "search/algebra/derive.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::cli {
namespace {

using search::algebra::Derived;
using search::algebra::DeriveOptions;
using search::algebra::DeriveReport;
using search::algebra::NumericClass;
using search::algebra::Rule;
using search::algebra::RuleSet;
using Json = nlohmann::ordered_json;

constexpr Rule kRules[] = {Rule::kOrder, Rule::kAxis, Rule::kBank, Rule::kWinograd, Rule::kCascade};
constexpr NumericClass kClasses[] = {NumericClass::kStrict, NumericClass::kNormal,
                                     NumericClass::kLoose};

struct AlgebraVerb {
  OperatorOptions op;
  MachineOptions machine;
  std::vector<std::string> rules;  // empty: all
  std::string numerics = "normal";
  std::string time = "10s";
  uint64_t seed = 1;
  std::string folder;
  bool json = false;
};

template <typename T, std::size_t n>
std::vector<std::string> names_of(const T (&all)[n]) {
  std::vector<std::string> out;
  for (const T one : all) out.emplace_back(to_string(one));
  return out;
}

std::vector<std::string> names_of_rules(RuleSet set) {
  std::vector<std::string> out;
  for (const Rule rule : kRules) {
    if ((set & static_cast<RuleSet>(rule)) != 0) out.emplace_back(to_string(rule));
  }
  return out;
}

Result<DeriveOptions> options_of(const AlgebraVerb& verb) {
  DeriveOptions options;
  PRUNERC_TRY(options.seconds, parse_duration(verb.time));
  options.seed = verb.seed;
  if (!verb.rules.empty()) options.rules = 0;
  for (const std::string& name : verb.rules) {
    for (const Rule rule : kRules) {
      if (to_string(rule) == name) options.rules |= static_cast<RuleSet>(rule);
    }
  }
  for (const NumericClass numeric : kClasses) {
    if (to_string(numeric) == verb.numerics) options.numerics = numeric;
  }
  return options;
}

Json json_of(const Operator& op, const DeriveReport& report) {
  Json forms = Json::array();
  for (const Derived& form : report.forms) {
    forms.push_back({{"recipe", form.recipe},
                     {"rules", names_of_rules(form.rules)},
                     {"flops", form.flops},
                     {"bytes", form.bytes},
                     {"limit_ns", form.limit_ns},
                     {"log2_error", form.verdict.log2_error},
                     {"private_exponents", form.verdict.assumes.private_exponents},
                     {"orders", form.verdict.assumes.orders},
                     {"numerics", to_string(form.numerics)}});
  }
  return {
      {"schema", "prunerc.algebra/1"},
      {"operator", op.name},
      {"spec",
       {{"flops", report.spec_flops},
        {"bytes", report.spec_bytes},
        {"limit_ns", report.spec_limit_ns}}},
      {"forms", std::move(forms)},
      {"terms", {{"tried", report.tried}, {"filtered", report.filtered}, {"kept", report.kept}}},
      {"refused", report.refused},
      {"seconds", report.seconds},
      {"stopped", report.stopped}};
}

void print_row(const std::string& at, double flops, double bytes, double limit_ns, double ratio,
               const std::string& bound, std::string_view numerics, const std::string& recipe) {
  fmt::print("{:>4}  {:>9.4g}  {:>9.4g}  {:>10.2f}  {:>6}  {:>6}  {:<7}  {}\n", at, flops / 1e6,
             bytes / 1e6, limit_ns / 1e3, ratio > 0 ? fmt::format("{:.2f}", ratio) : "", bound,
             numerics, recipe);
}

void print_table(const Operator& op, const DeriveReport& report) {
  fmt::print("{}{}\n", op.name, op.bindings.empty() ? "" : " (" + op.bindings + ")");
  fmt::print("{:>4}  {:>9}  {:>9}  {:>10}  {:>6}  {:>6}  {:<7}  {}\n", "form", "Mflop", "MB",
             "limit us", "gain", "error", "numbers", "recipe");
  print_row("0", report.spec_flops, report.spec_bytes, report.spec_limit_ns, 0, "", "",
            "as written");
  for (std::size_t i = 0; i < report.forms.size(); ++i) {
    const Derived& form = report.forms[i];
    print_row(fmt::format("{}", i + 1), form.flops, form.bytes, form.limit_ns,
              report.spec_limit_ns / form.limit_ns,
              fmt::format("2^{:.0f}", form.verdict.log2_error), to_string(form.numerics),
              form.recipe);
  }
  if (report.forms.empty()) fmt::print("no cheaper form");
  fmt::print("{}{} tried, {} no cheaper, {} turned down by checks, {:.2f} s{}{}\n",
             report.forms.empty() ? " (" : "", report.tried, report.filtered, report.refused.size(),
             report.seconds, report.stopped ? ", ended by --time" : "",
             report.forms.empty() ? ")" : "");
}

// DIR/spec.prc and DIR/1.prc, ...
Result<void> write_forms(const AlgebraVerb& verb, const Operator& op, const DeriveReport& report) {
  std::error_code ec;
  std::filesystem::create_directories(verb.folder, ec);
  if (ec) return error(Diag::kIoError, "make", verb.folder, ec.message());
  const std::filesystem::path folder(verb.folder);
  PRUNERC_TRY_VOID(replace_file((folder / "spec.prc").string(), ir::print(op.program)));
  for (std::size_t i = 0; i < report.forms.size(); ++i) {
    const std::string path = (folder / fmt::format("{}.prc", i + 1)).string();
    PRUNERC_TRY_VOID(replace_file(path, ir::print(report.forms[i].program)));
  }
  return {};
}

int algebra(const AlgebraVerb& verb) {
  const Result<DeriveOptions> options = options_of(verb);
  if (!options.ok()) return fail(options.error(), kUsage);
  const Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<Operator> op = load_operator(*request);
  if (!op.ok()) return fail(op.error());
  fmt::print(stderr, "{}", op->warnings);
  const Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  const Result<DeriveReport> report =
      search::algebra::derive(op->program, session->target(), *options);
  if (!report.ok()) return fail(report.error());
  if (!verb.folder.empty()) {
    if (const Result<void> written = write_forms(verb, *op, *report); !written.ok()) {
      return fail(written.error());
    }
  }
  if (verb.json) {
    fmt::print("{}\n", json_of(*op, *report).dump(2));
  } else {
    print_table(*op, *report);
  }
  return kSuccess;
}

}  // namespace

void add_algebra(CLI::App& verb, Action& action) {
  auto args = std::make_shared<AlgebraVerb>();
  args->op.add_to(verb);
  verb.get_option("file")->type_name("FILE.prn|prc")->description("operator file");
  verb.add_option("--rules", args->rules,
                  "where forms may come from: order, axis, bank, winograd, cascade (default: all)")
      ->delimiter(',')
      ->type_name("RULE,..")
      ->check(CLI::IsMember(names_of(kRules)));
  verb.add_option("--numerics", args->numerics,
                  "what rounding may differ: strict, the order of sums; normal; loose")
      ->type_name("CLASS")
      ->check(CLI::IsMember(names_of(kClasses)))
      ->capture_default_str();
  verb.add_option("--time", args->time, "end the search after this long: 500ms, 10s")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--seed", args->seed, "of primes and inputs of the checks")
      ->type_name("N")
      ->capture_default_str();
  in_group(verb, "Search");
  args->machine.add_without_database_to(verb);
  verb.add_option("-o,--output", args->folder,
                  "write the operator and its forms into this folder, as programs")
      ->type_name("FOLDER");
  verb.add_flag("--json", args->json, "print one JSON object");
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return algebra(*args); }; });
}

}  // namespace prunerc::cli
