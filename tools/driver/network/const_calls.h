// What a net computes from constants alone, once, when it is prepared.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_CONST_CALLS_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_CONST_CALLS_H_

#include "codegen/artifact.h"
#include "ir/interp/tensor.h"
#include "ir/net/net.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/pool.h"
#include "tools/driver/aligned.h"
#include "tools/driver/network/network.h"

#include <cstddef>
#include <map>
#include <vector>

namespace prunerc {

/// The kernel of a const call.
struct ConstKernel {
  codegen::Artifact artifact;
  runtime::LoadedKernel loaded;
};
/// By program of the net. They stay when constants are prepared anew.
using ConstKernels = std::map<std::size_t, ConstKernel>;

/// Makes const calls when a call needs what they give, and frees that after its last reader. Borrows
/// all that it is made of.
class ConstCalls {
 public:
  ConstCalls(const net::Net& net, const ir::Target& target, const WeightSource& weights,
             runtime::Pool& pool, ConstKernels& kernels);
  ConstCalls(const ConstCalls&) = delete;
  ConstCalls& operator=(const ConstCalls&) = delete;

  /// The arrays of the call's arguments, null where they are not const; valid until released.
  /// Errors: those of WeightSource::get, compiling and loading; KernelArguments (memory);
  /// KernelFailed.
  Result<std::vector<void*>> arguments(std::size_t call);
  /// The call has read its arguments. Once per call.
  void release(std::size_t call);

 private:
  std::vector<std::size_t> calls_before(std::size_t call) const;
  Result<void> make(std::size_t call);
  Result<const ConstKernel*> kernel_of(std::size_t program);
  Result<std::vector<void*>> gather(std::size_t call);

  const net::Net& net_;
  const ir::Target& target_;
  const WeightSource& weights_;
  runtime::Pool& pool_;
  ConstKernels& kernels_;
  std::vector<std::size_t> maker_;        // by tensor: the const call that gives it, or kNoTask
  std::vector<std::size_t> num_readers_;  // by tensor: calls that have not read it yet
  std::map<std::size_t, AlignedArray> made_;
  std::vector<ir::Tensor> read_;  // weights of the call whose arguments were asked for last
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_CONST_CALLS_H_
