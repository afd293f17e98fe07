"""The C++ rules of this project: the native ones plus one set of warnings and the header folders of system libraries."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//third_party:system_includes.bzl", "SYSTEM_INCLUDES")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wconversion",
    "-Werror",
]

def _copts(deps, copts):
    result = list(_WARNINGS)
    for dep in deps:
        for folder in SYSTEM_INCLUDES.get(dep, []):
            flag = "-isystem" + folder
            if flag not in result:
                result.append(flag)
    return result + copts

def prunerc_library(name, srcs = [], hdrs = [], deps = [], copts = [], **kwargs):
    """A cc_library. LLVM and Eigen headers are found only if this target's own deps name the library."""
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps,
        copts = _copts(deps, copts),
        linkstatic = True,
        **kwargs
    )

def prunerc_binary(name, srcs, deps = [], copts = [], **kwargs):
    """A cc_binary under the same flags."""
    cc_binary(
        name = name,
        srcs = srcs,
        deps = deps,
        copts = _copts(deps, copts),
        **kwargs
    )

def prunerc_cc_test(
        name,
        srcs,
        deps = [],
        data = [],
        size = "small",
        tags = [],
        copts = [],
        main = "//third_party:catch2_main",
        **kwargs):
    """A test binary of Catch2 cases. Tag what needs it `gpu` or `slow`. `main` is None where srcs have a main function."""
    cc_test(
        name = name,
        srcs = srcs,
        deps = deps + ([main] if main else ["//third_party:catch2"]),
        data = data,
        size = size,
        tags = tags,
        # Macros of a test framework are most of what is compiled here, and optimising them is most of the time it takes.
        copts = _copts(deps, ["-O1"] + copts),
        linkstatic = True,
        **kwargs
    )

def prunerc_fuzzer(name, srcs, deps = [], copts = [], **kwargs):
    """A libFuzzer target: the source defines LLVMFuzzerTestOneInput.

    `./dev fuzz NAME` builds it with clang and runs it. NAME_corpus_test, an ordinary test, replays the inputs in
    corpus/NAME with the usual compiler, so that what fuzzing found stays found.

    Args:
      name: of the fuzzer, and of its folder of inputs.
      srcs: its sources.
      deps: what they need.
      copts: flags for these sources alone.
      **kwargs: further attributes of both targets.
    """
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        deps = deps,
        copts = _copts(deps, copts),
        # Only --config=fuzz makes a main function for it.
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        **kwargs
    )
    corpus = native.glob(["corpus/" + name + "/**"])
    cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = srcs + ["//tools/build:replay_corpus.cc"],
        deps = deps,
        copts = _copts(deps, copts),
        args = [native.package_name() + "/corpus/" + name],
        data = corpus,
        linkstatic = True,
        **kwargs
    )
