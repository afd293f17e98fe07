#include "codegen/artifact.h"

#include "ir/support/rng.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace prunerc::codegen {
namespace {

Artifact example() {
  Artifact artifact;
  artifact.bytes = std::string(
      "\x7f"
      "ELF\0\1\2",
      7);
  artifact.entry = "k_0123456789abcdef";
  artifact.triple = "x86_64-unknown-linux-gnu";
  artifact.cpu = "znver4";
  artifact.params = {
      {.name = "A", .dtype = ir::DType::kBF16, .shape = {4, 0, 3}, .role = ParamRole::kInput},
      {.name = "s", .dtype = ir::DType::kF32, .shape = {}, .role = ParamRole::kInput},
      {.name = "C", .dtype = ir::DType::kI64, .shape = {5, 7}, .role = ParamRole::kOutput}};
  artifact.workspace_bytes = 4096;
  artifact.workspace_bytes_per_worker = 128;
  artifact.stack_bytes = 1024;
  artifact.flops = 1e9;
  artifact.bytes_moved = 12345;
  return artifact;
}

/// The same with a const input.
Artifact const_example() {
  Artifact artifact = example();
  artifact.params[0].is_const = true;
  artifact.prepare_entry = artifact.entry + "_prepare";
  artifact.prepared_bytes = 640;
  return artifact;
}

/// A kernel of two launches, one of which copies boxes by TMA.
Artifact cuda_example() {
  Artifact artifact = example();
  artifact.kind = ArtifactKind::kCudaSource;
  artifact.cpu = "sm_90a";
  artifact.params[0] = {.name = "A", .dtype = ir::DType::kBF16, .shape = {100, 72}};
  artifact.launches = {{.kernel = "first",
                        .grid = {132, 1, 1},
                        .block = {384, 1, 1},
                        .shared_bytes = 65536,
                        .args = {{LaunchArgKind::kTensorMap, 0}, {LaunchArgKind::kWorkspace, 256}},
                        .tensor_maps = {{.base = {LaunchArgKind::kParam, 0},
                                         .dtype = ir::DType::kBF16,
                                         .rows = 100,
                                         .cols = 72,
                                         .pitch_bytes = 144,
                                         .box_rows = 64,
                                         .box_cols = 64,
                                         .swizzle_bytes = 128}}},
                       {.kernel = "second",
                        .block = {32, 2, 1},
                        .args = {{LaunchArgKind::kWorkspace, 256}, {LaunchArgKind::kParam, 2}},
                        .tensor_maps = {}}};
  return artifact;
}

TEST_CASE("a prepare entry survives a round trip, and comes with const inputs alone") {
  const Result<Artifact> back = deserialize(serialize(const_example()));
  REQUIRE(back.ok());
  CHECK(*back == const_example());
  const auto refused = [](auto&& change) {
    Artifact artifact = const_example();
    change(artifact);
    return !validate(artifact).ok() && !deserialize(serialize(artifact)).ok();
  };
  CHECK(refused([](Artifact& a) { a.prepare_entry.clear(); }));
  CHECK(refused([](Artifact& a) { a.prepare_entry = "no identifier"; }));
  CHECK(refused([](Artifact& a) { a.params[0].is_const = false; }));
  CHECK(refused([](Artifact& a) { a.params[2].is_const = true; }));
  CHECK(refused([](Artifact& a) { a.prepared_bytes = -1; }));
  CHECK(refused([](Artifact& a) {
    a.prepare_entry.clear();
    a.params[0].is_const = false;
  }));
}

TEST_CASE("features of tile registers survive a round trip, and are a CPU's") {
  Artifact artifact = example();
  artifact.tile_features = {"amx-tile", "amx-int8"};
  const Result<Artifact> back = deserialize(serialize(artifact));
  REQUIRE(back.ok());
  CHECK(*back == artifact);
  const auto refused = [](Artifact made, std::vector<std::string> features) {
    made.tile_features = std::move(features);
    return !validate(made).ok() && !deserialize(serialize(made)).ok();
  };
  CHECK(refused(example(), {"avx2"}));
  CHECK(refused(example(), {""}));
  CHECK(refused(example(), {"amx-tile", "amx-\"\n"}));
  CHECK(refused(example(), std::vector<std::string>(9, "amx-tile")));
  CHECK(refused(cuda_example(), {"amx-tile"}));
}

TEST_CASE("launches survive a round trip through bytes, cut or damaged ones never crash") {
  const std::string bytes = serialize(cuda_example());
  const Result<Artifact> back = deserialize(bytes);
  REQUIRE(back.ok());
  CHECK(*back == cuda_example());
  for (size_t size = 0; size < bytes.size(); ++size)
    REQUIRE(!deserialize(std::string_view(bytes).substr(0, size)).ok());
  Rng rng(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    const Result<Artifact> other = deserialize(damaged);
    if (other.ok()) REQUIRE(validate(*other).ok());
  }
}

TEST_CASE("launches that no GPU could run are refused") {
  const auto is_refused = [](auto&& change) {
    Artifact artifact = cuda_example();
    change(artifact, artifact.launches[0], artifact.launches[0].tensor_maps[0]);
    return !validate(artifact).ok();
  };
  const auto map_is_refused = [&](auto&& change) {
    return is_refused([&](Artifact&, Launch&, TensorMap& map) { change(map); });
  };
  const auto launch_is_refused = [&](auto&& change) {
    return is_refused([&](Artifact&, Launch& launch, TensorMap&) { change(launch); });
  };
  CHECK(validate(cuda_example()).ok());
  CHECK(is_refused([](Artifact& a, Launch&, TensorMap&) { a.kind = ArtifactKind::kCpuObject; }));
  CHECK(is_refused([](Artifact& a, Launch&, TensorMap&) { a.launches.clear(); }));
  CHECK(is_refused([](Artifact& a, Launch&, TensorMap&) { a.workspace_bytes = 255; }));
  CHECK(launch_is_refused([](Launch& l) { l.kernel = "a-b"; }));
  CHECK(launch_is_refused([](Launch& l) { l.grid[1] = 65536; }));
  CHECK(launch_is_refused([](Launch& l) { l.grid[0] = 0; }));
  CHECK(launch_is_refused([](Launch& l) { l.block = {1024, 2, 1}; }));
  CHECK(launch_is_refused([](Launch& l) { l.block[2] = 65; }));
  CHECK(launch_is_refused([](Launch& l) { l.shared_bytes = -1; }));
  CHECK(launch_is_refused([](Launch& l) { l.args[0].value = 1; }));
  CHECK(launch_is_refused([](Launch& l) { l.args[1].value = 100; }));
  CHECK(launch_is_refused([](Launch& l) { l.args[1] = {LaunchArgKind::kParam, 3}; }));
  CHECK(launch_is_refused([](Launch& l) { l.args[1] = {LaunchArgKind::kParam, -1}; }));
  CHECK(launch_is_refused([](Launch& l) { l.args[1].kind = static_cast<LaunchArgKind>(3); }));
  CHECK(launch_is_refused([](Launch& l) { l.args.resize(300); }));
  CHECK(map_is_refused([](TensorMap& m) { m.rows = 101; }));
  CHECK(map_is_refused([](TensorMap& m) { m.rows = int64_t{1} << 62; }));
  CHECK(map_is_refused([](TensorMap& m) { m.cols = 73; }));
  CHECK(map_is_refused([](TensorMap& m) { m.pitch_bytes = 150; }));
  CHECK(map_is_refused([](TensorMap& m) { m.pitch_bytes = 160; }));
  CHECK(map_is_refused([](TensorMap& m) { m.box_rows = 257; }));
  CHECK(map_is_refused([](TensorMap& m) { m.box_cols = 65; }));
  CHECK(map_is_refused([](TensorMap& m) { m.box_cols = 72; }));
  CHECK(map_is_refused([](TensorMap& m) { m.swizzle_bytes = 48; }));
  CHECK(map_is_refused([](TensorMap& m) { m.base = {LaunchArgKind::kTensorMap, 0}; }));
  CHECK(map_is_refused([](TensorMap& m) { m.dtype = static_cast<ir::DType>(50); }));
}

TEST_CASE("a map of images survives a round trip, and is refused where the engine has none such") {
  const PixelBox pixels = {
      .height = 5, .width = 4, .lower = {-1, -2}, .upper = {1, -1}, .steps = {1, 2}};
  Artifact artifact = cuda_example();
  artifact.launches[0].tensor_maps[0].pixels = pixels;
  REQUIRE(validate(artifact).ok());
  const Result<Artifact> back = deserialize(serialize(artifact));
  REQUIRE(back.ok());
  CHECK(*back == artifact);
  const auto is_refused = [&](auto&& change) {
    Artifact other = artifact;
    change(*other.launches[0].tensor_maps[0].pixels);
    return !validate(other).ok();
  };
  CHECK(is_refused([](PixelBox& p) { p.height = 0; }));
  CHECK(is_refused([](PixelBox& p) { p.height = 3; }));
  CHECK(is_refused([](PixelBox& p) { p.width = int64_t{1} << 62; }));
  CHECK(is_refused([](PixelBox& p) { p.lower[0] = -129; }));
  CHECK(is_refused([](PixelBox& p) { p.upper[1] = 128; }));
  CHECK(is_refused([](PixelBox& p) { p.upper[0] = -6; }));
  CHECK(is_refused([](PixelBox& p) { p.steps[0] = 0; }));
  CHECK(is_refused([](PixelBox& p) { p.steps[1] = 9; }));
}

TEST_CASE("an artifact survives a round trip through bytes") {
  const Result<Artifact> back = deserialize(serialize(example()));
  REQUIRE(back.ok());
  CHECK(*back == example());
  CHECK(serialize(*back) == serialize(example()));
}

TEST_CASE("sizes follow from shapes and types") {
  const Artifact artifact = example();
  CHECK(size_bytes(artifact.params[0]) == 0);
  CHECK(size_bytes(artifact.params[1]) == 4);
  CHECK(num_elems(artifact.params[2]) == 35);
  CHECK(size_bytes(artifact.params[2]) == 280);
  CHECK(total_workspace_bytes(artifact, 3) == 4096 + 3 * 128);
}

TEST_CASE("every prefix of a serialized artifact is refused") {
  const std::string bytes = serialize(example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<Artifact> back = deserialize(std::string_view(bytes).substr(0, size));
    REQUIRE(!back.ok());
    CHECK(back.error().id() == Diag::kArtifactMalformed);
  }
  CHECK(!deserialize(bytes + "x").ok());
}

TEST_CASE("an artifact with flipped bytes is refused or valid, never a crash") {
  const std::string bytes = serialize(example());
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    for (uint64_t flips = 1 + rng.below(3); flips > 0; --flips) {
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    }
    const Result<Artifact> back = deserialize(damaged);
    if (back.ok()) REQUIRE(validate(*back).ok());
  }
}

TEST_CASE("artifacts that no runtime could hold are refused") {
  const auto is_refused = [](auto&& change) {
    Artifact artifact = example();
    change(artifact);
    return !validate(artifact).ok() && !deserialize(serialize(artifact)).ok();
  };
  CHECK(validate(example()).ok());
  CHECK(is_refused([](Artifact& a) { a.entry = ""; }));
  CHECK(is_refused([](Artifact& a) { a.entry = "1st"; }));
  CHECK(is_refused([](Artifact& a) { a.entry = "a b"; }));
  CHECK(is_refused([](Artifact& a) { a.entry = std::string(1000, 'x'); }));
  CHECK(is_refused([](Artifact& a) { a.params[0].shape = {-1}; }));
  CHECK(is_refused([](Artifact& a) { a.params[0].shape = {int64_t{1} << 62}; }));
  CHECK(is_refused([](Artifact& a) { a.params[0].shape = {1 << 21, 1 << 21, 1 << 21, 1 << 21}; }));
  CHECK(is_refused([](Artifact& a) { a.params[0].shape.assign(65, 1); }));
  CHECK(is_refused([](Artifact& a) {
    a.params[2].role = ParamRole::kInput, a.params[0].role = ParamRole::kOutput;
  }));
  CHECK(is_refused([](Artifact& a) { a.params[0].dtype = static_cast<ir::DType>(77); }));
  CHECK(is_refused([](Artifact& a) { a.kind = static_cast<ArtifactKind>(9); }));
  CHECK(is_refused([](Artifact& a) { a.workspace_bytes = -1; }));
  CHECK(is_refused([](Artifact& a) { a.workspace_bytes_per_worker = INT64_MAX; }));
  CHECK(is_refused([](Artifact& a) { a.params.resize(300); }));
}

}  // namespace
}  // namespace prunerc::codegen
