#!/usr/bin/env python3
"""The session in README.md works as pasted: from the definition to a kernel that a C program calls."""

import re
import subprocess

import command


def commands(page):
    """The text after each `$ ` of the page's session, with what follows it up to the end of a here-document."""
    session = re.search(r"^```console\n(.*?)^```$", page, re.M | re.S)[1]
    found, end = [], None
    for line in session.splitlines():
        if end:
            found[-1] += "\n" + line
            end = None if line == end else end
        elif line.startswith("$ "):
            found.append(line[2:])
            document = re.search(r"<<'(\w+)'", line)
            end = document and document[1]
    return found, session.splitlines()[-1]


class ReadmeSession(command.CommandTest):
    def test_the_session_runs_and_ends_as_it_says(self):
        with open("README.md", encoding="utf-8") as file:
            lines, last = commands(file.read())
        for verb in ("tune", "verify", "compile"):
            self.assertTrue(any(f"./dev run {verb} " in line for line in lines), verb)
        # Any schedule can be called; a few trials find one sooner.
        script = re.sub(r"(\./dev run tune \S+)", r"\1 --trials 3", "\n".join(lines))
        script = script.replace("./dev run", command.BINARY).replace("/tmp/", self.folder + "/")
        done = subprocess.run(["bash", "-euc", script], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(0, done.returncode, f"{script}\n{done.stdout}\n{done.stderr}")
        self.assertEqual(last, done.stdout.splitlines()[-1])


if __name__ == "__main__":
    command.main()
