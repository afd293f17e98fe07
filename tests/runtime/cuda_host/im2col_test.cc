// TMA's im2col mode on the host; whether silicon does the same is what silicon_test asks.
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/runtime/cuda_host/windows.h"
#include "tests/support/cuda_host.h"

#include <catch2/catch.hpp>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::Artifact;
using testing::all_windows;
using testing::window_copy;
using testing::Windows;

TEST_CASE("windows follow each other along w, h and images, with zeros outside") {
  for (const Windows& w : all_windows()) {
    const Artifact artifact = window_copy(w);
    INFO(artifact.bytes);
    REQUIRE(validate(artifact).ok());
    const std::string input = testing::window_input(w);
    const std::vector<std::string_view> inputs{input};
    for (const AsyncMode mode : {AsyncMode::kEager, AsyncMode::kLazy}) {
      const auto out = testing::run_source_on_host(artifact, inputs, {.mode = mode});
      if (!out.ok()) FAIL(out.error().message());
      CHECK(out->front() == testing::window_output(w));
    }
  }
}

TEST_CASE("copies of windows that the engine cannot make are faults") {
  const auto fault_of = [](const std::string& to) {
    const Windows w;
    Artifact artifact = window_copy(w);
    artifact.bytes = testing::replace_nth(
        artifact.bytes, "pr_tma_load_im2col(smem + 0, &m, 0, -1, -1, 0, 0, 0, bar)", to, 0);
    const std::string input = testing::window_input(w);
    const std::vector<std::string_view> inputs{input};
    const auto out = testing::run_source_on_host(artifact, inputs, {});
    return out.ok() ? std::string() : out.error().message();
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(fault_of("pr_tma_load_im2col(smem + 0, &m, 0, -2, -1, 0, 0, 0, bar)"),
                 "begins outside of its places"));
  CHECK(contains(fault_of("pr_tma_load_im2col(smem + 0, &m, 0, -1, 8, 0, 0, 0, bar)"),
                 "begins outside of its places"));
  CHECK(contains(fault_of("pr_tma_load_im2col(smem + 0, &m, 0, -1, -1, 0, 256, 0, bar)"),
                 "has no 8 bits"));
  CHECK(contains(fault_of("pr_tma_load_2d(smem + 0, &m, 0, 0, bar)"), "in another mode"));
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host
