#include "tests/net/pass/nets.h"

#include "ir/interp/interpreter.h"
#include "ir/lang/lang.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

namespace prunerc::testing {

net::Net net_or_die(const std::string& text) {
  lang::CompileInput input;
  input.text = text;
  lang::NetResult result = lang::compile_net(input);
  INFO(text << result.rendered);
  REQUIRE(result.net);
  return std::move(*result.net);
}

std::vector<ir::Tensor> run_net(const net::Net& net, uint64_t seed) {
  std::map<std::size_t, ir::Tensor> values;
  for (std::size_t t = 0; t < net.tensors.size(); ++t) {
    const net::Tensor& tensor = net.tensors[t];
    if (tensor.role != net::Role::kInput && tensor.role != net::Role::kConst) continue;
    ir::Tensor value(tensor.dtype, tensor.shape);
    // Constants of one weight are the same, whatever their names.
    const std::string& name = tensor.role == net::Role::kConst ? tensor.weight : tensor.name;
    const std::size_t salt = std::hash<std::string>()(name) + seed;
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const uint64_t mixed = (static_cast<uint64_t>(i) * 2654435761U + salt) * 0x9E3779B97F4A7C15U;
      value.set(i, tensor.value ? *tensor.value : static_cast<double>(mixed >> 40) / (1 << 23) - 1);
    }
    values.emplace(t, std::move(value));
  }
  for (const net::Call& call : net.calls) {
    std::vector<ir::Tensor> args;
    for (const std::size_t arg : call.args) args.push_back(values.at(arg));
    Result<std::vector<ir::Tensor>> results = ir::interpret(net.programs[call.program], args);
    INFO((results.ok() ? std::string() : results.error().message()));
    REQUIRE(results.ok());
    for (std::size_t i = 0; i < results->size(); ++i)
      values.insert_or_assign(call.results[i], std::move((*results)[i]));
  }
  std::vector<ir::Tensor> outputs;
  for (const std::size_t output : net.outputs) outputs.push_back(values.at(output));
  return outputs;
}

std::string net_difference(const net::Net& a, const net::Net& b, uint64_t seed) {
  constexpr double kAllowed = 1e-4;
  const std::vector<ir::Tensor> got = run_net(a, seed), want = run_net(b, seed);
  if (got.size() != want.size()) return "another number of outputs";
  for (std::size_t t = 0; t < got.size(); ++t) {
    if (got[t].shape != want[t].shape) return fmt::format("output {} has another shape", t);
    for (int64_t i = 0; i < got[t].num_elements(); ++i) {
      const double g = got[t].get(i), w = want[t].get(i);
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      if (!(std::fabs(g - w) <= kAllowed * std::max(1.0, std::fabs(w))))
        return fmt::format("output {}[{}] is {}, not {}", t, i, g, w);
    }
  }
  return {};
}

std::string calls_of(const net::Net& net) {
  std::string text;
  for (const net::Call& call : net.calls) {
    std::string args, results;
    for (const std::size_t arg : call.args)
      args += (args.empty() ? "" : ", ") + net.tensors[arg].name;
    for (const std::size_t result : call.results)
      results += (results.empty() ? "" : ", ") + net.tensors[result].name;
    text += fmt::format("{}({}) -> {}\n", call.op, args, results);
  }
  return text;
}

}  // namespace prunerc::testing
