#include "tests/codegen/kernel_run.h"

#include "codegen/subprocess.h"
#include "ir/interp/interpreter.h"
#include "ir/printer.h"
#include "runtime/cpu/tiles.h"
#include "runtime/kernel.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace prunerc::testing {
namespace {

using namespace ir;  // NOLINT: a source file of tests

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlign = PRUNERC_ALIGNMENT;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// Memory whose last byte (rounded up to the alignment) is followed by a page that faults. Where that is the
// alignment of an element, vectors are seldom aligned.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t num_bytes, std::size_t alignment)
      : body_(round_up(num_bytes + 1, kPage)) {
    void* m = mmap(nullptr, body_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(m);
    if (mprotect(base_ + kPage, body_, PROT_READ | PROT_WRITE) != 0) std::abort();
    std::memset(base_ + kPage, kFill, body_);
    start_ = base_ + kPage + body_ - round_up(num_bytes, alignment);
    num_bytes_ = num_bytes;
  }
  ~GuardedMemory() { munmap(base_, body_ + 2 * kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() { return start_; }
  /// Nothing before or behind the argument was written.
  bool is_intact() const {
    for (const std::byte* p = base_ + kPage; p < base_ + kPage + body_; ++p) {
      const bool inside = p >= start_ && p < start_ + num_bytes_;
      if (!inside && *p != std::byte{kFill}) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kFill = 0xA5;
  std::size_t body_, num_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::byte* start_ = nullptr;
};

int32_t run_backwards(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                      void* closure) {
  for (int64_t i = num_tasks; i-- > 0;) {
    body(i, static_cast<int32_t>(i % self->num_workers), closure);
  }
  return 0;
}

// Of the linkers that may be there, the fastest first: tests load many kernels.
Result<std::string> link_shared(const std::string& object) {
  PRUNERC_TRY(const codegen::ScratchFolder folder, codegen::ScratchFolder::make());
  const std::string from = folder.file("kernel.o"), to = folder.file("kernel.so");
  const std::string messages = folder.file("messages");
  PRUNERC_TRY_VOID(codegen::write_file(from, object));
  const std::vector<std::vector<std::string>> linkers = {{"ld.lld"}, {"cc", "-nostdlib"}};
  for (std::vector<std::string> command : linkers) {
    command.insert(command.end(), {"-shared", "-o", to, from});
    if (codegen::run_program(command, messages) == 0) return codegen::read_file(to);
  }
  return error(Diag::kIoError, "link", "a shared object", codegen::read_file(messages));
}

}  // namespace

Result<LoadedKernel> LoadedKernel::load(const codegen::Artifact& artifact) {
  if (!artifact.tile_features.empty() && !runtime::allow_tiles())
    return error(Diag::kCpuFeatures, artifact.tile_features.front());
  PRUNERC_TRY(const std::string bytes, link_shared(artifact.bytes));
  std::string path = scratch_path("kernel-XXXXXX");
  const int file = mkstemp(path.data());
  if (file < 0) return error(Diag::kIoError, "make", path, std::strerror(errno));
  const bool written =
      write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  close(file);
  LoadedKernel kernel;
  kernel.artifact_ = artifact;
  void* const handle = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (handle == nullptr) return error(Diag::kIoError, "load", path, dlerror());
  kernel.library_ = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
  kernel.entry_ = dlsym(handle, artifact.entry.c_str());
  if (kernel.entry_ == nullptr) return error(Diag::kIoError, "find", artifact.entry, dlerror());
  if (!artifact.prepare_entry.empty()) {
    kernel.prepare_entry_ = dlsym(handle, artifact.prepare_entry.c_str());
    if (kernel.prepare_entry_ == nullptr)
      return error(Diag::kIoError, "find", artifact.prepare_entry, dlerror());
  }
  return kernel;
}

std::vector<Tensor> LoadedKernel::run(const std::vector<Tensor>& inputs, int num_workers) const {
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> args;
  std::size_t next_input = 0;
  for (const codegen::ArtifactParam& param : artifact_.params) {
    memory.push_back(
        std::make_unique<GuardedMemory>(static_cast<std::size_t>(codegen::size_bytes(param)),
                                        static_cast<std::size_t>(byte_size(param.dtype))));
    args.push_back(memory.back()->data());
    if (param.role == codegen::ParamRole::kInput) {
      const Tensor& t = inputs[next_input++];
      std::memcpy(args.back(), t.data.data(), t.data.size());
    }
  }
  GuardedMemory workspace(
      static_cast<std::size_t>(codegen::total_workspace_bytes(artifact_, num_workers)), kAlign);
  const PrunercLaunch launch = {run_backwards, num_workers, nullptr};
  GuardedMemory prepared(static_cast<std::size_t>(artifact_.prepared_bytes), kAlign);
  if (prepare_entry_ != nullptr) {
    std::vector<void*> constants = args;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (artifact_.params[i].is_const) {
        args[i] = nullptr;
      } else {
        constants[i] = nullptr;
      }
    }
    for (std::vector<void*>* both : {&constants, &args}) both->push_back(prepared.data());
    const auto prepare = reinterpret_cast<PrunercKernel>(prepare_entry_);
    CHECK(prepare(constants.data(), workspace.data(), &launch) == 0);
    CHECK(prepared.is_intact());
  }
  const auto entry = reinterpret_cast<PrunercKernel>(entry_);
  CHECK(entry(args.data(), workspace.data(), &launch) == 0);
  CHECK(prepared.is_intact());
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < artifact_.params.size(); ++i) {
    CHECK(memory[i]->is_intact());
    const codegen::ArtifactParam& param = artifact_.params[i];
    if (param.role == codegen::ParamRole::kInput) continue;
    Tensor t(param.dtype, param.shape);
    std::memcpy(t.data.data(), args[i], t.data.size());
    outputs.push_back(std::move(t));
  }
  return outputs;
}

Result<std::vector<Tensor>> compile_and_run(const Program& program,
                                            const std::vector<Tensor>& inputs,
                                            const RunOptions& options) {
  PRUNERC_TRY(const codegen::Artifact artifact,
              codegen::compile_cpu(program, options.target, options.compile));
  PRUNERC_TRY(const LoadedKernel kernel, LoadedKernel::load(artifact));
  return kernel.run(inputs, options.num_workers);
}

std::string compare_with_interpreter(const Program& reference, const Program& scheduled,
                                     uint64_t seed, const RunOptions& options) {
  Rng rng(seed);
  const std::vector<Tensor> inputs = random_inputs(reference, rng);
  const Result<std::vector<Tensor>> expected = interpret(reference, inputs);
  if (!expected.ok()) return "interpreter: " + expected.error().message();
  const Result<std::vector<Tensor>> got = compile_and_run(scheduled, inputs, options);
  if (!got.ok()) return "compile: " + got.error().message();
  std::string difference = first_difference(*expected, *got);
  return difference.empty() ? "" : difference + "\n" + print(scheduled);
}

}  // namespace prunerc::testing
