#!/usr/bin/env python3
"""Fails if a page names what does not exist, is longer than its budget, or holds a measurement typed by hand.

Pages are all .md files but those of third parties. Checked are links, the files, folders and pages that pages and comments
name, citations of decisions in pages and sources, the budgets of each README.md and each decision, and that no decision has a
date and no page of a source folder a measured number. What a script writes into a page, between `<!-- NAME:begin -->` and
`<!-- NAME:end -->` or below a first line "Made by `SCRIPT`", counts towards no budget but that of the root's README.md, and
may have numbers.

usage: docs_test.py [ROOT]
"""

import fnmatch
import os
import posixpath
import re
import sys
import tempfile
import unittest

TOP_FOLDERS = ["codegen", "costmodel", "ir", "runtime", "schedule", "search", "tests", "third_party", "tools"]
# Files that may cite a decision or name a file.
CITING = (".md", ".h", ".cc", ".def", ".py", ".bzl", ".bazel", ".sh", ".prn")

README_LINES = 120
README_WORDS = 1100
FOLDER_README_LINES = 110
DECISION_LINES = 12
# A longer line counts as several.
COLUMNS = 130

# Names that end like this are files of ours, wherever they stand; with a folder before them, those below as well.
SOURCE = r"\.(?:h|cc|def|md|py|bzl|sh|prn|prc)"
DATA = r"\.(?:json|trace|txt|pool|model|bazel|expected)"
# Letters that a path, or a pattern of paths, is made of.
PATH = r"[\w.*?+/{},-]+"


class Tree:
    """The files and folders below a root, and what a page there may mean by a name."""

    def __init__(self, root):
        self.root = root
        self.files = set()
        self.folders = set()
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith((".", "bazel-", "__pycache__"))]
            here = os.path.relpath(folder, root).replace(os.sep, "/")
            here = "" if here == "." else here
            self.folders.update(posixpath.join(here, f) for f in folders)
            self.files.update(posixpath.join(here, name) for name in names)
        # What git ignores is there once it was made.
        self.made = set(re.findall(r"^/([^*\n]+?)/?$", self.read(".gitignore"), re.M) if ".gitignore" in self.files else [])

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def has(self, path):
        """Whether a path, or some path that fits a pattern, exists."""
        path = posixpath.normpath(path)
        if path == ".":
            return True
        if not re.search(r"[*?]", path):
            return path in self.files or path in self.folders or path in self.made
        return any(fnmatch.fnmatchcase(p, path) for p in self.files | self.folders)

    def has_below(self, folder, name):
        """Whether a file of that name lies in a folder or anywhere below it."""
        prefix = folder + "/" if folder else ""
        return any(p.startswith(prefix) and fnmatch.fnmatchcase(p.rsplit("/", 1)[-1], name) for p in self.files)


def pages(tree):
    return sorted(p for p in tree.files if p.endswith(".md") and is_ours(p))


def is_ours(path):
    top = path.split("/")[0]
    return "/" not in path or (top in TOP_FOLDERS and not re.match(r"third_party/.+/", path))


def without_fences(text):
    """The page with its blocks of code made empty, so that lines keep their numbers."""
    lines, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    return "\n".join(lines)


def without_spans(text):
    return re.sub(r"`[^`\n]*`", lambda span: " " * len(span[0]), text)


def without_generated(text):
    """The page with its generated parts made empty; all of it where it begins by saying what made it."""
    if re.match(r"# [^\n]*\n\nMade by `", text):
        return ""
    return re.sub(r"<!-- ([\w-]+):begin -->.*?<!-- \1:end -->", lambda part: "\n" * part[0].count("\n"), text,
                  flags=re.S)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- links ---------------------------------------------------------------------------------------------------------


def anchors(text):
    """What `#...` may name in a page: its headings as GitHub spells them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", without_fences(text), re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-"))
    return found


def link_problems(tree, path, text):
    problems = []
    prose = without_spans(without_fences(text))
    for match in re.finditer(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: *(\S+)", prose, re.M):
        target = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        where = f"{path}:{line_of(text, match.start())}"
        name, _, anchor = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
        if found.startswith("../") or not tree.has(found):
            problems.append(f"{where}: link to {target}, which does not exist")
        elif anchor and found.endswith(".md"):
            if anchor not in anchors(text if found == path else tree.read(found)):
                problems.append(f"{where}: link to {target}, but {found} has no such heading")
    return problems


# --- names of files and folders ------------------------------------------------------------------------------------


def alternatives(name):
    """`a/{b,c}.h` stands for two names."""
    match = re.search(r"\{([^{}]*)\}", name)
    if not match:
        return [name]
    return [n for part in match[1].split(",") for n in alternatives(name[:match.start()] + part + name[match.end():])]


def is_path(name, in_code):
    """Whether a word looks like a path in this repository. In prose and in blocks of code there is more that is none."""
    if not re.fullmatch(PATH, name) or "..." in name or name.startswith(("/", "-", ".", ",")):
        return False
    if name.split("/")[0] in TOP_FOLDERS and "/" in name:
        return True
    # A name of one letter, or in capitals, stands for what the reader has.
    stem = name.rsplit("/", 1)[-1].split(".")[0]
    if re.fullmatch(r"[A-Za-z]|[A-Z][A-Z_]+", stem) and stem not in ("BUILD", "README", "DESIGN", "STYLE"):
        return False
    if "/" in name:
        return in_code and re.search(f"(?:{SOURCE}|{DATA})$", name) is not None
    return re.fullmatch(rf"[\w*{{}},-]+{SOURCE}", name) is not None


# NAME in `cmd_NAME.cc` stands for any.
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?!BUILD|WORKSPACE)[A-Z][A-Z_]+(?![A-Za-z])")


def exists(tree, path, name):
    folder = posixpath.dirname(path)

    def is_there(one):
        # Operator texts import the standard library as std/NAME.prn.
        bases = ["", folder] + (["tools"] if one.startswith("std/") else [])
        paths = [posixpath.join(base, one) for base in bases]
        if any(tree.has(p) for p in paths):
            return True
        if "/" not in one:
            # In a page of ir/lang a file of tests/lang may go without its folder, too.
            below = [folder, "tests/" + folder, "tests/" + posixpath.basename(folder)]
            return any(tree.has_below(place, one) for place in below)
        # What files have in common stands for them: costmodel/latency, tools/examples/gpu/matmul_f16.
        return any(tree.has(p + ".*") for p in paths)

    def is_known(one):
        return is_there(one) or (not one.endswith(".md") and PLACEHOLDER.search(one) is not None
                                 and is_there(PLACEHOLDER.sub("*", one)))

    return all(is_known(one.rstrip("/")) for one in alternatives(name))


# <cuda.h> is a header of others; the alternatives in {} may be parted by commas.
WORD = re.compile(r"<[\w./]+>|(?:\{[^}\s]*\}|[^\s\"'=;()|<>$&:,])+")


def words_of_code(text):
    """(offset, word, whether it stands in a line of prose) of code."""
    for span in re.finditer(r"`([^`\n]+)`", without_fences(text)):
        for word in WORD.finditer(span[1]):
            yield span.start(1) + word.start(), word[0], True
    inside, offset = False, 0
    for line in text.splitlines(keepends=True):
        fence = line.lstrip().startswith("```")
        if inside and not fence:
            for word in WORD.finditer(line):
                yield offset + word.start(), word[0], False
        inside ^= fence
        offset += len(line)


def clean(word):
    return word.rstrip(".,;:!").removeprefix("./").removeprefix("//").split("#")[0]


# `driver/` at the start of a line or cell of a page lists what its folder has.
LISTED = re.compile(r"^(?:[*-]|\||\d+\.) `([\w/{},*-]+)/`", re.M)


def examples_of(path, text):
    """What a how-to page's first paragraph names: files of that name are made by who follows the page."""
    if not posixpath.basename(path).startswith("ADD_A_"):
        return []
    paragraph = re.split(r"\n\n", text + "\n\n\n\n")[1]
    return re.findall(r"`(\w{4,})[^`]*`", paragraph)


def name_problems(tree, path, text):
    problems = []
    examples = examples_of(path, text)

    def check(offset, name, in_code):
        made = any(stem in name.rsplit("/", 1)[-1] for stem in examples)
        if made and tree.has(posixpath.dirname(name)):
            return
        if is_path(name, in_code) and not exists(tree, path, name):
            problems.append(f"{path}:{line_of(text, offset)}: names {name}, which does not exist")

    for offset, word, is_span in words_of_code(text):
        name = clean(word)
        # Users' own files in an example have no folder.
        if is_span or name.split("/")[0] in TOP_FOLDERS:
            check(offset, name, is_span)
    for listed in LISTED.finditer(text):
        if not exists(tree, path, listed[1]):
            problems.append(f"{path}:{line_of(text, listed.start())}: names {listed[1]}/, which does not exist")
    prose = re.sub(r"\]\([^)]*\)", lambda link: " " * len(link[0]), without_spans(without_fences(text)))
    for word in re.finditer(rf"(?<![\w/<.~$-]){PATH}", prose):
        name = clean(word[0])
        if re.search(f"{SOURCE}$", name):
            check(word.start(), name, False)
    return problems


COMMENT = re.compile(r"(?:^|\s)(?://+|#|/\*|\*) (.*)$", re.M)
NAMED = re.compile(rf"(?<![\w/.<\"-])(?:{'|'.join(TOP_FOLDERS)})/{PATH}")
# A page by another path or none, which no reader finds by anything but its name.
PAGE = re.compile(rf"(?<![\w/.-])(?!(?:{'|'.join(TOP_FOLDERS)})/)(?:[\w.-]+/)*([\w-]+\.md)\b")


def comment_problems(tree, path, text):
    """Files and folders named in comments of a source, by the path from the root; pages also by their names alone."""
    problems = []
    for comment in COMMENT.finditer(text):
        for word in NAMED.finditer(comment[1]):
            name = clean(word[0])
            if is_path(name, True) and not exists(tree, path, name):
                problems.append(f"{path}:{line_of(text, comment.start(1))}: names {name}, which does not exist")
        for page in PAGE.finditer(comment[1]):
            if not tree.has_below("", page[1]):
                problems.append(f"{path}:{line_of(text, comment.start(1))}: names {page[0]}, which does not exist")
    return problems


# --- decisions -----------------------------------------------------------------------------------------------------

DECISION = re.compile(r"^(?:\*\*D(\d+)\b|(\d+)\. \*\*|#+ D(\d+)\b)", re.M)
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def decisions(text):
    """(number, first line, lines) of each decision of a DESIGN.md."""
    starts = [(int(m[1] or m[2] or m[3]), m.start()) for m in DECISION.finditer(text)]
    found = []
    for (number, start), end in zip(starts, [s for _, s in starts[1:]] + [len(text)]):
        # A heading ends the decision before it.
        body = re.split(r"\n#+ (?!D\d)", text[start:end])[0].rstrip("\n")
        found.append((number, line_of(text, start), body.splitlines()))
    return found


def length(lines):
    return sum(1 + len(line) // COLUMNS for line in lines)


def design_problems(path, text):
    problems, seen = [], set()
    for number, line, body in decisions(text):
        if number in seen:
            problems.append(f"{path}:{line}: a second D{number}")
        seen.add(number)
        if length(body) > DECISION_LINES:
            problems.append(f"{path}:{line}: D{number} has {length(body)} lines, budget {DECISION_LINES}")
    if not seen:
        problems.append(f"{path}:1: no decision was found; one begins with '**D1. '")
    for match in DATE.finditer(text):
        problems.append(f"{path}:{line_of(text, match.start())}: the date {match[0]}; decisions are true today")
    return problems


MORE = r"(?:(?:, | and |, and | to )D\d+)*"
# A page with numbers after it.
CITATION = re.compile(rf"((?:[\w/]+/)?DESIGN\.md)(?:, (D?\d+{MORE})|(?:'s| \w+)? \(?(D\d+{MORE}))")
# In pages a folder will do.
OF_FOLDER = re.compile(rf"\b((?:{'|'.join(TOP_FOLDERS)})[\w/]*)(?:,|'s) (D\d+{MORE})")
# Within DESIGN.md a number alone is the page's own.
OWN = re.compile(r"(?<![\w/])D(\d+)\b")


def joined(text):
    """The text with a blank for each end of line and the comment sign after it, and the offset of each letter in text."""
    letters, places = [], []
    for part in re.finditer(r"\n[ \t]*(?:///?|#|\*|>)?[ \t]*|.", text):
        letters.append(part[0] if part[0][0] != "\n" else " ")
        places.append(part.start())
    return "".join(letters), places


def design_of(tree, path):
    """The DESIGN.md of the folder of a file, or of the nearest folder above that has one."""
    folder = posixpath.dirname(path)
    while folder and f"{folder}/DESIGN.md" not in tree.files:
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, "DESIGN.md")


def citation_problems(tree, path, text, numbers):
    """numbers: the decisions of each DESIGN.md, by its path."""
    problems = []

    def check(offset, page, cited):
        where = f"{path}:{line_of(text, offset)}"
        for number in re.findall(r"\d+", cited):
            if int(number) not in numbers.get(page, ()):
                problems.append(f"{where}: cites D{number}, which {page} does not have")

    flat, places = joined(text)
    foreign = []
    for match in CITATION.finditer(flat):
        foreign.append(match.span())
        page = match[1] if "/" in match[1] else design_of(tree, path)
        check(places[match.start()], page, match[2] or match[3])
    if path.endswith(".md"):
        for match in OF_FOLDER.finditer(flat):
            foreign.append(match.span())
            check(places[match.start()], f"{match[1]}/DESIGN.md", match[2])
    if path.endswith("DESIGN.md"):
        for match in OWN.finditer(flat):
            if not any(start <= match.start() < end for start, end in foreign):
                check(places[match.start()], path, match[1])
    return problems


# --- numbers -------------------------------------------------------------------------------------------------------

# Pages that hold no measured number: those of source folders, and README.md and STYLE.md.
NUMBERLESS = re.compile(r"(?!tests/|third_party/)")
# Numbers followed by a unit of what one measures, and fractions of three digits or more.
UNITS = (r"ns|µs|us|ms|s|seconds?|minutes?|hours?|%|percent|per cent|times|[kKMGT]?(?:FLOPS?|FLOP/s|OP/s|B/s|iB/s)|"
         r"a second|per second|[x×](?! ?\d)")
MEASURED = re.compile(rf"(?<![\w.^@-])(?!0 )\d[\d,]*(?:\.\d+)?(?: ?[kM])? ?(?:{UNITS})(?![\w/^])|"
                      r"(?<![\w.^-])\d\.\d{3,}(?![\w.])")
# What a program is allowed is no measurement.
ALLOWED = re.compile(r"\b(?:at most|at least|every|up to|limit of|limit is)$")
# A number may be repeated beside its constant in the code, or beside the file that holds the result.
CONSTANT = re.compile(r"\bk[A-Z]\w+")
RESULTS = "tests/bench/results"


def sentences(text):
    """(offset, sentence)."""
    offset = 0
    for part in re.split(r"(?<=[.:;])(?=\s)|(?<=\n)(?=\n)", text):
        yield offset, part
        offset += len(part)


def number_problems(tree, path, text):
    if not NUMBERLESS.match(path):
        return []
    found = {}
    for start, sentence in sentences(without_fences(without_generated(text))):
        sources = re.findall(r"[\w-]+\.json\b", sentence)
        if CONSTANT.search(sentence) or any(tree.has_below(RESULTS, name) for name in sources):
            continue
        prose = without_spans(sentence)
        for match in MEASURED.finditer(prose):
            if not ALLOWED.search(prose[:match.start()].rstrip()):
                found.setdefault(line_of(text, start + match.start()), []).append(match[0])
    return [f"{path}:{line}: {', '.join(numbers)} is measured; its place is a file in {RESULTS}"
            for line, numbers in found.items()]


# --- budgets -------------------------------------------------------------------------------------------------------


def budget_problems(path, text):
    if posixpath.basename(path) != "README.md":
        return []
    lines = len(text.splitlines())
    words = len(text.split())
    if path == "README.md":
        problems = []
        if lines > README_LINES:
            problems.append(f"{path}: {lines} lines, budget {README_LINES}")
        if words > README_WORDS:
            problems.append(f"{path}: {words} words, budget {README_WORDS}")
        return problems
    written = re.sub(r"\n\n+", "\n\n", without_generated(text)).count("\n")
    if written > FOLDER_README_LINES:
        return [f"{path}: {written} lines, budget {FOLDER_README_LINES}"]
    return []


def check_tree(tree):
    problems = []
    numbers = {p: {n for n, _, _ in decisions(tree.read(p))} for p in pages(tree) if p.endswith("DESIGN.md")}
    for path in pages(tree):
        text = tree.read(path)
        problems += link_problems(tree, path, text)
        problems += name_problems(tree, path, text)
        problems += budget_problems(path, text)
        problems += number_problems(tree, path, text)
        if path.endswith("DESIGN.md"):
            problems += design_problems(path, text)
    for path in sorted(p for p in tree.files if p.endswith(CITING) and is_ours(p)):
        text = tree.read(path)
        if path.endswith(".md") or "DESIGN.md" in text:
            problems += citation_problems(tree, path, text, numbers)
        if not path.endswith(".md"):
            problems += comment_problems(tree, path, text)
    return problems


def find_root():
    if len(sys.argv) > 1:
        return os.path.abspath(sys.argv[1])
    # Bazel runs a link to this file, or a copy two folders deep in a tree without the sources.
    here = os.path.dirname(os.path.realpath(__file__))
    return os.path.dirname(os.path.dirname(here))


class TheChecksCanFail(unittest.TestCase):
    """Each check, on a small tree made for it: a test of pages that cannot fail would be worth nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("README.md", "# Us\n\n## How it works\n")
        self.write("ir/DESIGN.md", "**D1. A.** Why.\n\n**D2. B.** Why.\n")
        self.write("ir/expr.h", "")
        self.write("ir/support/arena.cc", "")
        self.write("tools/prunerc/verbs/cmd_run.cc", "")
        self.write("tools/std/gemm.prn", "")
        self.write("tests/bench/results/cpu.json", "{}")

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def problems(self, path, text):
        """Of the tree with that file, which is gone or as it was afterwards."""
        tree = Tree(self.root)
        before = tree.read(path) if path in tree.files else None
        self.write(path, text)
        found = check_tree(Tree(self.root))
        if before is None:
            os.remove(os.path.join(self.root, path))
        else:
            self.write(path, before)
        return found

    def wrong(self, text, says, path="ir/README.md"):
        problems = self.problems(path, text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(says, problems[0])

    def right(self, text, path="ir/README.md"):
        self.assertEqual(self.problems(path, text), [])

    def test_links_lead_somewhere(self):
        self.wrong("a\nb [page](../PAGE.md)\n", "ir/README.md:2: link to ../PAGE.md, which does not exist")
        self.wrong("[out](../../README.md)\n", "does not exist")
        self.wrong("[there](../README.md#what-it-is)\n", "no such heading")
        self.wrong("[there](#what-it-is)\n", "no such heading")
        self.wrong("see [x]\n\n[x]: nowhere\n", "link to nowhere")
        self.right("# What `it` is\n[a](../README.md#how-it-works) [b](#what-it-is) [c](https://x.org/y) [d](support)\n")

    def test_links_in_code_are_no_links(self):
        self.right("`a[i](j)`\n```\nb[i](k)\n```\n")

    def test_files_and_folders_that_are_named_exist(self):
        self.wrong("`ir/stmt.h`\n", "ir/README.md:1: names ir/stmt.h, which does not exist")
        self.wrong("`support/pool.cc`\n", "names support/pool.cc")
        self.wrong("`pool.cc`\n", "names pool.cc")
        self.wrong("The rows (pool.cc) are there.\n", "names pool.cc")
        self.wrong("`search/strategy`\n", "names search/strategy")
        self.wrong("`./dev run tune tools/std/conv.prn -O0`\n", "names tools/std/conv.prn")
        self.wrong("```sh\n./dev run tune tools/std/conv.prn\n```\n", "names tools/std/conv.prn")
        self.wrong("`./dev test //ir/lang:lang_test`\n", "names ir/lang")
        self.wrong("* `lang/`: the language\n", "names lang")
        self.wrong("`ir/{expr,stmt}.h`\n", "names ir/{expr,stmt}.h")
        self.wrong("`tools/prunerc/show_*.cc`\n", "names tools/prunerc/show_*.cc")
        self.right("`ir/expr.h`, `expr.h`, `arena.cc` (support/arena.cc), `ir/support`, `support/arena.cc`, `ir/expr`\n"
                   "* `support/`: `ir/{expr,expr}.h`, `ir/*/*.cc`, `//ir/support:arena`, `import \"std/gemm.prn\"`\n")

    def test_what_readers_make_need_not_exist(self):
        self.right("`verbs/cmd_VERB.cc` in `tools/prunerc/verbs/cmd_VERB.cc`, `x.h`, `FILE.prn`, `-o /tmp/d.cc`, `<cuda.h>`, `$E.prc`\n"
                   "`lower/NAME`, `top1/MODEL`, `ns/op`\n```\n#include <stdio.h>\nsrcs = [\"app.cc\"]\n```\n",
                   path="tools/prunerc/README.md")

    def test_files_of_an_example_are_made_by_the_reader(self):
        page = "# Add a node\n\nAn hour, with `sum(a, b)`\nand `product`.\n\nWrite `ir/product.h`, `ir/support/product_test.cc`.\n"
        self.right(page, path="ir/ADD_A_NODE.md")
        self.wrong(page + "See `ir/sum.h`.\n", "ir/ADD_A_NODE.md:7: names ir/sum.h", path="ir/ADD_A_NODE.md")
        self.wrong(page + "See `ir/nodes/product.h`.\n", ":7: names ir/nodes/product.h", path="ir/ADD_A_NODE.md")
        self.wrong("# Nodes\n\nWith `product`.\n\nSee `ir/product.h`.\n", "names ir/product.h", path="ir/README.md")

    def test_files_that_comments_name_exist(self):
        self.wrong("int a;  // See ir/stmt.h.\n", "ir/type.h:1: names ir/stmt.h", path="ir/type.h")
        self.wrong("# As search/tune does.\n", "names search/tune", path="ir/BUILD.bazel")
        self.right("// ir/expr.h (ir/support)\n#include \"ir/stmt.h\"\nconst char* a = \"ir/stmt.h\";\n", path="ir/type.h")
        self.wrong("int a;  // STYLE.md 2.1 says why.\n", "ir/type.h:1: names STYLE.md", path="ir/type.h")
        self.wrong("/// As style/STYLE.md's table.\n", "ir/type.h:1: names style/STYLE.md", path="ir/type.h")
        self.right("// As in README.md (DESIGN.md).\nconst char* a = \"STYLE.md\";\n", path="ir/type.h")
        self.write(".gitignore", "/ir/made.txt\n")
        self.right("// Writes ir/made.txt.\n", path="ir/type.h")

    def test_decisions_that_are_cited_exist(self):
        page = "DESIGN" + ".md"
        self.wrong(f"// Why: {page}, D3.\n", "ir/type.h:1: cites D3, which ir/DESIGN.md does not have", path="ir/type.h")
        self.wrong(f"/// See {page},\n/// D1 and D7.\n", "cites D7", path="ir/type.h")
        self.wrong(f"# ir/{page}'s D9\n", "cites D9", path="tests/support/a.py")
        self.wrong(f"// ({page} gives (D1, D4))\n", "cites D4", path="ir/type.h")
        self.wrong(f"// {page}, 5\n", "cites D5", path="ir/type.h")
        self.wrong(f"x = 'search/{page}, D1'\n", "which search/DESIGN.md does not have", path="search/a.py")
        self.wrong("As before (ir, D1 and D8).\n", "cites D8", path="ir/README.md")
        self.wrong("So ir's D6 holds.\n", "cites D6", path="ir/README.md")
        self.wrong("**D1. A.** As in D5.\n", "cites D5", path="ir/DESIGN.md")
        self.right(f"// {page}, D1 and D2; ir/{page}'s D2\n", path="ir/type.h")

    def test_a_file_cites_the_nearest_page_above_it(self):
        self.write("ir/lang/DESIGN.md", "**D7. C.** Why.\n")
        self.right("// DESIGN" + ".md, D7\n", path="ir/lang/bind/bind.cc")
        self.wrong("// DESIGN" + ".md, D7\n", "ir/support/bind.cc", path="ir/support/bind.cc")

    def test_decisions_are_short_and_of_today(self):
        self.right("**D1. A.**\n" + "so\n" * (DECISION_LINES - 1) + "\n**D2. B.** Why.\n", path="ir/DESIGN.md")
        self.wrong("**D1. A.**\n" + "so\n" * DECISION_LINES, "D1 has 13 lines", path="ir/DESIGN.md")
        self.wrong("**D1. A.** " + "so " * 13 * (COLUMNS // 3), "D1 has 13 lines", path="ir/DESIGN.md")
        self.wrong("**D1. A.** Since 2026-01-02.\n", "the date 2026-01-02", path="ir/DESIGN.md")
        self.wrong("**D1. A.** Why.\n\n**D1. B.** Why.\n", "a second D1", path="ir/DESIGN.md")
        self.wrong("We decided.\n", "no decision was found", path="ir/DESIGN.md")

    def test_numbers_are_measured_not_typed(self):
        for number in ("12 ms", "1.4 x", "1.4 times", "35 %", "35%", "260 GFLOP/s", "0.3 s", "3 GB/s", "0.921", "2 M a second"):
            self.wrong(f"It takes {number} now.\n", "is measured")
        self.wrong("**D1. A.** It took 12 ms.\n", "ir/DESIGN.md:1: 12 ms is measured", path="ir/DESIGN.md")
        self.wrong("It takes 12 ms (`gpu.json`).\n", "is measured")
        self.right("Tiles of 16 x 16, f32 of 64 bytes, 2^-64, D3, `--time 20s`, 1.5, at most 12 ms, every 10 s.\n"
                   "It takes 12 ms (`cpu.json`). Waiting 2 s (`kWait`) is enough.\n"
                   "```\ntuned in 12 ms\n```\n<!-- table:begin -->\n| 12 ms |\n<!-- table:end -->\n")
        self.right("It takes 12 ms.\n", path="tests/bench/README.md")

    def test_pages_are_short(self):
        self.right("a\n" * FOLDER_README_LINES)
        self.wrong("a\n" * (FOLDER_README_LINES + 1), "111 lines")
        self.right("<!-- t:begin -->\n" + "a\n" * FOLDER_README_LINES + "<!-- t:end -->\n")
        self.right("# Results\n\nMade by `tools/prunerc/verbs/cmd_run.cc`.\n" + "a\n" * FOLDER_README_LINES)
        self.wrong("a\n" * (README_LINES + 1), "121 lines", path="README.md")
        self.wrong("a " * (README_WORDS + 1), "1101 words", path="README.md")
        self.wrong("<!-- t:begin -->\n" + "a\n" * README_LINES + "<!-- t:end -->\n", "122 lines", path="README.md")


class TheTree(unittest.TestCase):
    """The pages of this repository."""

    def test_pages_and_sources_are_where_they_are_looked_for(self):
        tree = Tree(find_root())
        self.assertTrue({"README.md", "STYLE.md", "ir/DESIGN.md", "third_party/README.md"} <= set(pages(tree)))
        self.assertIn("tests/support/docs_test.py", tree.files)

    def test_pages_are_true(self):
        problems = check_tree(Tree(find_root()))
        if problems:
            self.fail("\n" + "\n".join(problems))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
