#include "runtime/cpu/orc.h"

#include "runtime/cpu/tiles.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

extern "C" {
// Conversions of 16-bit floats, from the compiler's support library; LLVM calls them on CPUs
// without F16C.
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}

namespace prunerc::runtime {
namespace {

using llvm::orc::ExecutorAddr;

/// f32 to bf16, round to nearest even. The result travels in the low half of xmm0, as the ABI has
/// it for bf16.
extern "C" float prunerc_truncsfbf2(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) {
    bits = (bits >> 16) | 0x40U;
  } else {
    bits = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  }
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Symbol {
  const char* name;
  void* address;
};

template <typename F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

using Unary32 = float(float);
using Unary64 = double(double);
using Binary32 = float(float, float);
using Binary64 = double(double, double);
using Ternary32 = float(float, float, float);
using Ternary64 = double(double, double, double);

/// Everything a kernel may call. Code generation emits vector math inline; these are scalar
/// fallbacks of LLVM.
const std::vector<Symbol>& allowed_symbols() {
  static const std::vector<Symbol> symbols = {
      {"memset", address_of<void*(void*, int, size_t)>(std::memset)},
      {"memcpy", address_of<void*(void*, const void*, size_t)>(std::memcpy)},
      {"memmove", address_of<void*(void*, const void*, size_t)>(std::memmove)},
      {"expf", address_of<Unary32>(expf)},
      {"exp", address_of<Unary64>(exp)},
      {"exp2f", address_of<Unary32>(exp2f)},
      {"exp2", address_of<Unary64>(exp2)},
      {"logf", address_of<Unary32>(logf)},
      {"log", address_of<Unary64>(log)},
      {"tanhf", address_of<Unary32>(tanhf)},
      {"tanh", address_of<Unary64>(tanh)},
      {"erff", address_of<Unary32>(erff)},
      {"erf", address_of<Unary64>(erf)},
      {"sinf", address_of<Unary32>(sinf)},
      {"sin", address_of<Unary64>(sin)},
      {"cosf", address_of<Unary32>(cosf)},
      {"cos", address_of<Unary64>(cos)},
      {"sqrtf", address_of<Unary32>(sqrtf)},
      {"sqrt", address_of<Unary64>(sqrt)},
      {"floorf", address_of<Unary32>(floorf)},
      {"floor", address_of<Unary64>(floor)},
      {"ceilf", address_of<Unary32>(ceilf)},
      {"ceil", address_of<Unary64>(ceil)},
      {"roundf", address_of<Unary32>(roundf)},
      {"round", address_of<Unary64>(round)},
      {"roundevenf", address_of<Unary32>(roundevenf)},
      {"roundeven", address_of<Unary64>(roundeven)},
      {"rintf", address_of<Unary32>(rintf)},
      {"rint", address_of<Unary64>(rint)},
      {"truncf", address_of<Unary32>(truncf)},
      {"trunc", address_of<Unary64>(trunc)},
      {"powf", address_of<Binary32>(powf)},
      {"pow", address_of<Binary64>(pow)},
      {"fmodf", address_of<Binary32>(fmodf)},
      {"fmod", address_of<Binary64>(fmod)},
      {"fminf", address_of<Binary32>(fminf)},
      {"fmin", address_of<Binary64>(fmin)},
      {"fmaxf", address_of<Binary32>(fmaxf)},
      {"fmax", address_of<Binary64>(fmax)},
      {"fmaf", address_of<Ternary32>(fmaf)},
      {"fma", address_of<Ternary64>(fma)},
      {"__extendhfsf2", address_of(__extendhfsf2)},
      {"__truncsfhf2", address_of(__truncsfhf2)},
      {"__truncdfhf2", address_of(__truncdfhf2)},
      {"__truncsfbf2", address_of(prunerc_truncsfbf2)},
  };
  return symbols;
}

std::string text_of(llvm::Error failure) { return llvm::toString(std::move(failure)); }

/// The linker of this process, made on first use. Leaked: ORC wants an orderly end of its session,
/// which a process that runs candidates cannot promise.
struct Linker {
  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer layer;
  llvm::orc::JITDylib& allowed;
  std::mutex one_load;  // guards what follows
  uint64_t num_loaded = 0;
  std::string reported;  // what the linker said since the last load began; ORC tells callers only
                         // that it failed

  explicit Linker(std::unique_ptr<llvm::orc::ExecutorProcessControl> process)
      : session(std::move(process)),
        layer(session),
        allowed(session.createBareJITDylib("allowed")) {
    session.setErrorReporter(
        [this](llvm::Error failure) { reported += text_of(std::move(failure)) + "; "; });
  }
};

llvm::Error define_allowed(Linker& host) {
  llvm::orc::SymbolMap symbols;
  for (const Symbol& symbol : allowed_symbols()) {
    symbols[host.session.intern(symbol.name)] = {ExecutorAddr::fromPtr(symbol.address),
                                                 llvm::JITSymbolFlags::Exported};
  }
  return host.allowed.define(llvm::orc::absoluteSymbols(std::move(symbols)));
}

/// Null, with the reason in `failure`, if ORC cannot work in this process.
Linker* linker(std::string* failure) {
  static std::string why;
  static Linker* const instance = []() -> Linker* {
    auto process = llvm::orc::SelfExecutorProcessControl::Create();
    if (!process) {
      why = text_of(process.takeError());
      return nullptr;
    }
    auto host = std::make_unique<Linker>(std::move(*process));
    if (auto error = define_allowed(*host)) {
      why = text_of(std::move(error));
      static_cast<void>(host.release());
      return nullptr;
    }
    return host.release();
  }();
  *failure = why;
  return instance;
}

// Of the CPU first, then of the system.
Result<void> get_tiles(const codegen::Artifact& artifact) {
  if (artifact.tile_features.empty()) return {};
  static const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  std::string missing;
  for (const std::string& name : artifact.tile_features) {
    if (!host.lookup(name)) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty()) return error(Diag::kCpuFeatures, std::move(missing));
  if (allow_tiles()) return {};
  const bool is_small = errno == ENOSPC;
  std::string why = "the system does not let this process use tile registers (AMX)";
  if (is_small) why += ": a thread's signal stack has less than 12 KB";
  return error(Diag::kKernelLoad, artifact.entry, std::move(why));
}

}  // namespace

struct LoadedKernel::Impl {
  Linker* host = nullptr;
  llvm::orc::JITDylib* library = nullptr;

  ~Impl() {
    if (library != nullptr) llvm::consumeError(host->session.removeJITDylib(*library));
  }
};

LoadedKernel::LoadedKernel() : impl_(std::make_unique<Impl>()) {}
LoadedKernel::~LoadedKernel() = default;
LoadedKernel::LoadedKernel(LoadedKernel&&) noexcept = default;
LoadedKernel& LoadedKernel::operator=(LoadedKernel&&) noexcept = default;

Result<LoadedKernel> load_kernel(const codegen::Artifact& artifact) {
  const auto refuse = [&](std::string why) {
    return error(Diag::kKernelLoad, artifact.entry, std::move(why));
  };
  if (artifact.kind != codegen::ArtifactKind::kCpuObject) return refuse("not a CPU object");
  PRUNERC_TRY_VOID(codegen::validate(artifact));
  PRUNERC_TRY_VOID(get_tiles(artifact));

  std::string failure;
  Linker* const host = linker(&failure);
  if (host == nullptr) return refuse(failure);
  const std::lock_guard lock(host->one_load);
  host->reported.clear();
  auto library = host->session.createJITDylib("kernel" + std::to_string(host->num_loaded++));
  if (!library) return refuse(text_of(library.takeError()));

  LoadedKernel kernel;
  kernel.impl_->host = host;
  kernel.impl_->library = &*library;
  library->addToLinkOrder(host->allowed);
  auto object = llvm::MemoryBuffer::getMemBufferCopy(artifact.bytes, artifact.entry);
  if (auto error = host->layer.add(*library, std::move(object)))
    return refuse(text_of(std::move(error)));
  for (const auto& [name, to] : {std::pair(&artifact.entry, &kernel.entry_),
                                 std::pair(&artifact.prepare_entry, &kernel.prepare_entry_)}) {
    if (name->empty()) continue;
    auto symbol = host->session.lookup({&*library}, host->session.intern(*name));
    if (!symbol) {
      const std::string why = text_of(symbol.takeError());
      return refuse(host->reported.empty() ? why : host->reported);
    }
    *to = symbol->getAddress().toPtr<PrunercKernel>();
  }
  return kernel;
}

}  // namespace prunerc::runtime
