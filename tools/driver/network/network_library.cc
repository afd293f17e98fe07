#include "tools/driver/network/network_library.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"
#include "runtime/net/execute.h"

#include <fmt/format.h>

#include <utility>

namespace prunerc {

NetworkLibrary::NetworkLibrary(std::vector<codegen::NetDim> dims) : dims_(std::move(dims)) {}

std::size_t NetworkLibrary::add_kernel(const codegen::Artifact& kernel) {
  const auto [at, is_new] = kernel_of_entry_.emplace(kernel.entry, kernels_.size());
  if (is_new) {
    kernels_.push_back(kernel);
  } else {
    PRUNERC_CHECK(kernels_[at->second].bytes == kernel.bytes, "kernels of one name are equal");
  }
  return at->second;
}

int64_t NetworkLibrary::add_prepared(std::string_view bytes) {
  const uint64_t hash = hash_bytes(bytes);
  const auto [first, last] = blocks_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const auto [at, size] = it->second;
    const std::string_view there(prepared_.data() + at, static_cast<std::size_t>(size));
    if (there == bytes) return at;
  }
  const auto at = static_cast<int64_t>(prepared_.size());
  prepared_.append(bytes);
  prepared_.resize((prepared_.size() + PRUNERC_ALIGNMENT - 1) / PRUNERC_ALIGNMENT *
                   PRUNERC_ALIGNMENT);
  blocks_.emplace(hash, std::pair(at, static_cast<int64_t>(bytes.size())));
  return at;
}

Result<void> NetworkLibrary::check_params(const std::vector<codegen::ArtifactParam>& params) const {
  if (plans_.empty()) return {};
  const std::vector<codegen::ArtifactParam>& first = plans_[0].params;
  bool is_alike = params.size() == first.size();
  for (std::size_t i = 0; is_alike && i < params.size(); ++i) {
    is_alike = params[i].name == first[i].name && params[i].dtype == first[i].dtype &&
               params[i].role == first[i].role && params[i].shape.size() == first[i].shape.size();
  }
  if (is_alike) return {};
  return error(Diag::kUnsupported,
               "sizes with which a net's inputs or outputs differ in more than their shapes");
}

Result<void> NetworkLibrary::add(const Network& network, std::vector<int64_t> sizes) {
  PRUNERC_TRY(codegen::NetParts parts, network.parts());
  codegen::NetPlan plan = std::move(parts.plans[0]);
  PRUNERC_TRY_VOID(check_params(plan.params));
  plan.sizes = std::move(sizes);
  if (prepared_.empty()) prepared_.reserve(parts.prepared.size());
  for (codegen::NetStep& step : plan.steps) {
    const codegen::Artifact& kernel = *parts.kernels[step.kernel];
    step.kernel = add_kernel(kernel);
    for (codegen::NetArgument& arg : step.args) {
      if (arg.place != PRUNERC_PLACE_WEIGHTS) continue;
      arg.at = add_prepared(parts.prepared.substr(static_cast<std::size_t>(arg.at),
                                                  static_cast<std::size_t>(kernel.prepared_bytes)));
    }
  }
  plans_.push_back(std::move(plan));
  return {};
}

codegen::CpuLibrary NetworkLibrary::library(codegen::LibraryInfo info,
                                            std::string weights_file) const {
  codegen::NetParts parts;
  for (const codegen::Artifact& kernel : kernels_) parts.kernels.push_back(&kernel);
  parts.dims = dims_;
  parts.plans = plans_;
  parts.prepared = prepared_;
  parts.weights_file = std::move(weights_file);
  codegen::CpuLibrary library;
  library.artifact = codegen::net_artifact(parts, info.symbol + "_code");
  info.flops = library.artifact.flops;
  library.net = std::move(parts);
  library.info = std::move(info);
  return library;
}

}  // namespace prunerc
