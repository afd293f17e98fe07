#include "tools/prunerc/network.h"

#include "ir/support/file.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/heartbeat.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace prunerc::cli {

void add_weights_to(CLI::App& verb, std::string* weights) {
  verb.add_option("--weights", *weights,
                  "of a net: a safetensors file, or a fill such as rand:normal(0,0.05):seed=1")
      ->type_name("FILE|FILL");
  in_group(verb, "Arrays");
}

Result<void> check_no_net_options(const std::string& weights, bool cuts) {
  if (weights.empty() && !cuts) return {};
  return error(Diag::kUsageOption, cuts ? "--cuts" : "--weights",
               "is of a net with ports, not of an operator");
}

std::string title_of(const SizedNet& sized) {
  return sized.net.net.name + (sized.text.empty() ? "" : " " + sized.text);
}

Result<WeightSource> open_weights(const LoadedNet& net, const OperatorRequest& request,
                                  const std::string& weights,
                                  const std::vector<ir::Tensor>& const_inputs,
                                  const std::string& otherwise) {
  const bool is_imported = net.weights && weights.empty();
  const bool none_named = weights.empty() && net.net.weights.empty();
  Result<WeightSource> opened =
      is_imported ? WeightSource::of(net.net, *net.weights)
                  : WeightSource::open(net.net, request.file, none_named ? otherwise : weights);
  PRUNERC_TRY(WeightSource source, std::move(opened));
  for (std::size_t i = 0; i < net.net.inputs.size(); ++i) {
    const net::Tensor& input = net.net.tensors[net.net.inputs[i]];
    if (input.is_const) source.set(input.name, const_inputs[i]);
  }
  return source;
}

namespace {

// Records for other numbers of threads, of tasks that have none for the number that is wanted.
class OtherThreads {
 public:
  void add(Session& session, const Operator& op) {
    const Result<std::vector<OtherRecord>> others = session.other_records(op);
    if (!others.ok()) return;
    std::set<int64_t> threads;
    for (const OtherRecord& other : *others) {
      if (other.differs_in_threads) threads.insert(other.target.num_threads);
    }
    for (const int64_t n : threads) ++num_tasks_[n];
  }

  // Of the number for which most tasks have one.
  void print() const {
    const auto most =
        std::max_element(num_tasks_.begin(), num_tasks_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == num_tasks_.end()) return;
    const auto [threads, count] = *most;
    fmt::print(stderr,
               "note: records of {} of them exist for {} thread{}: --threads {} uses these\n",
               count, threads, threads == 1 ? "" : "s", threads);
  }

 private:
  std::map<int64_t, int> num_tasks_;
};

void print_without_record(const std::vector<Choice::Origin>& origins, const ir::Target& target) {
  const auto without = static_cast<std::ptrdiff_t>(origins.size()) -
                       std::count(origins.begin(), origins.end(), Choice::Origin::kRecord);
  if (without == 0) return;
  fmt::print(stderr,
             "no record of {} of {} tasks for {}: using the heuristic schedule; `prunerc tune` "
             "finds faster ones\n",
             without, origins.size(), describe(target));
}

}  // namespace

Result<PreparedNetwork> prepare_network(const LoadedNet& net, const MachineOptions& machine,
                                        const WeightSource& weights, NetworkPurpose purpose,
                                        net::Reuse reuse, const std::string& symbol) {
  if (!machine.script.empty())
    return error(Diag::kUsageOption, "--schedule", "is of one operator, not of a net");
  const bool runs = purpose == NetworkPurpose::kRun;
  PRUNERC_TRY(Session session,
              runs || machine.effort == 1 ? machine.open() : machine.open_unmeasured());
  const StillAt working("compiling the kernels of " + net.net.name);
  std::vector<Choice::Origin> origins;
  std::vector<double> best_ns;
  std::vector<search::Task> chosen;
  OtherThreads other_threads;
  int num_left = 0;
  std::string left_aside;  // of the first such call
  const auto schedule = [&](const Operator& op) -> Result<ir::Program> {
    if (runs) settle_claims(session, op, machine);
    PRUNERC_TRY(Choice choice, session.choose(op));
    if (!choice.left_aside.empty() && num_left++ == 0) left_aside = choice.left_aside;
    if (choice.origin != Choice::Origin::kRecord) other_threads.add(session, op);
    if (choice.origin != Choice::Origin::kRecord && machine.effort == 1) {
      PRUNERC_TRY(choice, session.choose(op, Effort::kO1));
    }
    origins.push_back(choice.origin);
    best_ns.push_back(choice.best_ns);
    chosen.push_back(session.task(op, choice));
    return choice.program;
  };
  const NetworkOptions options = {session.target(), session.num_threads(), reuse, symbol};
  PRUNERC_TRY(Network network, Network::build(net.net, options, schedule));
  if (machine.effort == 0) print_without_record(origins, session.target());
  other_threads.print();
  if (num_left > 0) {
    fmt::print(stderr, "note: {} of {} tasks have records that are not used; of the first, {}\n",
               num_left, origins.size(), printable_line(left_aside));
  }
  PRUNERC_TRY_VOID(network.prepare(weights));
  return PreparedNetwork{std::move(session), std::move(network), std::move(origins),
                         std::move(best_ns), std::move(chosen)};
}

Result<NetworkArrays> NetworkArrays::make(const net::Net& net) {
  NetworkArrays arrays;
  for (const std::size_t input : net.inputs) {
    if (net.tensors[input].is_const) continue;
    PRUNERC_TRY(AlignedArray array, AlignedArray::make(net::size_bytes(net.tensors[input])));
    arrays.inputs_.push_back(array.data());
    arrays.memory_.push_back(std::move(array));
  }
  arrays.num_inputs_ = arrays.inputs_.size();
  for (const std::size_t output : net.outputs) {
    PRUNERC_TRY(AlignedArray array, AlignedArray::make(net::size_bytes(net.tensors[output])));
    arrays.outputs_.push_back(array.data());
    arrays.memory_.push_back(std::move(array));
  }
  return arrays;
}

void NetworkArrays::set_inputs(const net::Net& net, const std::vector<ir::Tensor>& inputs) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < net.inputs.size(); ++i) {
    if (net.tensors[net.inputs[i]].is_const) continue;
    std::memcpy(memory_[next++].data(), inputs[i].data.data(), inputs[i].data.size());
  }
}

namespace {

ir::Tensor filled(const net::Tensor& tensor, uint64_t seed) {
  ir::Tensor out(tensor.dtype, tensor.shape);
  const bool is_float = ir::is_float(tensor.dtype);
  const Result<void> done =
      fill(out, fmt::format("{}:seed={}", is_float ? "rand:uniform(-1,1)" : "rand:int(0,2)", seed));
  PRUNERC_CHECK(done.ok(), "the fill is one of ours");
  return out;
}

}  // namespace

void NetworkArrays::fill_inputs(const net::Net& net, uint64_t seed) {
  set_inputs(net, filled_inputs(net, seed));
}

std::vector<ir::Tensor> filled_inputs(const net::Net& net, uint64_t seed) {
  std::vector<ir::Tensor> inputs;
  for (const std::size_t input : net.inputs)
    inputs.push_back(filled(net.tensors[input], seed * 1000 + inputs.size()));
  return inputs;
}

std::vector<ir::Tensor> filled_const_inputs(const net::Net& net, uint64_t seed) {
  std::vector<ir::Tensor> inputs;
  for (const std::size_t input : net.inputs) {
    inputs.push_back(net.tensors[input].is_const ? filled(net.tensors[input], seed + inputs.size())
                                                 : ir::Tensor());
  }
  return inputs;
}

Result<void> NetworkArrays::run(Network& network) { return network.run(inputs_, outputs_); }

Result<void> NetworkArrays::run_timed(Network& network, std::vector<int64_t>* times_ns) {
  return network.run_timed(inputs_, outputs_, times_ns);
}

std::string_view NetworkArrays::output(std::size_t i) const {
  const AlignedArray& array = memory_[num_inputs_ + i];
  return {static_cast<const char*>(array.data()), static_cast<std::size_t>(array.size())};
}

namespace {

// A model's names of its ports, where they are none of the language, stand beside ours.
void rename_arrays(const LoadedNet& net, Arrays& arrays) {
  const auto rename = [](auto& by_name, const std::string& from, const std::string& to) {
    if (by_name.contains(to)) return;
    if (auto node = by_name.extract(from)) {
      node.key() = to;
      by_name.insert(std::move(node));
    }
  };
  for (std::size_t i = 0; i < net.input_names.size(); ++i) {
    const std::string& ours = net.net.tensors[net.net.inputs[i]].name;
    rename(arrays.inputs, net.input_names[i], ours);
    rename(arrays.files, net.input_names[i], ours);
  }
  for (std::size_t i = 0; i < net.output_names.size(); ++i)
    rename(arrays.outputs, net.output_names[i], net.net.tensors[net.net.outputs[i]].name);
}

}  // namespace

namespace {

// Those of the model or of the file that the net names, where all of its constants are there.
Result<WeightSource> own_weights(const LoadedNet& net, const OperatorRequest& request,
                                 const std::vector<ir::Tensor>& const_inputs) {
  PRUNERC_TRY(WeightSource source, open_weights(net, request, "", const_inputs, kAnyWeights));
  if (net.weights || net.net.weights.empty()) return source;
  for (const net::Tensor& tensor : net.net.tensors) {
    if (tensor.role == net::Role::kConst) PRUNERC_TRY_VOID(source.get(tensor));
  }
  return source;
}

Result<RankReport> rank_sized(Session& session, const SizedNet& sized,
                              const OperatorRequest& request, const RankOptions& options) {
  const LoadedNet& net = sized.net;
  const std::vector<ir::Tensor> const_inputs = filled_const_inputs(net.net, options.seed);
  Result<WeightSource> opened = own_weights(net, request, const_inputs);
  if (!opened.ok()) {
    // Times hardly follow from what weights hold; tuning may come before there are any, or all.
    fmt::print(stderr, "note: {}; other weights are timed\n", opened.error().message());
    opened = open_weights(net, request, kAnyWeights, const_inputs);
  }
  PRUNERC_TRY(const WeightSource weights, std::move(opened));
  PRUNERC_TRY(NetworkArrays arrays, NetworkArrays::make(net.net));
  arrays.fill_inputs(net.net, options.seed);
  const StillAt working("ranking schedules within " + title_of(sized));
  const auto run = [&](Network& network, std::vector<int64_t>* times_ns) {
    return arrays.run_timed(network, times_ns);
  };
  PRUNERC_TRY(const RankReport report, rank_in_network(session, net.net, weights, run, options));
  fmt::print("within {}: {}", title_of(sized), time_text(report.before_ns));
  if (report.num_changed > 0) {
    fmt::print(" -> {}, with other schedules for {} task{}", time_text(report.after_ns),
               report.num_changed, report.num_changed == 1 ? "" : "s");
  } else {
    fmt::print(", and no mixture of {} schedules is faster", report.num_contenders);
  }
  fmt::print("\n");
  return report;
}

}  // namespace

Result<std::optional<RankReport>> rank_network(Session& session, const OperatorRequest& request,
                                               const RankOptions& options) {
  PRUNERC_TRY(const SizedNets nets, load_nets(request));
  if (nets.nets.empty()) return std::optional<RankReport>();
  RankOptions one = options;
  one.time_s = options.time_s / static_cast<double>(nets.nets.size());
  RankReport all;
  for (const SizedNet& sized : nets.nets) {
    if (options.cancel != nullptr && options.cancel->load()) break;
    PRUNERC_TRY(const RankReport report, rank_sized(session, sized, request, one));
    all.before_ns += report.before_ns;
    all.after_ns += report.after_ns;
    all.num_contenders += report.num_contenders;
    all.num_changed += report.num_changed;
  }
  return std::optional<RankReport>(all);
}

int run_network(const LoadedNet& net, const OperatorRequest& request, const MachineOptions& machine,
                const std::string& weights, Arrays& arrays) {
  fmt::print(stderr, "{}", net.warnings);
  const std::vector<Port> ports = ports_of(net.net);
  rename_arrays(net, arrays);
  const Result<void> known = check_names(net.net.name, ports, arrays);
  if (!known.ok()) return fail(known.error());
  const Result<std::vector<ir::Tensor>> tensors = gather(ports, arrays);
  if (!tensors.ok()) return fail(tensors.error());
  const Result<WeightSource> source = open_weights(net, request, weights, *tensors);
  if (!source.ok()) return fail(source.error());
  Result<PreparedNetwork> prepared = prepare_network(net, machine, *source, NetworkPurpose::kRun);
  if (!prepared.ok()) return fail(prepared.error());
  Result<NetworkArrays> memory = NetworkArrays::make(net.net);
  if (!memory.ok()) return fail(memory.error());
  memory->set_inputs(net.net, *tensors);
  const Result<void> ran = memory->run(prepared->network);
  if (!ran.ok()) return fail(ran.error(), kDeviceProblem);
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < net.net.outputs.size(); ++i) outputs.emplace_back(memory->output(i));
  const Result<void> delivered = deliver(ports, outputs, arrays.outputs);
  return delivered.ok() ? kSuccess : fail(delivered.error());
}

}  // namespace prunerc::cli
