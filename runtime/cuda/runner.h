// Runs, checks and times cubins, inside a worker process that owns the context.
#ifndef PRUNERC_RUNTIME_CUDA_RUNNER_H_
#define PRUNERC_RUNTIME_CUDA_RUNNER_H_

#include "runtime/cuda/input_store.h"
#include "runtime/cuda/timer.h"
#include "runtime/worker/serve.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace prunerc::runtime::cuda {

/// The worker's end of a job. An error of a call is kCrash: errors of kernels are sticky, so the
/// parent ends this process and the next job gets a fresh context.
class CudaRunner final : public JobRunner {
 public:
  CudaRunner(int exchange_fd, StatusPage* status);
  ~CudaRunner() override;

  Measurement run(const JobMessage& job, const OnProgress& on_progress) override;
  std::vector<Measurement> compare(const CompareMessage& message,
                                   const OnProgress& on_progress) override;

 private:
  struct Prepared;
  struct Output;
  /// The device, once. Errors: CudaMissing, CudaCall.
  Result<void> open();
  /// What `allocate` does; as long as it fails and copies of inputs are kept, they make room.
  template <typename Fn>
  auto with_room(Fn&& allocate) -> decltype(allocate());
  Result<std::string> make_input(const InputMessage& input, const codegen::ArtifactParam& param);
  /// Returns the checksum.
  Result<uint64_t> fill_buffer(const InputMessage& input, const codegen::ArtifactParam& param,
                               const DeviceBuffer& to);
  Result<void> prepare(const JobMessage& job, unsigned char poison, Prepared* prepared);
  Result<void> run_once(const Prepared& prepared);
  /// What the kernel did to memory that is not its own; empty if nothing.
  Result<std::string> find_damage(const Prepared& prepared);
  /// One run on outputs and workspace filled with `poison`, its outputs, and what it damaged: empty
  /// if nothing.
  Result<std::string> run_round(const JobMessage& job, unsigned char poison,
                                const OnProgress& on_progress, std::vector<Output>* outputs);
  /// Brings outputs to the host and frees their memory on the device.
  Result<void> leave_device(std::vector<Output>* outputs);
  /// How the outputs of two rounds differ, if they do.
  Result<std::optional<std::string>> find_output_difference(const std::vector<Output>& first,
                                                            const std::vector<Output>& second);
  Measurement write_outputs(const std::vector<Output>& outputs, int64_t offset);
  Measurement check(const JobMessage& job, const OnProgress& on_progress);
  Measurement time(const JobMessage& job);

  const Driver* api_ = nullptr;
  Stream stream_ = nullptr;
  std::optional<LaunchTimer> timer_;
  std::optional<Inspector> inspector_;
  std::optional<InputStore> inputs_;
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_RUNNER_H_
