#!/usr/bin/env python3
"""Fails if a page names what does not exist, is longer than its budget, or holds a measurement typed by hand.

Pages are all .md files but those of third parties. Checked are links, the files and folders that pages name, citations of
decisions (`search/DESIGN.md, D7`) in pages and sources, the budgets of README.md and of each decision, and that no
DESIGN.md holds a date or a measured number. What a script writes into a page, between `<!-- NAME:begin -->` and
`<!-- NAME:end -->`, is checked where it is generated, and here only for links and files.

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
# Files that may cite a decision.
CITING = (".md", ".h", ".cc", ".def", ".py", ".bzl", ".sh", ".prn")

README_LINES = 120
README_WORDS = 1100
FOLDER_README_LINES = 110
DECISION_LINES = 12
# Else a budget of lines would be none.
DECISION_COLUMNS = 160

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

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def has(self, path):
        """Whether a path, or some path that fits a pattern, exists."""
        path = posixpath.normpath(path)
        if path == ".":
            return True
        if not re.search(r"[*?]", path):
            return path in self.files or path in self.folders
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
    """The page with its generated parts made empty."""
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


def exists(tree, path, name):
    folder = posixpath.dirname(path)
    for one in alternatives(name):
        # NAME in a path stands for any.
        one = re.sub(r"(?<![A-Z])(?!README|DESIGN|STYLE|BUILD|WORKSPACE|ADD_A|HOUSE)[A-Z][A-Z_]+(?![A-Za-z])", "*", one).rstrip("/")
        bases = ["", folder]
        # Operator texts import the standard library so.
        if one.startswith("std/"):
            bases.append("tools")
        if any(tree.has(posixpath.join(base, one)) for base in bases):
            continue
        # What files have in common stands for them: costmodel/latency, tools/examples/gpu/matmul_f16.
        if "/" in one and tree.has(one + ".*"):
            continue
        if "/" not in one and tree.has_below(folder, one):
            continue
        return False
    return True


def words_of_code(text):
    """(offset, word, is_span): the words of code spans and of blocks of code."""
    fenced = without_fences(text)
    for span in re.finditer(r"`([^`\n]+)`", fenced):
        for word in re.finditer(r"[^\s\"'=;()|<>$&:,]+|//\S+", span[1]):
            yield span.start(1) + word.start(), word[0], True
    inside, offset = False, 0
    for line in text.splitlines(keepends=True):
        fence = line.lstrip().startswith("```")
        if inside and not fence:
            for word in re.finditer(r"[^\s\"'=;()|<>$&:,]+", line):
                yield offset + word.start(), word[0], False
        inside ^= fence
        offset += len(line)


def clean(word):
    return word.rstrip(".,;:!").removeprefix("./").removeprefix("//").split("#")[0]


# `driver/` at the start of a line or cell of a page lists what its folder has.
LISTED = re.compile(r"^(?:[*-]|\||\d+\.) `([\w/{},*-]+)/`", re.M)


def name_problems(tree, path, text):
    problems = []

    def check(offset, name, in_code):
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


# --- decisions -----------------------------------------------------------------------------------------------------

DECISION = re.compile(r"^(?:\*\*D(\d+)\b|(\d+)\. \*\*|#+ D(\d+)\b)", re.M)


def decisions(text):
    """(number, first line, lines) of each decision of a DESIGN.md."""
    starts = [(int(m[1] or m[2] or m[3]), m.start()) for m in DECISION.finditer(text)]
    found = []
    for (number, start), end in zip(starts, [s for _, s in starts[1:]] + [len(text)]):
        # A heading ends the decision before it.
        body = re.split(r"\n#+ (?!D\d)", text[start:end])[0].rstrip("\n")
        found.append((number, line_of(text, start), body.splitlines()))
    return found


# Numbers followed by a unit of what one measures, and fractions of three digits or more.
UNITS = (r"ns|µs|us|ms|s|seconds?|minutes?|hours?|%|percent|per cent|times|[kKMGT]?(?:FLOPS?|FLOP/s|OP/s|B/s|iB/s)|"
         r"a second|per second|[x×](?! ?\d)")
MEASURED = re.compile(rf"(?<![\w.^@-])(?!0 )\d[\d,]*(?:\.\d+)?(?: ?[kM])? ?(?:{UNITS})(?![\w/^])|(?<![\w.^-])\d\.\d{{3,}}(?![\w.])")
# A limit that the code sets is no measurement; nor is a number whose sentence names its constant or its results file.
LIMIT = re.compile(r"\b(?:at most|at least|every|up to|after|a limit of|for)$")
SOURCED = re.compile(r"\bk[A-Z]\w+|[\w-]+\.json\b")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


def sentences(text):
    """(offset, sentence)."""
    offset = 0
    for part in re.split(r"(?<=[.:;])(?=\s)", text):
        yield offset, part
        offset += len(part)


def measurements(text):
    """(offset, number) of each measurement typed by hand."""
    for start, sentence in sentences(text):
        if SOURCED.search(sentence):
            continue
        plain = without_spans(sentence)
        for match in MEASURED.finditer(plain):
            if not LIMIT.search(plain[:match.start()].rstrip()):
                yield start + match.start(), match[0]


def design_problems(path, text):
    problems, seen = [], set()
    for number, line, body in decisions(text):
        if number in seen:
            problems.append(f"{path}:{line}: a second D{number}")
        seen.add(number)
        if len(body) > DECISION_LINES:
            problems.append(f"{path}:{line}: D{number} has {len(body)} lines, budget {DECISION_LINES}")
        for below, content in enumerate(body):
            if len(content) > DECISION_COLUMNS:
                problems.append(f"{path}:{line + below}: a line of {len(content)} columns, budget {DECISION_COLUMNS}")
    if not seen:
        problems.append(f"{path}:1: no decision was found: one begins with `**D1. `")
    for match in DATE.finditer(text):
        problems.append(f"{path}:{line_of(text, match.start())}: the date {match[0]}: decisions are true today")
    for offset, number in measurements(text):
        problems.append(f"{path}:{line_of(text, offset)}: '{number.strip()}' is measured: it belongs into a results file")
    return problems


LIST = r"D?\d+(?:(?:, | and | to |, and )D\d+)*"
# search/DESIGN.md, D7 and D9; DESIGN.md (D6, D11); costmodel/DESIGN.md's D27; (search, D42)
CITATION = re.compile(rf"((?:[\w/]+/)?DESIGN\.md)(?:'s|[,:])? ?\(?({LIST})|\b((?:{'|'.join(TOP_FOLDERS)})[\w/]*), (D{LIST[2:]})")
# Within DESIGN.md a number alone is the page's own.
OWN = re.compile(r"(?<![\w/])D(\d+)\b")


def joined(text):
    """Comments and paragraphs without their ends of lines, each replaced by as many blanks."""
    return re.sub(r"\n[ \t]*(?:///?|#|\*|>)?[ \t]*", lambda gap: " " + "\0" * (len(gap[0]) - 1), text)


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
        if page not in numbers:
            problems.append(f"{where}: cites {page}, which does not exist")
            return
        for number in re.findall(r"\d+", cited):
            if int(number) not in numbers[page]:
                problems.append(f"{where}: cites D{number}, which {page} does not have")

    # Offsets stay true: what joins two lines is as long as what stood between them.
    plain = joined(text)
    squeezed, places = [], []
    for offset, letter in enumerate(plain):
        if letter != "\0":
            squeezed.append(letter)
            places.append(offset)
    squeezed = "".join(squeezed)
    foreign = []
    for match in CITATION.finditer(squeezed):
        if match[1]:
            page = match[1] if "/" in match[1] else design_of(tree, path)
        elif path.endswith(".md") and f"{match[3]}/DESIGN.md" in tree.files:
            page = f"{match[3]}/DESIGN.md"
        else:
            continue
        foreign.append(match.span())
        check(places[match.start()], page, match[2] or match[4])
    if path.endswith("DESIGN.md"):
        for match in OWN.finditer(squeezed):
            if not any(start <= match.start() < end for start, end in foreign):
                check(places[match.start()], path, match[1])
    return problems


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
    # Generated lines cost nobody's time.
    written = [line for line in without_generated(text).splitlines() if line.strip()]
    if len(written) > FOLDER_README_LINES:
        return [f"{path}: {len(written)} written lines, budget {FOLDER_README_LINES}"]
    return []


def check_tree(tree):
    problems = []
    numbers = {p: {n for n, _, _ in decisions(tree.read(p))} for p in pages(tree) if p.endswith("DESIGN.md")}
    for path in pages(tree):
        text = tree.read(path)
        problems += link_problems(tree, path, text)
        problems += name_problems(tree, path, text)
        problems += budget_problems(path, text)
        if path.endswith("DESIGN.md"):
            problems += design_problems(path, text)
    for path in sorted(p for p in tree.files if p.endswith(CITING) and is_ours(p)):
        problems += citation_problems(tree, path, tree.read(path), numbers)
    return problems
