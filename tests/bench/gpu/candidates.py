"""Times the libraries that `candidates draft` made elsewhere, on this machine's device, and says whether all of an operator agree: "right" are those that more than half of all agree with.

    candidates.py FOLDER [--operators A,B] [--rounds 0] [--seconds 600] [--times TIMES.json]

First every library: events around a run, the second level of the cache overwritten before it. TIMES.json holds them, by operator in the
order of the draft; `candidates pools` makes pools of them. One that hangs or loses the context ends this process: started again with the
same TIMES.json it leaves that one out and goes on. Then, with --rounds, in turns by CUPTI (`peers.kernel_ns`): candidate 0, which -O1
chooses; the fastest of those that agree; PyTorch's own and torch.compile's. The last line is {operator: {who: [ns, ..]}}.
"""

import argparse
import ctypes
import json
import os
import re
import signal
import statistics
import sys
import time

import operators
import peers
import torch

RUNS, SLOW_RUNS, SLOW_NS = 15, 3, 4e6
HANG_SECONDS = 20
AGREE = 3e-3  # norm of a difference over the norm; f16 and bf16 outputs are rounded to 5e-4 and 4e-3 of each element
AGREE_EACH = 2e-2  # of the element and the root mean square together
CUDA = 2
TYPES = {"f16": (2, 16, torch.float16), "bf16": (4, 16, torch.bfloat16), "f32": (2, 32, torch.float32), "f64": (2, 64, torch.float64),
         "i8": (0, 8, torch.int8), "u8": (1, 8, torch.uint8), "i32": (0, 32, torch.int32), "i64": (0, 64, torch.int64)}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def read(path, otherwise=""):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return otherwise


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def filled(dtype, shape):
    kind = TYPES[dtype][2]
    if not kind.is_floating_point:
        return torch.randint(0 if dtype == "u8" else -8, 9, shape, device="cuda").to(kind)
    return torch.randn(shape, device="cuda").to(kind)


def view_of(tensor, dtype):
    code, bits, _ = TYPES[dtype]
    shape = (ctypes.c_int64 * max(1, tensor.dim()))(*tensor.shape)
    return DLTensor(tensor.data_ptr(), CUDA, 0, tensor.dim(), code, bits, 1, shape, None, 0)


class Refused(Exception):
    """By the library: nothing ran."""


class Arguments:
    """Of an operator, as its header declares them: random inputs, and outputs."""

    def __init__(self, header):
        text = read(header)
        found = re.findall(r"\[\d+\] (out )?\w+: (\w+)(?:\[([\d, ]*)\])?", text)
        self.symbol = re.search(r"int32_t (\w+)_dlpack\(", text)[1]
        tensors = [filled(dtype, [int(extent) for extent in shape.split(",")] if shape else []) for _, dtype, shape in found]
        self.views = [view_of(tensor, dtype) for tensor, (_, dtype, _) in zip(tensors, found)]
        self.inputs = [tensor for tensor, entry in zip(tensors, found) if not entry[0]]
        self.outputs = [tensor for tensor, entry in zip(tensors, found) if entry[0]]

    def runner(self, path):
        """A function that puts one run into the stream."""
        library = ctypes.CDLL(os.path.abspath(path))
        run, reason = getattr(library, self.symbol + "_dlpack"), getattr(library, self.symbol + "_error")
        reason.restype = ctypes.c_char_p
        pointers = (ctypes.c_void_p * len(self.views))(*(ctypes.addressof(view) for view in self.views))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call():
            if run(pointers, len(self.views), stream) != 0:
                raise Refused(reason().decode())
        return call


def event_ns(run):
    """(median, slowest but a tenth over the fastest) of runs with a cold second level."""
    started = time.perf_counter_ns()
    run()
    torch.cuda.synchronize()
    runs = SLOW_RUNS if time.perf_counter_ns() - started > SLOW_NS else RUNS
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
    for start, end in pairs:
        peers.flush.zero_()
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    times = sorted(1e6 * start.elapsed_time(end) for start, end in pairs)
    return statistics.median(times), times[-1 - runs // 10] / times[0] - 1


def are_close(values, others):
    for a, b in zip(values, others):
        if not a.dtype.is_floating_point and not torch.equal(a, b):
            return False
        a, b = a.double(), b.double()
        if not bool(torch.isfinite(a).all()) or float((a - b).norm()) > AGREE * float(b.norm()):
            return False
        if bool(((a - b).abs() > AGREE_EACH * (b.abs() + b.square().mean().sqrt())).any()):
            return False
    return True


class Draft:
    """The folder, and what is known of its libraries."""

    def __init__(self, folder, path):
        self.folder, self.path = folder, path
        self.known = json.loads(read(path, "{}"))
        self.current = os.path.join(folder, "current")
        self.lost = (read(os.path.join(folder, "lost")) + read(self.current)).split()
        write(os.path.join(folder, "lost"), "".join(file + "\n" for file in self.lost))
        self.rows = {}
        for line in read(os.path.join(folder, "manifest.tsv")).splitlines():
            name, index, sketch, predicted, file = line.split("\t")
            self.rows.setdefault(name, []).append({"index": int(index), "sketch": sketch, "predicted_ns": float(predicted), "file": file})

    def screen(self, name):
        """Runs and times every library of an operator."""
        arguments = Arguments(os.path.join(self.folder, name + ".h"))
        seen = []
        for row in self.rows[name]:
            if row["file"].startswith("error") or row["file"] in self.lost:
                row["error"] = row["file"] if row["file"].startswith("error") else "hangs, or loses the context"
                continue
            write(self.current, row["file"] + "\n")
            signal.alarm(HANG_SECONDS)
            try:
                run = arguments.runner(os.path.join(self.folder, row["file"]))
                for tensor in arguments.outputs:
                    tensor.fill_(77)
                run()
                torch.cuda.synchronize()
                signal.alarm(HANG_SECONDS)
                seen.append((row, [tensor.clone() for tensor in arguments.outputs]))
                row["ns"], row["spread"] = event_ns(run)
            except (OSError, Refused) as problem:
                row["error"] = str(problem)
            signal.alarm(0)
            os.remove(self.current)
        for row, values in seen:
            row["agree"] = sum(are_close(values, others) for _, others in seen)
        for row, _ in seen:
            row["right"] = len(seen) > 1 and 2 * row["agree"] > len(seen)
        self.known[name] = self.rows[name]
        write(self.path, json.dumps(self.known))

    def best(self, name):
        return min((row for row in self.known[name] if row.get("right")), key=lambda row: row["ns"], default=None)

    def say(self, name):
        rows, best = self.known[name], self.best(name)
        wrong = [row for row in rows if row.get("right") is False]
        failed = [row for row in rows if "error" in row]
        text = f"{name}: {len(rows)} drafted, {len(wrong)} disagree, {len(failed)} do not run"
        if best:
            text += (f"; -O1 {rows[0].get('ns', 0) / 1e3:.1f} us (predicted {rows[0]['predicted_ns'] / 1e3:.1f}, {rows[0]['sketch']}), "
                     f"best {best['ns'] / 1e3:.1f} (predicted {best['predicted_ns'] / 1e3:.1f}, {best['index']} {best['sketch']})")
        print(text + "".join(f"\n   {'DISAGREES' if row in wrong else 'FAILED'} {row['index']} {row['sketch']} {row.get('error', '')}"
                             for row in wrong + failed), flush=True)

    def turn(self, name, operator):
        """{who: ns} of one round."""
        arguments = Arguments(os.path.join(self.folder, name + ".h"))
        ours = {"o1": self.known[name][0], "prunerc": self.best(name)}
        times = {}
        for who, row in ours.items():
            if row and row.get("right"):
                try:
                    times[who] = peers.kernel_ns(arguments.runner(os.path.join(self.folder, row["file"])))
                except RuntimeError as problem:  # not all runs were seen
                    print(f"{name}: {problem}", file=sys.stderr)
        return times | peers.times_of(operator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--times", default="times.json")
    parser.add_argument("--operators", default="", help="comma-separated; default: all that were drafted")
    parser.add_argument("--rounds", type=int, default=0, help="of timing beside PyTorch")
    parser.add_argument("--seconds", type=float, default=600, help="begin nothing after so many")
    options = parser.parse_args()
    end = time.time() + options.seconds
    draft = Draft(options.folder, options.times)
    chosen = options.operators.split(",") if options.operators else list(draft.rows)
    for name in chosen:
        if name in draft.known or time.time() > end or not os.path.exists(os.path.join(options.folder, name + ".h")):
            continue
        draft.screen(name)
        draft.say(name)
    rounds = {}
    known = {operator.name: operator for operator in operators.OPERATORS}
    for _ in range(options.rounds):
        for name in chosen:
            if name in draft.known and name in known and time.time() < end:
                for who, ns in draft.turn(name, known[name]).items():
                    if ns:
                        rounds.setdefault(name, {}).setdefault(who, []).append(ns)
    print(json.dumps(rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
