// compile of a net: one library with its kernels, its prepared weights and what runs them.
#include "codegen/codegen.h"
#include "codegen/cpu/export.h"
#include "codegen/export_text.h"
#include "ir/support/file.h"
#include "tools/driver/export.h"
#include "tools/driver/network/network_library.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace prunerc::cli {
namespace {

std::optional<codegen::CpuLibraryForm> library_form(ExportForm form) {
  switch (form) {
    case ExportForm::kShared: return codegen::CpuLibraryForm::kShared;
    case ExportForm::kArchive: return codegen::CpuLibraryForm::kArchive;
    case ExportForm::kObject: return codegen::CpuLibraryForm::kObject;
    default: return std::nullopt;
  }
}

Result<void> write_files(const codegen::CpuLibrary& library,
                         const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const ExportForm form = *export_form_of(path);
    std::string made;
    std::string_view bytes = library.net->prepared;
    if (const auto library_of = library_form(form)) {
      PRUNERC_TRY(made, codegen::build_cpu_library(library, *library_of));
      bytes = made;
    } else if (form == ExportForm::kHeader) {
      made = codegen::cpu_library_header(library);
      bytes = made;
    }
    PRUNERC_TRY_VOID(replace_file(path, bytes));
    fmt::print(stderr, "wrote {} ({} bytes)\n", path, bytes.size());
  }
  return {};
}

Result<void> check_forms(const std::vector<std::string>& outputs) {
  for (const std::string& path : outputs) {
    const ExportForm form = *export_form_of(path);
    if (library_form(form) || form == ExportForm::kHeader || form == ExportForm::kWeights) continue;
    return error(
        Diag::kUsageOption, "-o",
        fmt::format("a net becomes .so, .a, .o, .h or .weights, for CPUs, not '{}'", path));
  }
  return {};
}

// What the net is made of stays: nothing is written over the request's file or what it reads.
Result<void> check_sources(const std::vector<std::string>& outputs, const LoadedNet& net,
                           const OperatorRequest& request, const std::string& weights) {
  const std::filesystem::path file = request.file, folder = file.parent_path();
  std::vector<std::filesystem::path> sources = {file, weights, folder / net.net.weights};
  for (const std::string& name : net.files) sources.push_back(folder / name);
  for (const auto& [name, text] : request.constants) {
    if (text.starts_with("@")) sources.emplace_back(text.substr(1));
  }
  for (const std::filesystem::path& source : sources) {
    for (const std::string& path : outputs) {
      std::error_code ignored;
      if (source.empty() || !std::filesystem::equivalent(path, source, ignored)) continue;
      return error(Diag::kUsageOption, "-o",
                   fmt::format("would write '{}' over what the net is read from", path));
    }
  }
  return {};
}

// Adds the net for one combination of sizes.
int add_sized(const SizedNet& sized, const OperatorRequest& request, const MachineOptions& machine,
              const NetworkCompile& options, const std::string& symbol, codegen::LibraryInfo* info,
              std::vector<std::string>* cpu_features, NetworkLibrary* library) {
  const LoadedNet& net = sized.net;
  const Result<WeightSource> weights =
      open_weights(net, request, options.weights, filled_const_inputs(net.net, 0));
  if (!weights.ok()) return fail(weights.error());
  const Result<PreparedNetwork> prepared = prepare_network(
      net, machine, *weights, NetworkPurpose::kCompile, net::Reuse::kShared, symbol);
  if (!prepared.ok()) return fail(prepared.error());
  const auto is_record = [](Choice::Origin origin) { return origin == Choice::Origin::kRecord; };
  const auto missing =
      std::find_if_not(prepared->origins.begin(), prepared->origins.end(), is_record);
  if (options.require_tuned && missing != prepared->origins.end()) {
    const auto task = static_cast<std::size_t>(missing - prepared->origins.begin());
    return fail(fmt::format("no record of '{}' of net '{}' for target {}",
                            prepared->network.tasks()[task].name, title_of(sized), machine.target),
                "`prunerc tune` of the net, for the same machine, makes one", kCacheMiss);
  }
  const Result<void> added = library->add(prepared->network, sized.sizes);
  if (!added.ok()) return fail(added.error());
  const Session& session = prepared->session;
  const Result<std::vector<std::string>> features = codegen::cpu_features(session.target());
  if (!features.ok()) return fail(features.error());
  *cpu_features = *features;
  info->target = session.target().name;
  info->num_threads = session.num_threads();
  fmt::print(stderr, "{}: {} calls of {} kernels; weights {}, arena {}, workspace {}\n",
             title_of(sized), net::run_calls(net.net).size(), prepared->network.tasks().size(),
             bytes_text(static_cast<uint64_t>(prepared->network.prepared_bytes())),
             bytes_text(static_cast<uint64_t>(prepared->network.memory().bytes)),
             bytes_text(static_cast<uint64_t>(prepared->network.workspace_bytes())));
  return kSuccess;
}

}  // namespace

int compile_network(const SizedNets& nets, const OperatorRequest& request,
                    const MachineOptions& machine, const NetworkCompile& options) {
  const LoadedNet& loaded = nets.nets[0].net;
  const net::Net& first = loaded.net;
  fmt::print(stderr, "{}", loaded.warnings);
  Result<void> asked = check_forms(options.outputs);
  if (asked.ok()) asked = check_sources(options.outputs, loaded, request, options.weights);
  if (!asked.ok()) return fail(asked.error(), kUsage);
  codegen::LibraryInfo info;
  info.name = first.name;
  info.version = kVersion;
  info.symbol = options.symbol.empty() ? "net_" + codegen::c_name(first.name) : options.symbol;
  const Result<void> usable = codegen::check_symbol(info.symbol);
  if (!usable.ok()) return fail(usable.error(), kUsage);
  NetworkLibrary gathered(nets.dims);
  std::vector<std::string> cpu_features;
  for (const SizedNet& sized : nets.nets) {
    const int code =
        add_sized(sized, request, machine, options, info.symbol, &info, &cpu_features, &gathered);
    if (code != kSuccess) return code;
  }
  std::vector<std::string> outputs = options.outputs;
  const std::string file = weights_beside(gathered.prepared_bytes(), &outputs);
  const Result<void> kept = check_sources(outputs, loaded, request, options.weights);
  if (!kept.ok()) return fail(kept.error(), kUsage);
  codegen::CpuLibrary library = gathered.library(info, file);
  library.cpu_features = std::move(cpu_features);
  const Result<void> written = write_files(library, outputs);
  if (!written.ok()) return fail(written.error());
  if (!nets.dims.empty()) {
    fmt::print(stderr, "{} for {} combinations of sizes: {} kernels, weights {}\n", first.name,
               nets.nets.size(), gathered.num_kernels(),
               bytes_text(static_cast<uint64_t>(gathered.prepared_bytes())));
  }
  if (!file.empty())
    fmt::print(stderr, "the library reads its weights from {} in its own folder\n", file);
  return kSuccess;
}

}  // namespace prunerc::cli
