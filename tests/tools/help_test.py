#!/usr/bin/env python3
"""Help pages, the man page and tools/README.md: one table, printed in several forms; its examples run as written."""

import os
import re
import shutil
import subprocess

import command

BEGIN = "<!-- help:begin -->\n"
END = "<!-- help:end -->\n"


class Help(command.CommandTest):
    def page(self, *verb):
        return self.prunerc(*verb, "--help").out

    def verbs(self):
        """Every verb and verb of a verb, as word lists, in the order of the help pages."""
        found = []
        for verb in re.findall(r"^  (\w+)  ", self.page(), re.M):
            found.append([verb])
            nested = self.page(verb).partition("\nVerbs:\n")[2].partition("\n\n")[0]
            found += [[verb, name] for name in re.findall(r"^  (\w+)  ", nested, re.M)]
        return found

    def options(self, verb):
        """Names of the options on a verb's page."""
        names = re.findall(r"^  (-.*?)(?:  |$)", self.page(*verb), re.M)
        return [re.split(r"[ =]", name)[0] for line in names for name in line.split(", ")]

    def examples(self, verb):
        text = self.page(*verb).partition("\nExamples:\n")[2]
        return [line.strip() for line in text.splitlines() if line]

    def test_the_first_page_fits_a_screen_and_groups_the_verbs(self):
        lines = self.page().splitlines()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 100)
        groups = [line for line in lines if re.fullmatch(r"[A-Z][a-z ,]+:", line)]
        self.assertGreaterEqual(len(groups), 4)
        self.assertIn("  tune", lines[lines.index("Find a schedule:") + 1])

    def test_every_page_has_purpose_usage_headings_and_examples(self):
        first = self.page()
        self.assertGreater(len(self.verbs()), 25)
        for verb in self.verbs():
            with self.subTest(verb=verb):
                page = self.page(*verb)
                name = " ".join(verb)
                title, usage = page.splitlines()[:2]
                self.assertTrue(title.startswith(f"prunerc {name}: "), title)
                self.assertTrue(usage.startswith(f"Usage: prunerc {name}"), usage)
                if len(verb) == 1:
                    self.assertIn(title.partition(": ")[2], first)
                options = page.partition("\nExamples:\n")[0]
                self.assertLessEqual(max(map(len, options.splitlines())), 100)
                self.assertIn(len(self.examples(verb)), (2, 3) if len(verb) == 1 else (1, 2, 3))
                self.assertEqual(page, self.prunerc("help", *verb).out)

    def test_options_stand_under_headings(self):
        page = self.page("tune")
        headings = re.findall(r"^([A-Z][a-z ]+):$", page, re.M)
        self.assertEqual(["Operator", "Machine", "Budget", "Search", "Output", "Examples"], headings)
        # What CLI11 knows is there: values, choices, defaults, what is required.
        self.assertIn("metaschedule", page)
        self.assertRegex(page, r"(?s)--target TARGET .*\(default: cpu\)")
        self.assertRegex(self.page("dataset", "split"), r"(?s)-o, --output FILE\.json .*\(required\)")

    def test_every_example_runs_as_it_is_written(self):
        for folder in ("tools/examples", "tools/std"):
            shutil.copytree(folder, self.path(folder))
        os.makedirs(self.path("bin"))
        os.symlink(command.BINARY, self.path("bin/prunerc"))
        environment = dict(self.environment, HOME=self.folder, XDG_CACHE_HOME=self.path(".cache"),
                           PATH=self.path("bin") + ":" + os.environ["PATH"])
        del environment["PRUNERC_DB"]
        for verb in self.verbs():
            for example in self.examples(verb):
                with self.subTest(example=example):
                    done = subprocess.run(["bash", "-ec", example], cwd=self.folder, env=environment,
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
                    self.assertEqual(0, done.returncode, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    def test_the_man_page_names_everything_and_is_good_troff(self):
        page = self.prunerc("help", "--man").out
        plain = page.replace("\\", "")
        for verb in self.verbs():
            self.assertIn(f"\n.SS {' '.join(verb)}\n", page)
            for option in self.options(verb):
                self.assertRegex(plain, rf"(?m)^\.B (.*, )?{re.escape(option)}\b", verb)
        for section in ("NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES"):
            self.assertIn(f"\n.SH {section}\n", page)
        checkers = ([["mandoc", "-Tlint", "-Wwarning"], ["groff", "-man", "-ww", "-z", "-Tutf8"]])
        checkers = [c for c in checkers if shutil.which(c[0])]
        if not checkers:
            self.skipTest("neither mandoc nor groff is installed")
        for checker in checkers:
            done = subprocess.run([*checker, self.write("prunerc.1", page)], capture_output=True, text=True, check=False)
            found = [line for line in (done.stdout + done.stderr).splitlines()
                     # Pages are made anew by each build; what dates them is the version.
                     if "missing date" not in line]
            self.assertEqual([], found, checker)

    def test_the_readme_of_tools_holds_what_help_prints(self):
        with open("tools/README.md", encoding="utf-8") as file:
            text = file.read()
        kept = text.partition(BEGIN)[2].partition(END)[0]
        self.assertEqual(self.prunerc("help", "--markdown").out, kept,
                         "put the output of `./dev run help --markdown` between the comments help:begin and help:end of tools/README.md")
        for verb in self.verbs():
            for option in self.options(verb):
                self.assertIn(f"{option}", kept)

    def test_what_there_is_no_help_for_is_said(self):
        self.assertIn("did you mean 'tune'?", self.prunerc("help", "tnue", expect=2).err)
        self.assertIn("no verb 'lss'", self.prunerc("help", "db", "lss", expect=2).err)


if __name__ == "__main__":
    command.main()
