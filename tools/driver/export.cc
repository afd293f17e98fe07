#include "tools/driver/export.h"

#include "codegen/codegen.h"
#include "codegen/cpu/export.h"
#include "codegen/cuda/export.h"
#include "codegen/cuda/prelude.h"
#include "codegen/export_text.h"
#include "ir/visit.h"
#include "tools/driver/backend.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace prunerc {
namespace {

struct Form {
  std::string_view suffix;
  ExportForm form;
  bool of_cpu, of_gpu;
};
constexpr Form kForms[] = {
    {".so", ExportForm::kShared, true, true},         {".a", ExportForm::kArchive, true, false},
    {".o", ExportForm::kObject, true, false},         {".h", ExportForm::kHeader, true, true},
    {".c", ExportForm::kSource, true, true},          {".s", ExportForm::kAssembly, true, false},
    {".ll", ExportForm::kLlvmText, true, false},      {".cu", ExportForm::kCudaText, false, true},
    {".ptx", ExportForm::kPtx, false, true},          {".cubin", ExportForm::kCubin, false, true},
    {".weights", ExportForm::kWeights, false, false},
};

bool has_parallel_loop(const ir::Program& program) {
  bool found = false;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Loop* const loop = s.as<ir::Loop>();
        found = found || (loop != nullptr && loop->loop_kind == ir::LoopKind::kParallel);
        return !found;
      },
      [](ir::Expr) {});
  return found;
}

// For GPUs of later generations; empty where the architecture has features of its own (sm_90a),
// which they lack.
Result<std::string> portable_ptx(const CudaBuild& built) {
  if (built.artifact.cpu.back() == 'a') return std::string();
  return codegen::compile_ptx(built.text, built.artifact.cpu);
}

}  // namespace

std::optional<ExportForm> export_form_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  for (const Form& form : kForms) {
    if (form.suffix == path.substr(dot)) return form.form;
  }
  return std::nullopt;
}

std::string weights_beside(int64_t prepared_bytes, std::vector<std::string>* outputs) {
  constexpr int64_t kMostInside = int64_t{1} << 30;
  const auto is_library = [](const std::string& path) {
    const std::optional<ExportForm> form = export_form_of(path);
    return form == ExportForm::kShared || form == ExportForm::kArchive ||
           form == ExportForm::kObject;
  };
  for (const std::string& path : *outputs) {
    if (export_form_of(path) == ExportForm::kWeights) return std::filesystem::path(path).filename();
  }
  if (prepared_bytes <= kMostInside) return "";
  const auto library = std::find_if(outputs->begin(), outputs->end(), is_library);
  std::filesystem::path path = library == outputs->end() ? outputs->front() : *library;
  path.replace_extension(".weights");
  outputs->push_back(path);
  return path.filename();
}

bool has_form(const ir::Target& target, ExportForm form) {
  for (const Form& one : kForms) {
    if (one.form == form) return target.kind == ir::TargetKind::kCpu ? one.of_cpu : one.of_gpu;
  }
  return false;
}

struct Exported::Impl {
  ir::Program program;
  ir::Target target;
  codegen::LibraryInfo info;
  codegen::CpuOptions cpu_options;
  std::optional<codegen::CpuLibrary> cpu = {};
  std::optional<CudaBuild> cuda = {};

  Result<void> compile();
  Result<std::string> cpu_file(ExportForm form);
  Result<std::string> cuda_file(ExportForm form);
};

Exported::Exported(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exported::Exported(Exported&&) noexcept = default;
Exported& Exported::operator=(Exported&&) noexcept = default;
Exported::~Exported() = default;

Result<Exported> Exported::make(const Session& session, const Operator& op, const Choice& choice,
                                const ExportOptions& options) {
  if (!options.symbol.empty()) PRUNERC_TRY_VOID(codegen::check_symbol(options.symbol));
  codegen::LibraryInfo info;
  info.symbol = options.symbol.empty() ? codegen::default_symbol(op.name) : options.symbol;
  info.name = op.name;
  info.bindings = op.bindings;
  info.target = session.target().name;
  info.version = kVersion;
  info.record_id = choice.record_id;
  info.record_version = choice.record_version;
  info.tuned_ns = choice.best_ns;
  info.flops = session.task(op, choice).flops;
  info.num_threads = has_parallel_loop(choice.program) ? session.num_threads() : 1;
  codegen::CpuOptions cpu_options;
  // Hidden in what is linked, and of another name than those of other libraries in one program.
  cpu_options.symbol = info.symbol + "_code";
  return Exported(std::make_unique<Impl>(
      Impl{choice.program, session.target(), std::move(info), std::move(cpu_options)}));
}

Result<void> Exported::Impl::compile() {
  if (target.kind != ir::TargetKind::kCpu) {
    if (cuda) return {};
    PRUNERC_TRY(cuda, build_cubin(program, target));
    return {};
  }
  if (cpu) return {};
  codegen::CpuLibrary library;
  library.info = info;
  PRUNERC_TRY(library.artifact, codegen::compile_cpu(program, target, cpu_options));
  PRUNERC_TRY(library.cpu_features, codegen::cpu_features(target));
  cpu = std::move(library);
  return {};
}

Result<std::string> Exported::Impl::cpu_file(ExportForm form) {
  using codegen::EmitKind;
  if (form == ExportForm::kAssembly)
    return codegen::emit_cpu(program, target, EmitKind::kAssembly, cpu_options);
  if (form == ExportForm::kLlvmText)
    return codegen::emit_cpu(program, target, EmitKind::kLlvmText, cpu_options);
  PRUNERC_TRY_VOID(compile());
  switch (form) {
    case ExportForm::kHeader: return codegen::cpu_library_header(*cpu);
    case ExportForm::kSource: return codegen::cpu_library_source(*cpu);
    case ExportForm::kArchive:
      return codegen::build_cpu_library(*cpu, codegen::CpuLibraryForm::kArchive);
    case ExportForm::kObject:
      return codegen::build_cpu_library(*cpu, codegen::CpuLibraryForm::kObject);
    default: return codegen::build_cpu_library(*cpu, codegen::CpuLibraryForm::kShared);
  }
}

Result<std::string> Exported::Impl::cuda_file(ExportForm form) {
  if (form == ExportForm::kCudaText || form == ExportForm::kPtx) {
    PRUNERC_TRY(const codegen::Artifact text, codegen::print_cuda_artifact(program, target));
    if (form == ExportForm::kCudaText) return codegen::device_text(text.bytes, text.cpu);
    return codegen::compile_ptx(text.bytes, text.cpu);
  }
  PRUNERC_TRY_VOID(compile());
  if (form == ExportForm::kCubin) return cuda->artifact.bytes;
  if (form == ExportForm::kHeader)
    return codegen::cuda_launcher_header(cuda->artifact, info.symbol);
  PRUNERC_TRY(const std::string ptx, portable_ptx(*cuda));
  if (form == ExportForm::kSource)
    return codegen::cuda_launcher_source(cuda->artifact, ptx, info.symbol);
  return codegen::build_cuda_library(cuda->artifact, ptx, info.symbol);
}

Result<std::string> Exported::file(ExportForm form) {
  if (!has_form(impl_->target, form))
    return error(Diag::kUnsupported, "this form of a kernel for " + impl_->target.name);
  return impl_->target.kind == ir::TargetKind::kCpu ? impl_->cpu_file(form)
                                                    : impl_->cuda_file(form);
}

}  // namespace prunerc
