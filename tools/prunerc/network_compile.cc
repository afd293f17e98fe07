// compile of a net: one library with its kernels, its prepared weights and what runs them.
#include "codegen/codegen.h"
#include "codegen/cpu/export.h"
#include "codegen/export_text.h"
#include "ir/support/file.h"
#include "tools/driver/export.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

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

Result<codegen::CpuLibrary> make_library(const LoadedNet& net, const PreparedNetwork& prepared,
                                         const std::string& symbol) {
  codegen::LibraryInfo info;
  info.symbol = symbol;
  info.name = net.net.name;
  info.target = prepared.session.target().name;
  info.version = kVersion;
  info.num_threads = prepared.session.num_threads();
  PRUNERC_TRY(codegen::CpuLibrary library, prepared.network.library(std::move(info)));
  PRUNERC_TRY(library.cpu_features, codegen::cpu_features(prepared.session.target()));
  return library;
}

Result<void> write_files(const codegen::CpuLibrary& library,
                         const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const auto form = library_form(*export_form_of(path));
    std::string bytes;
    if (form) {
      PRUNERC_TRY(bytes, codegen::build_cpu_library(library, *form));
    } else {
      bytes = codegen::cpu_library_header(library);
    }
    PRUNERC_TRY_VOID(replace_file(path, bytes));
    fmt::print(stderr, "wrote {} ({} bytes)\n", path, bytes.size());
  }
  return {};
}

}  // namespace

int compile_network(const LoadedNet& net, const OperatorRequest& request,
                    const MachineOptions& machine, const NetworkCompile& options) {
  fmt::print(stderr, "{}", net.warnings);
  for (const std::string& path : options.outputs) {
    const ExportForm form = *export_form_of(path);
    if (library_form(form) || form == ExportForm::kHeader) continue;
    return fail(error(Diag::kUsageOption, "-o",
                      fmt::format("a net becomes .so, .a, .o or .h, not '{}'", path)),
                kUsage);
  }
  const std::string symbol =
      options.symbol.empty() ? "net_" + codegen::c_name(net.net.name) : options.symbol;
  const Result<void> usable = codegen::check_symbol(symbol);
  if (!usable.ok()) return fail(usable.error(), kUsage);
  const Result<WeightSource> weights =
      open_weights(net, request, options.weights, filled_const_inputs(net.net, 0));
  if (!weights.ok()) return fail(weights.error());
  const Result<PreparedNetwork> prepared =
      prepare_network(net, machine, *weights, net::Reuse::kShared, symbol);
  if (!prepared.ok()) return fail(prepared.error());
  const auto is_record = [](Choice::Origin origin) { return origin == Choice::Origin::kRecord; };
  const auto missing =
      std::find_if_not(prepared->origins.begin(), prepared->origins.end(), is_record);
  if (options.offline && missing != prepared->origins.end()) {
    const auto task = static_cast<std::size_t>(missing - prepared->origins.begin());
    return fail(fmt::format("no record of '{}' of net '{}' for target {}",
                            prepared->network.tasks()[task].name, net.net.name, machine.target),
                "`prunerc tune` of the net, for the same machine, makes one", kCacheMiss);
  }
  const Result<codegen::CpuLibrary> library = make_library(net, *prepared, symbol);
  if (!library.ok()) return fail(library.error());
  const Result<void> written = write_files(*library, options.outputs);
  if (!written.ok()) return fail(written.error());
  fmt::print(stderr, "{}: {} calls of {} kernels; weights {}, arena {}, workspace {}\n",
             net.net.name, net::run_calls(net.net).size(), prepared->network.tasks().size(),
             bytes_text(static_cast<uint64_t>(prepared->network.prepared_bytes())),
             bytes_text(static_cast<uint64_t>(prepared->network.memory().bytes)),
             bytes_text(static_cast<uint64_t>(prepared->network.workspace_bytes())));
  return kSuccess;
}

}  // namespace prunerc::cli
