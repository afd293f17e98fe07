"""What the groups of this benchmark share: prunerc in a world of its own, rows, processes found by a mark."""

import os
import shutil
import subprocess
import tempfile
import time
import uuid

# Goals of these rows are lower limits; all others are of faults.
AT_LEAST = {"kills", "orphan_control", "writers", "disk_full", "winners_checked", "winners_control", "threats", "hostile", "hostile_control"}

# A search of a few trials that takes about a second; the third operator has two stages.
OPERATORS = """op dense<M=16, N=32, K=24>(X: f32[M,K], W: f32[K,N], bias: f32[N]) -> (Y: f32[M,N]) {
  let T[i,j] = sum[k] X[i,k] * W[k,j];
  Y[i,j] = max(T[i,j] + bias[j], 0);
}
op scale<N=40>(A: f32[N], s: f32) -> (B: f32[N]) { B[i] = A[i] * s; }
op soft<M=9, N=33>(X: f32[M,N]) -> (Y: f32[M,N]) {
  let E[i,j] = exp(X[i,j]);
  let S[i] = sum[j] E[i,j];
  Y[i,j] = E[i,j] / S[i];
}
"""


def row(name, value, unit, goal=None, note=""):
    return {"name": name, "value": value, "unit": unit, "goal": goal, "note": note}


def verdict(one):
    if one["goal"] is None:
        return ""
    met = one["value"] >= one["goal"] if one["name"] in AT_LEAST else one["value"] <= one["goal"]
    return "ok " if met else "MISSED "


class Done:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def crashed(self):
        return self.code < 0


class World:
    """A folder, an empty cache in it, and the binary under test."""

    def __init__(self, binary, keep=None):
        self.binary = os.path.abspath(binary)
        self.keep = keep
        self.beside = None
        self.mark = "robust-" + uuid.uuid4().hex

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="prunerc-robust")
        self.environment = dict(os.environ, XDG_CACHE_HOME=self.path("cache"), PRUNERC_DB=self.path("default.sqlite"),
                                PRUNERC_ROBUST_MARK=self.mark)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def start(self, arguments, out, err, variables=None):
        return subprocess.Popen([self.binary] + arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                env=dict(self.environment, **(variables or {})))

    def run(self, arguments, variables=None, timeout=300):
        begun = time.monotonic()
        done = subprocess.run([self.binary] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout,
                              stderr=subprocess.PIPE, env=dict(self.environment, **(variables or {})))
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"),
                    time.monotonic() - begun)

    def save(self, name, text):
        """Keeps evidence of a fault, if the caller wants it."""
        if self.keep:
            os.makedirs(self.keep, exist_ok=True)
            with open(os.path.join(self.keep, name), "w", encoding="utf-8") as out:
                out.write(text)

    def marked_processes(self):
        """Ids of all processes that were started from this world and still run, dead ones that wait for their parent apart."""
        found = []
        needle = ("PRUNERC_ROBUST_MARK=" + self.mark).encode()
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if needle not in file.read().split(b"\0"):
                        continue
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found.append(int(name))
        return found
