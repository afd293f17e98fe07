// A network in this process: its tasks, its kernels, its weights, its memory.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_H_

#include "codegen/cpu/export.h"
#include "ir/interp/tensor.h"
#include "ir/net/memory.h"
#include "ir/net/net.h"
#include "ir/net/pass/passes.h"
#include "ir/net/weights.h"
#include "tools/driver/prunerc.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// A net with ports, as a file has it or imported from a model.
struct LoadedNet {
  net::Net net;      ///< after passes: what is tuned, run and compiled
  net::Net written;  ///< before them
  std::vector<net::PassReport> passes;
  std::string warnings;
  std::optional<net::WeightFile> weights;              ///< of an imported model
  std::vector<std::string> input_names, output_names;  ///< as the model has them; empty: the net's
  std::vector<std::string> fed_names;  ///< of a model: all inputs that it does not give itself
  std::vector<std::string> files;      ///< of a model: those with its tensors, in its folder
};
/// The net with ports that the request names, or that its file has alone; nullopt if it is about an
/// operator or about a list of tasks. `op` names the net, `shapes` are those of its inputs.
/// Errors: as load_operator.
Result<std::optional<LoadedNet>> load_net(const OperatorRequest& request);

/// Of a const call.
inline constexpr std::size_t kNoTask = static_cast<std::size_t>(-1);

/// The tasks of a net: one operator for calls of a run that compute the same, named by the first of
/// them; its weight is how many there are. `operator_of_call`, if asked for, gives each call's.
std::vector<Operator> operators_of(const net::Net& net,
                                   std::vector<std::size_t>* operator_of_call = nullptr);

/// Where constants come from.
class WeightSource {
 public:
  /// `given`: a file of weights, or a fill ("rand:normal(0,0.05):seed=1": each constant gets other
  /// numbers); empty: the file that the net names, beside `file_name`, which defines it.
  /// Errors: those of net::WeightFile::open; FillUnknown; ImportOutside.
  static Result<WeightSource> open(const net::Net& net, const std::string& file_name,
                                   const std::string& given);
  /// Those of an imported model.
  static WeightSource of(const net::Net& net, net::WeightFile weights);
  /// Errors: WeightMissing, UsageShape (the file has it otherwise), WeightsNotGiven.
  Result<ir::Tensor> get(const net::Tensor& constant) const;
  /// A const input of the net, which no file has.
  void set(const std::string& name, ir::Tensor tensor);
  /// From now on floats are given moved by `seed` (move_floats); 0: as they are.
  void set_moved(uint64_t seed, bool narrow = false);

  WeightSource(WeightSource&&) noexcept;
  WeightSource& operator=(WeightSource&&) noexcept;
  ~WeightSource();

 private:
  struct Impl;
  explicit WeightSource(std::unique_ptr<Impl> impl);
  Result<ir::Tensor> get_as_given(const net::Tensor& constant) const;
  std::unique_ptr<Impl> impl_;
};

struct NetworkOptions {
  ir::Target target;  ///< this machine's CPU
  int threads = 1;
  net::Reuse reuse = net::Reuse::kShared;
  std::string symbol = {};  ///< of the library that is to be made of it: begins its kernels' names
};

/// A net whose kernels are loaded. Movable. Threads: one call at a time.
class Network {
 public:
  /// The scheduled program of an operator.
  using Schedules = std::function<Result<ir::Program>(const Operator& op)>;

  /// Compiles each task once. Errors: those of `schedules`, compiling and loading; NetTarget; TargetNotHost.
  static Result<Network> build(net::Net net, const NetworkOptions& options,
                               const Schedules& schedules);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const net::Net& net() const;
  const net::MemoryPlan& memory() const;
  const std::vector<Operator>& tasks() const;
  const codegen::Artifact& artifact(std::size_t task) const;
  std::size_t task_of_call(std::size_t call) const;
  int64_t workspace_bytes() const;
  int64_t prepared_bytes() const;

  /// Another kernel of the same task; constants are to be prepared anew. Errors: those of loading;
  /// KernelArguments (memory).
  Result<void> replace(std::size_t task, codegen::Artifact artifact);

  /// Computes once what follows from constants: const calls, then what kernels make of const
  /// arguments. Errors: those of WeightSource::get, compiling and loading; KernelFailed.
  Result<void> prepare(const WeightSource& weights);

  /// One pointer per input that is not const and per output, in declared order; each array dense,
  /// row-major, aligned as its elements are and of the declared size, and no output overlaps another
  /// array. Errors: KernelArguments (also: not prepared), KernelFailed.
  Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// The same, and how long each of net::run_calls took. Units: ns.
  Result<void> run_timed(std::span<const void* const> inputs, std::span<void* const> outputs,
                         std::vector<int64_t>* times_ns);
  /// What a library has of it, once weights were prepared: one plan; kernels and prepared weights
  /// lie in this object. Equal kernels have equal names. Errors: Unsupported (inputs that are
  /// const), KernelArguments (not prepared).
  Result<codegen::NetParts> parts() const;

  /// The bytes of an intermediate tensor that is not const, after a run with Reuse::kKept; borrowed
  /// until the next run.
  std::string_view intermediate(std::size_t tensor) const;

 private:
  struct Impl;
  explicit Network(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_H_
