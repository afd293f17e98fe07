// Exported libraries, called with DLPack tensors through a driver whose device is this CPU.
#include "codegen/cuda/export.h"

#include "codegen/cuda/host_object.h"
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/runtime/cuda_host/windows.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace prunerc::codegen {
namespace {

using testing::GemmCase;
constexpr const char* kDriver = "tests/runtime/cuda_host/libcuda_on_host.so";

/// An environment variable, as it was before when this ends.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* name_;
};

/// A shared object, opened from its bytes.
class Library {
 public:
  explicit Library(const std::string& bytes) {
    char path[] = "/tmp/prunerc-export-XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    close(file);
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    REQUIRE(handle_ != nullptr);
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  template <typename F>
  F* find(const std::string& name) const {
    return reinterpret_cast<F*>(dlsym(handle_, name.c_str()));
  }

 private:
  void* handle_;
};

/// Memory that a driver would call the device's.
struct Memory {
  explicit Memory(std::size_t bytes) : size((bytes + 63) / 64 * 64) {
    data = static_cast<char*>(std::aligned_alloc(64, size));
    std::memset(data, 0xff, size);
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  std::size_t size;
  char* data;
};

DLDataType dlpack_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16: return {kDLFloat, 16, 1};
    case ir::DType::kF32: return {kDLFloat, 32, 1};
    default: FAIL("a type of these tests"); return {};
  }
}

/// One call's tensors: inputs filled, outputs poisoned.
struct Call {
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> tensors;

  Call(const Artifact& artifact, const std::vector<std::string>& inputs, int device = 0) {
    std::size_t next = 0;
    for (const ArtifactParam& param : artifact.params) {
      Memory& at = *memory.emplace_back(
          std::make_unique<Memory>(static_cast<std::size_t>(size_bytes(param))));
      if (param.role == ParamRole::kInput) {
        std::memcpy(at.data, inputs[next].data(), inputs[next].size());
        ++next;
      }
      shapes.push_back(param.shape);
      DLTensor tensor{};
      tensor.data = at.data;
      tensor.device = {kDLCUDA, device};
      tensor.ndim = static_cast<int>(param.shape.size());
      tensor.dtype = dlpack_type(param.dtype);
      tensors.push_back(tensor);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].shape = shapes[i].data();
  }

  std::vector<const void*> pointers() const {
    std::vector<const void*> out;
    for (const DLTensor& tensor : tensors) out.push_back(&tensor);
    return out;
  }
  std::string output(const Artifact& artifact) const {
    return {memory.back()->data, static_cast<std::size_t>(size_bytes(artifact.params.back()))};
  }
};

/// The exported library of an artifact of kind kCudaSource, with the host's code as the cubin.
struct Exported {
  Artifact artifact;
  std::unique_ptr<Library> library;
  int32_t (*run)(const void* const*, int32_t, void*) = nullptr;
  const char* (*error)() = nullptr;

  explicit Exported(const Artifact& source, const std::string& ptx = "") {
    const Result<Artifact> object = build_host_object(source, {});
    if (!object.ok()) FAIL(object.error().message());
    artifact = *object;
    artifact.kind = ArtifactKind::kCudaCubin;
    const Result<std::string> bytes = build_cuda_library(artifact, ptx, "op_test");
    if (!bytes.ok()) FAIL(bytes.error().message());
    library = std::make_unique<Library>(*bytes);
    run = library->find<int32_t(const void* const*, int32_t, void*)>("op_test_dlpack");
    error = library->find<const char*()>("op_test_error");
    REQUIRE(run != nullptr);
    REQUIRE(error != nullptr);
  }
  int32_t operator()(const Call& call) const {
    const std::vector<const void*> pointers = call.pointers();
    return run(pointers.data(), static_cast<int32_t>(pointers.size()), nullptr);
  }
};

int live_allocations() {
  void* const driver = dlopen(kDriver, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(driver != nullptr);
  return reinterpret_cast<int (*)()>(dlsym(driver, "fake_allocations"))();
}

// Doubles into the workspace, behind its first 512 bytes; then reverses and adds one.
Artifact two_launches() {
  Artifact out;
  out.kind = ArtifactKind::kCudaSource;
  out.bytes = R"(
PR_KERNEL(64, 1) void pair_k0(const float* x, float* w) {
  const int t = pr_thread_x();
  w[t] = x[t] * 2.0f;
}
PR_KERNEL(64, 1) void pair_k1(const float* w, float* y) {
  const int t = pr_thread_x();
  y[t] = w[63 - t] + 1.0f;
}
)";
  out.entry = "pair_k0";
  out.cpu = "sm_80";
  out.params = {{"x", ir::DType::kF32, {64}, ParamRole::kInput},
                {"y", ir::DType::kF32, {64}, ParamRole::kOutput}};
  const LaunchArg workspace = {LaunchArgKind::kWorkspace, 512};
  Launch first;
  first.kernel = "pair_k0";
  first.block = {64, 1, 1};
  first.args = {{LaunchArgKind::kParam, 0}, workspace};
  Launch second = first;
  second.kernel = "pair_k1";
  second.args = {workspace, {LaunchArgKind::kParam, 1}};
  out.launches = {first, second};
  out.workspace_bytes = 768;
  REQUIRE(validate(out).ok());
  return out;
}

void check_product(const GemmCase& gemm) {
  const Exported exported(gemm.artifact);
  const Call call(exported.artifact, gemm.inputs);
  const int32_t code = exported(call);
  INFO(exported.error());
  CHECK(code == 0);
  CHECK(testing::error_of(gemm, call.output(exported.artifact)) < 1e-6);
}

TEST_CASE("an exported library computes what its kernels compute") {
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  check_product(testing::sgemm_tiled({.m = 70, .n = 100, .k = 37}));
  check_product(testing::hgemm_mma({.m = 100, .n = 128, .k = 224}));
  // Tensor maps are made from the tensors' addresses.
  check_product(testing::hgemm_tma({.m = 200, .n = 136, .k = 584}, 2));
}

TEST_CASE("an exported library describes images to the driver as kernels expect them") {
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  for (const testing::Windows& w : testing::all_windows()) {
    const Exported exported(testing::window_copy(w));
    const Call call(exported.artifact, {testing::window_input(w)});
    INFO(exported.error());
    CHECK(exported(call) == 0);
    CHECK(call.output(exported.artifact) == testing::window_output(w));
  }
}

TEST_CASE("launches share a workspace that is allocated for the call; kernels are not exported") {
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  Artifact source = two_launches();
  std::string x(256, '\0');
  for (int i = 0; i < 64; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(x.data() + 4 * i, &value, 4);
  }
  const Result<Artifact> object = build_host_object(source, {});
  if (!object.ok()) FAIL(object.error().message());
  Artifact cubin = *object;
  cubin.kind = ArtifactKind::kCudaCubin;
  const Result<std::string> bytes = build_cuda_library(cubin, "", "op_pair");
  REQUIRE(bytes.ok());
  const Library library(*bytes);
  auto* const run = library.find<int32_t(const void* const*, int32_t, void*)>("op_pair_dlpack");
  REQUIRE(run != nullptr);
  CHECK(library.find<int32_t()>("pair_k0") == nullptr);
  // Many threads, two devices, the first calls among them at once.
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<int32_t> codes(8, -1);
  for (int i = 0; i < 8; ++i) calls.push_back(std::make_unique<Call>(cubin, std::vector{x}, i % 2));
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { codes[i] = run(calls[i]->pointers().data(), 2, nullptr); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(codes[i] == 0);
    const std::string y = calls[i]->output(cubin);
    for (int k = 0; k < 64; ++k) {
      float value = 0;
      std::memcpy(&value, y.data() + 4 * k, 4);
      CHECK(value == static_cast<float>(63 - k) * 2.0f + 1.0f);
    }
  }
  CHECK(live_allocations() == 0);
}

TEST_CASE("tensors that do not fit are refused, each with its reason") {
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  const GemmCase gemm = testing::sgemm_tiled({.m = 70, .n = 100, .k = 37});
  const Exported exported(gemm.artifact);
  int64_t odd[] = {70, 38};
  int64_t dense[] = {37, 1};
  int64_t transposed[] = {1, 70};
  struct Case {
    const char* what;
    std::function<void(Call&)> change;
  };
  const std::vector<Case> refused = {
      {"argument 0 (A) is not on a CUDA device",
       [](Call& c) { c.tensors[0].device.device_type = kDLCPU; }},
      {"argument 1 (B) is on device 1", [](Call& c) { c.tensors[1].device.device_id = 1; }},
      {"argument 0 (A) is on device -1", [](Call& c) { c.tensors[0].device.device_id = -1; }},
      {"argument 0 (A) has 1 dimensions, not 2", [](Call& c) { c.tensors[0].ndim = 1; }},
      {"argument 0 (A) has extent 38 in dimension 1, not 37",
       [&](Call& c) { c.tensors[0].shape = odd; }},
      {"argument 0 (A) is not dense and row-major",
       [&](Call& c) { c.tensors[0].strides = transposed; }},
      {"argument 2 (C) has type code 2 with 16 bits x 1, not 2 with 32",
       [](Call& c) { c.tensors[2].dtype.bits = 16; }},
      {"argument 0 (A) has type code 0 with 32 bits x 1, not 2 with 32",
       [](Call& c) { c.tensors[0].dtype.code = kDLInt; }},
      {"argument 0 (A) has type code 2 with 32 bits x 4, not 2 with 32",
       [](Call& c) { c.tensors[0].dtype.lanes = 4; }},
      {"argument 0 (A) is not aligned to 16 bytes", [](Call& c) { c.tensors[0].byte_offset = 4; }},
      {"argument 1 (B) is NULL", [](Call& c) { c.tensors[1].data = nullptr; }},
      {"argument 2 (C) overlaps argument 0 (A)",
       [](Call& c) { c.tensors[2].data = c.tensors[0].data; }},
  };
  for (const Case& one : refused) {
    Call call(exported.artifact, gemm.inputs);
    one.change(call);
    INFO(one.what);
    CHECK(exported(call) == 1);
    CHECK(std::string(exported.error()) == one.what);
  }
  Call call(exported.artifact, gemm.inputs);
  std::vector<const void*> pointers = call.pointers();
  CHECK(exported.run(pointers.data(), 2, nullptr) == 1);
  CHECK(std::string(exported.error()) == "2 arguments, not 3");
  CHECK(exported.run(nullptr, 3, nullptr) == 1);
  pointers[1] = nullptr;
  CHECK(exported.run(pointers.data(), 3, nullptr) == 1);
  CHECK(std::string(exported.error()) == "argument 1 (B) is NULL");
  // Strides that say what is the case anyway, and an offset that keeps the alignment, are fine.
  call.tensors[0].strides = dense;
  call.tensors[1].data = static_cast<char*>(call.tensors[1].data) - 64;
  call.tensors[1].byte_offset = 64;
  CHECK(exported(call) == 0);
}

TEST_CASE("what CUDA says is passed on, and the next call tries again") {
  const GemmCase gemm = testing::sgemm_tiled({.m = 8, .n = 16, .k = 8});
  const Exported exported(gemm.artifact);
  const Call call(exported.artifact, gemm.inputs);
  {
    const Setting driver("PRUNERC_LIBCUDA", "/no/such/libcuda.so");
    CHECK(exported(call) == 2);
    CHECK(std::string(exported.error()).find("no CUDA driver: /no/such/libcuda.so") == 0);
  }
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  {
    const Setting none("FAKE_NO_DEVICE", "1");
    CHECK(exported(call) == 2);
    CHECK(std::string(exported.error()) == "cuInit: an unknown error (100)");
  }
  {
    const Setting old("FAKE_OTHER_GPU", "1");
    CHECK(exported(call) == 2);
    CHECK(std::string(exported.error()) == "cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
  }
  const Call beyond(exported.artifact, gemm.inputs, 5);
  CHECK(exported(beyond) == 2);
  CHECK(std::string(exported.error()) == "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)");
  CHECK(exported(call) == 0);
}

TEST_CASE("only kernels with tensor maps need a driver that encodes them") {
  const Setting driver("PRUNERC_LIBCUDA", "tests/runtime/cuda_host/libcuda_11_on_host.so");
  check_product(testing::hgemm_mma({.m = 100, .n = 128, .k = 224}));
  const GemmCase gemm = testing::hgemm_tma({.m = 200, .n = 136, .k = 584}, 2);
  const Exported exported(gemm.artifact);
  CHECK(exported(Call(exported.artifact, gemm.inputs)) == 2);
  CHECK(std::string(exported.error()) ==
        "the CUDA driver lacks cuTensorMapEncodeTiled: it is too old");
  const Exported windows(testing::window_copy({}));
  CHECK(windows(Call(windows.artifact, {testing::window_input({})})) == 2);
  CHECK(std::string(windows.error()) ==
        "the CUDA driver lacks cuTensorMapEncodeIm2col: it is too old");
}

TEST_CASE("a GPU that the cubin is not for gets the PTX") {
  const Setting driver("PRUNERC_LIBCUDA", kDriver);
  const Setting other("FAKE_OTHER_GPU", "1");
  const GemmCase gemm = testing::sgemm_tiled({.m = 8, .n = 16, .k = 8});
  const Result<Artifact> object = build_host_object(gemm.artifact, {});
  REQUIRE(object.ok());
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/later";
  std::ofstream(path, std::ios::binary) << object->bytes;
  const Exported exported(gemm.artifact, "//ptx " + path);
  const Call call(exported.artifact, gemm.inputs);
  CHECK(exported(call) == 0);
  CHECK(testing::error_of(gemm, call.output(exported.artifact)) < 1e-6);
}

TEST_CASE("without a compiler there is a source, and the reason why there is no library") {
  const Setting compiler("PRUNERC_CXX", "/no/such/compiler");
  Artifact cubin = two_launches();
  cubin.kind = ArtifactKind::kCudaCubin;
  cubin.bytes = std::string("\0\"\\?\xff", 5);
  const Result<std::string> library = build_cuda_library(cubin, "", "op_pair");
  REQUIRE(!library.ok());
  CHECK(library.error().message().find("PRUNERC_CXX names /no/such/compiler") != std::string::npos);
  CHECK(cuda_launcher_source(cubin, "", "op_pair").find("\"\\000\\042\\134\\077\\377\"") !=
        std::string::npos);
  CHECK(cuda_launcher_header(cubin, "op_pair").find("[1] out y: f32[64]") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::codegen
