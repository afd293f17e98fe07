#include "ir/lang/module.h"

#include "ir/lang/lang.h"
#include "ir/lang/parse/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::lang {
namespace {

/// "a/b/c.prn" + "../d.prn" -> "a/d.prn"; "std/..." stays as it is.
std::string resolve_path(std::string_view importer, std::string_view path) {
  if (path.substr(0, 4) == "std/" || path.substr(0, 1) == "/") return std::string(path);
  const size_t slash = importer.rfind('/');
  std::string joined =
      slash == std::string_view::npos ? "" : std::string(importer.substr(0, slash + 1));
  joined += path;
  std::vector<std::string> parts;
  const bool absolute = joined.substr(0, 1) == "/";
  size_t at = 0;
  while (at <= joined.size()) {
    const size_t end = std::min(joined.find('/', at), joined.size());
    const std::string part = joined.substr(at, end - at);
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string result = absolute ? "/" : "";
  for (size_t i = 0; i < parts.size(); ++i) result += (i > 0 ? "/" : "") + parts[i];
  return result;
}

std::string closest_import(std::string_view path);

class Loader {
 public:
  Loader(SourceSet& sources, const ImportFn& import, DiagSink& sink)
      : sources_(sources), import_(import), sink_(sink) {}

  Module load(const std::string& name, std::string text, size_t max_bytes) {
    read(name, std::move(text), max_bytes);
    return std::move(module_);
  }

 private:
  void read(const std::string& name, std::string text, size_t max_bytes) {
    const bool is_main = module_.files.empty();
    states_[name] = State::kOpen;
    const uint32_t file = sources_.add(name, std::move(text));
    module_.files.push_back(parse_file(sources_, file, sink_, max_bytes));
    const AstFile& ast = module_.files.back();
    for (const AstImport& item : ast.imports) import_file(name, item);
    for (const AstConst& item : ast.consts) {
      if (declare(item.name)) module_.consts.push_back(&item);
    }
    for (const AstFn& item : ast.fns) {
      if (declare(item.name)) module_.fns[item.name.text] = &item;
    }
    for (const AstOperator& item : ast.ops) {
      if (!declare_op(item.name)) continue;
      (is_main ? module_.ops : module_.imported_ops).push_back(&item);
      module_.operators[item.name.text] = &item;
    }
    if (is_main) check_nets(ast);
    states_[name] = State::kDone;
  }

  // Operators may stand below the net or come from anywhere.
  void check_nets(const AstFile& ast) {
    for (const AstNet& net : ast.nets) {
      if (declare(net.name)) module_.nets.push_back(&net);
      std::map<std::string_view, SourceRange> labels;
      for (const AstNetTask& task : net.tasks) {
        if (task.label) static_cast<void>(declare_in(labels, *task.label));
        if (op_names_.contains(task.op.text) || sink_.is_full()) continue;
        std::vector<std::string_view> names;
        for (const auto& [name, range] : op_names_) names.push_back(name);
        sink_.report<LangDiag::kUnknownOperator>(task.op.range, task.op.text).message +=
            did_you_mean(task.op.text, names);
      }
    }
  }

  void import_file(const std::string& importer, const AstImport& item) {
    if (sink_.is_full()) return;
    const std::string path = resolve_path(importer, item.path);
    const auto known = states_.find(path);
    if (known != states_.end()) {
      if (known->second == State::kOpen)
        sink_.report<LangDiag::kImportCycle>(item.range, item.path);
      return;
    }
    if (states_.size() > kMaxImportedFiles) {  // the main file among them
      sink_.report<LangDiag::kTooManyImports>(item.range, kMaxImportedFiles);
      return;
    }
    states_[path] = State::kDone;  // a failing import is reported once
    if (!import_) {
      sink_.report<LangDiag::kImportNotFound>(item.range, item.path,
                                              "imports are not available here");
      return;
    }
    Result<std::string> text = import_(path);
    if (!text) {
      sink_.report<LangDiag::kImportNotFound>(item.range, item.path, text.error().message())
          .message += closest_import(path);
      return;
    }
    read(path, std::move(text).value(), kMaxFileBytes);
  }

  bool declare(const AstName& name) { return declare_in(names_, name); }
  bool declare_op(const AstName& name) { return declare_in(op_names_, name); }

  bool declare_in(std::map<std::string_view, SourceRange>& table, const AstName& name) {
    const auto [known, is_new] = table.emplace(name.text, name.range);
    if (!is_new) {
      sink_.report<LangDiag::kRedefined>(name.range, name.text)
          .note(known->second, "the first definition");
    }
    return is_new;
  }

  enum class State : uint8_t { kOpen, kDone };
  SourceSet& sources_;
  const ImportFn& import_;
  DiagSink& sink_;
  Module module_;
  std::map<std::string, State> states_;
  std::map<std::string_view, SourceRange> names_, op_names_;
};

/// Optimal string alignment distance: 'tnue' is one edit away from 'tune'.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// The name of a file without folders and suffix.
std::string_view stem(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

/// "; did you mean 'std/gemm.prn'?" of a path that no file has, or nothing.
std::string closest_import(std::string_view path) {
  std::vector<std::string_view> stems;
  for (const std::string_view file : std_files()) stems.push_back(stem(file));
  const std::string_view close = closest_name(stem(path), stems);
  return close.empty() ? "" : fmt::format("; did you mean 'std/{}.prn'?", close);
}

}  // namespace

std::string list_names(const std::vector<std::string_view>& names, std::size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  return names.size() > most ? text + ", ..." : text;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view close = closest_name(word, candidates);
  return close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
}

Module load_module(SourceSet& sources, const std::string& name, std::string text,
                   const ImportFn& import, DiagSink& sink, size_t max_bytes) {
  return Loader(sources, import, sink).load(name, std::move(text), max_bytes);
}

std::string_view closest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates) {
  constexpr size_t kMaxLength = 64;
  if (word.size() > kMaxLength) return {};
  for (const std::string_view candidate : candidates) {
    if (is_same_but_for_case(word, candidate)) return candidate;
  }
  // One edit for short words, a third of the length for longer ones: 'kn' is 'kh', 'x' is not 'y'.
  const size_t limit = word.size() < 2 ? 0 : std::max<size_t>(1, word.size() / 3);
  std::string_view best;
  size_t best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMaxLength) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

const AstNet* find_net(const Module& module, std::string_view name) {
  const AstNet* found = nullptr;
  for (const AstNet* net : module.nets) {
    if (!net->has_ports || (!name.empty() && net->name.text != name)) continue;
    if (found != nullptr) return nullptr;
    found = net;
  }
  return found;
}

const AstOperator* find_operator(const Module& module, std::string_view name, DiagSink& sink) {
  const SourceRange top = {0, 0, 0};
  if (name.empty()) {
    if (!module.nets.empty() && sink.has_errors()) return nullptr;  // of the net, more often
    if (module.ops.size() == 1) return module.ops[0];
    if (module.ops.empty()) {
      if (!sink.has_errors()) sink.report<LangDiag::kNoOperator>(top);
      return nullptr;
    }
    if (sink.has_errors()) return nullptr;
    std::string names;
    for (const AstOperator* op : module.ops) {
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", op->name.text);
    }
    sink.report<LangDiag::kChooseOperator>(module.ops[1]->name.range, names);
    return nullptr;
  }
  std::vector<std::string_view> names;
  for (const auto* list : {&module.ops, &module.imported_ops}) {
    for (const AstOperator* op : *list) {
      if (op->name.text == name) return op;
      names.push_back(op->name.text);
    }
  }
  std::string advice = did_you_mean(name, names);
  if (advice.empty() && !names.empty()) advice = "; there are " + list_names(names);
  sink.report<LangDiag::kUnknownOperator>(top, name).message += advice;
  return nullptr;
}

}  // namespace prunerc::lang
