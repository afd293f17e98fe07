#include "ir/net/pass/scale_into_weights.h"

#include "ir/net/pass/channel.h"
#include "ir/net/pass/classify.h"
#include "ir/net/pass/fuse.h"
#include "ir/net/pass/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::net {
namespace {

/// Each round moves one of several factors in a row, and compiles the whole text again.
constexpr int kMaxRounds = 16;

/// An argument of a call that takes the factor, and its axis that the factor runs along.
struct Target {
  std::size_t call = 0, arg = 0, axis = kNoAxis;
};

/// One round: factors directly behind what takes them.
class Mover {
 public:
  explicit Mover(const Net& net)
      : net_(net),
        graph_(net),
        globals_(global_names(net.definitions)),
        out_(net),
        names_(globals_) {
    for (const Tensor& tensor : net.tensors) names_.insert(tensor.name);
  }

  std::size_t run() {
    std::vector<bool> is_gone(net_.calls.size());
    for (std::size_t c = 0; c < net_.calls.size(); ++c) {
      const Call& call = net_.calls[c];
      if (is_const(net_, call)) continue;
      const std::optional<ChannelOp> factor = match_channel_op(net_.programs[call.program]);
      if (!factor || factor->op == '+') continue;
      if (factor->vector && !net_.tensors[call.args[*factor->vector]].is_const) continue;
      std::vector<Target> targets;
      std::size_t last = kNone;
      if (!find_targets(call.args[factor->whole], *factor, &targets, &last)) continue;
      for (const Target& target : targets) scale(target, call, *factor);
      out_.calls[last].results = call.results;
      // What lies between holds other numbers now.
      for (const std::size_t tensor : between_)
        out_.tensors[tensor].name = free_name(net_.tensors[tensor].name + "_scaled");
      is_gone[c] = true;
      ++num_moved_;
    }
    std::vector<Call> calls;
    for (std::size_t c = 0; c < out_.calls.size(); ++c) {
      if (c >= is_gone.size() || !is_gone[c]) calls.push_back(std::move(out_.calls[c]));
    }
    out_.calls = std::move(calls);
    return num_moved_;
  }

  const Net& net() const { return out_; }

 private:
  // Goes up from the tensor, through what takes the factor and hands it on, to a weighted sum.
  // `last` is the call that gives the tensor.
  bool find_targets(std::size_t tensor, const ChannelOp& factor, std::vector<Target>* targets,
                    std::size_t* last) {
    std::set<std::size_t> seen;
    between_.clear();
    while (true) {
      const std::size_t c = graph_.producer[tensor];
      if (c == kNone || graph_.is_const_call[c] || touched_.contains(c)) return false;
      const Call& call = net_.calls[c];
      if (graph_.readers[tensor].size() != 1 || net_.tensors[tensor].role == Role::kOutput ||
          call.results.size() != 1)
        return false;
      if (*last == kNone) *last = c;
      seen.insert(c);
      const ir::Program& program = net_.programs[call.program];
      if (const std::optional<WeightedSum> sum = match_weighted_sum(program)) {
        if (!add_sum(c, *sum, factor, targets)) return false;
        touched_.insert(seen.begin(), seen.end());
        return true;
      }
      const std::optional<ChannelOp> summand = match_channel_op(program);
      if (summand && summand->op == '+' && summand->vector && is_target(call, *summand->vector) &&
          (factor.axis == kNoAxis || (factor.axis == summand->axis && is_whole(call, *summand)))) {
        targets->push_back(
            {c, *summand->vector, factor.axis == kNoAxis ? kNoAxis : summand->vector_axis});
        tensor = call.args[summand->whole];
      } else if (factor.axis == kNoAxis && call.args.size() == 1 && classify(program).is_copy) {
        tensor = call.args[0];
      } else {
        return false;
      }
      between_.push_back(tensor);
    }
  }

  // Of a summand of which a part is read the rest would have no factor.
  bool is_whole(const Call& call, const ChannelOp& summand) const {
    return net_.tensors[call.args[*summand.vector]].shape[summand.vector_axis] ==
           net_.tensors[call.args[summand.whole]].shape[summand.axis];
  }

  bool is_target(const Call& call, std::size_t arg) const {
    return net_.tensors[call.args[arg]].is_const &&
           std::count(call.args.begin(), call.args.end(), call.args[arg]) == 1;
  }

  bool add_sum(std::size_t c, const WeightedSum& sum, const ChannelOp& factor,
               std::vector<Target>* targets) const {
    const auto axis_in = [&](const WeightedSum::Part& part) {
      return factor.axis == kNoAxis ? kNoAxis : part.axis_of[factor.axis];
    };
    const auto takes = [&](const WeightedSum::Part& part) {
      return is_target(net_.calls[c], part.input) &&
             (factor.axis == kNoAxis || axis_in(part) != kNoAxis);
    };
    if (sum.bias) {
      if (!takes(*sum.bias)) return false;
      targets->push_back({c, sum.bias->input, axis_in(*sum.bias)});
    }
    for (const WeightedSum::Part& part : sum.weights) {
      if (!takes(part)) continue;
      targets->push_back({c, part.input, axis_in(part)});
      return true;
    }
    return false;
  }

  // A const call that multiplies the argument by the factor, in its place.
  void scale(const Target& target, const Call& by, const ChannelOp& factor) {
    const std::size_t old = net_.calls[target.call].args[target.arg];
    const Tensor weight = net_.tensors[old];
    const auto local = [&](const std::string& name) { return local_name(globals_, name); };
    const auto index = [&](std::size_t d) { return local(fmt::format("i{}", d)); };
    const std::string old_port = local("W"), by_port = local("s"), new_port = local("Y");
    std::string place;
    for (std::size_t d = 0; d < weight.shape.size(); ++d) place += (d == 0 ? "" : ",") + index(d);
    if (!place.empty()) place = "[" + place + "]";
    std::string ports = old_port + ": " + type_text(weight), value = float_text(factor.number);
    Call call;
    call.args = {old};
    if (factor.vector) {
      const std::size_t vector = by.args[*factor.vector];
      call.args.push_back(vector);
      const std::vector<int64_t>& shape = net_.tensors[vector].shape;
      ports += ", " + by_port + ": " + type_text(net_.tensors[vector]);
      std::string at;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        at += (d == 0 ? "" : ",") + (d == factor.vector_axis ? index(target.axis) : "0");
        // Not a variable alone: that would run over all of a vector that is longer.
        if (d == factor.vector_axis && shape[d] != weight.shape[target.axis]) at += "+0";
      }
      value = at.empty() ? by_port : by_port + "[" + at + "]";
    }
    call.op =
        op_for(fmt::format("({}) -> ({}: {}) {{ {}{} = {}{} {} {}; }}\n", ports, new_port,
                           type_text(weight), new_port, place, old_port, place, factor.op, value));
    Tensor scaled = weight;
    scaled.role = Role::kIntermediate;
    scaled.name = free_name(weight.name + "_scaled");
    call.label = scaled.name;
    call.results = {out_.tensors.size()};
    out_.calls[target.call].args[target.arg] = out_.tensors.size();
    out_.tensors.push_back(std::move(scaled));
    out_.calls.push_back(std::move(call));
  }

  std::string op_for(const std::string& rest) {
    const auto [found, is_new] = op_of_.emplace(rest, std::string());
    if (is_new) {
      do {
        found->second = fmt::format("scale_weight_{}", next_number_++);
      } while (out_.definitions.find("op " + found->second + "(") != std::string::npos);
      out_.definitions += "op " + found->second + rest;
    }
    return found->second;
  }

  std::string free_name(const std::string& stem) {
    std::string name = stem;
    for (int number = 2; !names_.insert(name).second; ++number)
      name = fmt::format("{}{}", stem, number);
    return name;
  }

  const Net& net_;
  const Graph graph_;
  const std::set<std::string> globals_;
  Net out_;
  std::set<std::string> names_;
  std::vector<std::size_t> between_;          // tensors between the sum and the factor
  std::set<std::size_t> touched_;             // calls that this round changes
  std::map<std::string, std::string> op_of_;  // ports and body -> name
  int next_number_ = 1;
  std::size_t num_moved_ = 0;
};

}  // namespace

Result<Net> scale_into_weights(const Net& net, const ScaleOptions& options,
                               std::size_t* num_moved) {
  if (num_moved != nullptr) *num_moved = 0;
  Net result = net;
  for (int round = 0; round < kMaxRounds && !options.exact; ++round) {
    Mover mover(result);
    const std::size_t moved = mover.run();
    if (moved == 0) break;
    if (num_moved != nullptr) *num_moved += moved;
    PRUNERC_TRY(result, compile_again(mover.net()));
  }
  return result;
}

}  // namespace prunerc::net
