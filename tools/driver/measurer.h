// DeviceMeasurer: builds candidates with codegen on threads, times and verifies them in the
// measuring child.
#ifndef PRUNERC_TOOLS_DRIVER_MEASURER_H_
#define PRUNERC_TOOLS_DRIVER_MEASURER_H_

#include "runtime/device.h"
#include "search/tune/measurer.h"
#include "tools/driver/reference.h"

#include <memory>

namespace prunerc {

struct MeasurerOptions {
  int num_builders = 2;
  /// Builders stand still while a kernel is timed: needed when the kernel uses every hardware
  /// thread.
  bool exclusive_timing = true;
  runtime::TimingOptions timing;
  /// A candidate whose single run takes more than so many times the best is not timed any further;
  /// 0: no such limit.
  double cut_factor = 0;
  /// So many kernels stay built, those asked for last: finals and verification need no second
  /// build.
  int kept_kernels = 32;
};

/// Threads: submit and next from one thread; destruction waits for what runs.
class DeviceMeasurer : public search::Measurer {
 public:
  /// Kernels run on `device`; `cpu` computes what their outputs must be.
  DeviceMeasurer(runtime::Device& device, runtime::Device& cpu, const MeasurerOptions& options);
  ~DeviceMeasurer() override;
  void submit(search::MeasureInput input) override;
  std::optional<search::MeasureOutcome> next(search::Deadline deadline) override;
  double busy_seconds() const override;
  void withdraw() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_MEASURER_H_
