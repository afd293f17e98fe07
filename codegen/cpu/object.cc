#include "codegen/cpu/object.h"

#include "codegen/cpu/emitter.h"
#include "codegen/cpu/legalize.h"
#include "ir/support/options.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace prunerc::codegen {
namespace {

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const CpuName& name) {
  initialize_llvm();
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(name.triple, problem);
  if (target == nullptr) return error(Diag::kUnsupported, "the target '" + name.triple + "'");
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only llvm.fmuladd fuses
  options.FunctionSections = true;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(name.triple, name.cpu, name.features, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) return error(Diag::kUnsupported, "the CPU '" + name.cpu + "'");
  return machine;
}

bool has_features(const llvm::MCSubtargetInfo& cpu, const std::string& features) {
  // Asked for a feature of another architecture LLVM would complain on stderr.
  const auto known = cpu.getAllProcessorFeatures();
  const bool is_known = std::any_of(known.begin(), known.end(), [&](const auto& feature) {
    return features == "+" + std::string(feature.Key);
  });
  return is_known && cpu.checkFeatures(features);
}

// Does the CPU have every tensor intrinsic that the program asks for?
Result<void> check_tensors(const ir::Program& program, const llvm::TargetMachine& machine) {
  Result<void> out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Loop* loop = s.as<ir::Loop>();
        const std::optional<std::string_view> name =
            loop == nullptr ? std::nullopt : ir::tensor_of(*loop);
        if (!name || !out.ok()) return out.ok();
        const Result<const ir::TensorIntrinsic*> tensor = ir::find_tensor(*name);
        if (!tensor.ok()) {
          out = tensor.error();
        } else if ((*tensor)->family != "cpu" ||
                   !has_features(*machine.getMCSubtargetInfo(), (*tensor)->features)) {
          out = error(Diag::kTensorTarget, (*tensor)->name, (*tensor)->needs(),
                      machine.getTargetCPU().str());
        }
        return out.ok();
      },
      [](ir::Expr) {});
  return out;
}

// Scalar clean-up and register promotion. Vectorizers are left out: the emitter writes the vectors.
void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
  llvm::LoopPassManager induction;
  induction.addPass(llvm::IndVarSimplifyPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(induction)));
  llvm::LoopUnrollOptions unroll(2);
  unroll.setPartial(true).setRuntime(true);
  unroll.OnlyWhenForced = true;
  passes.addPass(llvm::LoopUnrollPass(unroll));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

std::string print_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

/// The frames of functions and of tasks: the largest that LLVM warns of, as "warn-stack-size" asks.
struct Frames {
  int64_t function = 0, task = 0;
  int64_t both() const {
    // What LLVM leaves out of each: its return address, saved registers, and gaps where both of its ends
    // are aligned as slots are.
    constexpr int64_t kBeside = 4 * kStorageAlignment;
    return function + task + 2 * kBeside;
  }
};

class FrameWarnings final : public llvm::DiagnosticHandler {
 public:
  explicit FrameWarnings(Frames* frames) : frames_(frames) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& warning) override {
    const auto* frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(&warning);
    if (frame == nullptr) return false;
    int64_t& most = frame->getFunction().hasLocalLinkage() ? frames_->task : frames_->function;
    most = std::max(most, static_cast<int64_t>(frame->getStackSize()));
    return true;
  }

 private:
  Frames* frames_;
};

// The bytes of an object, or the text of an assembly file.
Result<std::string> emit_file(llvm::Module& module, llvm::TargetMachine& machine,
                              llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager emit;
  if (machine.addPassesToEmitFile(emit, out, nullptr, type, /*DisableVerify=*/true)) {
    return error(Diag::kInternal, "LLVM cannot emit files for " + module.getTargetTriple());
  }
  emit.run(module);
  return std::string(bytes.begin(), bytes.end());
}

// All functions, for the CPU and in a module that verifies.
Result<void> emit_functions(std::span<const LoweredFunction> functions, const ir::Target& target,
                            const CpuName& name, const llvm::TargetMachine& machine,
                            llvm::Module& module) {
  for (const LoweredFunction& function : functions) {
    PRUNERC_TRY_VOID(check_tensors(function.program, machine));
    llvm::IRBuilder<> builder(module.getContext());
    // Its instructions need registers of 64 bytes, which a target may have given up.
    const bool has_avx512 =
        target.vector_bytes >= 64 && machine.getMCSubtargetInfo()->checkFeatures("+avx512f");
    Emitter emitter(function.program, function.plan, {target.vector_bytes, has_avx512}, module,
                    builder);
    PRUNERC_TRY_VOID(emitter.emit_entry(function.symbol));
  }
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", name.cpu);
    if (!name.features.empty()) f.addFnAttr("target-features", name.features);
  }
  const llvm::MCSubtargetInfo& cpu = *machine.getMCSubtargetInfo();
  if (!cpu.checkFeatures("+fma") || !cpu.checkFeatures("+f16c")) {
    PRUNERC_TRY_VOID(replace_fused(module, name.cpu));
  }
  std::string broken;
  llvm::raw_string_ostream broken_out(broken);
  if (llvm::verifyModule(module, &broken_out)) {
    return with_detail(error(Diag::kInternal, "emitted LLVM IR does not verify"), broken_out.str());
  }
  return {};
}

}  // namespace

CpuName host_cpu() {
  initialize_llvm();
  CpuName name;
  name.triple = llvm::sys::getDefaultTargetTriple();
  name.cpu = llvm::sys::getHostCPUName().str();
  // A std::map's order, so that equal hosts give equal text.
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  }
  std::sort(features.begin(), features.end());
  for (const std::string& f : features) name.features += (name.features.empty() ? "" : ",") + f;
  return name;
}

Result<CpuName> resolve_cpu(const ir::Target& target) {
  if (target.kind != ir::TargetKind::kCpu) {
    return error(Diag::kUnsupported, "compiling for '" + target.name + "' as a CPU");
  }
  if (target.llvm_cpu.empty()) return host_cpu();
  if (target.vector_bytes != 16 && target.vector_bytes != 32 && target.vector_bytes != 64) {
    return error(Diag::kUnsupported,
                 "code with vectors of " + std::to_string(target.vector_bytes) + " bytes");
  }
  CpuName name{llvm::sys::getDefaultTargetTriple(), target.llvm_cpu, target.llvm_features};
  PRUNERC_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_machine({name.triple, "", ""}));
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(name.cpu)) {
    return error(Diag::kUnsupported, "the CPU '" + name.cpu + "'");
  }
  PRUNERC_TRY(machine, make_machine(name));
  // What the emitter takes for granted: rounding and minimums of vectors.
  if (!machine->getMCSubtargetInfo()->checkFeatures("+sse4.2")) {
    return error(Diag::kUnsupported, "the CPU '" + name.cpu + "', which lacks SSE4.2,");
  }
  return name;
}

Result<std::vector<std::string>> enabled_features(const CpuName& name) {
  PRUNERC_TRY(const std::unique_ptr<llvm::TargetMachine> machine, make_machine(name));
  const llvm::MCSubtargetInfo& cpu = *machine->getMCSubtargetInfo();
  std::vector<std::string> names;
  for (const llvm::SubtargetFeatureKV& feature : cpu.getAllProcessorFeatures()) {
    if (cpu.hasFeature(feature.Value)) names.emplace_back(feature.Key);
  }
  return names;
}

Result<EmittedObject> emit_object(std::span<const LoweredFunction> functions,
                                  const ir::Target& target, ObjectForm form) {
  PRUNERC_TRY(const CpuName name, resolve_cpu(target));
  PRUNERC_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_machine(name));
  llvm::LLVMContext context;
  llvm::Module module(functions.front().symbol, context);
  module.setTargetTriple(name.triple);
  module.setDataLayout(machine->createDataLayout());
  PRUNERC_TRY_VOID(emit_functions(functions, target, name, *machine, module));
  optimize(module, *machine);
  if (debug_options().wants_dump("llvm")) write_dump("llvm", print_module(module));
  if (form == ObjectForm::kLlvmText) return EmittedObject{print_module(module), 0};
  if (form == ObjectForm::kObject && debug_options().wants_dump("asm")) {
    // Emission changes a module, so that the dump works on a copy of it.
    PRUNERC_TRY(const std::string text, emit_file(*llvm::CloneModule(module), *machine,
                                                  llvm::CodeGenFileType::AssemblyFile));
    write_dump("asm", text);
  }
  Frames frames;
  context.setDiagnosticHandler(std::make_unique<FrameWarnings>(&frames));
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) f.addFnAttr("warn-stack-size", "0");
  }
  PRUNERC_TRY(std::string bytes,
              emit_file(module, *machine,
                        form == ObjectForm::kObject ? llvm::CodeGenFileType::ObjectFile
                                                    : llvm::CodeGenFileType::AssemblyFile));
  return EmittedObject{std::move(bytes), frames.both()};
}

}  // namespace prunerc::codegen
