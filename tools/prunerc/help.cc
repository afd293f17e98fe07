#include "tools/prunerc/help.h"

#include "ir/lang/module.h"
#include "ir/support/options.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::cli {
namespace {

constexpr std::size_t kColumns = 100;

// "TEXT:{a,b}" and "N:INT in [0 - 1]" are CLI11's: the value's name and what its checks say.
std::vector<std::string> choices_of(const std::string& text) {
  std::vector<std::string> choices;
  const std::size_t open = text.find('{');
  if (open == std::string::npos) return choices;
  const std::string list = text.substr(open + 1, text.find('}', open) - open - 1);
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    choices.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return choices;
}

// Words in lines of `width`, the second and later ones behind `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + end > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += (column > indent ? " " : "") + std::string(text.substr(0, end));
    column += end + (column > indent ? 1 : 0);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// "  NAME    what it is", the name's column `width` wide.
std::string line_of(std::string_view name, std::string_view text, std::size_t width) {
  const std::size_t indent = width + 4;
  const std::string gap = name.size() > width ? "\n" + std::string(indent, ' ')
                                              : std::string(indent - 2 - name.size(), ' ');
  return fmt::format("  {}{}{}\n", name, gap, wrapped(text, indent, kColumns));
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) { return app.get_subcommands({}); }

std::string program_page() {
  std::string out =
      "prunerc finds out how to run a tensor operator fast on this machine.\n"
      "Usage: prunerc VERB [ARGUMENTS] | VERB --help: options, examples | --version | "
      "--help-debug\n";
  std::string_view group;
  for (const Verb& verb : verbs()) {
    if (verb.group.empty()) continue;
    if (verb.group != group) out += fmt::format("{}:\n", verb.group);
    group = verb.group;
    out += line_of(verb.name, verb.purpose, 10);
  }
  return out;
}

// "did you mean '--trials'? ", if one of them is spelt nearly so.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string_view closest =
      lang::closest_name(word, std::vector<std::string_view>(names.begin(), names.end()));
  return closest.empty() ? "" : fmt::format("did you mean '{}'? ", closest);
}

std::string headed_options(const CLI::App& verb) {
  std::string out;
  std::string heading;
  for (const OptionHelp& option : options_of(verb)) {
    if (option.heading != heading) out += fmt::format("\n{}:\n", option.heading);
    heading = option.heading;
    out += line_of(option.synopsis(), option.description(), 30);
  }
  return out;
}

}  // namespace

std::string OptionHelp::synopsis() const {
  std::string out = fmt::format("{}", fmt::join(names, ", "));
  if (!value.empty()) out += (out.empty() ? "" : " ") + value;
  return out;
}

std::string OptionHelp::description() const {
  std::string out = text;
  // Texts that explain each choice name them already.
  const bool lists = !choices.empty() && std::any_of(choices.begin(), choices.end(), [&](auto& c) {
    return text.find(c) == std::string::npos;
  });
  if (lists) out += fmt::format(": {}", fmt::join(choices, ", "));
  if (!initial.empty()) out += fmt::format(" (default: {})", initial);
  if (is_required && !names.empty()) out += " (required)";
  return out;
}

std::vector<OptionHelp> options_of(const CLI::App& verb) {
  std::vector<OptionHelp> found;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : verb.get_options()) {
      if (option == verb.get_help_ptr() || option->get_positional() != positional) continue;
      OptionHelp help;
      help.heading = option->get_group();
      for (const std::string& name : option->get_snames()) help.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) help.names.push_back("--" + name);
      const std::string type = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
      help.value = type.substr(0, type.find(':'));
      help.choices = choices_of(type);
      help.text = option->get_description();
      help.initial = option->get_default_str();
      help.is_required = option->get_required();
      help.is_repeated = option->get_expected_max() > 1;
      found.push_back(std::move(help));
    }
  }
  // Options of one heading stand together, where its first one does.
  std::vector<std::string> order;
  for (const OptionHelp& help : found) {
    if (std::find(order.begin(), order.end(), help.heading) == order.end()) {
      order.push_back(help.heading);
    }
  }
  const auto rank = [&](const OptionHelp& help) {
    return std::find(order.begin(), order.end(), help.heading);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const OptionHelp& a, const OptionHelp& b) { return rank(a) < rank(b); });
  return found;
}

std::string full_name(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return "";
  const std::string parent = full_name(*verb.get_parent());
  return parent.empty() ? verb.get_name() : parent + " " + verb.get_name();
}

std::string usage_line(const CLI::App& verb) {
  std::string out = "prunerc " + full_name(verb);
  if (!verbs_of(verb).empty()) return out + " VERB [ARGUMENTS]";
  bool has_options = false;
  for (const OptionHelp& option : options_of(verb)) {
    if (!option.names.empty()) {
      has_options = true;
      if (option.is_required) out += fmt::format(" {} {}", option.names.front(), option.value);
      continue;
    }
    const std::string value = option.value + (option.is_repeated ? "..." : "");
    out += option.is_required ? " " + value : fmt::format(" [{}]", value);
  }
  return out + (has_options ? " [OPTIONS]" : "");
}

std::string did_you_mean_choice(const std::string& message) {
  const std::size_t start = message.find(": ");
  const std::size_t end = message.find(" not in {");
  if (start == std::string::npos || end == std::string::npos) return "";
  return did_you_mean(message.substr(start + 2, end - start - 2), choices_of(message));
}

int fail_unknown_verb(const CLI::App& parent, const std::string& word) {
  const std::string name = full_name(parent);
  std::vector<std::string> names;
  for (const CLI::App* sub : verbs_of(parent)) names.push_back(sub->get_name());
  return fail(fmt::format("'prunerc{}{}' has no verb '{}'", name.empty() ? "" : " ", name, word),
              fmt::format("{}`prunerc {}{}--help` lists them", did_you_mean(word, names), name,
                          name.empty() ? "" : " "),
              kUsage);
}

int fail_unknown_option(const CLI::App& verb, const std::string& word) {
  const std::string name = full_name(verb);
  std::vector<std::string> names;
  for (const OptionHelp& option : options_of(verb)) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fail(fmt::format("'prunerc{}{}' has no option '{}'", name.empty() ? "" : " ", name, word),
              fmt::format("{}`prunerc {}{}--help` lists them", did_you_mean(word, names), name,
                          name.empty() ? "" : " "),
              kUsage);
}

std::string help_page(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return program_page();
  const Verb& row = *find_verb(full_name(verb));
  std::string out = fmt::format("prunerc {}: {}\nUsage: {}\n", row.name, row.purpose,
                                wrapped(usage_line(verb), 7, kColumns));
  if (!verbs_of(verb).empty()) out += "\nVerbs:\n";
  for (const CLI::App* sub : verbs_of(verb)) {
    out += line_of(sub->get_name(), sub->get_description(), 10);
  }
  out += headed_options(verb);
  if (!row.examples.empty()) out += "\nExamples:\n";
  for (const std::string_view example : row.examples) out += fmt::format("  {}\n", example);
  return out;
}

// --- the man page

namespace {

// A backslash, a hyphen, and a full stop or quote that begins a line mean something to troff.
std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '.' && out.empty()) {
      out += "\\&.";
    } else {
      out += c;
    }
  }
  return out;
}

std::string troff_item(std::string_view name, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", troff(name), troff(text));
}

std::string troff_verb(const CLI::App& verb) {
  const Verb& row = *find_verb(full_name(verb));
  std::string purpose(row.purpose);
  std::string out = fmt::format(".SS {}\n{}.\n.PP\n.RS 0\n.nf\n{}\n.fi\n.RE\n", troff(row.name),
                                troff(purpose), troff(usage_line(verb)));
  for (const OptionHelp& option : options_of(verb)) {
    out += troff_item(option.synopsis(), option.description());
  }
  for (const std::string_view example : row.examples) {
    if (example == row.examples.front()) out += ".PP\nExamples:\n.PP\n.RS 4\n.nf\n";
    out += troff(example) + "\n";
    if (example == row.examples.back()) out += ".fi\n.RE\n";
  }
  for (const CLI::App* sub : verbs_of(verb)) out += troff_verb(*sub);
  return out;
}

}  // namespace

std::string man_page(const CLI::App& program) {
  std::string out = fmt::format(
      ".TH PRUNERC 1 \"\" \"prunerc {}\" \"User Commands\"\n.SH NAME\nprunerc \\- finds out how to "
      "run a tensor operator fast on this machine\n.SH SYNOPSIS\n.B prunerc\n.I VERB\n"
      ".RI [ ARGUMENTS ]\n.SH VERBS\n",
      kVersion);
  for (const CLI::App* verb : verbs_of(program)) out += troff_verb(*verb);
  out += ".SH EXIT STATUS\n";
  for (const Meaning& code : exit_codes()) out += troff_item(code.name, code.text);
  out += ".SH ENVIRONMENT\n";
  for (const Meaning& variable : variables()) out += troff_item(variable.name, variable.text);
  for (const DebugOptionRow& row : debug_option_rows()) {
    out += troff_item(fmt::format("{}={}", row.variable, row.form), row.meaning);
  }
  out += ".SH FILES\n";
  for (const Meaning& file : files()) out += troff_item(file.name, file.text);
  return out;
}

// --- Markdown

namespace {

// A cell of a table: a bar would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string markdown_verb(const CLI::App& verb, int level) {
  const Verb& row = *find_verb(full_name(verb));
  std::string out =
      fmt::format("\n{} {}\n\n{}: `{}`\n", std::string(static_cast<std::size_t>(level), '#'),
                  row.name, row.purpose, usage_line(verb));
  const std::vector<OptionHelp> options = options_of(verb);
  if (!options.empty()) out += "\n| option | meaning |\n|---|---|\n";
  for (const OptionHelp& option : options) {
    out += fmt::format("| `{}` | {} |\n", cell(option.synopsis()), cell(option.description()));
  }
  if (!row.examples.empty()) {
    out += fmt::format("\n```sh\n{}\n```\n", fmt::join(row.examples, "\n"));
  }
  for (const CLI::App* sub : verbs_of(verb)) out += markdown_verb(*sub, level + 1);
  return out;
}

std::string markdown_table(const char* head, std::span<const Meaning> rows) {
  std::string out = fmt::format("\n| {} | meaning |\n|---|---|\n", head);
  for (const Meaning& row : rows) out += fmt::format("| `{}` | {} |\n", row.name, cell(row.text));
  return out;
}

}  // namespace

std::string markdown_page(const CLI::App& program) {
  std::string out;
  std::string_view group;
  for (const CLI::App* verb : verbs_of(program)) {
    const Verb& row = *find_verb(verb->get_name());
    if (row.group != group) out += fmt::format("\n## {}\n", row.group);
    group = row.group;
    out += markdown_verb(*verb, 3);
  }
  out += "\n## Exit codes\n" + markdown_table("code", exit_codes());
  out += "\n## Environment\n" + markdown_table("variable", variables());
  for (const DebugOptionRow& row : debug_option_rows()) {
    out += fmt::format("| `{}={}` | {} |\n", row.variable, row.form, row.meaning);
  }
  out += "\n## Files\n" + markdown_table("file", files());
  return out;
}

}  // namespace prunerc::cli
