#include "ir/net/pass/fuse.h"

#include "ir/lang/lang.h"
#include "ir/net/pass/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace prunerc::net {
namespace {

/// A longer list of what an operator calls is cut to its anchor and how many there are.
constexpr std::size_t kMaxName = 48;

bool is_word(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at) words.insert(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// "relu_12" -> "relu".
std::string stem_of(const std::string& op) {
  const std::size_t at = op.find_last_not_of("0123456789");
  if (at == std::string::npos || at == 0 || op[at] != '_') return op;
  return op.substr(0, at);
}

class Writer {
 public:
  explicit Writer(const Net& net)
      : net_(net),
        graph_(net),
        words_(words_of(net.definitions)),
        globals_(global_names(net.definitions)) {
    out_ = net;
    out_.calls.clear();
    out_.programs.clear();
  }

  Result<Net> run(const std::vector<FusedCalls>& groups) {
    std::vector<std::size_t> group_of(net_.calls.size(), kNone);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::size_t call : groups[g].calls) group_of[call] = g;
    }
    std::set<std::size_t> written;
    for (std::size_t c = 0; c < net_.calls.size(); ++c) {
      if (group_of[c] == kNone) {
        out_.calls.push_back(net_.calls[c]);
      } else if (written.insert(group_of[c]).second) {
        out_.calls.push_back(fused(groups[group_of[c]]));
      }
    }
    return compile_again(out_);
  }

 private:
  Call fused(FusedCalls group) {
    std::sort(group.calls.begin(), group.calls.end());
    Call call;
    call.label = net_.calls[group.anchor].label;
    names_.clear();
    num_data_ = num_const_ = num_lets_ = num_results_ = 0;
    std::string inputs, outputs, body;
    // What is read outside gets its name first, so that lets do not take it.
    for (const std::size_t c : group.calls) {
      for (const std::size_t result : net_.calls[c].results) {
        if (!is_read_outside(result, group.calls)) continue;
        call.results.push_back(result);
        const std::string name = numbered("Y", &num_results_);
        names_[result] = name;
        outputs += (outputs.empty() ? "" : ", ") + port(result, name, "");
      }
    }
    for (const std::size_t c : group.calls) {
      for (const std::size_t arg : net_.calls[c].args) {
        if (names_.contains(arg)) continue;
        const bool is_const = graph_.is_const[arg];
        const std::string name = is_const ? numbered("W", &num_const_) : numbered("X", &num_data_);
        names_[arg] = name;
        call.args.push_back(arg);
        inputs += (inputs.empty() ? "" : ", ") + port(arg, name, is_const ? "const " : "");
      }
      for (const std::size_t result : net_.calls[c].results) {
        if (!names_.contains(result)) names_[result] = numbered("t", &num_lets_);
      }
      body += statement(net_.calls[c], call.results);
    }
    call.op = op_for(fmt::format("({}) -> ({}) {{\n{}}}\n", inputs, outputs, body), group);
    return call;
  }

  bool is_read_outside(std::size_t tensor, const std::vector<std::size_t>& calls) const {
    if (net_.tensors[tensor].role == Role::kOutput) return true;
    const std::vector<std::size_t>& readers = graph_.readers[tensor];
    return readers.empty() || std::any_of(readers.begin(), readers.end(), [&](std::size_t c) {
             return !std::binary_search(calls.begin(), calls.end(), c);
           });
  }

  // "X", "X2", ...: none that the operators' text mentions.
  std::string numbered(const char* stem, int* count) const {
    while (true) {
      ++*count;
      std::string name = *count == 1 && *stem != 't' ? stem : fmt::format("{}{}", stem, *count);
      if (!globals_.contains(name)) return name;
    }
  }

  std::string port(std::size_t tensor, const std::string& name, const char* before) const {
    return fmt::format("{}{}: {}", before, name, type_text(net_.tensors[tensor]));
  }

  std::string list(const std::vector<std::size_t>& tensors) {
    std::string text;
    for (const std::size_t tensor : tensors) text += (text.empty() ? "" : ", ") + names_[tensor];
    return text;
  }

  std::string statement(const Call& call, const std::vector<std::size_t>& results) {
    const bool gives_let =
        std::any_of(call.results.begin(), call.results.end(), [&](std::size_t result) {
          return std::find(results.begin(), results.end(), result) == results.end();
        });
    std::string bindings;
    for (const auto& [name, value] : call.bindings)
      bindings += fmt::format("{}{}={}", bindings.empty() ? "" : ", ", name, value);
    if (!bindings.empty()) bindings = "<" + bindings + ">";
    return fmt::format("  {}{} = {}{}({});\n", gives_let ? "let " : "", list(call.results), call.op,
                       bindings, list(call.args));
  }

  std::string op_for(std::string rest, const FusedCalls& group) {
    const auto [found, is_new] = op_of_.emplace(std::move(rest), std::string());
    if (is_new) {
      found->second = free_name(group);
      out_.definitions += fmt::format("op {}{}", found->second, found->first);
    }
    return found->second;
  }

  std::string free_name(const FusedCalls& group) {
    std::string name;
    for (const std::size_t c : group.calls)
      name += (name.empty() ? "" : "_") + stem_of(net_.calls[c].op);
    if (name.size() > kMaxName)
      name = fmt::format("{}_of_{}", stem_of(net_.calls[group.anchor].op), group.calls.size());
    std::string free = name;
    for (int number = 2; !words_.insert(free).second; ++number)
      free = fmt::format("{}_{}", name, number);
    return free;
  }

  const Net& net_;
  const Graph graph_;
  std::set<std::string> words_;
  const std::set<std::string> globals_;
  Net out_;
  std::map<std::string, std::string> op_of_;  // ports and body -> name
  std::map<std::size_t, std::string> names_;  // of the group's tensors
  int num_data_ = 0, num_const_ = 0, num_lets_ = 0, num_results_ = 0;
};

}  // namespace

void add_words(const std::string& text, std::string_view before, std::string_view after,
               std::set<std::string>* words) {
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > at && end < text.size() && after.find(text[end]) != std::string_view::npos)
      words->insert(text.substr(at, end - at));
  }
}

std::set<std::string> global_names(const std::string& definitions) {
  std::set<std::string> names;
  add_words(definitions, "op ", "(<", &names);
  add_words(definitions, "fn ", "(", &names);
  add_words(definitions, "const ", " ", &names);
  return names;
}

std::string local_name(const std::set<std::string>& globals, std::string wanted) {
  while (globals.contains(wanted)) wanted += '_';
  return wanted;
}

Result<Net> fuse_calls(const Net& net, const std::vector<FusedCalls>& groups) {
  return Writer(net).run(groups);
}

Result<Net> compile_again(const Net& edited) {
  lang::CompileInput input;
  input.file_name = edited.name;
  input.text = to_text(edited);
  input.op = edited.name;
  input.max_bytes = lang::kMaxNetBytes;
  lang::NetResult result = lang::compile_net(input);
  if (!result.net) return error(Diag::kOperatorText, result.rendered);
  return std::move(*result.net);
}

}  // namespace prunerc::net
