// A library of a net whose weights are larger than 32 bits can say: places in them, their size, their key.
#include "codegen/codegen.h"
#include "codegen/cpu/export.h"
#include "codegen/subprocess.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace prunerc {
namespace {

using codegen::ArtifactParam;
using codegen::ParamRole;

constexpr int64_t kElems = 16;
/// Of PrunercPlace.
constexpr int kIo = 1, kInWeights = 3;
/// Where a kernel's weights lie, beyond what an unsigned number of 32 bits reaches, and where all end.
constexpr int64_t kAt = (int64_t{4} << 30) + 64, kWeightsBytes = kAt + kElems * 4;

constexpr int kWeightsError = 6;  // PRUNERC_ERROR_WEIGHTS of the library's header

/// Pages that nobody has written to take no memory.
struct Weights {
  Weights()
      : bytes(static_cast<char*>(mmap(nullptr, kWeightsBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Weights() { munmap(bytes, kWeightsBytes); }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  char* const bytes;
};

ArtifactParam vector_of(const std::string& name, ParamRole role) {
  return {.name = name, .dtype = ir::DType::kF32, .shape = {kElems}, .role = role};
}

// Y = X * W, of which W lies in the weights.
codegen::CpuLibrary library_of(const codegen::Artifact& kernel, std::string_view weights) {
  codegen::NetPlan plan;
  plan.params = {vector_of("X", ParamRole::kInput), vector_of("Y", ParamRole::kOutput)};
  plan.steps = {{0, {{kIo, 0}, {kInWeights, kAt}, {kIo, 1}}}};
  codegen::NetParts parts;
  parts.kernels = {&kernel};
  parts.plans = {plan};
  parts.prepared = weights;
  parts.weights_file = "big.weights";
  codegen::CpuLibrary library;
  library.artifact = codegen::net_artifact(parts, "net_big_code");
  library.net = parts;
  library.info.symbol = "net_big";
  library.info.name = "big";
  return library;
}

}  // namespace

TEST_CASE("weights of more than 4 GiB are known again, and read where they lie") {
  const Weights weights;
  REQUIRE(weights.bytes != MAP_FAILED);
  float w[kElems], x[kElems], y[kElems];
  for (int i = 0; i < kElems; ++i) w[i] = static_cast<float>(i + 1), x[i] = 2;
  std::memcpy(weights.bytes + kAt, w, sizeof w);
  const ir::Program program = testing::parse_or_die(
      "program p(X: f32[16], W: f32[16]) -> (Y: f32[16]) { for i in 16 { block \"Y\" [v: S(16) = "
      "i] "
      "{ Y[v] = X[v] * W[v] } } }");
  codegen::CpuOptions options;
  options.symbol = "net_big_k0";
  const Result<codegen::Artifact> kernel = codegen::compile_cpu(program, {}, options);
  REQUIRE_OK(kernel);
  const codegen::CpuLibrary library = library_of(*kernel, {weights.bytes, kWeightsBytes});
  CHECK(codegen::cpu_library_header(library).find("of 4294967424 bytes") != std::string::npos);
  const Result<std::string> built =
      codegen::build_cpu_library(library, codegen::CpuLibraryForm::kShared);
  REQUIRE_OK(built);
  const Result<codegen::ScratchFolder> folder = codegen::ScratchFolder::make();
  REQUIRE_OK(folder);
  const std::string path = folder->file("big.so");
  REQUIRE_OK(codegen::write_file(path, *built));
  void* const loaded = dlopen(path.c_str(), RTLD_NOW);
  REQUIRE(loaded != nullptr);
  const auto call = reinterpret_cast<int (*)(const float*, float*)>(dlsym(loaded, "net_big"));
  const auto load = reinterpret_cast<int (*)(const char*)>(dlsym(loaded, "net_big_load_weights"));
  const auto use =
      reinterpret_cast<int (*)(const void*, int64_t)>(dlsym(loaded, "net_big_use_weights"));
  // A file whose size differs from theirs by 2^32 alone.
  const std::string file = folder->file("big.weights");
  REQUIRE_OK(codegen::write_file(file, std::string(kWeightsBytes - (int64_t{1} << 32), '\0')));
  CHECK(load(file.c_str()) == kWeightsError);
  // One byte of the last ones is another.
  ++weights.bytes[kWeightsBytes - 1];
  CHECK(use(weights.bytes, kWeightsBytes) == kWeightsError);
  --weights.bytes[kWeightsBytes - 1];
  REQUIRE(use(weights.bytes, kWeightsBytes) == 0);
  REQUIRE(call(x, y) == 0);
  for (int i = 0; i < kElems; ++i) CHECK(y[i] == 2 * w[i]);
  dlclose(loaded);
}

}  // namespace prunerc
