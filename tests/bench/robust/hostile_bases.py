"""Valid files of every kind, to be damaged: some of this repository, some made by the binary."""

import glob
import os
import sqlite3

import hostile_files
import hostile_formats as formats

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..")
NET = b"""op dense<M=16, N=32, K=24>(X: f32[M,K], W: f32[K,N], bias: f32[N]) -> (Y: f32[M,N]) {
  let T[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = max(T[i,j] + bias[j], 0);
}
net n { dense(M=8) x 2 as small; }
"""
SCRIPTS = [
    b"split(@L0, [4, 16]) -> @L1, @L2\nvectorize(@L2)\nunroll(@L1)\n",
    b'cache_read(@B0, 0, "global")\nannotate(@L0, "k", 3)\nsplit(@L0, [8, 8])\n',
    b"sample_perfect_tile(@L0, 4, 16) -> v0, v1, v2, v3 = [1, 4, 1, 16]\nsplit(@L0, [v0, v1, v2, v3]) -> @L1, @L2, @L3, @L4\n"
    b"fuse([@L1, @L2]) -> @L5\nparallel(@L5)\nadd_unit_loop(@L5)\n",
]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def repository(pattern, most_bytes=100000):
    paths = sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True))
    return [(os.path.basename(path), read(path)) for path in paths if os.path.getsize(path) <= most_bytes]


def database(world):
    """A database and its lines."""
    path = world.path("base.sqlite")
    world.run(["tune", world.path("op.prn"), "--threads", "1", "--trials", "3", "--strategy", "random", "--db", path, "-q"])
    world.run(["db", "export", world.path("base.jsonl"), "--db", path])
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return read(path), read(world.path("base.jsonl"))


def make(world):
    """{kind: [(name, bytes)]}; measures the machine, so that no case does."""
    world.write("op.prn", hostile_files.OP)
    bytes_of_database, lines = database(world)
    pools = repository("tests/data/pools/v3/*.pool")
    world.pool = world.path("base.pool")
    with open(world.pool, "wb") as out:
        out.write(pools[0][1])
    world.run(["dataset", "split", world.pool, "--by", "within-task", "--share", "0.5", "-o", world.path("base.json")])
    cache = world.path("cache/prunerc")
    world.limits_name = next(name for name in sorted(os.listdir(cache)) if name.startswith("platform-"))
    programs = repository("tests/golden/schedule/*.prc") + repository("tests/bench/schedule/dot/*.prc")
    operators = repository("tools/examples/*.prn") + repository("tools/std/*.prn") + [("net.prn", NET)]
    return {
        "prn": operators + [("op.prn", hostile_files.OP.encode())],
        "prc": programs,
        "script": [("script%d" % n, text) for n, text in enumerate(SCRIPTS)] + repository("tests/golden/gpu/*.trace"),
        "npy": [("a.npy", formats.npy_of("(4,)", b"\0\0\x80\x3f" * 4)), ("b.npy", formats.npy_of("(2, 2)", b"\0" * 32, ">f8"))],
        "jsonl": [("base.jsonl", lines)],
        "pool": pools,
        "rows": [("base.json", read(world.path("base.json")))],
        "model": [("cpu.model", read(os.path.join(ROOT, "costmodel/pretrained/cpu.model")))],
        "sqlite": [("base.sqlite", bytes_of_database)],
        "limits": [("limits", read(os.path.join(cache, world.limits_name)))],
        "line": [("product", b"C[i,j] = sum[k] A[i,k] * B[k,j]"), ("relu", b"B[i] = max(A[i] + 3.5, 0)"), ("pick", b"B[i] = A[3 - i] or 0")],
    }
