#!/usr/bin/env python3
"""`prunerc completion`: the shells themselves are asked what they would offer, where they are installed."""

import os
import re
import shutil
import subprocess
import unittest

import command

# Answers with one candidate a line, as bash would after Tab at the end of the line.
DRIVER = r"""
source "$1"
COMP_LINE="$2" COMP_POINT=${#2} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
_prunerc
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completion(command.CommandTest):
    def script(self, shell):
        return self.write(f"completion.{shell}", self.prunerc("completion", shell).out)

    def bash(self, line):
        done = subprocess.run(["bash", "-c", DRIVER, "bash", self.script("bash"), line], cwd=self.folder,
                              capture_output=True, text=True, check=True)
        self.assertEqual("", done.stderr)
        return [word for word in done.stdout.splitlines() if word]

    def pages(self):
        """Verb, as a word list, to its help page."""
        pages = {}
        for verb in re.findall(r"^  (\w+)  ", self.prunerc("--help").out, re.M):
            pages[(verb,)] = self.prunerc(verb, "--help").out
            nested = pages[(verb,)].partition("\nVerbs:\n")[2].partition("\n\n")[0]
            for name in re.findall(r"^  (\w+)  ", nested, re.M):
                pages[(verb, name)] = self.prunerc(verb, name, "--help").out
        return pages

    @staticmethod
    def options(page):
        names = re.findall(r"^  (-.*?)(?:  |$)", page, re.M)
        return [name.split(" ")[0] for line in names for name in line.split(", ")]

    def test_bash_completes_verbs(self):
        self.assertEqual(["tune"], self.bash("prunerc tu"))
        self.assertEqual({"devices", "doctor", "db", "dataset"}, set(self.bash("prunerc d")))
        self.assertEqual({"record", "remeasure"}, set(self.bash("prunerc dataset re")))
        self.assertEqual({"ls", "best", "export", "import", "stats", "validate"}, set(self.bash("prunerc db ")))
        self.assertEqual(["verify"], self.bash("prunerc help ver"))
        self.assertEqual([], self.bash("prunerc frob"))

    def test_bash_completes_every_option_of_every_page(self):
        for verb, page in self.pages().items():
            offered = self.bash(f"prunerc {' '.join(verb)} -")
            self.assertEqual(set(self.options(page)) | {"-h", "--help"}, set(offered), verb)
        self.assertEqual(["--trials"], self.bash("prunerc tune x.prn --tr"))

    def test_bash_completes_values(self):
        self.assertEqual({"pruner", "pruner-offline", "pruner-paper", "pruner-release", "pruner-xgb"},
                         set(self.bash("prunerc tune x.prn --strategy pruner")))
        self.assertEqual(["asm", "ast"], sorted(self.bash("prunerc show x.prn --stage as")))
        self.assertEqual(["asm", "ast"], sorted(self.bash("prunerc show x.prn --stage=as")))
        self.assertEqual({"cpu", "cuda"}, {word.partition(":")[0] for word in self.bash("prunerc tune --target c")}
                         - {"cuda-host"})
        # What stands before a colon is there already.
        self.assertEqual({"znver3", "znver4"}, set(self.bash("prunerc tune --target cpu:zn")))
        self.assertEqual(["zsh"], self.bash("prunerc completion z"))
        self.assertEqual([], self.bash("prunerc tune x.prn --trials "))

    def test_bash_completes_files_by_their_suffix(self):
        for name in ("a.prn", "a.prc", "a.pool", "a.sqlite", "a.trace", "a.txt"):
            self.write(name, "")
        os.mkdir(self.path("afolder"))
        self.assertEqual({"a.prn", "a.prc", "afolder"}, set(self.bash("prunerc tune a")))
        self.assertEqual({"a.prn", "a.prc", "afolder"}, set(self.bash("prunerc tune --trials 3 a")))
        self.assertEqual({"a.pool", "afolder"}, set(self.bash("prunerc dataset stats a")))
        self.assertEqual({"a.sqlite", "afolder"}, set(self.bash("prunerc db ls --db a")))
        self.assertEqual({"a.pool", "afolder"}, set(self.bash("prunerc tune --replay a")))
        self.assertIn("a.trace", self.bash("prunerc bench a.prn --schedule a"))

    def test_a_script_that_is_sourced_completes_the_command(self):
        text = f"source {self.script('bash')}; complete -p prunerc"
        done = subprocess.run(["bash", "-euc", text], capture_output=True, text=True, check=True)
        self.assertEqual("complete -F _prunerc prunerc\n", done.stdout)

    def test_zsh_and_fish_know_every_verb_and_option(self):
        zsh, fish = (self.prunerc("completion", shell).out for shell in ("zsh", "fish"))
        for verb, page in self.pages().items():
            function = re.search(rf"^_prunerc_{'_'.join(verb)}\(\) {{\n(.*?)^}}$", zsh, re.M | re.S)[1]
            lines = [line for line in fish.splitlines() if f"-n '__fish_seen_subcommand_from {verb[0]}" in line]
            lines = [line for line in lines if len(verb) == 1 or f"; and __fish_seen_subcommand_from {verb[1]}'" in line]
            for option in self.options(page):
                self.assertRegex(function, rf"'\*?{option}\[", verb)
                form = f" -l {option[2:]} " if option.startswith("--") else f" -s {option[1:]} "
                self.assertTrue(any(form in line for line in lines), f"{verb} {option}")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_takes_the_script(self):
        subprocess.run(["zsh", "-n", self.script("zsh")], check=True)
        text = f"autoload -U compinit; compinit -D; source {self.script('zsh')}; print $_comps[prunerc]"
        done = subprocess.run(["zsh", "-fc", text], capture_output=True, text=True, check=True)
        self.assertEqual("_prunerc\n", done.stdout, done.stderr)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        script = self.script("fish")
        subprocess.run(["fish", "--no-execute", script], check=True)
        self.write("a.prn", "")

        def ask(line):
            done = subprocess.run(["fish", "-c", f"source {script}; complete -C '{line}'"], cwd=self.folder,
                                  env=dict(self.environment, HOME=self.folder), capture_output=True, text=True, check=True)
            return {answer.split("\t")[0] for answer in done.stdout.splitlines()}

        self.assertEqual({"tune"}, ask("prunerc tu"))
        self.assertEqual({"record", "remeasure"}, ask("prunerc dataset re"))
        self.assertLessEqual({"pruner", "pruner-paper"}, ask("prunerc tune --strategy pru"))
        self.assertLessEqual({"--trials"}, ask("prunerc tune --tr"))
        self.assertIn("a.prn", ask("prunerc tune a"))


if __name__ == "__main__":
    command.main()
