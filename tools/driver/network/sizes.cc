#include "tools/driver/network/sizes.h"

#include "ir/onnx/model.h"
#include "search/space/task.h"
#include "tools/driver/network/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace prunerc {
namespace {

Result<int64_t> value_of(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && stop == text.data() + text.size() && value >= 1) return value;
  return error(Diag::kUsageOption, "-D",
               fmt::format("needs {}=N or a list {}=N,N, found '{}'", name, name, text));
}

Result<std::vector<codegen::NetDim>> listed(const OperatorRequest& request) {
  std::vector<codegen::NetDim> dims;
  std::size_t num = 1;
  for (const auto& [name, texts] : request.lists) {
    codegen::NetDim dim{name, {}};
    for (const std::string& text : texts) {
      PRUNERC_TRY(const int64_t value, value_of(name, text));
      if (std::find(dim.values.begin(), dim.values.end(), value) != dim.values.end())
        return error(Diag::kUsageOption, "-D", fmt::format("lists {}={} twice", name, value));
      dim.values.push_back(value);
    }
    num *= dim.values.size();
    if (num > kMostSizes) {
      return error(
          Diag::kUsageOption, "-D",
          fmt::format("lists more than {} combinations of sizes; list fewer values, or make "
                      "several libraries",
                      kMostSizes));
    }
    dims.push_back(std::move(dim));
  }
  return dims;
}

// "seq=64" behind "seq=32"; false behind the last combination.
bool next(const std::vector<codegen::NetDim>& dims, std::vector<std::size_t>* at) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (++(*at)[d] < dims[d].values.size()) return true;
    (*at)[d] = 0;
  }
  return false;
}

}  // namespace

Result<void> check_not_listed(const OperatorRequest& request) {
  if (request.lists.empty()) return {};
  const auto& [name, values] = *request.lists.begin();
  return error(
      Diag::kUsageOption, "-D",
      fmt::format("lists {}={}, where one value is needed; compile, tune, bench and verify of "
                  "an ONNX model take lists of its named dimensions",
                  name, fmt::join(values, ",")));
}

Result<SizedNets> load_nets(const OperatorRequest& request) {
  SizedNets all;
  if (request.lists.empty()) {
    PRUNERC_TRY(std::optional<LoadedNet> net, load_net(request));
    if (net) all.nets.push_back({{}, "", std::move(*net)});
    return all;
  }
  if (!is_onnx(request.file)) PRUNERC_TRY_VOID(check_not_listed(request));
  PRUNERC_TRY(all.dims, listed(request));
  PRUNERC_TRY(const onnx::Model model, onnx::read_model(request.file));
  std::vector<std::size_t> at(all.dims.size(), 0);
  do {
    OperatorRequest one = request;
    one.lists.clear();
    SizedNet sized;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const codegen::NetDim& dim = all.dims[d];
      sized.sizes.push_back(dim.values[at[d]]);
      one.bindings[dim.name] = std::to_string(dim.values[at[d]]);
      sized.text += fmt::format("{}{}={}", d == 0 ? "" : ",", dim.name, dim.values[at[d]]);
    }
    PRUNERC_TRY(sized.net, load_onnx(one, model));
    all.nets.push_back(std::move(sized));
  } while (next(all.dims, &at));
  return all;
}

std::vector<Operator> operators_of(const SizedNets& nets) {
  std::vector<Operator> all;
  std::map<std::string, std::size_t> known;  // canonical text -> operator
  std::set<std::string> names;
  for (const SizedNet& sized : nets.nets) {
    for (Operator& op : operators_of(sized.net.net)) {
      const std::string key = search::make_task(op.name, op.program, ir::Target{}).key.program;
      const auto [at, is_new] = known.emplace(key, all.size());
      if (!is_new) {
        Operator& same = all[at->second];
        same.weight += op.weight;
        same.net_constants_bytes = std::max(same.net_constants_bytes, op.net_constants_bytes);
        continue;
      }
      // A label of the model is that of a task at each size.
      if (!names.insert(op.name).second) op.name += "@" + sized.text;
      all.push_back(std::move(op));
    }
  }
  return all;
}

}  // namespace prunerc
