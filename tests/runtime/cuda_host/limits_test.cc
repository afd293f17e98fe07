// The kernels that measure a GPU: they compile for it without spills, and compute what is expected
// of them on the host.
#include "runtime/cuda/limits.h"

#include "codegen/cuda/host_object.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/support/rng.h"
#include "runtime/cuda_host/object.h"
#include "runtime/cuda_host/run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>

namespace prunerc::runtime::cuda {
namespace {

/// Two multiprocessors and a small L2: what a processor does in a moment.
ir::Target small_gpu(const std::string& arch) {
  return *ir::target_from_string("cuda:" + arch + " num_sms=2 l2_bytes=1048576");
}
constexpr ProbeSizes kSmall = {.scale = 1.0 / 256};

std::vector<std::string> inputs_of(const LimitProbe& probe) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < probe.inputs.size(); ++i) {
    const codegen::ArtifactParam& param = probe.source.params[i];
    std::string& bytes = inputs.emplace_back(static_cast<std::size_t>(size_bytes(param)), '\0');
    fill_tensor(probe.inputs[i].fill, probe.inputs[i].seed, param.dtype, num_elems(param),
                bytes.data());
  }
  return inputs;
}

/// One object for all probes, as on a GPU.
std::string host_object(const std::vector<LimitProbe>& probes) {
  codegen::Artifact source = probes[0].source;
  source.launches.clear();
  for (const LimitProbe& probe : probes) source.launches.push_back(probe.source.launches[0]);
  const Result<codegen::Artifact> object = codegen::build_host_object(source, {});
  if (!object.ok()) FAIL(object.error().message());
  return object->bytes;
}

codegen::Artifact on_host(const LimitProbe& probe, const std::string& object) {
  codegen::Artifact artifact = probe.source;
  artifact.kind = codegen::ArtifactKind::kCudaHostObject;
  artifact.bytes = object;
  return artifact;
}

TEST_CASE("the probes of every described GPU are valid, and each limit has one") {
  for (const std::string& name : ir::device_names()) {
    const ir::Target target = *ir::target_from_string(name);
    std::set<LimitKind> kinds;
    for (const LimitProbe& probe : limit_probes(target)) {
      INFO(name << " " << probe.source.entry);
      REQUIRE(validate(probe.source).ok());
      CHECK(probe.source.bytes == limit_probes(target)[0].source.bytes);
      CHECK((probe.work > 0) == (probe.kind != LimitKind::kLaunch));
      CHECK(static_cast<int64_t>(probe.expected.size()) == size_bytes(probe.source.params.back()));
      // More than L2 where memory is meant, less where L2 is.
      const int64_t footprint = probe.source.workspace_bytes;
      if (probe.kind == LimitKind::kMemoryRead) CHECK(footprint >= 3 * target.l2_bytes);
      if (probe.kind == LimitKind::kL2Read) {
        CHECK(footprint <= target.l2_bytes / 2);
        CHECK(footprint >= target.l2_bytes / 8);
      }
      kinds.insert(probe.kind);
    }
    CHECK(kinds.size() == kNumLimitKinds);
  }
}

TEST_CASE("the probes compile to cubins without spills") {
  const Result<codegen::NvrtcInfo> nvrtc = codegen::nvrtc_info();
  if (!nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  for (const char* arch : {"sm_70", "sm_75", "sm_80", "sm_90a"}) {
    const std::string name = arch;
    const int number = std::stoi(name.substr(3, 2));
    if (std::find(nvrtc->archs.begin(), nvrtc->archs.end(), number) == nvrtc->archs.end()) {
      WARN(arch << " skipped: NVRTC " << nvrtc->major << " no longer makes code for it");
      continue;
    }
    const ir::Target target = *ir::target_from_string("cuda:" + name);
    const std::vector<LimitProbe> probes = limit_probes(target);
    const Result<codegen::Cubin> cubin = codegen::compile_cubin(probes[0].source.bytes, arch, {});
    INFO(arch);
    if (!cubin.ok()) FAIL(cubin.error().message());
    CHECK_FALSE(cubin->serializes_wgmma);
    REQUIRE(cubin->spills.size() == probes.size());
    for (const codegen::SpillInfo& kernel : cubin->spills) {
      INFO(kernel.kernel << " takes " << kernel.registers << " registers");
      CHECK(kernel.stack_bytes == 0);
      CHECK(kernel.spill_store_bytes == 0);
      CHECK(kernel.spill_load_bytes == 0);
    }
  }
}

TEST_CASE("the probes compute on the host what is expected of them") {
  for (const char* arch : {"sm_70", "sm_90a"}) {
    const std::vector<LimitProbe> probes = limit_probes(small_gpu(arch), kSmall);
    const std::string object = host_object(probes);
    for (const LimitProbe& probe : probes) {
      INFO(arch << " " << probe.source.entry);
      const std::vector<std::string> inputs = inputs_of(probe);
      const std::vector<std::string_view> views(inputs.begin(), inputs.end());
      const Result<std::vector<std::string>> outputs =
          cuda_host::run_on_host(on_host(probe, object), views, {});
      if (!outputs.ok()) FAIL(outputs.error().message());
      CHECK(outputs->front() == probe.expected);
    }
  }
}

TEST_CASE("readers read each word as often as their work says, and a copy is one") {
  const std::vector<LimitProbe> probes = limit_probes(small_gpu("sm_80"), kSmall);
  const std::string object = host_object(probes);
  for (const LimitProbe& probe : probes) {
    const int64_t bytes = probe.source.workspace_bytes;
    if (bytes == 0) continue;
    INFO(probe.source.entry);
    // Words whose sum is no multiple of anything.
    std::vector<uint32_t> words(static_cast<std::size_t>(bytes / 4));
    Rng rng(7);
    for (uint32_t& word : words) word = static_cast<uint32_t>(rng.below(1u << 31));
    const bool copies = probe.kind == LimitKind::kMemoryCopy;
    const std::size_t half = words.size() / 2;
    REQUIRE(std::equal(words.begin(), words.begin() + 8, words.begin() + half) == false);
    alignas(256) static unsigned char workspace[1 << 23];
    REQUIRE(bytes <= static_cast<int64_t>(sizeof workspace));
    std::memcpy(workspace, words.data(), static_cast<std::size_t>(bytes));
    std::vector<uint32_t> out(static_cast<std::size_t>(num_elems(probe.source.params.back())) + 4);
    void* place = out.data();
    std::size_t space = out.size() * 4;
    auto* const aligned = static_cast<unsigned char*>(std::align(16, 16, place, space));
    const codegen::Artifact artifact = on_host(probe, object);
    const Result<cuda_host::KernelObject> loaded =
        cuda_host::KernelObject::load(probe.source.entry, object);
    REQUIRE(loaded.ok());
    CHECK(cuda_host::run_launches(artifact, *loaded, std::array{aligned}, workspace, {}) == "");
    if (copies) {
      CHECK(std::memcmp(workspace, words.data(), half * 4) == 0);
      CHECK(std::memcmp(workspace + half * 4, words.data(), half * 4) == 0);
      continue;
    }
    uint32_t once = 0, read = 0;
    for (const uint32_t word : words) once += word;
    for (int64_t i = 0; i < num_elems(probe.source.params.back()); ++i) {
      uint32_t word;
      std::memcpy(&word, aligned + 4 * i, 4);
      read += word;
    }
    CHECK(read == once * static_cast<uint32_t>(probe.work / static_cast<double>(bytes)));
  }
}

}  // namespace
}  // namespace prunerc::runtime::cuda
