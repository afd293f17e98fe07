#!/usr/bin/env python3
"""Every error says what to do next: the table of hints is complete, and typical mistakes are answered with a next step."""

import re
import struct

import command

TABLE = "ir/support/diag.def"
HINTS = "tools/prunerc/hints.def"

# Groups of rows that reach people only inside of a diagnostic with a place (OperatorText), which has a hint of its own,
# or inside of a verdict or a report of candidates.
INSIDE = ("ir: text form and well-formedness", "interp: the reference interpreter", "schedule: primitives, traces")
# Other rows that the command line never prints alone, each with its reason.
NEVER_ALONE = dict(line.split(": ", 1) for line in """
Cancelled: commands that are interrupted say so in their report
ArtifactMalformed: read by workers, from what the same build wrote
KernelRun: made by benchmarks alone
KernelInput: the inputs of a job are made from the operator's own ports
KernelArguments: of the embedding API
KernelFailed: of the embedding API
OperatorText: its hint is made from its place, in cli.cc
CandidateTooLarge: a candidate of a search, counted under its status
""".strip().splitlines())


def rows(text):
    """Row to group."""
    found, group = {}, None
    for line in text.splitlines():
        if line.startswith("// --- "):
            group = line[7:]
        elif match := re.match(r"PRUNERC_DIAG\((\w+),", line):
            found[match[1]] = group
    return found


def npy(shape, code, values):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


class TheTableOfHints(command.CommandTest):
    def test_every_row_that_people_see_has_one(self):
        with open(TABLE, encoding="utf-8") as file:
            known = rows(file.read())
        with open(HINTS, encoding="utf-8") as file:
            hints = dict(re.findall(r'^PRUNERC_HINT\((\w+), "(.*)"\)$', file.read(), re.M))
        self.assertGreater(len(known), 100)
        for group in INSIDE:
            self.assertIn(group, known.values())
        shown = {row for row, group in known.items() if group not in INSIDE} - set(NEVER_ALONE)
        self.assertEqual(set(), shown - set(hints), "these rows need a line in hints.def")
        self.assertEqual(set(), set(hints) - set(known), "hints.def names rows that diag.def does not have")
        self.assertEqual(set(), set(NEVER_ALONE) - set(known))
        for hint in hints.values():
            self.assertFalse(hint.endswith("."), hint)


class Mistakes(command.CommandTest):
    def check(self, arguments, code, said, hint):
        with self.subTest(arguments=arguments):
            result = self.prunerc(*arguments, expect=code)
            self.assertEqual("", result.out)
            lines = result.err.splitlines()
            self.assertTrue(any(re.match(r"(.*: )?error: ", line) for line in lines), result.err)
            self.assertRegex(result.err, said)
            if hint is None:
                self.assertNotIn("hint: ", result.err)
            else:
                self.assertRegex(lines[-1], "^hint: .*" + hint)

    def test_in_the_command_line(self):
        for arguments, code, said, hint in (
            ([], 2, "a verb is required", "prunerc --help"),
            (["tun", "x.prn"], 2, "no verb 'tun'", "did you mean 'tune'"),
            (["show", self.ops, "-D", "N=3,M=2,N=4"], 2, "-D: gives 'N' twice", "--help"),
            (["run", self.ops, "--op", "total", "--input", "A=ones", "--input", "A=zeros"], 2, "--input: gives 'A' twice", "--help"),
            (["show", "-e", "C[i] = A[i]", "-D", "i=4", "--dtype", "A=f16,A=f32"], 2, "--dtype: gives 'A' twice", "--help"),
            (["show", self.ops, "-D", "N="], 2, "needs NAME=VALUE, found 'N='", "--help"),
            (["tnue", "x.prn"], 2, "no verb 'tnue'", "did you mean 'tune'"),
            (["frobnicate"], 2, "no verb 'frobnicate'", "`prunerc --help` lists them"),
            (["db"], 2, "'prunerc db' needs a verb", "prunerc db --help"),
            (["db", "lss"], 2, "'prunerc db' has no verb 'lss'", "did you mean 'ls'"),
            (["tune"], 2, "give an operator file or -e", "prunerc tune --help"),
            (["tune", self.ops, "--trails", "3"], 2, "'prunerc tune' has no option '--trails'", "did you mean '--trials'"),
            (["tune", self.ops, "--trials", "many"], 2, "--trials: .*many.*not in range 0 to", "prunerc tune --help"),
            (["tune", self.ops, "--time", "soon"], 2, "needs a duration such as 90s", "--help"),
            (["tune", self.ops, "--time", "1e300h"], 2, "option --time: is at most 250000h, found '1e300h'", "--help"),
            (["tune", self.ops, "--strategy", "prunr"], 2, "prunr not in .*metaschedule", "did you mean 'pruner'"),
            (["tune", self.ops, "--target", "z80"], 2, "a target is one of .*found 'z80'", "prunerc devices"),
            (["tune", self.ops, "--target", "cpu foo=3"], 2, "'foo'", "prunerc devices --json"),
            (["show", self.ops, "--op", "dense", "-D", "M"], 2, "needs NAME=VALUE, found 'M'", "--help"),
            (["compile", self.ops, "--op", "dense"], 2, "--output is required", "prunerc compile --help"),
            (["compile", self.ops, "--op", "dense", "-o", "x.txt"], 2, "needs a name ending in", "--help"),
            (["apply", self.ops], 2, "script is required", "prunerc apply --help"),
            (["devices", "cpu"], 2, "'cpu' is one argument too many", "prunerc devices --help"),
            (["tune", self.ops, "--op", "dense", "--weights", "1,2"], 2, "needs a number for each of 1", "--help"),
            (["tune", self.ops, "--op", "dense", "-O1", "--json"], 2, "--json: is of what was measured", "--help"),
            (["run", self.ops, "--op", "dense", "--weights", "ones"], 2, "--weights: is of a net with ports", "--help"),
            (["bench", self.ops, "--op", "dense", "--weights", "ones"], 2, "--weights: is of a net with ports", "--help"),
            (["compile", self.ops, "--op", "dense", "--weights", "ones", "-o", "x.so"], 2,
             "--weights: is of a net with ports", "--help"),
            (["verify", self.ops, "--op", "dense", "--cuts"], 2, "--cuts: is of a net with ports", "--help"),
            (["show", "x.prc", "--stage", "ast"], 2, "ast is of a .prn file", "--help"),
            (["show", self.ops, "--op", "dense", "--schedule", "/dev/null"], 2, "that --stage scheduled prints", "--help"),
            (["show", "-e", "C[i] = A[i]", "-D", "i=4", "--op", "f"], 2, "--op: chooses in a file", "--help"),
            (["show", self.ops, "--op", "dense", "--dtype", "f16"], 2, "--dtype: is of -e's inputs", "--help"),
        ):
            self.check(arguments, code, said, hint)

    def test_in_operators_and_scripts(self):
        bad = self.write("bad.prn", "op f(A: f32[4]) -> (B: f32[4]) { B[i] = A[i] + C[i]; }\n")
        prc = self.write("bad.prc", "program f(A: f32[4]) {\n")
        script = self.write("bad.trace", "split(@L99, [2, 2])\n")
        free = self.write("free.prn", "op f<N>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i]; }\n")
        for arguments, said, hint in (
            (["show", bad], r"bad\.prn:1:48: error: 'C' is not defined", "--stage ast"),
            (["show", prc], r"bad\.prc:1:\d+: error: ", "prints a program in this form"),
            (["show", self.ops], "choose one by --op: 'dense'", "--stage ast"),
            (["show", self.ops, "--op", "dens"], "no operator is called 'dens'; did you mean 'dense'", "--stage ast"),
            (["show", self.ops, "--op", "conv"], "no operator is called 'conv'; there are 'dense', ", "--stage ast"),
            (["show", free], "bind it with -D N=", "--stage ast"),
            (["show", free, "-D", "Q=4"], "has no parameter 'Q'", None),
            (["show", free, "-D", "n=4"], "did you mean 'N'", None),
            (["show", "-e", "C[i] = A[i]"], "-D i=", None),
            (["show", "-e", "C[i] = mx(A[i], 0)", "-D", "i=4"], "did you mean 'max'", None),
            (["show", "-e", "C[i] = A[i]", "-D", "I=4"], "did you mean 'i'", None),
            (["apply", self.ops, script, "--op", "dense"], r"bad\.trace:1:1: error: loop @L99 does not exist", "prunerc apply"),
        ):
            self.check(arguments, 1, said, hint)

    def test_in_a_line_of_a_net(self):
        net = self.write("net.prn", "op f<N>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i]; }\n"
                         "net n(x: f32[4]) -> (y: f32[4]) { y = f(x) }\n")
        said = self.prunerc("show", net, expect=1).err
        self.assertEqual(1, said.count("error:"), said)
        self.assertIn("expected ';'", said)

    def test_a_net_for_a_gpu_is_answered_with_its_operators(self):
        net = self.write("net.prn", "op f<N>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i]; }\n"
                         "net n(x: f32[4]) -> (y: f32[4]) { y = f(x); }\n")
        for form, code, said in ((".so", 1, "runs on CPUs, not on 'cuda:sm_80'"), (".cu", 2, "for CPUs, not 'n.cu'")):
            self.check(["compile", net, "--target", "cuda:sm_80", "-o", "n" + form], code, said, "--stage fused|--help")

    def test_in_arrays(self):
        with open(self.path("f64.npy"), "wb") as file:
            file.write(npy([40], "<f8", bytes(320)))
        self.write("text.npy", "1 2 3")
        total = ["run", self.ops, "--op", "total"]
        for arguments, code, said, hint in (
            ([*total, "--input", "A=@f64.npy"], 1, r"'A' needs f32\[40\], found f64\[40\]", "a.astype"),
            ([*total, "--input", "A=@text.npy"], 1, "not a readable .npy file", "numpy.save"),
            ([*total, "--input", "A=@none.npy"], 5, "cannot read 'none.npy'", "check that the path exists"),
            ([*total, "--input", "A=ones", "--input", "Z=ones"], 1, "has no input 'Z'", "prints inputs and outputs"),
            ([*total, "--input", "A=rand:dice"], 2, "unknown fill 'rand:dice'; known: zeros", None),
            ([*total, "--output", "Z=z.npy"], 1, "'total' has no output 'Z'; it has 'T'", "prints inputs and outputs"),
            ([*total, "--input", "Z=ones"], 1, "has no input 'Z'; it has 'A'", "prints inputs and outputs"),
            (total, 2, "'A' .* is missing; give A=@file.npy", "--help"),
            ([*total, "--input", "A=f64.npy"], 2, "'f64.npy' is no fill; did you mean A=@f64.npy", "--help"),
            ([*total, "--input", "A=gone.npy"], 2, "did you mean A=@gone.npy", "--help"),
            ([*total, "--input", "A=ones", "--output", "T=@t.npy"], 2, "did you mean T=t.npy", "--help"),
            ([*total, "--input", "A=@" + self.folder], 5, "is a folder, not a regular file", "name a regular file"),
        ):
            self.check(arguments, code, said, hint)

    def test_in_files_and_the_machine(self):
        garbage = self.write("garbage.sqlite", "this is no database" * 200)
        dense = [self.ops, "--op", "dense"]
        environment = self.with_variables({"PRUNERC_DB": "/nowhere/at/all.sqlite"})
        for arguments, code, said, hint in (
            (["tune", "nowhere.prn"], 5, "cannot read 'nowhere.prn'", "check that the path exists"),
            (["tune", *dense, "--db", garbage], 5, "is damaged", "move the file away"),
            (["tune", *dense, "--db", "/nowhere/db.sqlite"], 5, "cannot open the database", "--db or PRUNERC_DB"),
            (["compile", *dense, "-o", "/nowhere/x.o"], 5, "cannot write '/nowhere/x.o'", "you may read or write"),
            (["compile", *dense, "--require-tuned", "-o", "x.o"], 6, "no record of 'dense'", "`prunerc tune`"),
            (["db", "best"], 6, "no verified record", "`prunerc tune FILE`"),
            (["explain", "77777"], 6, "no record 77777", "prunerc db best"),
            (["show", self.folder], 5, "is a folder, not a regular file", "name a regular file"),
            (["db", "ls", "--db", self.folder], 5, "is a folder, not a regular file", "name a regular file"),
            (["tune", *dense, "--target", "cuda"], 5, "no CUDA device", "--target cuda:sm_80 compiles for one"),
            (["tune", *dense, "--target", "cuda:sm_80"], 5, "use --target cpu, or compile", None),
            (["tune", "--replay", "none.pool"], 5, "cannot read 'none.pool'", "check that the path exists"),
            (["dataset", "stats", self.write("bad.pool", "x")], 5, "is damaged", "prunerc dataset record"),
            (["model", "eval", self.write("bad.model", "x"), "x.pool"], 1, "is damaged", "prunerc model train"),
            (["tune", *dense, "--strategy", "tlp-offline", "-q"], 1, "needs a trained", "prunerc model train"),
        ):
            self.check(arguments, code, said, hint)
        failed = self.prunerc("db", "ls", env=environment, expect=5)
        self.assertIn("PRUNERC_DB", failed.err)


if __name__ == "__main__":
    command.main()
