// verify of a net: all outputs, and with --cuts each tensor between calls, beside the calls as they
// are written.
#include "ir/support/hash.h"
#include "tools/driver/network/agreement.h"
#include "tools/driver/network/onnx.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNotThere = static_cast<std::size_t>(-1);

std::size_t intermediate_named(const net::Net& net, const std::string& name) {
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    const net::Tensor& tensor = net.tensors[i];
    if (tensor.name == name && tensor.role == net::Role::kIntermediate && !tensor.is_const)
      return i;
  }
  return kNotThere;
}

/// What is compared: intermediates, by their places in both nets, then the outputs.
struct Compared {
  std::vector<std::size_t> ours, written;
  std::vector<net::Tensor> tensors;
};

Compared outputs_of(const net::Net& net) {
  Compared all;
  for (const std::size_t output : net.outputs) all.tensors.push_back(net.tensors[output]);
  return all;
}

// In the order in which they are computed: the first that differs names the call.
Compared all_of(const LoadedNet& net) {
  Compared all;
  for (const net::Call& call : net.net.calls) {
    for (const std::size_t result : call.results) {
      const net::Tensor& tensor = net.net.tensors[result];
      // What a pass made has no counterpart.
      const std::size_t same = intermediate_named(net.written, tensor.name);
      if (tensor.role != net::Role::kIntermediate || tensor.is_const || same == kNotThere) continue;
      all.ours.push_back(result);
      all.written.push_back(same);
      all.tensors.push_back(tensor);
    }
  }
  for (const net::Tensor& output : outputs_of(net.net).tensors) all.tensors.push_back(output);
  return all;
}

// The bytes of some intermediates and of all outputs, borrowed from the network and from `arrays`.
Result<std::vector<std::string_view>> values_of(Network& network, NetworkArrays& arrays,
                                                const std::vector<std::size_t>& intermediates,
                                                const std::vector<ir::Tensor>& inputs) {
  const net::Net& net = network.net();
  arrays.set_inputs(net, inputs);
  PRUNERC_TRY_VOID(arrays.run(network));
  std::vector<std::string_view> values;
  for (const std::size_t tensor : intermediates) values.push_back(network.intermediate(tensor));
  for (std::size_t i = 0; i < net.outputs.size(); ++i) values.push_back(arrays.output(i));
  return values;
}

std::vector<std::string> bytes_of(const std::vector<ir::Tensor>& tensors) {
  std::vector<std::string> bytes;
  for (const ir::Tensor& tensor : tensors)
    bytes.emplace_back(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return bytes;
}

/// The calls as they are written, with constants that may be moved.
class Written {
 public:
  /// Both are prepared with constants as they are. Borrows the weights.
  Written(Network network, WeightSource& weights)
      : network_(std::move(network)), weights_(weights) {}

  /// Beside values that `compared` names, with floats moved where they have to be.
  Result<NetComparison> compare(const NetValues& values, const Compared& compared,
                                const std::vector<ir::Tensor>& inputs) {
    const auto moved = [&](bool narrow) {
      return [&, narrow](uint64_t seed) { return run(compared, inputs, seed, narrow); };
    };
    const bool has_narrow = has_narrow_floats(network_.net());
    return compare_net(values, moved(false), has_narrow ? MovedRun(moved(true)) : MovedRun());
  }

  /// Floats moved by `seed`, those of 16 bits if `narrow`; 0: as they are.
  Result<std::vector<std::string>> run(const Compared& compared, std::vector<ir::Tensor> inputs,
                                       uint64_t seed, bool narrow = false) {
    if (seed != moved_by_ || narrow != moves_narrow_) {
      weights_.set_moved(seed, narrow);
      PRUNERC_TRY_VOID(network_.prepare(weights_));
      moved_by_ = seed;
      moves_narrow_ = narrow;
    }
    for (std::size_t i = 0; seed != 0 && i < inputs.size(); ++i)
      move_floats(hash_combine(seed, i), &inputs[i], narrow);
    PRUNERC_TRY(NetworkArrays arrays, NetworkArrays::make(network_.net()));
    PRUNERC_TRY(const std::vector<std::string_view> values,
                values_of(network_, arrays, compared.written, inputs));
    return std::vector<std::string>(values.begin(), values.end());
  }

 private:
  Network network_;
  WeightSource& weights_;
  uint64_t moved_by_ = 0;
  bool moves_narrow_ = false;
};

// The net's own kernels against each call as it is written, on one set of inputs.
Result<NetComparison> compare_runs(const Compared& compared, Network& tuned, Written& written,
                                   const std::vector<ir::Tensor>& inputs) {
  NetValues values = {compared.tensors, {}, {}, "the calls as written give", true};
  PRUNERC_TRY(NetworkArrays arrays, NetworkArrays::make(tuned.net()));
  PRUNERC_TRY(values.got, values_of(tuned, arrays, compared.ours, inputs));
  PRUNERC_TRY(values.want, written.run(compared, inputs, 0));
  return written.compare(values, compared, inputs);
}

// The net's own kernels against what somebody recorded.
Result<NetComparison> compare_recorded(Network& tuned, Written& written,
                                       const RecordedRun& recorded) {
  const Compared outputs = outputs_of(tuned.net());
  NetValues values = {
      outputs.tensors, {}, bytes_of(recorded.outputs), "recorded in " + recorded.folder + " is"};
  PRUNERC_TRY(NetworkArrays arrays, NetworkArrays::make(tuned.net()));
  PRUNERC_TRY(values.got, values_of(tuned, arrays, {}, recorded.inputs));
  return written.compare(values, outputs, recorded.inputs);
}

// Those that the request is about.
Result<std::vector<RecordedRun>> recorded_of(const SizedNet& sized, const OperatorRequest& request,
                                             const NetworkVerify& options) {
  if (!options.weights.empty() || !sized.net.weights) return std::vector<RecordedRun>();
  std::vector<std::string> left_out;
  PRUNERC_TRY(std::vector<RecordedRun> runs, read_recorded(request, sized.net, &left_out));
  for (const std::string& why : left_out) fmt::print(stderr, "note: {}: not compared\n", why);
  return runs;
}

/// Of all runs up to the first that is wrong.
struct Verified {
  NetComparison all;
  int num_seeds = 0;             ///< that are right or within the net's sensitivity
  std::size_t num_recorded = 0;  ///< that were compared and are not wrong
};

Result<void> verify_seeds(const LoadedNet& net, Network& tuned, Written& written,
                          const NetworkVerify& options, Verified* verified) {
  const Compared compared = options.cuts ? all_of(net) : outputs_of(net.net);
  for (int i = 0; i < options.num_seeds; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    PRUNERC_TRY(const NetComparison one,
                compare_runs(compared, tuned, written, filled_inputs(net.net, seed)));
    verified->all.add(one);
    if (one.agreement == Agreement::kWrong) break;
    if (one.what.empty()) ++verified->num_seeds;
  }
  return {};
}

Result<void> verify_recorded(const std::vector<RecordedRun>& recorded, Network& tuned,
                             Written& written, Verified* verified) {
  for (const RecordedRun& run : recorded) {
    PRUNERC_TRY(NetComparison one, compare_recorded(tuned, written, run));
    one.num_elems = 0;
    verified->all.add(one);
    if (one.agreement == Agreement::kWrong) break;
    ++verified->num_recorded;
  }
  return {};
}

Json row_of(const SizedNet& sized, const Verified& verified) {
  const NetComparison& all = verified.all;
  Json sensitivity = Json::array();
  for (const Sensitivity& one : all.sensitivity) {
    sensitivity.push_back(
        {{"tensor", one.tensor}, {"deviation", one.deviation}, {"of_largest", one.of_largest}});
  }
  return {{"schema", "prunerc.verify_net/1"},
          {"net", sized.net.net.name},
          {"sizes", sized.text},
          {"verdict", to_string(all.agreement)},
          {"seeds", verified.num_seeds},
          {"recorded", verified.num_recorded},
          {"elements", all.num_elems},
          {"largest_error_of_allowed", all.worst},
          {"difference", all.what},
          {"sensitivity", sensitivity}};
}

void print(const SizedNet& sized, const Verified& verified, bool cuts) {
  const NetComparison& all = verified.all;
  fmt::print("{}: {}", title_of(sized), to_string(all.agreement));
  if (!all.what.empty()) {
    fmt::print(": {}\n", all.what);
    return;
  }
  fmt::print(
      " on {} seed{}: {} elements of {} as the calls give them as written, largest error {:.2g} of "
      "what is allowed\n",
      verified.num_seeds, verified.num_seeds == 1 ? "" : "s", all.num_elems,
      cuts ? "outputs and all tensors between calls" : "outputs", all.worst);
  if (verified.num_recorded > 0) fmt::print("and on {} recorded runs\n", verified.num_recorded);
  for (const Sensitivity& one : all.sensitivity) {
    fmt::print(
        "{} differs by more than roundings of a stable net: floats moved by a rounding change it "
        "by {:.3g}, {:.2g}% of its largest value, and four times that was allowed\n",
        one.tensor, one.deviation, 100 * one.of_largest);
  }
}

// The exit code.
int report(const SizedNet& sized, const Verified& verified, const NetworkVerify& options) {
  const Agreement agreement = verified.all.agreement;
  if (options.json) {
    fmt::print("{}\n", json_line(row_of(sized, verified)));
  } else {
    print(sized, verified, options.cuts);
  }
  if (agreement == Agreement::kNotVerifiable) {
    return fail("what this net gives does not tell a wrong kernel from a rounding",
                "`prunerc verify DATABASE` compares each of its tuned kernels with its operator",
                kVerificationFailed);
  }
  return agreement == Agreement::kWrong ? kVerificationFailed : kSuccess;
}

Result<Network> build_written(const LoadedNet& net, const PreparedNetwork& tuned, net::Reuse reuse,
                              const WeightSource& weights) {
  const ir::Target& target = tuned.session.target();
  PRUNERC_TRY(Network network,
              Network::build(net.written, {target, tuned.session.num_threads(), reuse},
                             [&](const Operator& op) {
                               return Result<ir::Program>(reference_schedule(op.program, target));
                             }));
  PRUNERC_TRY_VOID(network.prepare(weights));
  return network;
}

int verify_sized(const SizedNet& sized, const OperatorRequest& request,
                 const MachineOptions& machine, const NetworkVerify& options) {
  const LoadedNet& net = sized.net;
  fmt::print(stderr, "{}", net.warnings);
  Result<WeightSource> weights = open_weights(
      net, request, options.weights, filled_const_inputs(net.net, options.seed), kAnyWeights);
  if (!weights.ok()) return fail(weights.error());
  const net::Reuse reuse = options.cuts ? net::Reuse::kKept : net::Reuse::kShared;
  Result<PreparedNetwork> tuned =
      prepare_network(net, machine, *weights, NetworkPurpose::kRun, reuse);
  if (!tuned.ok()) return fail(tuned.error());
  Result<Network> as_written = build_written(net, *tuned, reuse, *weights);
  if (!as_written.ok()) return fail(as_written.error());
  const StillAt working("verifying " + net.net.name);
  Written written(std::move(*as_written), *weights);
  Verified verified;
  Result<void> ran = verify_seeds(net, tuned->network, written, options, &verified);
  if (!ran.ok()) return fail(ran.error(), kDeviceProblem);
  NetComparison& all = verified.all;
  if (all.agreement != Agreement::kWrong) {
    const Result<std::vector<RecordedRun>> recorded = recorded_of(sized, request, options);
    if (!recorded.ok()) return fail(recorded.error());
    ran = verify_recorded(*recorded, tuned->network, written, &verified);
    if (!ran.ok()) return fail(ran.error(), kDeviceProblem);
  }
  if (all.what.empty() && all.num_elems + static_cast<int64_t>(verified.num_recorded) == 0) {
    all.what = "no output is a number";
    all.agreement = Agreement::kWrong;
  }
  return report(sized, verified, options);
}

}  // namespace

int verify_network(const SizedNets& nets, const OperatorRequest& request,
                   const MachineOptions& machine, const NetworkVerify& options) {
  int code = kSuccess;
  for (const SizedNet& sized : nets.nets) {
    const int one = verify_sized(sized, request, machine, options);
    if (code == kSuccess) code = one;
  }
  return code;
}

}  // namespace prunerc::cli
