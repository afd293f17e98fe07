#!/usr/bin/env python3
"""Fails if a file includes what its package must not see, or is longer than the budget.

Bazel's visibility says who may depend on whom, but a header that comes in through a dependency's dependency can still
be included; this test reads the #include lines themselves. The tables below are the layering of the project.

usage: layering_test.py [ROOT]
"""

import os
import re
import statistics
import sys
import tempfile
import unittest

# What every room of search may see besides rooms below it. No code generation, no runtime, no operator language.
SEARCH_SEES = [
    "ir",
    "ir/support",
    "ir/arith",
    "ir/analysis",
    "ir/interp",
    "ir/fpv",
    "ir/tensor",
    "schedule",
    "costmodel/latency",
    "costmodel/feature",
    "costmodel/model",
    "costmodel/pretrained",
    "costmodel/xgb.h",
    "costmodel/pruner",
    "costmodel/symbol",
]

# Layer of each package, and the packages or single headers that it may include besides its own. A file belongs to the
# longest package name that its path starts with.
PACKAGES = {
    "ir/support": (0, []),
    "ir": (1, ["ir/support"]),
    "ir/arith": (2, ["ir", "ir/support"]),
    "ir/analysis": (2, ["ir", "ir/support", "ir/arith"]),
    "ir/interp": (2, ["ir", "ir/support"]),
    "ir/fpv": (2, ["ir", "ir/support"]),
    # What a network is, as data; ir/lang makes one of text.
    "ir/net": (2, ["ir", "ir/support"]),
    "ir/lang": (2, ["ir", "ir/support", "ir/arith", "ir/analysis", "ir/net"]),
    # Passes over nets write text, which is compiled again.
    "ir/net/pass": (2, ["ir", "ir/support", "ir/arith", "ir/analysis", "ir/net", "ir/lang"]),
    "ir/onnx": (2, ["ir", "ir/support", "ir/interp", "ir/net", "ir/lang"]),
    "ir/tensor": (2, ["ir", "ir/support", "ir/arith", "ir/analysis"]),
    "schedule": (3, ["ir", "ir/support", "ir/arith", "ir/analysis", "ir/tensor"]),
    "costmodel": (4, ["ir", "ir/support", "ir/arith", "ir/analysis", "ir/tensor"]),
    "codegen": (4, ["ir", "ir/support", "ir/arith", "ir/analysis", "ir/tensor"]),
    # Plain data only: runtime loads bytes and knows no programs.
    "runtime": (4, ["ir/support", "ir/target.h", "ir/dtype.h", "codegen/artifact.h", "runtime/worker"]),
    # C11 that ships in libraries: it knows the kernels' ABI and nothing else.
    "runtime/net": (4, ["runtime/kernel.h"]),
    # What workers of all kinds share: no kind of them.
    "runtime/worker": (
        4,
        ["ir/support", "codegen/artifact.h", "runtime/clock.h", "runtime/device.h", "runtime/kernel.h"],
    ),
    "search/space": (5, SEARCH_SEES),
    "search/record": (5, SEARCH_SEES + ["search/space"]),
    "search/model": (5, SEARCH_SEES + ["search/space", "search/record"]),
    "search/strategy": (5, SEARCH_SEES + ["search/space", "search/record", "search/model"]),
    "search/tune": (5, SEARCH_SEES + ["search/space", "search/record", "search/model", "search/strategy"]),
    "search/algebra": (
        5,
        SEARCH_SEES + ["search/space", "search/record", "search/model", "search/strategy", "search/tune"],
    ),
    "search": (5, ["search/algebra", "search/space", "search/record", "search/strategy", "search/tune"]),
    "tools": (6, None),  # None: everything but tests.
}

# A test folder may include the package that it is named after (tests/lang: ir/lang), every package of a lower layer, and tests/support; these
# are about the whole and may include everything.
WHOLE_TESTS = ["property", "golden", "fuzz", "bench", "examples", "tools", "onnx"]
# Tests of one layer that need a neighbour of the same layer, with the reason.
TEST_NEIGHBOURS = {
    "analysis": ["ir/arith", "ir/interp"],  # The reference semantics say whether a simplified program still means the same.
    "net": ["ir/lang", "ir/interp", "ir/arith", "ir/analysis"],  # Passes compile what they write; what it computes is compared.
    "codegen": ["runtime"],  # Running an artifact is the only way to see what it computes.
    "runtime": ["codegen"],  # A kernel to load and to time has to come from somewhere.
}
SUPPORT_LAYER = 3
# Headers of one folder of tests that another may include, with the reason.
SHARED_TEST_HEADERS = {
    "tests/property/fpv_runs.h": ["bench"],  # The benchmark runs what the property test runs, only more of it.
    "tests/property/swizzled_products.h": ["bench"],  # The same of what runs on the host.
    "tests/bench/report.h": ["bench"],  # Every benchmark writes its results in the same form.
    "tests/bench/draft/curve.h": ["bench"],  # Replayed searches of drafts and of learned models are compared alike.
    "tests/bench/draft/order.h": ["bench"],
    "tests/bench/draft/over_network.h": ["bench"],
    "tests/bench/draft/pools.h": ["bench"],
    "tests/codegen/kernel_run.h": ["property"],  # The same on processors.
    "tests/codegen/gpu_run.h": ["property"],  # Candidates of the search run as hand-written schedules do.
    "tests/search/programs.h": ["golden"],  # What strategies ask for is recorded on the operators of their tests.
}

# Third parties: how their headers begin, and where they may be included: folders, and whether in headers too.
THIRD_PARTIES = [
    (r"(llvm|llvm-c)/", ["codegen/cpu", "runtime/cpu", "ir/lang", "tools", "tests"], False),
    (r"(Eigen|unsupported/Eigen)/", ["costmodel", "tests/costmodel", "tests/bench"], True),
    (r"(cuda|cuda_runtime|cuda_runtime_api|nvrtc|cupti\w*)\.h$", ["codegen/cuda", "runtime/cuda"], False),
    (r"sqlite3\.h$", ["search", "tools", "tests/search"], False),
    (r"zstd\.h$", ["search", "tools", "tests/search", "tests/fuzz"], False),
    (r"(google/protobuf|onnx)/|onnx\.pb\.h$", ["ir/onnx", "tests/onnx", "tests/fuzz"], True),
    (r"CLI/", ["tools", "tests/bench"], True),
    (r"(catch2|rapidcheck)[/.]", ["tests"], True),
    (r"benchmark/", ["tests/bench"], True),
]

MAX_LINES = 600
MAX_TEST_LINES = 800
# Files over the budget, each with its reason.
LONG_FILES = {}

TOP_FOLDERS = ["codegen", "costmodel", "ir", "runtime", "schedule", "search", "tests", "third_party", "tools"]
COUNTED = (".h", ".cc", ".def", ".py", ".bzl", ".sh")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def package_of(path):
    """The package that owns a path, or None."""
    best = None
    for package in PACKAGES:
        if path == package or path.startswith(package + "/"):
            if best is None or len(package) > len(best):
                best = package
    return best


def allows(allowed, path):
    """Whether a list of packages, folders and headers has a path. `ir` does not stand for `ir/analysis`."""
    owner = package_of(path)
    for entry in allowed:
        if path == entry or owner == entry:
            return True
        if entry not in PACKAGES and path.startswith(entry + "/"):
            return True
    return False


def check_project_include(path, target):
    """Returns what is wrong with `#include "target"` in path, or None."""
    if target.startswith("tests/"):
        if not path.startswith("tests/"):
            return "only tests may include tests"
        same = os.path.dirname(path) == os.path.dirname(target)
        shared = path.split("/")[1] in SHARED_TEST_HEADERS.get(target, [])
        if same or shared or target.startswith("tests/support/"):
            return None
        return "a test may include only tests/support"
    owner = package_of(target)
    if owner is None:
        return None
    layer = PACKAGES[owner][0]
    if path.startswith("tests/"):
        parts = path.split("/")
        folder = parts[1]
        if folder in WHOLE_TESTS:
            return None
        if path.startswith("tests/support/operators."):
            return None  # Names operators by the language's texts; a target of its own.
        if path.startswith(("tests/support/cuda_host", "tests/support/gpu.", "tests/support/gpu_worker.")):
            return None  # Compiles and runs kernels of GPUs; a target of its own.
        if folder == "support":
            return None if layer <= SUPPORT_LAYER else f"tests/support stays at or below layer {SUPPORT_LAYER}"
        # tests/lang holds the tests of ir/lang.
        subject = package_of("/".join(parts[1:-1])) or package_of("ir/" + folder)
        if subject is None:
            return f"tests/{folder} names no package"
        # tests/search sees the rooms of search as well.
        if owner == subject or owner.startswith(subject + "/"):
            return None
        if layer < PACKAGES[subject][0] or owner in TEST_NEIGHBOURS.get(folder, []):
            return None
        return f"tests of {subject} may not see {owner}"
    subject = package_of(path)
    if subject is None:
        return f"{path} is in no package"
    allowed = PACKAGES[subject][1]
    if allowed is None or owner == subject or allows(allowed, target):
        return None
    return f"{subject} may not see {target}"


def check_third_party(path, target):
    for pattern, folders, in_headers in THIRD_PARTIES:
        if not re.match(pattern, target):
            continue
        if not any(path.startswith(folder + "/") for folder in folders):
            return f"<{target}> belongs to " + ", ".join(folders)
        if not in_headers and not path.endswith(".cc"):
            return f"<{target}> may be included in .cc files only"
    return None


def check_file(path, text):
    """Returns the complaints about one file, each with its line."""
    problems = []
    lines = text.splitlines()
    budget = MAX_TEST_LINES if path.startswith("tests/") else MAX_LINES
    if len(lines) > budget and path not in LONG_FILES:
        problems.append(f"{path}: {len(lines)} lines, budget {budget}")
    if not path.endswith((".h", ".cc", ".def")) or path.startswith("third_party/"):
        return problems
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match[2]
        if match[1] == '"' and target.split("/")[0] in TOP_FOLDERS:
            problem = check_project_include(path, target)
        else:
            problem = check_third_party(path, target)
            if match[1] == '"' and "/" not in target and not problem:
                problem = f'"{target}" is not a path from the root of the repository'
        if problem:
            problems.append(f"{path}:{number}: {problem}")
    return problems


def source_files(root):
    for top in TOP_FOLDERS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in sorted(names):
                if name.endswith(COUNTED):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return source.read()


def check_tree(root):
    problems = []
    for path in source_files(root):
        problems += check_file(path, read(root, path))
    for path in LONG_FILES:
        if not os.path.exists(os.path.join(root, path)):
            problems.append(f"{path}: is listed as too long but does not exist")
    return problems


def line_counts(root):
    """Median, 90th percentile and maximum of the lines per file, for each top-level folder."""
    counts = {}
    for path in source_files(root):
        counts.setdefault(path.split("/")[0], []).append(len(read(root, path).splitlines()))
    rows = []
    for folder, lines in sorted(counts.items()):
        lines.sort()
        rows.append((folder, len(lines), statistics.median(lines), lines[len(lines) * 9 // 10], lines[-1]))
    return rows


def find_root():
    if len(sys.argv) > 1:
        return os.path.abspath(sys.argv[1])
    # Bazel runs a link to this file, or a copy two folders deep in a tree without the sources.
    here = os.path.dirname(os.path.realpath(__file__))
    return os.path.dirname(os.path.dirname(here))


class TheRulesCanFail(unittest.TestCase):
    """Each rule, on lines made for it: a test of layering that cannot fail would be worth nothing."""

    def wrong(self, path, include, says):
        self.assertIn(says, "\n".join(check_file(path, f"#include {include}\n")))

    def right(self, path, include):
        self.assertEqual(check_file(path, f"#include {include}\n"), [])

    def test_a_lower_package_must_not_see_a_higher_one(self):
        self.wrong("ir/support/arena.cc", '"ir/expr.h"', "may not see")
        self.wrong("ir/expr.cc", '"ir/arith/linear.h"', "may not see")
        self.wrong("schedule/schedule.cc", '"search/tune/tuner.h"', "may not see")
        self.right("schedule/schedule.cc", '"ir/arith/linear.h"')

    def test_neighbours_of_one_layer_must_not_see_each_other(self):
        self.wrong("codegen/pipeline.cc", '"schedule/trace/trace.h"', "may not see")
        self.wrong("costmodel/feature/extract.cc", '"codegen/artifact.h"', "may not see")
        self.wrong("ir/lang/bind/bind.cc", '"ir/interp/interpreter.h"', "may not see")

    def test_search_sees_only_parts_of_the_cost_model_and_no_code_generation(self):
        self.wrong("search/tune/tuner.cc", '"costmodel/attention_model.h"', "may not see")
        self.wrong("search/record/pool.cc", '"search/tune/tuner.h"', "may not see")
        self.wrong("search/model/trees.cc", '"search/strategy/strategy.h"', "may not see")
        self.wrong("search/tune/tuner.cc", '"search/algebra/alternatives.h"', "may not see")
        self.right("search/algebra/alternatives.cc", '"search/tune/tuner.h"')
        self.right("search/strategy/draft.cc", '"search/model/scorer.h"')
        self.wrong("search/tune/tuner.cc", '"codegen/artifact.h"', "may not see")
        self.wrong("search/tune/tuner.cc", '"runtime/device.h"', "may not see")
        self.wrong("search/tune/tuner.cc", '"ir/lang/parse/parser.h"', "may not see")
        self.right("search/tune/tuner.cc", '"costmodel/latency/symbols.h"')

    def test_runtime_sees_single_headers(self):
        self.right("runtime/cpu/device.cc", '"codegen/artifact.h"')
        self.right("runtime/cpu/device.cc", '"ir/target.h"')
        self.wrong("runtime/cpu/device.cc", '"codegen/codegen.h"', "may not see")
        self.wrong("runtime/cpu/device.cc", '"ir/expr.h"', "may not see")
        self.wrong("runtime/worker/serve.cc", '"runtime/cpu/pool.h"', "may not see")

    def test_third_parties_stay_in_their_folders(self):
        self.wrong("search/tune/tuner.cc", '"llvm/IR/Module.h"', "belongs to")
        self.wrong("codegen/cpu/emit.h", "<llvm/IR/Module.h>", ".cc files only")
        self.right("codegen/cpu/emit.cc", '"llvm/IR/Module.h"')
        self.wrong("search/space/sampler.cc", "<Eigen/Dense>", "belongs to")
        self.wrong("ir/expr.cc", "<catch2/catch.hpp>", "belongs to")
        self.wrong("codegen/cpu/emit.cc", "<cuda.h>", "belongs to")

    def test_tests_see_their_subject_and_what_is_below(self):
        self.right("tests/schedule/split_test.cc", '"ir/interp/interpreter.h"')
        self.right("tests/schedule/split_test.cc", '"tests/support/golden.h"')
        self.wrong("tests/schedule/split_test.cc", '"search/space/space.h"', "may not see")
        self.wrong("tests/schedule/split_test.cc", '"tests/ir/random_program.h"', "only tests/support")
        self.wrong("tests/support/golden.h", '"search/space/space.h"', "layer")
        self.wrong("ir/expr.cc", '"tests/support/golden.h"', "only tests")
        self.right("tests/property/cpu_test.cc", '"search/space/space.h"')

    def test_includes_are_paths_from_the_root(self):
        self.wrong("ir/expr.cc", '"expr.h"', "not a path from the root")
        self.right("ir/expr.cc", "<vector>")

    def test_a_long_file_is_over_budget(self):
        self.assertEqual(check_file("ir/expr.cc", "\n" * MAX_LINES), [])
        self.assertIn("budget", check_file("ir/expr.cc", "\n" * (MAX_LINES + 1))[0])
        self.assertEqual(check_file("tests/ir/expr_test.cc", "\n" * MAX_TEST_LINES), [])
        self.assertIn("budget", check_file("tests/ir/expr_test.cc", "\n" * (MAX_TEST_LINES + 1))[0])

    def test_a_tree_is_walked(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "ir", "support"))
            with open(os.path.join(root, "ir", "support", "bad.h"), "w", encoding="utf-8") as bad:
                bad.write('#include "ir/expr.h"\n')
            self.assertEqual(len(check_tree(root)), 1)


class TheTree(unittest.TestCase):
    """The sources of this repository."""

    def test_sources_are_where_they_are_looked_for(self):
        paths = list(source_files(find_root()))
        self.assertIn("ir/expr.h", paths)
        self.assertIn("tests/support/layering_test.py", paths)

    def test_layering_and_budgets_hold(self):
        problems = check_tree(find_root())
        self.assertFalse(problems, "\n" + "\n".join(problems))


if __name__ == "__main__":
    for row in line_counts(find_root()):
        print("%-12s %4d files, lines: median %5.1f, p90 %4d, max %4d" % row)
    unittest.main(argv=sys.argv[:1])
