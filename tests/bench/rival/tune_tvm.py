#!/usr/bin/env python3
"""One search of TVM's, in a process of its own and with TVM's own settings: MetaSchedule or Ansor.

usage: tune_tvm.py tvm|ansor FILE.prn OP TRIALS ROUND SEED THREADS STARTED LIBRARY

STARTED: time.monotonic() when the process was started; seconds count from there. The last line is JSON: `curve` with
[trial, ns, seconds] at each gain, when the search came to know it; `trials`, `failed`; `ready`: the second in which all modules were
there. The winner is LIBRARY."""

import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.realpath(__file__))]

import operators

CPU = "znver5"  # TVM 0.27 has LLVM 22; older LLVMs know a Zen 5 by the name of the one before, whose instructions a kernel needs alike
OLDER_CPU = "znver4"


class Curve:
    """The best so far by trial and second."""

    def __init__(self, started):
        self.started, self.points, self.trials, self.failed, self.ready = started, [], 0, 0, None

    def begin(self):
        """What follows would be the same for another operator of this process."""
        self.ready = time.monotonic() - self.started

    def add(self, seconds_of_run):
        """Of one trial; None where it failed."""
        self.trials += 1
        if seconds_of_run is None:
            self.failed += 1
        elif not self.points or seconds_of_run * 1e9 < self.points[-1][1]:
            self.points.append([self.trials, seconds_of_run * 1e9, time.monotonic() - self.started])

    def report(self):
        print(json.dumps({"trials": self.trials, "failed": self.failed, "ready": self.ready, "curve": self.points}), flush=True)


def build(mod, target, _params):
    """As MetaSchedule's own, without an import of tensor intrinsics that nothing here uses: parsing them costs every worker of every batch
    11 to 13 s of a core, and on a busy machine more than the time limit of a build, so that none ever answered."""
    from tvm.driver import build as tvm_build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock
    return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(mod), target=target)


def meta_schedule(name, operator, trials, per_round, seed, threads, curve, library):
    import tvm
    import tvm.s_tir.tensor_intrin  # noqa: F401  the search wants it
    from tvm import te
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms

    @derived_object
    class Watch(ms.measure_callback.PyMeasureCallback):
        def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
            for built, ran in zip(builder_results, runner_results):
                good = not built.error_msg and not ran.error_msg and ran.run_secs
                curve.add(sum(map(float, ran.run_secs)) / len(ran.run_secs) if good else None)

    curve.begin()
    target = tvm.target.Target({"kind": "llvm", "mcpu": CPU, "num-cores": threads})
    mod = tvm.IRModule({"main": te.create_prim_func(operators.tensors(te, name, operator)).with_attr("global_symbol", "main")})
    with tempfile.TemporaryDirectory(prefix="prunerc-rival") as folder:
        # In memory: the database of files ends the process in its writer.
        database = ms.tune_tir(mod, target, folder, max_trials_global=trials, num_trials_per_iter=min(trials, per_round), database="memory",
                               builder=ms.builder.LocalBuilder(f_build=build), num_tuning_cores="logical", seed=seed,
                               measure_callbacks=[Watch(), *ms.measure_callback.MeasureCallback.create("default")])
        best = ms.tir_integration.compile_tir(database, mod, target)
        if best is None:
            sys.exit("no candidate ran")
        build(best.mod, target, None).export_library(library)


def ansor(name, operator, trials, per_round, seed, threads, curve, library):
    import tvm
    from tvm import auto_scheduler, te
    curve.begin()

    class Watch(auto_scheduler.measure.PythonBasedMeasureCallback):
        def callback(self, policy, inputs, results):
            for one in results:
                curve.add(sum(map(float, one.costs)) / len(one.costs) if one.error_no == 0 else None)

    @auto_scheduler.register_workload
    def workload():
        return operators.tensors(te, name, operator)

    # The wheel's own default is another machine, for what calls a kernel as well.
    text = f"llvm -mtriple=x86_64-linux-gnu -mcpu={OLDER_CPU} -num-cores={threads}"
    target = tvm.target.Target(text, host=text)
    task = auto_scheduler.SearchTask(func=workload, args=(), target=target)
    with tempfile.TemporaryDirectory(prefix="prunerc-rival") as folder:
        log = os.path.join(folder, "log.json")
        policy = auto_scheduler.SketchPolicy(task, auto_scheduler.XGBModel(seed=seed), seed=seed, verbose=0)
        task.tune(auto_scheduler.TuningOptions(num_measure_trials=trials, num_measures_per_round=min(trials, per_round), verbose=0,
                                               measure_callbacks=[auto_scheduler.RecordToFile(log), Watch()]), search_policy=policy)
        schedule, arguments = task.apply_best(log)
        tvm.build(schedule, arguments, target, name="main").export_library(library)


def main():
    who, path, name, trials, per_round, seed, threads, started, library = sys.argv[1:10]
    curve = Curve(float(started))
    search = {"tvm": meta_schedule, "ansor": ansor}[who]
    # Of both the seed 0 means chance.
    search(name, operators.read(path)[name], int(trials), int(per_round), int(seed) + 1, int(threads), curve, library)
    curve.report()


if __name__ == "__main__":
    main()
