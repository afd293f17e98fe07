// A library of a net, for one combination of sizes or for several.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_LIBRARY_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_LIBRARY_H_

#include "codegen/cpu/export.h"
#include "tools/driver/network/network.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace prunerc {

/// Gathers networks of one net: kernels of equal code are kept once, and so are prepared constants of
/// equal bytes.
class NetworkLibrary {
 public:
  /// `dims`: what the net is compiled for several values of; may be empty.
  explicit NetworkLibrary(std::vector<codegen::NetDim> dims);

  /// The network for these sizes, a value of each of `dims`; it may go away afterwards. Errors: those
  /// of Network::parts; Unsupported (arguments that differ in more than shapes).
  Result<void> add(const Network& network, std::vector<int64_t> sizes);

  std::size_t num_kernels() const { return kernels_.size(); }
  int64_t prepared_bytes() const { return static_cast<int64_t>(prepared_.size()); }
  const std::string& prepared() const { return prepared_; }

  /// The whole; its parts lie in this object. `weights_file` as in codegen::NetParts.
  codegen::CpuLibrary library(codegen::LibraryInfo info, std::string weights_file) const;

 private:
  std::size_t add_kernel(const codegen::Artifact& kernel);
  int64_t add_prepared(std::string_view bytes);
  Result<void> check_params(const std::vector<codegen::ArtifactParam>& params) const;

  std::vector<codegen::NetDim> dims_;
  std::deque<codegen::Artifact> kernels_;  // does not move them
  std::map<std::string, std::size_t> kernel_of_entry_;
  std::vector<codegen::NetPlan> plans_;
  std::string prepared_;
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> blocks_;  // hash -> begin, size in prepared_
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_LIBRARY_H_
