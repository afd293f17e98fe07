// Orders of contraction: as cheap as any tree, equal in finite fields, and nothing where a function
// stands between.
#include "ir/fpv/fpv.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/support/rng.h"
#include "search/algebra/derive.h"
#include "search/algebra/order.h"
#include "search/algebra/roofline.h"
#include "search/algebra/words.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace prunerc::search::algebra {
namespace {

using testing::lift_or_die;
using Bindings = std::map<std::string, std::string>;

ir::Program library(const std::string& op, const Bindings& bindings = {}) {
  return testing::compile_op(*lang::import_std("std/algebra.prn"), op, bindings);
}

// A sum of products of random factors over random axes.
struct Network {
  std::vector<int64_t> extents;
  std::vector<AxisSet> factors;
  AxisSet output = 0;
  std::string text;
};

Network random_network(Rng& rng, int num_factors) {
  Network net;
  const int num_axes = static_cast<int>(rng.between(2, 6));
  for (int a = 0; a < num_axes; ++a) net.extents.push_back(rng.between(2, 40));
  AxisSet all = 0;
  for (int f = 0; f < num_factors; ++f) {
    AxisSet axes = 0;
    while (axes == 0) axes = rng.next() & ((AxisSet{1} << num_axes) - 1);
    net.factors.push_back(axes);
    all |= axes;
  }
  net.output = all & rng.next();
  if (net.output == all) net.output &= net.output - 1;
  const auto names = [&](AxisSet set) {
    std::string out;
    for (int a = 0; a < num_axes; ++a) {
      if ((set >> a & 1) != 0) out += fmt::format("{}i{}", out.empty() ? "" : ",", a);
    }
    return out;
  };
  const auto shape = [&](AxisSet set) {
    std::string out;
    for (int a = 0; a < num_axes; ++a) {
      if ((set >> a & 1) != 0) {
        out += fmt::format("{}{}", out.empty() ? "" : ",", net.extents[static_cast<size_t>(a)]);
      }
    }
    return out;
  };
  std::string inputs, product;
  for (size_t f = 0; f < net.factors.size(); ++f) {
    inputs += fmt::format("{}F{}: f32[{}]", f == 0 ? "" : ", ", f, shape(net.factors[f]));
    product += fmt::format("{}F{}[{}]", f == 0 ? "" : " * ", f, names(net.factors[f]));
  }
  const std::string out = net.output == 0 ? "" : "[" + names(net.output) + "]";
  net.text = fmt::format("op p({}) -> (Y: f32{}) {{ Y{} = sum[{}] {}; }}", inputs,
                         net.output == 0 ? "" : "[" + shape(net.output) + "]", out,
                         names(all & ~net.output), product);
  return net;
}

double size_of(const Network& net, AxisSet set) {
  double product = 1;
  for (size_t a = 0; a < net.extents.size(); ++a) {
    if ((set >> a & 1) != 0) product *= static_cast<double>(net.extents[a]);
  }
  return product;
}

// Every tree by recursion over sets of operands, without the dynamic program's tables.
double cheapest(const Network& net, std::vector<AxisSet> operands) {
  if (operands.size() == 1) return 0;
  double best = HUGE_VAL;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t j = i + 1; j < operands.size(); ++j) {
      std::vector<AxisSet> rest;
      AxisSet outside = net.output;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (k == i || k == j) continue;
        rest.push_back(operands[k]);
        outside |= operands[k];
      }
      const AxisSet loops = operands[i] | operands[j];
      const AxisSet left = loops & outside;
      rest.push_back(left);
      best = std::min(best, (left != loops ? 2 : 1) * size_of(net, loops) + cheapest(net, rest));
    }
  }
  return best;
}

// The same of sums that are of one factor alone, which come first.
double cheapest(const Network& net) {
  double cost = 0;
  std::vector<AxisSet> operands;
  for (size_t f = 0; f < net.factors.size(); ++f) {
    AxisSet outside = net.output;
    for (size_t g = 0; g < net.factors.size(); ++g) {
      if (g != f) outside |= net.factors[g];
    }
    if ((net.factors[f] & ~outside) != 0) cost += size_of(net, net.factors[f]);
    operands.push_back(net.factors[f] & outside);
  }
  return cost + cheapest(net, operands);
}

// What the order costs, read off the term.
double cost_of(const Spec& spec, TermId id) {
  const Term& t = spec.graph[id];
  if (t.op == TermOp::kReduce) {
    const Term& body = spec.graph[t.args[0]];
    const double loops = extent_of(spec.axes, body.free);
    if (body.op != TermOp::kBinary) return loops + cost_of(spec, t.args[0]);
    return 2 * loops + cost_of(spec, body.args[0]) + cost_of(spec, body.args[1]);
  }
  if (t.op == TermOp::kBinary) {
    return extent_of(spec.axes, t.free) + cost_of(spec, t.args[0]) + cost_of(spec, t.args[1]);
  }
  return 0;
}

TEST_CASE("no tree of products is cheaper than the order that is found") {
  const int num_cases = testing::num_cases(60);
  int num_changed = 0;
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(i), 7);
    const Network net = random_network(rng, static_cast<int>(rng.between(2, 5)));
    INFO(net.text);
    const ir::Program program = testing::compile_op(net.text);
    Spec spec = lift_or_die(program);
    if (!reorder(spec, {.bytes_per_flop = 0}).empty()) ++num_changed;
    INFO(text_of(spec, spec.outputs[0].value));
    CHECK(cost_of(spec, spec.outputs[0].value) == Approx(cheapest(net)));
  }
  CHECK(num_changed > num_cases / 2);
}

TEST_CASE("each order that is found computes the same") {
  const int num_cases = testing::num_cases(40);
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(i), 8);
    Network net = random_network(rng, static_cast<int>(rng.between(2, 6)));
    INFO(net.text);
    const ir::Program program = testing::compile_op(net.text);
    const DeriveReport report = *derive(program, *ir::target_from_string("cpu"),
                                        {.rules = static_cast<RuleSet>(Rule::kOrder)});
    CHECK(report.refused == std::vector<std::string>());
    for (const Derived& form : report.forms) {
      INFO(form.recipe << "\n" << ir::print(form.program));
      CHECK(form.verdict.ok());
      CHECK(form.verdict.log2_error <= -40);
      CHECK(form.numerics == NumericClass::kStrict);
    }
  }
}

TEST_CASE("badly ordered products are found and cost a small part") {
  struct Case {
    const char* op;
    double least;  // times fewer operations
  };
  for (const Case& c : {Case{"lora_merged", 100}, Case{"chain3", 500},
                        Case{"product_row_sums", 500}, Case{"linear_attention", 30}}) {
    INFO(c.op);
    const DeriveReport report = *derive(library(c.op), *ir::target_from_string("cpu"));
    REQUIRE(!report.forms.empty());
    INFO(report.forms[0].recipe);
    CHECK(report.spec_flops / report.forms[0].flops > c.least);
    CHECK(report.forms[0].verdict.ok());
  }
}

TEST_CASE("scales move out of sums, and sums through shared products") {
  for (const char* op : {"rmsnorm_linear", "qk_norm", "raw_attention", "lora_added",
                         "layernorm_linear", "grouped_decode"}) {
    INFO(op);
    const DeriveReport report =
        *derive(library(op), *ir::target_from_string("cpu"), {.numerics = NumericClass::kLoose});
    REQUIRE(!report.forms.empty());
    CHECK(report.forms[0].flops < report.spec_flops);
  }
}

TEST_CASE("nothing moves through functions, narrow stores, positions and saturation") {
  for (const char* op : {"relu_between", "half_between", "argmax_between", "saturated_between"}) {
    INFO(op);
    const DeriveReport report =
        *derive(library(op), *ir::target_from_string("cpu"), {.numerics = NumericClass::kLoose});
    for (const Derived& form : report.forms) UNSCOPED_INFO(form.recipe);
    CHECK(report.forms.empty());
    CHECK(report.refused == std::vector<std::string>());
  }
}

TEST_CASE("forms of the gallery are equal to their operators at their own extents") {
  int num_forms = 0;
  for (const testing::NamedProgram& op : testing::operator_gallery()) {
    INFO(op.name);
    const Result<DeriveReport> report = derive(op.program, *ir::target_from_string("cpu"));
    REQUIRE_OK(report);
    for (const Derived& form : report->forms) {
      INFO(form.recipe << "\n" << ir::print(op.program) << ir::print(form.program));
      ++num_forms;
      ir::FpvOptions other_seed;
      other_seed.seed = 99;
      CHECK(ir::check_equivalent(op.program, form.program, other_seed).ok());
    }
  }
  CHECK(num_forms > 0);
}

TEST_CASE("the bank finds what the exact search for orders finds") {
  int num_found = 0;
  const int num_cases = testing::num_cases(20);
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(i), 9);
    const Network net = random_network(rng, 3);
    INFO(net.text);
    const ir::Program program = testing::compile_op(net.text);
    const auto best = [&](Rule rule) {
      const DeriveReport report =
          *derive(program, *ir::target_from_string("cpu"), {.rules = static_cast<RuleSet>(rule)});
      return report.forms.empty() ? report.spec_flops : report.forms[0].flops;
    };
    num_found += best(Rule::kBank) <= best(Rule::kOrder) * 1.001 ? 1 : 0;
  }
  CHECK(num_found >= num_cases * 3 / 4);
}

TEST_CASE("rules that are not asked for make nothing") {
  const DeriveReport report = *derive(library("lora_merged"), *ir::target_from_string("cpu"),
                                      {.rules = static_cast<RuleSet>(Rule::kAxis)});
  CHECK(report.forms.empty());
  CHECK(report.tried == 0);
}

TEST_CASE("the same forms come each time") {
  const ir::Program program = library("raw_attention");
  const DeriveReport a = *derive(program, *ir::target_from_string("cpu"));
  const DeriveReport b = *derive(program, *ir::target_from_string("cpu"));
  REQUIRE(a.forms.size() == b.forms.size());
  for (size_t i = 0; i < a.forms.size(); ++i) {
    CHECK(a.forms[i].recipe == b.forms[i].recipe);
    CHECK(ir::print(a.forms[i].program) == ir::print(b.forms[i].program));
  }
}

}  // namespace
}  // namespace prunerc::search::algebra
