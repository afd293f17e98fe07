"""The steps of run.sh. Each is a row of the results, with its output if it failed; none stops the others."""

import argparse
import concurrent.futures
import datetime
import glob
import json
import os
import subprocess
import sys
import tarfile
import time

# (name, file, operator, bindings, flops, bytes): flops where arithmetic limits, bytes where memory does.
TUNED = [
    ("gemm_f32_1024", "tools/std/gemm.prn", "gemm_nn", "M=1024,N=1024,K=1024", 2 * 1024**3, 0),
    ("attention_f16_32x1024x64", "tests/bench/gpu/attention.prn", "attention", "H=32,T=1024,S=1024,E=64",
     4 * 32 * 1024**2 * 64, 0),
    ("softmax_4096x4096", "tools/std/norm.prn", "softmax", "M=4096,N=4096", 0, 2 * 4 * 4096**2),
    ("layer_norm_8192x1024", "tools/std/norm.prn", "layer_norm", "M=8192,N=1024", 0, 2 * 4 * 8192 * 1024),
    ("row_sum_8192x8192", "tools/std/reduce.prn", "row_sum", "M=8192,N=8192", 0, 4 * 8192**2),
    ("silu_mul_8192x4096", "tools/std/elementwise.prn", "silu_mul", "M=8192,N=4096", 0, 3 * 4 * 8192 * 4096),
]
HAND_WRITTEN = [
    ("hgemm_4096", "tests/bench/gpu/hgemm_4096.prc", "tests/bench/gpu/hgemm.trace", 2 * 4096**3),
    ("hgemm_wgmma_4096", "tests/bench/gpu/hgemm_4096.prc", "tests/bench/gpu/hgemm_wgmma.trace", 2 * 4096**3),
]


PARALLEL = 8  # checks that share the device; nothing is timed meanwhile
SEED = 0  # of every search and fill


class Steps:
    def __init__(self, options):
        self.options = options
        self.end = time.time() + 60 * options.minutes
        self.rows = []
        self.target = "cuda:" + options.arch
        self.machine = "unknown"  # until the platform is known

    def left(self):
        return self.end - time.time()

    def call(self, name, command, seconds):
        """(exit code, stdout), within what is left; the row is added by the caller."""
        limit = min(seconds, max(5, self.left()))
        # NVRTC and CUPTI may be where PyTorch's packages brought them.
        environment = {"VIRTUAL_ENV": sys.prefix, **os.environ, "XDG_CACHE_HOME": os.path.join(self.options.bin, "cache")}
        try:
            done = subprocess.run(command, cwd=self.options.root, env=environment, capture_output=True, text=True,
                                  timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return 124, "", f"{name} took longer than {limit:.0f} s"
        except OSError as error:
            return 127, "", str(error)
        return done.returncode, done.stdout, done.stderr

    def add(self, name, code, **facts):
        row = {"name": name, "ok": code == 0, **facts}
        self.rows.append(row)
        print(("ok    " if row["ok"] else "FAILED") + " " + name + "".join(f"  {k}={v}" for k, v in facts.items()
              if k not in ("log",)), flush=True)

    def prunerc(self, *arguments):
        return [os.path.join(self.options.bin, "prunerc"), *arguments]

    def doctor(self):
        code, out, err = self.call("doctor", self.prunerc("doctor"), 60)
        self.add("doctor", code, log=out + err)

    def platform(self):
        """The limits of the device, measured now: what searches and cost models will take for its peaks."""
        started = time.time()
        code, out, err = self.call("platform", self.prunerc("devices", "--remeasure", "--json"), 60)
        try:
            gpu = next(device for device in json.loads(out)["devices"] if device["target"].startswith("cuda"))
        except (LookupError, ValueError, StopIteration):
            self.add("platform", code or 1, log=(out + err)[-2000:])
            return
        self.machine = gpu["model"]
        if "limits" not in gpu:
            self.add("platform", 1, device=gpu["model"], log=gpu["not_measured"])
            return
        limits = {key: round(value, 1) if isinstance(value, float) else value for key, value in gpu["limits"].items()}
        self.add("platform", code, device=gpu["model"], **limits, seconds=round(time.time() - started, 1), log=out)

    def silicon(self):
        code, out, err = self.call("silicon", [os.path.join(self.options.bin, "silicon_test")], 300)
        skipped = "skipped" in out + err
        self.add("silicon", 1 if skipped else code, log=(out + err)[-4000:])

    def export(self):
        code, out, err = self.call("export", [sys.executable, os.path.join(self.options.root, "tests/bench/gpu/export.py"),
                                              os.path.join(self.options.bin, "matmul_f16.so")], 60)
        self.add("export", code, log=(out + err)[-1000:])

    def golden(self):
        programs = sorted(glob.glob(os.path.join(self.options.root, "tests/golden/gpu/*.prc")))

        def verify(program):
            trace = program.replace("_ragged.prc", ".prc")[:-4] + ".trace"
            return self.call(program, self.prunerc(
                "verify", program, "--schedule", trace, "--target", self.target, "--seeds", "1"), 60)

        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            done = list(pool.map(verify, programs))
        wrong = [(os.path.basename(program), out + err) for program, (code, out, err) in zip(programs, done) if code != 0]
        log = "\n".join(f"{name}: {text[-500:]}" for name, text in wrong)
        self.add("golden", len(wrong), right=len(done) - len(wrong), wrong=len(wrong), log=log)

    def programs(self):
        """Programs from all over the search space: values on the device beside the interpreter's."""
        path = os.path.join(self.options.bin, "gpu_host")
        code, out, err = self.call("programs", [path, "--on-gpu", "--only", "programs", "--programs",
                                                str(self.options.programs)], 240)
        failed = [line for line in out.splitlines() if "FAILED" in line]
        self.add("programs", code or len(failed) or "nothing ran" in out, failed=len(failed), log=(out + err)[-8000:])

    def time_of(self, name, command, seconds, flops, moved):
        code, out, err = self.call(name, command, seconds)
        try:
            result = json.loads(out.strip().splitlines()[-1])
            median = next(row["median_ns"] for row in result["rows"] if row.get("median_ns"))
        except (LookupError, ValueError, StopIteration):
            self.add(name, code or 1, log=(out + err)[-2000:])
            return
        facts = {"median_us": round(median / 1e3, 2)}
        if flops:
            facts["tflops"] = round(flops / median / 1e3, 2)
        if moved:
            facts["gb_per_s"] = round(moved / median, 1)
        self.add(name, code, **facts, log=out[-2000:])

    def tune(self):
        for name, program, trace, flops in HAND_WRITTEN:
            if "wgmma" in trace and self.options.arch != "sm_90a":
                continue
            self.time_of(name, self.prunerc("bench", program, "--schedule", trace, "--target", self.target, "--json"),
                         120, flops, 0)
        for name, file, op, bindings, flops, moved in TUNED:
            budget = max(10, min(120, self.left() / (len(TUNED) + 2)))
            self.call(name, self.prunerc("tune", file, "--op", op, "-D", bindings, "--target", self.target, "--seed", str(SEED), "--time",
                                         f"{budget:.0f}s"), budget + 120)
            self.time_of(name, self.prunerc("bench", file, "--op", op, "-D", bindings, "--target", self.target,
                                            "--json"), 120, flops, moved)

    def peers(self):
        code, out, err = self.call("peers", [sys.executable, os.path.join(self.options.root, "tests/bench/gpu/peers.py")],
                                   180)
        try:
            for peer in json.loads(out):
                self.add("peer/" + peer.pop("name"), 0, **peer)
        except ValueError:
            self.add("peers", code or 1, log=(out + err)[-1000:])


def commit_of(folder):
    """What pack.sh wrote beside the binaries."""
    try:
        with open(os.path.join(folder, "commit"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--bin")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--programs", type=int, default=420)
    parser.add_argument("--only", default="doctor,platform,silicon,export,golden,programs,peers,tune")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.bin = options.bin or os.path.join(options.root, "tests/bench/gpu/build")
    options.json = options.json or os.path.join(options.root, "tests/bench/gpu/results.json")
    steps = Steps(options)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    packed = os.path.join(options.bin, "bin.tgz")
    if os.path.exists(packed):
        with tarfile.open(packed) as archive:
            archive.extractall(options.bin, filter="data")
    for step in options.only.split(","):
        getattr(steps, step)()
    with open(options.json, "w", encoding="utf-8") as file:
        facts = {"bench": "gpu", "machine": steps.machine, "date": today, "commit": commit_of(options.bin), "seeds": [SEED]}
        json.dump({**facts, "arch": options.arch, "rows": steps.rows}, file, indent=1)
    failed = [row["name"] for row in steps.rows if not row["ok"]]
    print(f"{len(steps.rows) - len(failed)} of {len(steps.rows)} steps are ok; {options.json}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
