"""Faults in valid files: what falls off, flips, repeats, grows or says an impossible number."""

import re

EXTREMES = ["0", "-1", "1", "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
            "-9223372036854775808", "1" + "0" * 30, "1e308", "1e999", "nan", "inf", "0.5", "00", "0x10", "9" * 5000]
# What a terminal would obey: a cleared screen, a title, a bell, a backspace, a reversed line, a carriage return, C1.
ESCAPES = [b"\x1b[2J", b"\x1b]0;owned\x07", b"\x07", b"\x08\x08", "\u202e".encode(), b"\rerror: none", "\x9b2J".encode(),
           b"\x9b2J", "\u2066".encode(), "\u200b".encode(), b"\x00", b"\xff\xfe", b"\xc0\x80", b"%n%s%x", b"*/", b"\\\n", b"$(id)"]
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WORD = re.compile(rb"[A-Za-z_]\w*")


def truncate(data, rng):
    return data[: rng.randrange(len(data))] if data else data


def flip(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def insert(data, rng):
    at = rng.randrange(len(data) + 1)
    what = rng.choice(ESCAPES) if rng.random() < 0.5 else bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 64])))
    return data[:at] + what + data[at:]


def repeat(data, rng):
    """A part of it many times over, 64 KiB at most."""
    if not data:
        return data
    first = rng.randrange(len(data))
    part = data[first : first + rng.choice([1, 8, 64, 512])]
    return data[:first] + part * rng.choice([2, 16, max(1, 65536 // len(part))]) + data[first:]


def drop(data, rng):
    first = rng.randrange(len(data) + 1)
    return data[:first] + data[first + rng.choice([1, 4, 32, 256]) :]


def replace_match(data, pattern, texts, rng):
    found = list(pattern.finditer(data))
    if not found:
        return flip(data, rng)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(texts) + data[one.end() :]


def number(data, rng):
    return replace_match(data, NUMBER, [text.encode() for text in EXTREMES], rng)


def name(data, rng):
    words = [match.group() for match in WORD.finditer(data)] or [b"x"]
    return replace_match(data, WORD, [rng.choice(words), b"", b"a" * 65536, b"__global__", b"../../x", rng.choice(ESCAPES)], rng)


def nest(data, rng):
    """Brackets around a number, or in front of it."""
    depth = rng.choice([10, 150, 1000, 100000])
    opened, closed = rng.choice([(b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"-", b""), (b"!", b"")])
    one = rng.choice(list(NUMBER.finditer(data)) or [re.match(b"", data)])
    return data[: one.start()] + opened * depth + one.group() + closed * depth + data[one.end() :]


def shuffle_lines(data, rng):
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


BINARY = [truncate, flip, insert, repeat, drop]
TEXT = BINARY + [number, number, name, name, nest, shuffle_lines]


def in_json(value, rng):
    """The same tree with one leaf or member replaced."""
    places = []

    def walk(node):
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []
        for key, child in items:
            places.append((node, key))
            walk(child)

    walk(value)
    if places:
        node, key = rng.choice(places)
        node[key] = rng.choice([0, -1, 1, 2**31, 2**63 - 1, 2**63, 1e308, 0.5, "", "\u001b[2J\u202e", "x" * 65536, None, True, [],
                                {}, [[]] * 1000, [0] * 100000, node[key], [node[key]]])
    return value
