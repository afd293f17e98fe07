#!/usr/bin/env python3
"""Every command in the tables of README.md and tools/README.md runs as written: `./dev run` is the binary, the home
folder an empty one."""

import re
import shutil
import subprocess

import command

PAGES = ("tools/README.md", "README.md")
# Benchmarks against other libraries need more packages; `./dev bench cpu` has its own tests.
NOT_HERE = re.compile(r"^\./dev (bench|test|fuzz)")


def commands(text):
    """The commands of the table, in order: the text between backquotes that names ./dev."""
    found = []
    for line in text.splitlines():
        if line.startswith("| ") and not set(line) <= set("|- "):
            found += [c for c in re.findall(r"`([^`]+)`", line.split("|", 2)[2]) if "./dev run" in c]
    return found


def read(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


class Readme(command.CommandTest):
    def test_the_recipes_name_every_verb(self):
        rows = "\n".join(commands(read("tools/README.md")))
        for verb in re.findall(r"^  (\w+)  ", self.prunerc("--help").out, re.M):
            self.assertRegex(rows, rf"\./dev run {verb}\b")

    def test_every_command_of_the_tables_succeeds(self):
        # In order, and what stands on both pages once.
        found = list(dict.fromkeys(text for page in PAGES for text in commands(read(page))))
        self.assertGreater(len(found), 30)
        for folder in ("tools/examples", "tools/std"):
            shutil.copytree(folder, self.path(folder))
        environment = dict(self.environment, HOME=self.folder, XDG_CACHE_HOME=self.path(".cache"))
        del environment["PRUNERC_DB"]
        # As a script, so that quotes, redirections and && mean what they do at a prompt.
        for text in found:
            if NOT_HERE.match(text):
                continue
            # Fewer trials find the same answers of this test sooner.
            script = re.sub(r"--trials \d+", "--trials 3", text.replace("./dev run", command.BINARY))
            script = script.replace("--time 20s", "--time 2s").replace("/tmp/", self.folder + "/")
            with self.subTest(command=text):
                done = subprocess.run(["bash", "-ec", script], cwd=self.folder, env=environment,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
                self.assertEqual(0, done.returncode, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    command.main()
