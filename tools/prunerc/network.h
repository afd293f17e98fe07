// What the verbs do with a net: the same as with an operator, for all of its calls.
#ifndef PRUNERC_TOOLS_PRUNERC_NETWORK_H_
#define PRUNERC_TOOLS_PRUNERC_NETWORK_H_

#include "tools/driver/aligned.h"
#include "tools/driver/network/network.h"
#include "tools/driver/network/network_rank.h"
#include "tools/driver/network/sizes.h"
#include "tools/prunerc/arrays.h"
#include "tools/prunerc/cli.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::cli {

/// --weights of a verb.
void add_weights_to(CLI::App& verb, std::string* weights);

/// For a verb that was asked about an operator. Errors: UsageOption, where options of nets are given.
Result<void> check_no_net_options(const std::string& weights, bool cuts = false);

/// "bert", or "bert seq=32".
std::string title_of(const SizedNet& sized);

/// What constants are filled with where only times or equality matter and nobody gives weights.
inline constexpr const char* kAnyWeights = "rand:normal(0,0.05)";

/// `weights` as --weights has it; `const_inputs` by input of the net. `otherwise`: a fill for a net
/// that names no file (empty: that is an error). Errors: those of WeightSource::open.
Result<WeightSource> open_weights(const LoadedNet& net, const OperatorRequest& request,
                                  const std::string& weights,
                                  const std::vector<ir::Tensor>& const_inputs,
                                  const std::string& otherwise = {});

/// A net with its kernels loaded and its constants prepared.
struct PreparedNetwork {
  Session session;
  Network network;
  std::vector<Choice::Origin> origins;  ///< by task
  std::vector<double> best_ns;          ///< by task: of the record, measured alone; 0 without one
  std::vector<search::Task> chosen;     ///< by task: what its schedule is of
};

/// A net that is compiled follows from files alone: the machine is neither measured, unless -O1's model
/// asks for its limits, nor are imported records timed (settle_claims).
enum class NetworkPurpose : uint8_t { kRun, kCompile };

/// Chooses as `choose` does for each task, compiles, prepares. Says on stderr how many tasks have no
/// record, and for which number of threads most of these have one.
Result<PreparedNetwork> prepare_network(const LoadedNet& net, const MachineOptions& machine,
                                        const WeightSource& weights, NetworkPurpose purpose,
                                        net::Reuse reuse = net::Reuse::kShared,
                                        const std::string& symbol = {});

/// Inputs and outputs of a run, in the memory that kernels want.
class NetworkArrays {
 public:
  /// Errors: KernelArguments (not so much memory).
  static Result<NetworkArrays> make(const net::Net& net);
  /// `inputs`: all of them, const ones too, which are left out.
  void set_inputs(const net::Net& net, const std::vector<ir::Tensor>& inputs);
  /// With filled_inputs.
  void fill_inputs(const net::Net& net, uint64_t seed);
  Result<void> run(Network& network);
  Result<void> run_timed(Network& network, std::vector<int64_t>* times_ns);
  /// The bytes of output number `i`, borrowed until the next run.
  std::string_view output(std::size_t i) const;

 private:
  std::vector<AlignedArray> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::size_t num_inputs_ = 0;
};

/// Of all inputs of the net: floats in [-1, 1), whole numbers in [0, 2].
std::vector<ir::Tensor> filled_inputs(const net::Net& net, uint64_t seed);
/// The const inputs of the net, filled for who gives none.
std::vector<ir::Tensor> filled_const_inputs(const net::Net& net, uint64_t seed);

int run_network(const LoadedNet& net, const OperatorRequest& request, const MachineOptions& machine,
                const std::string& weights, Arrays& arrays);

/// After its tasks were tuned; `time_s` as RankOptions has it. Says on stdout what came of it. Of a net at
/// several sizes each for itself, the time divided; the report adds them up. Nullopt: the request is not about
/// a net. Errors: those of loading and of rank_in_network.
Result<std::optional<RankReport>> rank_network(Session& session, const OperatorRequest& request,
                                               const RankOptions& options);

struct NetworkBench {
  std::vector<int> threads;
  int samples = 21;
  uint64_t seed = 0;
  bool json = false;
  std::string weights;
};
int bench_network(const SizedNets& nets, const OperatorRequest& request,
                  const MachineOptions& machine, const NetworkBench& options);

struct NetworkVerify {
  int num_seeds = 3;
  uint64_t seed = 1;
  bool cuts = false;
  bool json = false;
  std::string weights;
};
/// Exit code of the first of the nets that is neither right nor within its sensitivity.
int verify_network(const SizedNets& nets, const OperatorRequest& request,
                   const MachineOptions& machine, const NetworkVerify& options);

struct NetworkCompile {
  std::vector<std::string> outputs;  ///< with the headers that come along
  std::string symbol;                ///< empty: "net_" and the net's name
  bool require_tuned = false;
  std::string weights;
};
/// Libraries, headers and weights: .so, .a, .o, .h, .weights.
int compile_network(const SizedNets& nets, const OperatorRequest& request,
                    const MachineOptions& machine, const NetworkCompile& options);

/// Stages net, tasks, plan, kernels.
int show_network(const LoadedNet& net, const MachineOptions& machine, const std::string& stage);

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_NETWORK_H_
