// Runs, checks and times kernels inside a worker process. What goes fatally wrong ends the process;
// the rest is data.
#ifndef PRUNERC_RUNTIME_CPU_RUNNER_H_
#define PRUNERC_RUNTIME_CPU_RUNNER_H_

#include "runtime/cpu/pool.h"
#include "runtime/measure.h"
#include "runtime/worker/message.h"
#include "runtime/worker/serve.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace prunerc::runtime {

/// The worker's end of a job.
class Runner final : public JobRunner {
 public:
  /// `exchange_fd` holds tensors given as bytes and receives outputs; `status` is where the stage
  /// is noted.
  Runner(const ConfigureMessage& configure, int exchange_fd, StatusPage* status);
  ~Runner() override;

  /// Loads, checks and times one kernel; calls `on_progress` before each step that may take long,
  /// with its stage.
  Measurement run(const JobMessage& job, const OnProgress& on_progress) override;

  /// Loads all kernels, then times those that loaded in turn.
  std::vector<Measurement> compare(const CompareMessage& message,
                                   const OnProgress& on_progress) override;

 private:
  struct Kernel;
  struct Arguments;
  struct Tensor;
  enum class Round : uint8_t;

  Measurement load(const JobMessage& job, Kernel* kernel);
  Measurement prepare(const Kernel& kernel, Round round, Arguments* arguments);
  /// As fill_input, from a copy if this worker made the same one before.
  bool fill_or_copy(const InputMessage& input, const codegen::ArtifactParam& param,
                    unsigned char* to);
  /// Fills the memory of a kernel with const inputs, which is never timed.
  Measurement prepare_constants(const Kernel& kernel, Arguments& arguments);
  Measurement execute(const Kernel& kernel, Arguments& arguments);
  /// `output_hashes` gets one for each output if the kernel ran twice and is to be timed.
  Measurement check(const Kernel& kernel, const JobMessage& job, const OnProgress& on_progress,
                    std::vector<uint64_t>* output_hashes);
  /// Runs the kernel on other inputs in the same place, and then on its own.
  Measurement run_on_other_inputs(const Kernel& kernel, Arguments& arguments);
  /// What the runs in this place left must be what the checking ones did.
  static Measurement check_timed(const Kernel& kernel, const Arguments& arguments,
                                 const std::vector<uint64_t>& output_hashes);
  Measurement write_outputs(const Kernel& kernel, const Arguments& arguments, int64_t offset);
  RawSample sample(const Kernel& kernel, Arguments& arguments, CacheState cache, int64_t runs);
  void flush_caches();
  /// Makes the copies of its prepared constants that runs then take in turns.
  void copy_constants(const TimingOptions& timing, Arguments& arguments);

  int64_t memory_limit_bytes_;
  Pool pool_;
  std::vector<char> flush_;
  std::vector<char> copies_;  // of the prepared constants of what is being timed
  // Inputs of a batch repeat; filling them anew would cost more than many kernels. Keyed by what
  // determines them.
  std::map<std::tuple<Fill, uint64_t, ir::DType, int64_t>, std::unique_ptr<Tensor>> filled_;
  int64_t filled_bytes_ = 0;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_RUNNER_H_
