// Completions for three shells. Each writer knows a shell's quoting; what is completed is the same.
#include "ir/target.h"
#include "tools/prunerc/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::cli {
namespace {

// What the value of an option, or an argument, can be.
struct Candidates {
  std::vector<std::string> words;
  std::vector<std::string> suffixes;  // of files: "prn"
  bool has_files = false;             // with these suffixes, or with any if there are none
};

std::vector<std::string> targets() {
  std::vector<std::string> names = ir::target_names();
  for (const std::string& name : ir::device_names()) names.push_back(name);
  names.emplace_back("cuda");
  return names;
}

std::vector<std::string> top_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (!verb.group.empty()) names.emplace_back(verb.name);
  }
  return names;
}

// By the name of the value: FILE.prn|prc are files with these suffixes.
Candidates candidates_of(const OptionHelp& option) {
  Candidates found;
  found.words = option.choices;
  if (option.value == "TARGET") found.words = targets();
  if (option.value == "VERB") found.words = top_verbs();
  found.has_files = option.value == "FILE" || option.value == "SCRIPT" || option.value == "FOLDER";
  const std::size_t file = option.value.find("FILE.");
  if (file == std::string::npos) return found;
  found.has_files = true;
  for (std::size_t start = file + 5; start <= option.value.size();) {
    const std::size_t end = std::min(option.value.find('|', start), option.value.size());
    found.suffixes.push_back(option.value.substr(start, end - start));
    start = end + 1;
  }
  return found;
}

// All arguments of a verb together: which of them a word is depends on the options before it.
Candidates arguments_of(const CLI::App& verb) {
  Candidates all;
  bool any_file = false;
  for (const OptionHelp& option : options_of(verb)) {
    if (!option.names.empty()) continue;
    const Candidates one = candidates_of(option);
    all.words.insert(all.words.end(), one.words.begin(), one.words.end());
    all.suffixes.insert(all.suffixes.end(), one.suffixes.begin(), one.suffixes.end());
    all.has_files |= one.has_files;
    any_file |= one.has_files && one.suffixes.empty();
  }
  if (any_file) all.suffixes.clear();
  std::sort(all.suffixes.begin(), all.suffixes.end());
  all.suffixes.erase(std::unique(all.suffixes.begin(), all.suffixes.end()), all.suffixes.end());
  return all;
}

// The program, its verbs, and theirs.
std::vector<const CLI::App*> all_apps(const CLI::App& program) {
  std::vector<const CLI::App*> apps = {&program};
  for (std::size_t i = 0; i < apps.size(); ++i) {
    for (const CLI::App* sub : apps[i]->get_subcommands({})) apps.push_back(sub);
  }
  return apps;
}

// What a menu has room for: the text before its list or second part.
std::string summary(const OptionHelp& option) {
  return option.text.substr(0, option.text.find_first_of(":;"));
}

// In single quotes, where a quote is written as `escape`.
std::string quoted(std::string_view text, std::string_view escape) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(escape) : std::string(1, c);
  return out + "'";
}

// --- bash

std::string bash_action(const Candidates& found) {
  if (!found.words.empty()) return fmt::format("_prunerc_words '{}'", fmt::join(found.words, " "));
  if (found.has_files) return fmt::format("_prunerc_files {}", fmt::join(found.suffixes, " "));
  return ":";
}

std::string bash_values(const CLI::App& app) {
  std::string out;
  for (const OptionHelp& option : options_of(app)) {
    if (option.names.empty() || option.value.empty()) continue;
    std::string cases;
    for (const std::string& name : option.names) {
      cases += fmt::format("{}'{}|{}'", cases.empty() ? "" : " | ", full_name(app), name);
    }
    out += fmt::format("    {}) {}; return ;;\n", cases, bash_action(candidates_of(option)));
  }
  return out;
}

std::string bash_words(const CLI::App& app) {
  std::string options = "-h --help";
  for (const OptionHelp& option : options_of(app)) {
    for (const std::string& name : option.names) options += " " + name;
  }
  std::string verbs;
  for (const CLI::App* sub : app.get_subcommands({})) verbs += " " + sub->get_name();
  const Candidates arguments = arguments_of(app);
  return fmt::format(
      "    '{}|-'*) _prunerc_words '{}' ;;\n    '{}|'*) {} ;;\n", full_name(app), options,
      full_name(app),
      verbs.empty() ? bash_action(arguments) : fmt::format("_prunerc_words '{}'", verbs.substr(1)));
}

// Words are read off the line, since bash parts them at ':' and '='; what it has parted off is
// taken away from the answers.
constexpr std::string_view kBashHead =
    R"(# bash completion of prunerc; made by `prunerc completion bash`
_prunerc_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$value"); }

_prunerc_files() {  # suffixes; none: any file
  local suffix
  compopt -o filenames 2>/dev/null
  if (($# == 0)); then mapfile -t COMPREPLY < <(compgen -f -- "$value"); return; fi
  mapfile -t COMPREPLY < <(compgen -d -- "$value"; for suffix; do compgen -f -X "!*.$suffix" -- "$value"; done)
}

_prunerc_find() {
  local verb='' word option="$previous"
  for word in "${before[@]}"; do
    case "${verb:+$verb }$word" in
)";

constexpr std::string_view kBashTail = R"(  esac
}

_prunerc() {
  local line="${COMP_LINE:0:COMP_POINT}" value previous before cut
  value="${line##*[[:space:]]}"
  read -ra before <<<"${line%"$value"}"
  before=("${before[@]:1}")
  previous="${before[*]: -1}"
  if [[ "$value" == --*=* ]]; then previous="${value%%=*}" value="${value#*=}"; fi
  COMPREPLY=()
  _prunerc_find
  cut="${value%"${value##*[:=]}"}"
  [[ "$COMP_WORDBREAKS" == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -F _prunerc prunerc
)";

std::string bash_script(const CLI::App& program) {
  std::string names, values, words;
  for (const CLI::App* app : all_apps(program)) {
    if (app != &program)
      names += fmt::format("{}'{}'", names.empty() ? "" : " | ", full_name(*app));
    values += bash_values(*app);
    words += bash_words(*app);
  }
  return fmt::format(
      "{}      {}) verb=\"${{verb:+$verb }}$word\" ;;\n    esac\n  done\n"
      "  case \"$verb|$option\" in\n{}  esac\n  case \"$verb|$value\" in\n{}{}",
      kBashHead, names, values, words, kBashTail);
}

// --- zsh

std::string zsh_action(const Candidates& found) {
  if (!found.words.empty()) {
    std::string words;
    // A colon would end the action.
    for (const std::string& word : found.words) {
      words += " ";
      for (const char c : word) words += c == ':' ? "\\:" : std::string(1, c);
    }
    return fmt::format("({})", words.substr(1));
  }
  if (!found.has_files) return " ";
  if (found.suffixes.empty()) return "_files";
  return fmt::format("_files -g \"*.({})\"", fmt::join(found.suffixes, "|"));
}

std::string zsh_function(const CLI::App& app) {
  std::string name = "_prunerc " + full_name(app);
  std::replace(name.begin(), name.end(), ' ', '_');
  if (app.get_parent() == nullptr) name = "_prunerc";
  std::string out = name + "() {\n";
  const std::vector<const CLI::App*> subs = app.get_subcommands({});
  std::string options;
  for (const OptionHelp& option : options_of(app)) {
    std::string text;
    for (const char c : summary(option))
      text += c == ']' || c == '[' ? "\\" + std::string(1, c) : std::string(1, c);
    for (const std::string& one : option.names) {
      std::string spec = (option.is_repeated ? "*" : "") + one + "[" + text + "]";
      if (!option.value.empty()) spec += ": :" + zsh_action(candidates_of(option));
      options += " \\\n    " + quoted(spec, R"('\'')");
    }
  }
  if (subs.empty()) {
    const Candidates arguments = arguments_of(app);
    if (arguments.has_files || !arguments.words.empty()) {
      options += " \\\n    " + quoted("*: :" + zsh_action(arguments), R"('\'')");
    }
    return fmt::format("{}  _arguments '(-h --help)'{{-h,--help}}'[explain]'{}\n}}\n\n", out,
                       options);
  }
  out += fmt::format("  local state line\n  local -a verbs=(");
  for (const CLI::App* sub : subs) {
    out += "\n    " + quoted(sub->get_name() + ":" + sub->get_description(), R"('\'')");
  }
  out += fmt::format(")\n  _arguments -C{} '1: :->verb' '*:: :->rest'\n", options);
  out +=
      "  case $state in\n    verb) _describe verb verbs ;;\n    rest)\n      case $words[1] in\n";
  for (const CLI::App* sub : subs) {
    out += fmt::format("        {}) {}_{} ;;\n", sub->get_name(), name, sub->get_name());
  }
  return out + "      esac ;;\n  esac\n}\n\n";
}

std::string zsh_script(const CLI::App& program) {
  std::string out =
      "#compdef prunerc\n# zsh completion of prunerc; made by `prunerc completion zsh`\n\n";
  for (const CLI::App* app : all_apps(program)) out += zsh_function(*app);
  return out +
         "if [ \"$funcstack[1]\" = _prunerc ]; then _prunerc \"$@\"; else compdef _prunerc "
         "prunerc; fi\n";
}

// --- fish

std::string fish_action(const Candidates& found) {
  if (!found.words.empty()) return fmt::format("-x -a '{}'", fmt::join(found.words, " "));
  if (!found.has_files) return "-x";
  if (found.suffixes.empty()) return "-r -F";
  std::string calls;
  for (const std::string& suffix : found.suffixes) {
    calls += fmt::format("{}(__fish_complete_suffix .{})", calls.empty() ? "" : " ", suffix);
  }
  return fmt::format("-x -a '{}'", calls);
}

std::string fish_verb(const CLI::App& app) {
  const std::string escape = "\\'";
  const CLI::App* const parent = app.get_parent();
  std::string seen;
  for (const CLI::App* a = &app; a->get_parent() != nullptr; a = a->get_parent()) {
    seen = fmt::format("__fish_seen_subcommand_from {}{}{}", a->get_name(),
                       seen.empty() ? "" : "; and ", seen);
  }
  std::string out;
  if (parent != nullptr) {
    std::string wanted = "__fish_use_subcommand";
    if (parent->get_parent() != nullptr) {
      wanted = "__fish_seen_subcommand_from " + parent->get_name() +
               "; and not __fish_seen_subcommand_from";
      for (const CLI::App* sub : parent->get_subcommands({})) wanted += " " + sub->get_name();
    }
    out += fmt::format("complete -c prunerc -n '{}' -f -a {} -d {}\n", wanted, app.get_name(),
                       quoted(app.get_description(), escape));
  }
  const std::string head = fmt::format("complete -c prunerc -n '{}'",
                                       parent == nullptr ? "__fish_use_subcommand" : seen);
  for (const OptionHelp& option : options_of(app)) {
    if (option.names.empty()) continue;
    out += head;
    for (const std::string& name : option.names) {
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty()) out += " " + fish_action(candidates_of(option));
    out += " -d " + quoted(summary(option), escape) + "\n";
  }
  const Candidates arguments = arguments_of(app);
  if (arguments.has_files || !arguments.words.empty()) {
    std::string action = fish_action(arguments);
    // Of an argument -x and -r would mean an option's value.
    action = action == "-r -F" ? "-F" : "-f" + action.substr(2);
    out += fmt::format("{} {}\n", head, action);
  }
  return out;
}

std::string fish_script(const CLI::App& program) {
  std::string out =
      "# fish completion of prunerc; made by `prunerc completion fish`\ncomplete -c prunerc -f\n"
      "complete -c prunerc -s h -l help -d explain\n";
  for (const CLI::App* app : all_apps(program)) out += fish_verb(*app);
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& program, Shell shell) {
  switch (shell) {
    case Shell::kBash: return bash_script(program);
    case Shell::kZsh: return zsh_script(program);
    case Shell::kFish: return fish_script(program);
  }
  PRUNERC_UNREACHABLE("shell");
}

}  // namespace prunerc::cli
