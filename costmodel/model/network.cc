#include "costmodel/model/network.h"

#include "costmodel/model/pacm.h"
#include "costmodel/model/pacm_paper.h"
#include "costmodel/model/sharded.h"
#include "costmodel/model/tlp.h"
#include "ir/support/check.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace prunerc::costmodel::model {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"pacm-paper", "pacm", "tenset-mlp", "tlp"};

template <typename T>
std::unique_ptr<Network<T>> build(const NetworkOptions& options) {
  switch (options.kind) {
    case NetworkKind::kPacmPaper: return make_pacm_paper<T>(options);
    case NetworkKind::kPacm: return std::make_unique<Sharded<T, Pacm<T>>>(options);
    case NetworkKind::kTensetMlp: return std::make_unique<Sharded<T, TensetMlp<T>>>(options);
    case NetworkKind::kTlp: return std::make_unique<Sharded<T, Tlp<T>>>(options);
  }
  PRUNERC_CHECK(false, "all kinds are above");
  return nullptr;
}

}  // namespace

std::string_view to_string(NetworkKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<NetworkKind> network_kind_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<NetworkKind>(i);
  }
  return std::nullopt;
}

bool fits(const NetworkOptions& options, const Batch<float>& batch) {
  if (batch.programs == 0) return true;
  // No program may have a row, in which case there is no width either.
  const auto has = [&](const nn::Matrix<float>& m, const std::vector<int32_t>& begin, int width) {
    return static_cast<int>(begin.size()) == batch.programs + 1 && begin.front() == 0 &&
           std::is_sorted(begin.begin(), begin.end()) && begin.back() == m.rows() &&
           (m.rows() == 0 || m.cols() == width);
  };
  if (options.kind == NetworkKind::kTlp) {
    return batch.token_length == options.token_length &&
           batch.tokens.rows() == batch.programs * options.token_length &&
           batch.tokens.cols() == options.token_inputs;
  }
  if (!has(batch.statements, batch.statement_begin, options.statement_inputs)) return false;
  if (options.kind == NetworkKind::kTensetMlp) return true;
  if (!has(batch.flow, batch.flow_begin, options.flow_inputs)) return false;
  if (!batch.flow_valid.empty() && static_cast<int>(batch.flow_valid.size()) != batch.flow.rows()) {
    return false;
  }
  return options.kind == NetworkKind::kPacmPaper || options.context_inputs == 0 ||
         (batch.context.rows() == batch.programs && batch.context.cols() == options.context_inputs);
}

template <typename T>
std::unique_ptr<Network<T>> make_network(const NetworkOptions& options, uint64_t seed) {
  std::unique_ptr<Network<T>> network = build<T>(options);
  network->parameters.initialise(seed);
  return network;
}

template std::unique_ptr<Network<float>> make_network(const NetworkOptions&, uint64_t);
template std::unique_ptr<Network<double>> make_network(const NetworkOptions&, uint64_t);

}  // namespace prunerc::costmodel::model
