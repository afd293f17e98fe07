"""One entry of claims: what was published, what is measured here, by which command, what is unfair or unknown about it, and which
rows say it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    name: str  # of results/NAME.json; NAME-OTHER.json has other machines, NAME_OTHER.json other rivals
    title: str
    here: str
    bench: str  # ./dev bench BENCH
    group: str = ""  # --only GROUP
    rows: str = ""  # pattern of the names of the rows that belong to it; empty: nothing is drawn of it
    published: str = ""
    arguments: str = ""  # that the stored file was measured with, beside the defaults
    others: tuple = ()  # of files that other arguments made: (name, arguments)
    unfair: tuple = ()

    def has(self, row_name):
        return bool(self.rows) and re.match(self.rows, row_name) is not None

    def command(self, name="", arguments=""):
        only = f" --only {self.group}" if self.group else ""
        more = arguments or self.arguments
        return f"./dev bench {self.bench}{only}{more and ' ' + more} --json tests/bench/results/{name or self.name}.json"

    def commands(self):
        """The claim's own, then those of its other files."""
        return [self.command()] + [self.command(*other) for other in self.others]
