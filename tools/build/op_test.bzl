"""Tests of operators for users of prunerc: load("@prunerc//tools/build:op_test.bzl", "prunerc_test")."""

_PRUNERC = Label("//tools/prunerc:prunerc")
_SCRIPT = Label("//tools/build:op_test.sh")

def prunerc_test(
        name,
        src,
        op = "",
        bindings = {},
        target = "cpu",
        threads = 0,
        seeds = 2,
        tuning = None,
        interpret = True,
        size = "small",
        data = [],
        **kwargs):
    """Verifies one operator: its schedule, its unscheduled program and the interpreter give the same outputs.

    Args:
      name: of the test.
      src: the .prn or .prc file; what it imports goes into `data`.
      op: the operator, if the file has several.
      bindings: values of its parameters: {"M": "64"}. Small ones keep the interpreter quick.
      target: "cpu", or "cpu:NAME" of a machine whose code runs here.
      threads: of the kernel; 0 means all.
      seeds: number of fresh inputs.
      tuning: records that `prunerc db export` wrote; without them the heuristic schedule is verified.
      interpret: whether the interpreter is asked as well.
      size: of the test.
      data: further files.
      **kwargs: further attributes of the sh_test.
    """
    args = [
        "$(location %s)" % _PRUNERC,
        "verify",
        "$(location %s)" % src,
        "--seeds",
        str(seeds),
        "--target",
        target,
        "--threads",
        str(threads),
    ]
    if interpret:
        args.append("--interpret")
    if tuning:
        args += ["--db", "$(location %s)" % tuning]
    if op:
        args += ["--op", op]
    for key in sorted(bindings):
        args += ["-D", "%s=%s" % (key, bindings[key])]
    native.sh_test(
        name = name,
        size = size,
        srcs = [_SCRIPT],
        args = args,
        data = [src, _PRUNERC] + ([tuning] if tuning else []) + data,
        **kwargs
    )
