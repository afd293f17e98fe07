"""Hostile files that were thought up: impossible sizes, forged headers, bombs, what is no file at all."""

import json
import os
import socket
import sqlite3

import hostile_formats as formats

EXTENTS = ["0", "-1", "1", "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "1" * 400]
NAMES = ["\x1b[2J", "\x1b]0;t\x07", "\u202edrowssap", "a\x00b", "\u200b", "\x9b2J", "%n%s", "../../x", "*/", "CON", "__global__",
         "a" * 65536, "\r\x1b[1Aerror: none", "');system('"]


def op(body, ports="A: f32[N]", out="B: f32[N]", params="N=64"):
    return ("op f<%s>(%s) -> (%s) { %s }\n" % (params, ports, out, body)).encode()


def block(body, extra="", iters="v: S(64) = i", shape="64"):
    return ('program p(A: f32[%s]) -> (B: f32[64]) {\n%s for i in 64 @L0 { block "B" @B0 [%s] { %s } }\n}\n' % (shape, extra, iters, body)).encode()


def texts():
    for extent in EXTENTS:
        yield "prn", "extent " + extent[:20], op("B[i] = A[i];", params="N=" + extent)
        yield "prn", "extent of a port " + extent[:20], op("B[i] = A[i];", ports="A: f32[%s, %s]" % (extent, extent), params="N=4")
        yield "prc", "extent of a loop " + extent[:20], b"program p(A: f32[64]) -> (B: f32[64]) { for i in " + extent.encode() + \
            b' @L0 { block "B" @B0 [v: S(' + extent.encode() + b") = i] { B[v] = A[v] } } }"
        yield "prc", "shape " + extent[:20], block("B[v] = A[v]", shape=extent)
        yield "script", "factor " + extent[:20], ("split(@L0, [%s, 1])\nsplit(@L0, [-1, %s])\n" % (extent, extent)).encode()
        yield "npy", "extent " + extent[:20], formats.npy_of("(%s,)" % extent, b"\0" * 64)
        yield "npy", "extents " + extent[:20], formats.npy_of("(%s, %s, %s)" % (extent, extent, extent), b"\0" * 64)
    for name in NAMES:
        raw = name.encode("utf-8", "surrogatepass")
        shown = ascii(name)[:30]
        yield "prn", "name " + shown, b"op " + raw + b"(A: f32[4]) -> (B: f32[4]) { B[i] = A[i]; }\n"
        yield "prn", "comment in a shape " + shown, b"op f(A: f32[4 //" + raw + b"\n]) -> (B: f32[4]) { B[i] = C[i]; }\n"
        yield "prn", "import " + shown, b'import "' + raw + b'";\n' + op("B[i] = A[i];")
        yield "prc", "block " + shown, block("B[v] = A[v]").replace(b'"B"', b'"' + raw + b'"')
        yield "script", "key " + shown, b'annotate(@L0, "' + raw + b'", 3)\n' + raw + b"(@L0)\n"
        yield "npy", "type " + shown, formats.npy(b"{'descr': '" + raw[:60] + b"', 'fortran_order': False, 'shape': (4,), }\n")
        yield "line", "name " + shown, raw.replace(b"\x00", b"") + b"[i] = A[i] * 2"
    chain = lambda n: "".join("let T%d[i] = %s[i] + 1; " % (k, "T%d" % (k - 1) if k else "A") for k in range(n)) + "B[i] = T%d[i];" % (n - 1)
    for n in (100, 1000, 5000, 20000):
        yield "prn", "%d lets" % n, op(chain(n))
        yield "prn", "%d terms" % n, op("B[i] = " + " + ".join(["A[i]"] * n) + ";")
        yield "prn", "%d factors of an index" % n, op("B[i] = A[" + " * ".join(["(i + 1)"] * n) + "];")
        yield "prn", "%d operators" % n, b"".join(b"op g%d(A: f32[4]) -> (B: f32[4]) { B[i] = A[i]; }\n" % k for k in range(n))
        yield "prn", "%d constants" % n, b"".join(b"const c%d = %d;\n" % (k, k) for k in range(n)) + op("B[i] = A[i];")
        yield "prn", "%d brackets" % n, op("B[i] = " + "(" * n + "A[i]" + ")" * n + ";")
        yield "prn", "%d signs" % n, op("B[i] = " + "-" * n + "A[i];")
        yield "prn", "%d dimensions" % n, op("B[0] = A[0];", ports="A: f32[%s]" % ", ".join(["1"] * n))
        yield "prn", "%d choices" % n, op("B[i] = " + "if i == 0 then 0 else " * n + "A[i];")
        yield "prn", "functions to the power of %d" % n, ("fn g0(x) = x * x;\n" + "".join(
            "fn g%d(x) = g%d(g%d(x));\n" % (k, k - 1, k - 1) for k in range(1, min(n, 200)))).encode() + op("B[i] = g%d(A[i]);" % (min(n, 200) - 1))
        yield "prc", "%d iterators" % n, block("B[v] = A[v]", iters="v: S(64) = i" + "".join(", v%d: S(1) = 0" % k for k in range(n)))
        yield "prc", "%d blocks" % n, ("program p(A: f32[64]) -> (B: f32[64]) {" + "".join(
            'for i in 64 { block "b%d" [v: S(64) = i] { B[v] = A[v] } }\n' % k for k in range(n)) + "}").encode()
        yield "prc", "%d buffers" % n, block("B[v] = A[v]", extra="".join("buffer T%d: f32[64] global\n" % k for k in range(n)))
        yield "prc", "%d stores" % n, block("B[v] = A[v]\n" * n)
        yield "prc", "%d reads" % n, block("B[v] = " + " + ".join("A[(v + %d) %% 64]" % k for k in range(n)))
        yield "prc", "%d affine reads" % n, block("B[v] = " + " + ".join("A[v * %d / %d %% 64]" % (k + 1, k + 2) for k in range(n)))
        yield "prc", "%d conditions" % n, block("".join("if v < %d { B[v] = A[v] }\n" % (k % 64) for k in range(n)))
        yield "prc", "%d attributes" % n, block("B[v] = A[v]").replace(b"@L0", b"@L0 {" + b", ".join(b"a%d = %d" % (k, k) for k in range(n)) + b"}")
        yield "prc", "%d loops in each other" % n, ("program p(A: f32[64]) -> (B: f32[64]) {" + "for i in 1 {" * n + "B[0] = A[0]" + "}" * (n + 1)).encode()
        yield "prc", "%d brackets" % n, block("B[v] = " + "(" * n + "A[v]" + ")" * n)
        yield "prc", "%d minima" % n, block("B[v] = A[" + "min(v, " * n + "0" + ")" * n + "]")
        yield "prc", "%d alternatives" % n, block("B[v] = " + "select(v < 3, 1f32, " * n + "0f32" + ")" * n)
        yield "prc", "%d parameters" % n, block("B[v] = A[v]", extra="".join("param p%d\n" % k for k in range(n)))
        for step in ("add_unit_loop(@L0)", "add_unit_loop_block(@B0)", "split(@L0, [2, -1])", 'annotate(@L0, "k", 1)', 'cache_read(@B0, 0, "global")',
                     'cache_write(@B0, 0, "global")', "sample_perfect_tile(@L0, 4, 16) -> v0, v1, v2, v3 = [64, 1, 1, 1]", "vectorize(@L0)",
                     "enter_postproc()", "compute_inline(@B0)"):
            yield "script", "%d of %s" % (n, step[:20]), (step + "\n").encode() * n
        yield "script", "%d factors" % n, ("split(@L0, [%s])\n" % ", ".join(["1"] * n + ["64"])).encode()
        yield "jsonl", "%d brackets" % n, b"[" * n + b"]" * n + b"\n"
    yield "prn", "imports itself", b'import "case.prn";\n' + op("B[i] = A[i];")
    for path in ("/dev/zero", "/dev/stdin", "/proc/self/environ", "/etc/passwd", "../../../etc/passwd", "pipe", ".", "", "loop", "std/../../x",
                 "std/gemm.prn/x", "/dev/null"):
        yield "prn", "imports " + path, ('import "%s";\n' % path).encode() + op("B[i] = A[i];")
    yield "prn", "no end of a line", op("B[i] = A[i];").replace(b" ", b"\t" * 200000)
    yield "prn", "of 1 MiB and more", b"// " + b"x" * (1 << 20) + b"\n" + op("B[i] = A[i];")
    yield "prc", "division by zero", block("B[v / 0] = A[v % 0]")
    yield "prc", "a reduction without init", block("B[0] = B[0] + A[vj]", iters="vj: R(64) = i")
    yield "prc", "a reduction over what is no loop", block("B[v] = B[v] + A[vj]", iters="v: S(64) = i, vj: R(20) = i")
    yield "prc", "overflow", block("B[v] = A[v * 9223372036854775807 * 9223372036854775807]")
    yield "prc", "a loop that is in use", block("B[v] = A[v]").replace(b"}\n}", b"}\n for i in 64 @L0 { B[i] = A[i] } }")
    for kind in ("prn", "prc", "script", "npy", "jsonl", "pool", "rows", "model", "sqlite"):
        for label, data in (("nothing", b""), ("a zero byte", b"\0"), ("4 MiB of zeros", b"\0" * (4 << 20)), ("a mark alone", b"\xef\xbb\xbf"),
                            ("no UTF-8", b"\xff\xfe\xfd" * 1000), ("escapes", "\x1b[2J\u202e\x07".encode() * 50), ("one long line", b"a" * (3 << 20))):
            yield kind, label, data


def containers(bases):
    _, pool = bases["pool"][0]
    header, columns = formats.open_pool(pool)
    for rows in (0, -1, 2**20, 2**31, 10**9, 2**63, 10**30, 1e308, "x"):
        yield "pool", "claims %s rows" % rows, formats.seal_pool(dict(header, num_rows=rows), columns)
        yield "pool", "%s rows of zeros" % rows, formats.seal_pool(dict(header, num_rows=rows), [(b"\0", 60 << 20)])
    yield "pool", "256 MiB unpacked", formats.seal_pool(dict(header, num_rows=10**9), [(b"\0", 255 << 20)])
    yield "pool", "claims 2^63 bytes", formats.seal_pool(header, columns, claimed=2**63)
    yield "pool", "a newer format", formats.seal_pool(header, columns, version=99)
    yield "pool", "deep header", formats.seal_pool(b"[" * 300000, columns)
    many = dict(header, sketches=header["sketches"] * 300, num_rows=100000)
    yield "pool", "many sketches", formats.seal_pool(many, [(b"\0", 20 << 20)])
    _, model = bases["model"][0]
    header, tensors = formats.open_model(model)
    for width in (0, -1, 1024, 2**31):
        options = {key: (width if isinstance(value, int) and not isinstance(value, bool) else value) for key, value in header["options"].items()}
        yield "model", "all widths %d" % width, formats.seal_model(dict(header, options=dict(options, blocks=8, heads=1)), tensors[:4096])
    for members in (0, -1, 64, 2**31):
        yield "model", "%d members" % members, formats.seal_model(dict(header, members=members), tensors[:4096])
    yield "model", "deep header", formats.seal_model(b"{\"a\":" * 60000, b"")
    _, lines = bases["jsonl"][0]
    record = json.loads(lines.split(b"\n")[0])
    for name in NAMES:
        text = json.dumps(dict(record, op=name, bindings=name, verified=name, timer=name, sketch=name, created=name, detail=name)).encode()
        yield "jsonl", "texts " + ascii(name)[:30], text + b"\n"
    yield "jsonl", "10000 lines", (json.dumps(record).encode() + b"\n") * 10000
    yield "jsonl", "a line of 8 MiB", b"[" + b"[]," * (8 << 20 >> 2) + b"[]]\n"
    rows = {"schema": "prunerc.rows/1", "pools": [{"path": "x", "op": "y", "rows": 10**18, "train": [0], "test": []}]}
    for path in ("/dev/zero", "/dev/stdin", "pipe", "../../../etc/passwd", "/", "\x1b[2J"):
        yield "rows", "a pool " + ascii(path), json.dumps(dict(rows, pools=[dict(rows["pools"][0], path=path)])).encode()
    yield "rows", "a million rows", json.dumps(dict(rows, pools=[dict(rows["pools"][0], train=list(range(1000000)))])).encode()
    yield "rows", "a hundred thousand pools", json.dumps(dict(rows, pools=rows["pools"] * 100000)).encode()
    for version in (0, 1, 2, 3, 9):
        yield "npy", "a header of 4 GiB, version %d" % version, b"\x93NUMPY" + bytes([version, 0]) + b"\xff" * 200


def database(statements, version=1):
    def make(path):
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)
            db.execute("PRAGMA user_version = %d" % version)
        db.close()
    return make


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT %s FROM c"
TASK = "id INTEGER PRIMARY KEY, hash TEXT, program TEXT, target TEXT, name TEXT, op_text TEXT, bindings TEXT"
RECORD = ("id INTEGER PRIMARY KEY, task INTEGER, fingerprint TEXT, sketch TEXT, trace TEXT, status TEXT, median_ns REAL, spread REAL, samples TEXT, "
          "build_s REAL, measure_s REAL, verify_s REAL, detail TEXT, evidence TEXT, platform TEXT, timer TEXT, seed INTEGER, version TEXT, created TEXT, "
          "checksum INTEGER")


def names_of(columns):
    return ", ".join("x AS " + column.split()[0] for column in columns.split(", "))


def databases():
    views = ["CREATE VIEW task AS " + ENDLESS % names_of(TASK), "CREATE VIEW record AS " + ENDLESS % names_of(RECORD)]
    tables = ["CREATE TABLE task (%s)" % TASK, "CREATE TABLE record (%s)" % RECORD]
    yield "sqlite", "endless views", database(views)
    yield "sqlite", "endless views, an older schema", database(views, 0)
    yield "sqlite", "tables of others", database(tables)
    yield "sqlite", "a trigger", database(tables + ["CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END"])
    yield "sqlite", "a generated column", database([tables[0].replace("name TEXT", "name TEXT AS (hex(zeroblob(300000000)))"), tables[1]])
    yield "sqlite", "a newer schema", database([], 99)
    yield "sqlite", "a schema before ours", database([], -5)
    yield "sqlite", "names with escapes", database(tables + ["INSERT INTO task VALUES (1, 'h', 'p', 't', char(27) || '[2J', 'o', char(8238))"])
    yield "sqlite", "a thousand tables", database(["CREATE TABLE t%d (a)" % n for n in range(1000)])


def not_files():
    def link_to(target):
        return lambda path: os.symlink(target, path)

    def bound_socket(path):
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path)

    def sparse(size):
        def make(path):
            with open(path, "wb") as out:
                out.write(formats.npy_of("(%d,)" % (size // 4)) if path.endswith(".npy") else b"PRNPOOL\n")
                out.truncate(size)
        return make

    for kind in ("prn", "prc", "script", "npy", "jsonl", "pool", "rows", "model", "sqlite", "limits"):
        yield kind, "a folder", os.mkdir
        yield kind, "a pipe", os.mkfifo
        yield kind, "a socket", bound_socket
        yield kind, "a link to itself", lambda path: os.symlink(os.path.basename(path), path)
        yield kind, "a link to nothing", link_to("/nonexistent/x")
        yield kind, "a link to /dev/zero", link_to("/dev/zero")
        yield kind, "a link to a folder", link_to("/")
        yield kind, "unreadable", lambda path: os.close(os.open(path, os.O_CREAT, 0))
        if kind != "limits":
            yield kind, "a hole of 4 GiB", sparse(4 << 30)


def files(bases):
    """(kind, label, bytes or a function that makes the file)"""
    yield from texts()
    yield from containers(bases)
    yield from databases()
    yield from not_files()
