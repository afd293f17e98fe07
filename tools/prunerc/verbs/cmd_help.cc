#include "tools/prunerc/cli.h"
#include "tools/prunerc/help.h"

#include <fmt/format.h>

#include <memory>

namespace prunerc::cli {
namespace {

struct HelpVerb {
  std::vector<std::string> words;
  bool man = false;
  bool markdown = false;
};

int help(const HelpVerb& verb, const CLI::App& program) {
  if (verb.man) {
    fmt::print("{}", man_page(program));
    return kSuccess;
  }
  if (verb.markdown) {
    fmt::print("{}", markdown_page(program));
    return kSuccess;
  }
  const CLI::App* found = &program;
  for (const std::string& word : verb.words) {
    const auto subs =
        found->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (subs.empty()) return fail_unknown_verb(*found, word);
    found = subs.front();
  }
  fmt::print("{}", help_page(*found));
  return kSuccess;
}

}  // namespace

void add_help(CLI::App& verb, Action& action) {
  auto args = std::make_shared<HelpVerb>();
  verb.add_option("verb", args->words, "a verb, or a verb of one: help db ls")->type_name("VERB");
  verb.add_flag("--man", args->man,
                "print the man page prunerc.1: `... > prunerc.1; man ./prunerc.1`");
  verb.add_flag("--markdown", args->markdown, "print the generated part of tools/README.md");
  verb.callback([args, &verb, &action] {
    action = [args, &verb] { return help(*args, *verb.get_parent()); };
  });
}

void add_completion(CLI::App& verb, Action& action) {
  auto shell = std::make_shared<std::string>();
  verb.add_option("shell", *shell, "for which shell: bash, zsh, fish")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  verb.callback([shell, &verb, &action] {
    action = [shell, &verb] {
      const Shell kind = *shell == "bash"  ? Shell::kBash
                         : *shell == "zsh" ? Shell::kZsh
                                           : Shell::kFish;
      fmt::print("{}", completion_script(*verb.get_parent(), kind));
      return kSuccess;
    };
  });
}

}  // namespace prunerc::cli
