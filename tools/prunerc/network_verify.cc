// verify of a net: all outputs, and with --cuts each tensor between calls, beside the calls as they
// are written.
#include "tools/driver/network/onnx.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Largest difference that is allowed, as a part of the tensor's largest value: errors of one call are
/// inputs of the next.
double allowed(ir::DType dtype) {
  constexpr double kWide = 1e-3, kNarrow = 4e-2;
  if (dtype == ir::DType::kF16 || dtype == ir::DType::kBF16) return kNarrow;
  return ir::is_float(dtype) ? kWide : 0;
}

constexpr const char* kAsWritten = "the calls as written give";

struct Difference {
  int64_t num_elems = 0;  // that are numbers in the reference
  double worst = 0;       // as a part of what is allowed, of floats
  std::string what;       // the first element that differs by more
};

ir::Tensor tensor_of(const net::Tensor& tensor, const std::string& bytes) {
  ir::Tensor out(tensor.dtype, tensor.shape);
  std::memcpy(out.data.data(), bytes.data(), bytes.size());
  return out;
}

void compare(const net::Tensor& tensor, const std::string& got_bytes, const std::string& want_bytes,
             const std::string& whose, Difference* found) {
  const ir::Tensor got = tensor_of(tensor, got_bytes), want = tensor_of(tensor, want_bytes);
  const int64_t n = want.num_elements();
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(want.get(i))) largest = std::max(largest, std::fabs(want.get(i)));
  }
  const double bound = allowed(tensor.dtype) * largest;
  for (int64_t i = 0; i < n && found->what.empty(); ++i) {
    const double g = got.get(i), w = want.get(i);
    const bool is_same = ir::is_float(tensor.dtype) ? g == w || (std::isnan(g) && std::isnan(w))
                                                    : got.get_int(i) == want.get_int(i);
    const double error = is_same ? 0 : std::fabs(g - w);
    if (!is_same && !(error <= bound && bound > 0)) {
      found->what = fmt::format("{}[{}] is {:.9g}, {} {:.9g} (allowed: {:.3g})", tensor.name, i, g,
                                whose, w, bound);
    } else if (bound > 0) {
      found->worst = std::max(found->worst, error / bound);
    }
    found->num_elems += std::isnan(w) ? 0 : 1;
  }
}

constexpr std::size_t kNotThere = static_cast<std::size_t>(-1);

std::size_t intermediate_named(const net::Net& net, const std::string& name) {
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    if (net.tensors[i].name == name && net.tensors[i].role == net::Role::kIntermediate) return i;
  }
  return kNotThere;
}

// The net's own kernels against each call as it is written, on one set of inputs.
Result<Difference> compare_runs(const LoadedNet& net, Network& tuned, Network& written,
                                uint64_t seed, bool cuts) {
  PRUNERC_TRY(NetworkArrays ours, NetworkArrays::make(net.net));
  PRUNERC_TRY(NetworkArrays reference, NetworkArrays::make(net.written));
  ours.fill_inputs(net.net, seed);
  reference.fill_inputs(net.written, seed);
  PRUNERC_TRY_VOID(ours.run(tuned));
  PRUNERC_TRY_VOID(reference.run(written));
  Difference found;
  if (cuts) {
    // In the order in which they are computed: the first that differs names the call.
    for (const net::Call& call : net.net.calls) {
      for (const std::size_t result : call.results) {
        const net::Tensor& tensor = net.net.tensors[result];
        // What a pass made has no counterpart.
        const std::size_t same = intermediate_named(net.written, tensor.name);
        if (tensor.role != net::Role::kIntermediate || tensor.is_const || same == kNotThere)
          continue;
        compare(tensor, tuned.intermediate(result), written.intermediate(same), kAsWritten, &found);
      }
    }
  }
  for (std::size_t i = 0; i < net.net.outputs.size(); ++i) {
    compare(net.net.tensors[net.net.outputs[i]], ours.output(i), reference.output(i), kAsWritten,
            &found);
  }
  return found;
}

std::string bytes_of(const ir::Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

// The net's own kernels against what somebody recorded.
Result<Difference> compare_recorded(const LoadedNet& net, Network& tuned, const RecordedRun& run) {
  PRUNERC_TRY(NetworkArrays ours, NetworkArrays::make(net.net));
  ours.set_inputs(net.net, run.inputs);
  PRUNERC_TRY_VOID(ours.run(tuned));
  Difference found;
  for (std::size_t i = 0; i < net.net.outputs.size(); ++i) {
    compare(net.net.tensors[net.net.outputs[i]], ours.output(i), bytes_of(run.outputs[i]),
            "recorded in " + run.folder + " is", &found);
  }
  return found;
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

int verify_sized(const SizedNet& sized, const OperatorRequest& request,
                 const MachineOptions& machine, const NetworkVerify& options) {
  const LoadedNet& net = sized.net;
  const std::string title = title_of(sized);
  fmt::print(stderr, "{}", net.warnings);
  const Result<WeightSource> weights = open_weights(
      net, request, options.weights, filled_const_inputs(net.net, options.seed), kAnyWeights);
  if (!weights.ok()) return fail(weights.error());
  const net::Reuse reuse = options.cuts ? net::Reuse::kKept : net::Reuse::kShared;
  Result<PreparedNetwork> tuned =
      prepare_network(net, machine, *weights, NetworkPurpose::kRun, reuse);
  if (!tuned.ok()) return fail(tuned.error());
  const ir::Target& target = tuned->session.target();
  Result<Network> written = Network::build(
      net.written, {target, tuned->session.num_threads(), reuse}, [&](const Operator& op) {
        return Result<ir::Program>(reference_schedule(op.program, target));
      });
  if (!written.ok()) return fail(written.error());
  const Result<void> prepared = written->prepare(*weights);
  if (!prepared.ok()) return fail(prepared.error());
  const StillAt working("verifying " + net.net.name);
  Difference all;
  int num_right = 0;
  for (; num_right < options.num_seeds && all.what.empty(); ++num_right) {
    const Result<Difference> found =
        compare_runs(net, tuned->network, *written, options.seed + static_cast<uint64_t>(num_right),
                     options.cuts);
    if (!found.ok()) return fail(found.error(), kDeviceProblem);
    all.num_elems += found->num_elems;
    all.worst = std::max(all.worst, found->worst);
    all.what = found->what;
    if (!all.what.empty()) break;
  }
  std::size_t num_recorded = 0;
  if (all.what.empty()) {
    const Result<std::vector<RecordedRun>> recorded = recorded_of(sized, request, options);
    if (!recorded.ok()) return fail(recorded.error());
    for (const RecordedRun& run : *recorded) {
      const Result<Difference> found = compare_recorded(net, tuned->network, run);
      if (!found.ok()) return fail(found.error(), kDeviceProblem);
      all.worst = std::max(all.worst, found->worst);
      all.what = found->what;
      if (!all.what.empty()) break;
      ++num_recorded;
    }
  }
  if (all.what.empty() && all.num_elems + static_cast<int64_t>(num_recorded) == 0)
    all.what = "no output is a number";
  const bool ok = all.what.empty();
  if (options.json) {
    const Json row = {{"schema", "prunerc.verify_net/1"},
                      {"net", net.net.name},
                      {"sizes", sized.text},
                      {"verdict", ok ? "right" : "wrong"},
                      {"seeds", num_right},
                      {"recorded", num_recorded},
                      {"elements", all.num_elems},
                      {"largest_error_of_allowed", all.worst},
                      {"difference", all.what}};
    fmt::print("{}\n", json_line(row));
  } else if (ok) {
    fmt::print(
        "{}: right on {} seed{}: {} elements of {} as the calls give them as written, largest "
        "error {:.2g} of what is allowed\n",
        title, num_right, num_right == 1 ? "" : "s", all.num_elems,
        options.cuts ? "outputs and all tensors between calls" : "outputs", all.worst);
    if (num_recorded > 0) fmt::print("and on {} recorded runs\n", num_recorded);
  } else {
    fmt::print("{}: wrong: {}\n", title, all.what);
  }
  return ok ? kSuccess : kVerificationFailed;
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
