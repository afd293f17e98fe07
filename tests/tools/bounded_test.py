#!/usr/bin/env python3
"""What others wrote is read within bounds: regular files, sizes, counts, imports, databases, terminals, and kernels that do not end."""

import os
import socket
import sqlite3
import struct

import command

OP = "op f<N=64>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }\n"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS id, x AS program FROM c"


class Bounded(command.CommandTest):
    def refused(self, *arguments, expect=1, **options):
        return self.prunerc(*arguments, expect=expect, **options).err

    def other_files(self, suffix):
        """Paths that are no regular files, and what they are."""
        names = {kind: self.path(kind + suffix) for kind in ("folder", "pipe", "socket", "device", "link")}
        os.mkdir(names["folder"])
        os.mkfifo(names["pipe"])
        with socket.socket(socket.AF_UNIX) as one:
            # An address has at most 107 bytes; the folder of a test may have more.
            before = os.getcwd()
            os.chdir(self.folder)
            one.bind(os.path.basename(names["socket"]))
            os.chdir(before)
        os.symlink("/dev/zero", names["device"])
        os.symlink("pipe" + suffix, names["link"])
        return {path: "a pipe" if kind == "link" else "a " + kind for kind, path in names.items()}

    def test_only_regular_files_are_read(self):
        readers = {
            ".prn": ["show", "{}"], ".prc": ["show", "{}"], ".txt": ["apply", self.ops, "{}", "--op", "scale"], ".jsonl": ["db", "import", "{}"],
            ".pool": ["dataset", "stats", "{}"], ".json": ["dataset", "prune", "{}", "--by", "random", "--keep", "0.5", "-o", "x.json"],
            ".model": ["model", "export", "{}", "-o", "x"], ".sqlite": ["db", "ls", "--db", "{}"],
            ".npy": ["run", self.ops, "--op", "total", "--input", "A=@{}"],
        }
        for suffix, reader in readers.items():
            for path, kind in self.other_files(suffix).items():
                err = self.refused(*[word.replace("{}", path) for word in reader], expect=5)
                self.assertIn(f"'{path}' is {kind}, not a regular file", err)
                self.assertIn("hint: name a regular file", err)

    def test_an_empty_script_may_be_the_null_device(self):
        self.prunerc("apply", self.ops, "/dev/null", "--op", "scale")

    def test_sizes_are_limited_and_said(self):
        with open(self.path("hole.prn"), "wb") as hole:
            hole.truncate(1 << 32)
        err = self.refused("show", "hole.prn")
        self.assertIn("'hole.prn' has 4 GiB, at most 4 MiB are read", err)
        self.assertIn("hint: split the file", err)

    def test_counts_are_limited_and_said(self):
        f = self.write("f.prn", OP)
        many = {
            "lets.prn": "op f(A: f32[4]) -> (B: f32[4]) { %s B[i] = A[i]; }" % "".join(f"let T{k}[i] = A[i];\n" for k in range(20000)),
            "blocks.prc": "program p(A: f32[4]) -> (B: f32[4]) { %s }" % ('for i in 4 { block "b" [v: S(4) = i] { B[v] = A[v] } }\n' * 8000),
            "iters.prc": 'program p(A: f32[4]) -> (B: f32[4]) { block "b" [%s] { B[0] = A[0] } }' % ", ".join(f"v{k}: S(1) = 0" for k in range(5000)),
            "units.txt": "add_unit_loop(@L0)\n" * 3000,
        }
        said = {"lets.prn": "an operator has more than 256 statements", "blocks.prc": "a program has more blocks, at most 256 are read",
                "iters.prc": "a block has more iteration variables, at most 64 are read",
                "units.txt": "a script has more instructions, at most 512 are read"}
        for name, text in many.items():
            self.write(name, text)
            err = self.refused("apply", f, name) if name.endswith(".txt") else self.refused("show", name)
            self.assertRegex(err, name + r":\d+:\d+: error: ")
            self.assertIn(said[name], err)

    def test_reads_at_many_places_do_not_double_the_work_of_each_other(self):
        places = " + ".join(f"A[(v + {k}) % 64]" for k in range(200))
        self.write("reads.prc", 'program p(A: f32[64]) -> (B: f32[64]) { for i in 64 { block "b" [v: S(64) = i] { B[v] = %s } } }' % places)
        self.prunerc("show", "reads.prc")

    def test_what_no_lowering_could_make_code_of_is_refused_as_a_program(self):
        self.write("init.prc", 'program p(A: f32[20]) -> (B: f32[20]) { for i in 20 @L0 { block "b" @B0 [vj: R(20) = i] '
                   "{ init { B[vj] = 0f32 } B[vj] = B[vj] + A[vj] } } }")
        err = self.refused("compile", "init.prc", "--target", "cpu:haswell", "-o", "x.s")
        self.assertIn("init.prc: error: the init of block 'b' uses 'vj', over which it reduces", err)
        self.write("deep.txt", "add_unit_loop(@L0)\n" * 510)
        self.assertRegex(self.refused("apply", self.ops, "deep.txt", "--op", "scale"), r"deep.txt:\d+:\d+: error: nested deeper than 500 levels")

    def test_imports_stay_below_the_folder_of_the_file(self):
        for folder in ("a", "a/below", "b"):
            os.mkdir(self.path(folder))
        for path in ("a/below/near.prn", "b/far.prn"):
            self.write(path, "const c = 3;\n")
        os.symlink("../b/far.prn", self.path("a/link.prn"))
        os.symlink("below/near.prn", self.path("a/inside.prn"))
        use = 'import "%s";\nop f(A: f32[4]) -> (B: f32[4]) { B[i] = A[i] * c; }\n'
        for allowed in ("below/near.prn", "inside.prn"):
            self.write("a/main.prn", use % allowed)
            self.prunerc("show", "a/main.prn")
        for outside in ("../b/far.prn", "link.prn", self.path("b/far.prn")):
            self.write("a/main.prn", use % outside)
            err = self.refused("show", "a/main.prn")
            self.assertRegex(err, r"a/main.prn:1:\d+: error: cannot import '.*': import '.*' leaves the folder of the file that imports it, 'a'")
            self.prunerc("show", "a/main.prn", "-I", "b")
            self.prunerc("show", "a/main.prn", "--stage", "ast", "--import-from", "b")
            self.prunerc("compile", "a/main.prn", "-I", "b", "--target", "cpu:haswell", "-o", "x.s")
        self.write("a/main.prn", use % "/dev/zero")
        self.assertIn("'/dev/zero' is a device, not a regular file", self.refused("show", "a/main.prn", "-I", "/"))

    def test_a_file_that_is_a_link_imports_its_neighbours(self):
        os.mkdir(self.path("real"))
        self.write("real/c.prn", "const c = 3;\n")
        self.write("real/main.prn", 'import "c.prn";\nop f(A: f32[4]) -> (B: f32[4]) { B[i] = A[i] * c; }\n')
        os.mkdir(self.path("links"))
        for name in ("c.prn", "main.prn"):
            os.symlink("../real/" + name, self.path("links/" + name))
        self.prunerc("show", "links/main.prn")

    def test_a_kernel_that_does_not_end_is_killed(self):
        self.write("long.prc", 'program p(A: f32[1]) -> (B: f32[1]) { for i in 1000000000000 @L0 { block "b" [v: R(1000000000000) = i] '
                   "{ init { B[0] = 0f32 } B[0] = B[0] + A[0] } } }")
        err = self.refused("run", "long.prc", "--input", "A=ones", "--timeout", "100ms", "--schedule", "/dev/null", expect=4)
        self.assertIn("the kernel of 'p' took longer than 100ms", err)
        self.assertIn("needs a duration", self.refused("run", self.ops, "--timeout", "soon", expect=2))

    def test_nothing_that_a_terminal_obeys_is_printed(self):
        evil = "\x1b[2J\u202e\x07"
        self.write(f"x{evil}.prn", "op f(")
        self.write("name.prn", f"op {evil}f(A: f32[4]) -> (B: f32[4]) {{ B[i] = A[i]; }}")
        self.write("shape.prn", f"op f(A: f32[4 //{evil}\n, 4]) -> (B: f32[4]) {{ B[i] = A[i, i]; }}")
        self.write("import.prn", f'import "{evil}.prn";\n' + OP)
        self.write("name.prc", f'program p(A: f32[4]) -> (B: f32[4]) {{ for i in 4 {{ block "{evil}" [v: S(4) = i] {{ B[v] = A[v] }} }} }}')
        self.write("key.txt", f'annotate(@L0, "{evil}", 1)\n')
        header = f"{{'descr': '{evil}', 'fortran_order': False, 'shape': (4,), }}\n".encode()
        with open(self.path("type.npy"), "wb") as out:
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        for arguments in (["show", f"x{evil}.prn"], ["show", "name.prn"], ["show", "shape.prn", "--stage", "ast"], ["show", "import.prn"],
                          ["show", "name.prc"], ["apply", self.ops, "key.txt", "--op", "scale"], ["show", "-e", evil],
                          ["run", self.ops, "--op", "total", "--input", "A=@type.npy"], ["show", self.ops, "--op", evil],
                          ["show", self.ops, "-D", f"{evil}=3"], ["compile", self.ops, "--target", evil, "-o", "x.s"], [evil],
                          ["db", "ls", "--db", f"{evil}.sqlite"]):
            done = self.prunerc(*arguments, expect=None)
            self.assertNotRegex(done.out + done.err, "[\x1b\u202e\x07]", arguments)

    def forge(self, *statements, version=1):
        with sqlite3.connect(self.path("forged.sqlite")) as db:
            for statement in statements:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {version}")
        db.close()
        return self.path("forged.sqlite")

    def test_views_and_triggers_of_a_database_do_not_run(self):
        forged = self.forge(f"CREATE VIEW task AS {ENDLESS}", f"CREATE VIEW record AS {ENDLESS}")
        for verb in ("ls", "best", "stats", "validate"):
            self.assertIn("its view 'record' is not the table that prunerc makes", self.refused("db", verb, "--db", forged, expect=5))
        os.remove(forged)
        forged = self.forge("CREATE TABLE other (a)")
        self.assertIn("table 'other', which is not ours", self.refused("db", "ls", "--db", forged, expect=5))
        os.remove(forged)
        forged = self.forge("CREATE VIEW task AS SELECT 1", version=0)
        self.assertIn("view 'task', which is not ours", self.refused("db", "import", self.write("no.jsonl", ""), "--db", forged, expect=5))

    def test_a_pipe_beside_a_database_is_not_opened(self):
        self.prunerc("db", "import", self.write("no.jsonl", ""), "--db", self.db)
        for suffix in ("-wal", "-shm", "-journal"):
            if os.path.exists(self.db + suffix):
                os.remove(self.db + suffix)
        os.mkfifo(self.db + "-journal")
        self.assertIn("-journal' is a pipe", self.refused("db", "ls", "--db", self.db, expect=5))


if __name__ == "__main__":
    command.main()
