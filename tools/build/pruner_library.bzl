"""Operators in a Bazel build: load("@prunerc//tools/build:pruner_library.bzl", "pruner_library").

@prunerc is this source tree, or share/prunerc/bazel of an installed prunerc.
"""

load(":op_test.bzl", "prunerc_test")

_PRUNERC = Label("//tools/prunerc:prunerc")
_TUNE = Label("//tools/build:pruner_tune.sh")

def pruner_library(
        name,
        src,
        op = "",
        bindings = {},
        tuning = None,
        target = "cpu:haswell",
        threads = 1,
        require_tuned = False,
        seeds = 2,
        data = [],
        test_size = "medium",
        **kwargs):
    """A cc_library NAME with the operator's function (#include "NAME.h"), and what belongs to it.

    `NAME_test` verifies the schedule on fresh inputs, `bazel run :NAME_benchmark` times it, `bazel run :NAME.tune` searches
    a better one on this machine and writes it into the tuning file in the source tree (`-- --trials 500` for longer).
    Building measures nothing: only what is checked in chooses the schedule.

    Args:
      name: of the library.
      src: the .prn or .prc file; what it imports goes into `data`.
      op: the operator, if the file has several.
      bindings: values of its parameters: {"M": "64"}.
      tuning: a checked-in file of records for this operator, target and number of threads; it may be empty. Without a
        record the schedule is the heuristic one.
      target: a machine that `prunerc devices` lists: "cpu:haswell" runs wherever AVX2 does. "cpu" is the machine that
        builds: not for a shared cache.
      threads: of the kernel.
      require_tuned: whether the lack of a record fails the build.
      seeds: number of fresh inputs of NAME_test.
      data: further files.
      test_size: of NAME_test.
      **kwargs: further attributes of the cc_library.
    """
    operator = ["--target", target, "--threads", str(threads)]
    if op:
        operator += ["--op", op]
    for key in sorted(bindings):
        operator += ["-D", "%s=%s" % (key, bindings[key])]
    common = {k: kwargs[k] for k in ["tags", "testonly"] if k in kwargs}
    archive = name + "_kernel.a"
    header = name + ".h"
    native.genrule(
        name = name + "_kernel",
        srcs = [src] + ([tuning] if tuning else []) + data,
        outs = [archive, header],
        cmd = " ".join([
            "$(location %s) compile $(location %s)" % (_PRUNERC, src),
            # Not the user's database.
            "--db " + ("$(location %s)" % tuning if tuning else ":memory:"),
        ] + ["'%s'" % word.replace("$", "$$") for word in operator] + (["--require-tuned"] if require_tuned else []) + [
            "-o $(location %s) -o $(location %s)" % (archive, header),
        ]),
        message = "Compiling kernel",
        tools = [_PRUNERC],
        visibility = ["//visibility:private"],
        **common
    )
    native.cc_library(
        name = name,
        srcs = [archive],
        hdrs = [header],
        linkopts = ["-pthread"] + kwargs.pop("linkopts", []),
        # The header's name is its whole path, as in other builds.
        strip_include_prefix = kwargs.pop("strip_include_prefix", "."),
        **kwargs
    )
    prunerc_test(
        name = name + "_test",
        src = src,
        op = op,
        bindings = bindings,
        target = target,
        threads = threads,
        seeds = seeds,
        tuning = tuning,
        # Sizes are those of use: too many for an interpreter.
        interpret = False,
        size = test_size,
        data = data,
        **common
    )
    inputs = [src] + ([tuning] if tuning else []) + data
    records = "$(location %s)" % tuning if tuning else ":memory:"
    native.sh_binary(
        name = name + "_benchmark",
        srcs = [_PRUNERC],
        args = ["bench", "$(location %s)" % src, "--db", records] + operator,
        data = inputs,
        **common
    )
    if tuning:
        native.sh_binary(
            name = name + ".tune",
            srcs = [_TUNE],
            args = ["$(location %s)" % _PRUNERC, records, "tune", "$(location %s)" % src] + operator,
            data = inputs + [_PRUNERC],
            **common
        )
