// Runs programs for a GPU on the host: lowered, printed as CUDA text, compiled as C++.
#ifndef PRUNERC_TESTS_CODEGEN_GPU_RUN_H_
#define PRUNERC_TESTS_CODEGEN_GPU_RUN_H_

#include "ir/program.h"
#include "ir/target.h"
#include "runtime/cuda_host/options.h"

#include <cstdint>
#include <span>
#include <string>

namespace prunerc::testing {

ir::Target gpu_target(std::string_view name = "cuda-host:sm_80");

/// Two that differ in all that may differ: in many tests enough.
inline constexpr runtime::cuda_host::ExecutionOptions kTwoOrders[] = {
    {.order = runtime::cuda_host::ThreadOrder::kDescending,
     .mode = runtime::cuda_host::AsyncMode::kLazy},
    {.order = runtime::cuda_host::ThreadOrder::kRandom,
     .mode = runtime::cuda_host::AsyncMode::kEager,
     .seed = 5},
};

/// "" if the program gives what the interpreter gives for `reference`, for small whole numbers and
/// in each of the execution orders; else what differs, with the text.
std::string compare_on_host(const ir::Program& reference, const ir::Program& scheduled,
                            const ir::Target& target, uint64_t seed,
                            std::span<const runtime::cuda_host::ExecutionOptions> orders);

/// The same for a program that has been lowered already.
std::string compare_lowered_on_host(const ir::Program& reference, const ir::Program& lowered,
                                    const ir::Target& target, uint64_t seed,
                                    std::span<const runtime::cuda_host::ExecutionOptions> orders);

/// "" if the program does so under the race checker, and NVRTC, where there is one, compiles it for
/// `arch`.
std::string check_races_and_compile(const ir::Program& reference, const ir::Program& scheduled,
                                    const ir::Target& target, std::string_view arch);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_CODEGEN_GPU_RUN_H_
