// Twelve operators, and whatever is derived of them, against what numpy computes: inputs and outputs are
// files that tests/search/reference/make.py wrote.
#include "ir/interp/interpreter.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "search/algebra/derive.h"
#include "search/algebra/lift.h"
#include "search/algebra/winograd.h"
#include "tests/support/check.h"
#include "tests/support/machines.h"
#include "tools/driver/npy.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

using search::algebra::Derived;
using search::algebra::DeriveReport;
using search::algebra::Lowered;
using search::algebra::Spec;

/// Of an output's largest element: sums of some hundred products in single precision.
constexpr double kTolerance = 1e-5;
/// By Winograd, which sums what cancels.
constexpr double kLooseTolerance = 2e-4;

struct Case {
  std::string name;  // of the files, and of the operator
  std::string text;
  std::map<std::string, std::string> bindings = {};
  bool has_form = true;  // at these extents, for operations alone
};

const char* const kLogSumExp = R"(
op logsumexp_linear(X: f32[7,13], W: f32[13,31]) -> (Y: f32[7]) {
  let a[m,n] = sum[k] X[m,k] * W[k,n];
  let largest[m] = max[n] a[m,n];
  let s[m] = sum[n] exp(a[m,n] - largest[m]);
  Y[m] = largest[m] + log(s[m]);
})";

const char* const kConvolution = R"(
op conv3x3(X: f32[1,32,7,9], const F: f32[32,32,3,3]) -> (Y: f32[1,32,7,9]) {
  Y[n,o,h,w] = sum[c,kh,kw] (X[n,c,h+kh-1,w+kw-1] or 0) * F[o,c,kh,kw];
})";

std::vector<Case> cases() {
  const std::string algebra = *lang::import_std("std/algebra.prn");
  const std::string attention = *lang::import_std("std/attention.prn");
  return {
      {"chain3", algebra, {{"N", "31"}}},
      {"lora_added", algebra, {{"M", "7"}, {"K", "31"}, {"N", "13"}, {"R", "2"}}},
      {"linear_attention", algebra, {{"T", "31"}, {"E", "7"}}},
      {"raw_attention", algebra, {{"H", "2"}, {"T", "13"}, {"S", "31"}, {"E", "7"}}},
      {"grouped_decode", algebra, {{"H", "6"}, {"G", "3"}, {"S", "31"}, {"E", "7"}}},
      {"rmsnorm_linear", algebra, {{"M", "7"}, {"K", "31"}, {"N", "13"}}},
      {"layernorm_linear", algebra, {{"M", "7"}, {"K", "31"}, {"N", "13"}}},
      {"gated_mlp", algebra, {{"M", "7"}, {"K", "31"}, {"N", "13"}}, false},
      {"attention", attention, {{"H", "2"}, {"T", "13"}, {"S", "31"}, {"E", "7"}}, false},
      {"causal_attention", attention, {{"H", "2"}, {"T", "13"}, {"E", "7"}}, false},
      {"logsumexp_linear", kLogSumExp, {}, false},
      {"conv3x3", kConvolution, {}, false},
  };
}

ir::Program compile_or_die(const Case& c) {
  lang::CompileInput input;
  input.file_name = c.name + ".prn";
  input.text = c.text;
  input.op = c.name;
  input.bindings = c.bindings;
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

/// What numpy read and computed, in the order of the program's parameters.
struct Reference {
  std::vector<ir::Tensor> inputs, outputs;
};

Reference reference_of(const std::string& name, const ir::Program& program) {
  Reference out;
  for (const ir::BufferId id : program.params()) {
    const ir::Buffer& buffer = program.buffer(id);
    const std::string path = fmt::format("tests/search/reference/{}.{}.npy", name, buffer.name);
    INFO(path);
    Result<ir::Tensor> read = read_npy(path);
    REQUIRE_OK(read);
    REQUIRE(read->shape == ir::shape_of(buffer));
    const bool is_input = buffer.role == ir::BufferRole::kInput;
    (is_input ? out.inputs : out.outputs).push_back(std::move(*read));
  }
  return out;
}

void check_outputs(const ir::Program& program, const Reference& reference, double tolerance) {
  INFO(ir::print(program));
  const std::vector<ir::Tensor> found = testing::interpret_or_die(program, reference.inputs);
  REQUIRE(found.size() == reference.outputs.size());
  for (std::size_t o = 0; o < found.size(); ++o) {
    const ir::Tensor& wanted = reference.outputs[o];
    double largest = 0, error = 0;
    bool is_finite = true;
    for (int64_t i = 0; i < wanted.num_elements(); ++i) {
      is_finite = is_finite && std::isfinite(found[o].get(i));
      largest = std::max(largest, std::fabs(wanted.get(i)));
      error = std::max(error, std::fabs(found[o].get(i) - wanted.get(i)));
    }
    CHECK(is_finite);
    CHECK(error <= tolerance * largest);
  }
}

TEST_CASE("twelve operators and their forms compute what numpy does") {
  const std::vector<Case> all = cases();
  REQUIRE(all.size() == 12);
  for (const Case& c : all) {
    INFO(c.name);
    const ir::Program program = compile_or_die(c);
    const Reference reference = reference_of(c.name, program);
    check_outputs(program, reference, kTolerance);
    const Result<DeriveReport> report = search::algebra::derive(program, testing::slow_machine());
    REQUIRE_OK(report);
    for (const std::string& why : report->refused) UNSCOPED_INFO(why);
    CHECK((!c.has_form || !report->forms.empty()));
    for (const Derived& form : report->forms) {
      INFO(form.recipe);
      check_outputs(form.program, reference, kTolerance);
    }
  }
}

TEST_CASE("a convolution by Winograd computes what numpy does, in tiles that do not divide it") {
  const Case c = {"conv3x3", kConvolution};
  const ir::Program program = compile_or_die(c);
  const Reference reference = reference_of(c.name, program);
  for (const int m : {2, 4}) {
    Result<Spec> spec = search::algebra::lift(program);
    REQUIRE_OK(spec);
    INFO("tiles of " << m);
    REQUIRE_FALSE(search::algebra::winograd(*spec, m).empty());
    const Result<Lowered> form = search::algebra::lower(*spec);
    REQUIRE_OK(form);
    check_outputs(form->program, reference, kLooseTolerance);
  }
}

}  // namespace
}  // namespace prunerc
