// Kernels that autotuning data sets are of, written in our own terms: an operator, a sketch for each
// structure, and which candidate a configuration is.
#ifndef PRUNERC_TOOLS_DRIVER_T4_T4_KERNEL_H_
#define PRUNERC_TOOLS_DRIVER_T4_T4_KERNEL_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "search/space/space.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// A configuration's values by parameter.
using T4Values = std::map<std::string, int64_t, std::less<>>;

/// A candidate by the values that its sketch's decisions choose.
struct T4Point {
  int sketch = 0;
  std::vector<int64_t> chosen;
};

struct T4Kernel {
  std::string_view op;                       ///< name of the operator
  std::string_view text;                     ///< .prn; the data's sizes are its defaults
  std::span<const std::string_view> params;  ///< what a file of this kernel has, in any order
  std::vector<int64_t> problem_size;         ///< as files say it
  /// Errors: those of the primitives.
  Result<std::vector<search::Sketch>> (*sketches)(const ir::Program& base);
  /// Nothing for a configuration that the kernel does not take, or that our form of it lacks.
  std::optional<T4Point> (*point)(const T4Values& values);
};

/// CLBlast's `Xgemm` and Kernel Tuner's 2D convolution.
std::span<const T4Kernel> t4_kernels();
/// Errors: T4Kernel.
Result<const T4Kernel*> find_t4_kernel(std::vector<std::string> params);

/// The unscheduled operator; bindings replace its sizes. Errors: OperatorText.
Result<ir::Program> t4_program(const T4Kernel& kernel,
                               const std::map<std::string, std::string>& bindings = {});

/// The point as the sketch's decisions. Nothing if a value is none of its sketch's.
std::optional<std::vector<schedule::Decision>> t4_decisions(const search::Sketch& sketch,
                                                            const T4Point& point);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_T4_T4_KERNEL_H_
