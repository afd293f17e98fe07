#include "search/algebra/derive.h"
#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/programs.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::bench {

std::vector<Row> find_rows() {
  // With this machine's measured limits: they say what is cheaper.
  const Result<Session> session = Session::open({});
  PRUNERC_CHECK(session.ok(), "this machine can be measured");
  const ir::Target& target = session->target();
  std::vector<Row> rows;
  std::vector<double> seconds;
  int num_planted = 0, num_found = 0, num_wrongly = 0;
  for (const AlgebraCase& c : algebra_cases()) {
    const Operator op = load_case(c);
    const Result<search::algebra::DeriveReport> report =
        search::algebra::derive(op.program, target, {.numerics = c.numerics});
    PRUNERC_CHECK(report.ok(), "a case of the benchmark is lifted");
    seconds.push_back(report->seconds);
    double gain = 0;
    std::string recipe;
    for (const search::algebra::Derived& form : report->forms) {
      if (form.recipe.find(c.words) == std::string::npos) continue;
      if (report->spec_flops / form.flops <= gain) continue;
      gain = report->spec_flops / form.flops;
      recipe = form.recipe;
    }
    if (c.least_gain == 0) {
      num_wrongly += report->forms.empty() ? 0 : 1;
    } else {
      ++num_planted;
      num_found += !report->forms.empty() && gain >= c.least_gain ? 1 : 0;
    }
    rows.push_back(
        {.name = "gain/" + c.name,
         .value = gain,
         .unit = "x",
         .goal = c.least_gain == 0 ? 0 : c.least_gain,
         .note = fmt::format("of operations; {} forms, {:.2f} s{}{}", report->forms.size(),
                             report->seconds, recipe.empty() ? "" : ": ", recipe),
         .at_most = c.least_gain == 0});
  }
  std::sort(seconds.begin(), seconds.end());
  rows.push_back({.name = "found",
                  .value = static_cast<double>(num_found),
                  .unit = fmt::format("of {}", num_planted),
                  .goal = num_planted,
                  .note = "planted forms"});
  rows.push_back({.name = "found_where_none_is",
                  .value = static_cast<double>(num_wrongly),
                  .unit = "programs",
                  .goal = 0,
                  .note = "functions, narrow stores, positions, saturation between",
                  .at_most = true});
  rows.push_back({.name = "derive_median",
                  .value = seconds[seconds.size() / 2],
                  .unit = "s",
                  .goal = 1,
                  .note = "one thread",
                  .at_most = true});
  rows.push_back({.name = "derive_worst",
                  .value = seconds.back(),
                  .unit = "s",
                  .goal = 10,
                  .note = "one thread",
                  .at_most = true});
  return rows;
}

}  // namespace prunerc::bench
