#include "ir/net/pass/layout.h"

#include "ir/analysis/views/views.h"
#include "ir/net/pass/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace prunerc::net {
namespace {

std::vector<int64_t> channels_last(const std::vector<int64_t>& s) {
  return {s[0], s[2], s[3], s[1]};
}

class Turner {
 public:
  explicit Turner(const Net& net)
      : net_(net),
        graph_(net),
        turned_(turned_tensors(net, graph_)),
        globals_(global_names(net.definitions)) {
    out_ = net;
    out_.calls.clear();
    out_.programs.clear();
    for (const Tensor& tensor : net.tensors) names_.insert(tensor.name);
    add_words(net.definitions, " ", "(< ", &names_);
    for (std::size_t t = 0; t < net.tensors.size(); ++t) inside_.push_back(t);
  }

  Result<Net> run(LayoutCount* count) {
    if (std::none_of(turned_.begin(), turned_.end(), [](bool is) { return is; })) return net_;
    LayoutCount done;
    for (std::size_t t = 0; t < turned_.size(); ++t) {
      if (!turned_[t]) continue;
      ++done.num_turned;
      turn_tensor(t);
    }
    for (const Call& call : net_.calls) out_.calls.push_back(turned_call(call));
    for (const std::size_t t : net_.outputs)
      if (turned_[t]) transpose("to_nchw", inside_[t], t);
    done.num_transposes = out_.calls.size() - net_.calls.size();
    PRUNERC_TRY(Net net, compile_again(out_));
    for (const Call& call : net.calls)
      if (call.op.find(kSuffix) != std::string::npos)
        done.num_views += ir::count_views(net.programs[call.program]);
    if (count != nullptr) *count = done;
    return net;
  }

 private:
  static constexpr std::string_view kSuffix = "_nhwc";

  // Another layout is another tensor, with a name of its own; a port has an intermediate beside it.
  void turn_tensor(std::size_t t) {
    Tensor last = net_.tensors[t];
    last.shape = channels_last(last.shape);
    last.name = free_name(last.name + std::string(kSuffix));
    if (last.role == Role::kIntermediate) {
      out_.tensors[t] = last;
      return;
    }
    last.role = Role::kIntermediate;
    last.is_const = false;
    inside_[t] = out_.tensors.size();
    out_.tensors.push_back(last);
    if (net_.tensors[t].role == Role::kInput) transpose("to_nhwc", t, inside_[t]);
  }

  void transpose(const char* op, std::size_t from, std::size_t to) {
    Call call;
    call.op = view_op(op, out_.tensors[from]);
    call.args = {from};
    call.results = {to};
    call.label = out_.tensors[to].name;
    out_.calls.push_back(std::move(call));
  }

  // The operator between layouts for the tensor's type, which the text defines once.
  std::string view_op(const std::string& name, const Tensor& tensor) {
    const std::string type(ir::to_string(tensor.dtype));
    const auto [found, is_new] = op_of_.emplace(name + type, std::string());
    if (!is_new) return found->second;
    found->second = free_name(tensor.dtype == ir::DType::kF32 ? name : name + "_" + type);
    const std::string from = name == "to_nchw" ? "NHWC" : "NCHW";
    const std::string to = name == "to_nchw" ? "NCHW" : "NHWC";
    const std::string read = name == "to_nchw" ? "nhwc" : "nchw";
    const std::string written = name == "to_nchw" ? "nchw" : "nhwc";
    const std::string x = local("X"), y = local("Y");
    out_.definitions +=
        fmt::format("op {}<{}>({}: {}[{}]) -> ({}: {}[{}]) {{ {}[{}] = {}[{}]; }}\n", found->second,
                    axes("NCHW", ", "), x, type, axes(from), y, type, axes(to), y, axes(written), x,
                    axes(read));
    return found->second;
  }

  // "N,C,H,W" of "NCHW".
  std::string axes(const std::string& letters, const char* between = ",") const {
    std::string list;
    for (const char letter : letters)
      list += (list.empty() ? "" : between) + local(std::string(1, letter));
    return list;
  }

  std::string local(std::string name) const { return local_name(globals_, std::move(name)); }

  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    for (int number = 2; !names_.insert(name).second; ++number)
      name = fmt::format("{}_{}", wanted, number);
    return name;
  }

  Call turned_call(const Call& call) {
    Call out = call;
    const auto is_turned = [&](std::size_t t) { return static_cast<bool>(turned_[t]); };
    if (std::none_of(call.args.begin(), call.args.end(), is_turned) &&
        std::none_of(call.results.begin(), call.results.end(), is_turned))
      return out;
    std::string inputs, outputs, before, after, args, results;
    const auto add = [](std::string& list, const std::string& item) {
      list += (list.empty() ? "" : ", ") + item;
    };
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const std::size_t t = call.args[i];
      const std::string port = local(fmt::format("X{}", i + 1));
      const std::string first = local(fmt::format("x{}", i + 1));
      out.args[i] = inside_[t];
      add(inputs, fmt::format("{}{}: {}", graph_.is_const[t] ? "const " : "", port,
                              type_text(out_.tensors[inside_[t]])));
      add(args, turned_[t] ? first : port);
      if (turned_[t])
        before +=
            fmt::format("  let {} = {}({});\n", first, view_op("to_nchw", net_.tensors[t]), port);
    }
    bool gives_let = false;
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const std::size_t t = call.results[i];
      const std::string port = local(fmt::format("Y{}", i + 1));
      const std::string first = local(fmt::format("y{}", i + 1));
      out.results[i] = inside_[t];
      add(outputs, fmt::format("{}: {}", port, type_text(out_.tensors[inside_[t]])));
      add(results, turned_[t] ? first : port);
      gives_let = gives_let || turned_[t];
      if (turned_[t])
        after += fmt::format("  {} = {}({});\n", port, view_op("to_nhwc", net_.tensors[t]), first);
    }
    std::string bindings;
    for (const auto& [name, value] : call.bindings) add(bindings, name + "=" + value);
    if (!bindings.empty()) bindings = "<" + bindings + ">";
    const std::string body =
        fmt::format("({}) -> ({}) {{\n{}  {}{} = {}{}({});\n{}}}\n", inputs, outputs, before,
                    gives_let ? "let " : "", results, call.op, bindings, args, after);
    const auto [found, is_new] = op_of_.emplace(body, std::string());
    if (is_new) {
      found->second = free_name(call.op + std::string(kSuffix));
      out_.definitions += fmt::format("op {}{}", found->second, body);
    }
    out.op = found->second;
    out.bindings.clear();
    return out;
  }

  const Net& net_;
  const Graph graph_;
  const std::vector<bool> turned_;
  const std::set<std::string> globals_;
  Net out_;
  std::vector<std::size_t> inside_;           // by tensor: what calls read and write for it
  std::set<std::string> names_;               // of tensors, and all that the text defines
  std::map<std::string, std::string> op_of_;  // ports and body -> name
};

}  // namespace

Result<Net> layout(const Net& net, LayoutCount* count) {
  if (count != nullptr) *count = {};
  return Turner(net).run(count);
}

}  // namespace prunerc::net
