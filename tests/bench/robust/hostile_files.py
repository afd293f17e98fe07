"""Hostile files of every kind that prunerc reads: mutations of valid ones, and some that were thought up.

`cases(bases, count, seed)` gives Cases, the same for the same seed. `{}` in a command stands for the file.
"""

import dataclasses
import json
import random

import hostile_formats as formats
import hostile_made
import hostile_mutations as mutations

OP = "op f<N=64>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i] * 2; }\n"
COPY = "op copy<N=4>(A: f32[N]) -> (B: f32[N]) { B[i] = A[i]; }\n"


@dataclasses.dataclass
class Case:
    kind: str
    label: str
    suffix: str
    data: bytes  # None: `make` makes the file
    commands: list
    make: object = None


# What a file of each kind is given to. The first command is always run, of the others one.
COMMANDS = {
    "prn": [["show", "{}"], ["show", "{}", "--stage", "ast"], ["compile", "{}", "--target", "cpu:haswell", "-o", "{out}.s"]],
    "prc": [["show", "{}"], ["apply", "{}", "{empty}"], ["show", "{}", "--target", "cpu:haswell", "--stage", "lowered"],
            ["compile", "{}", "--target", "cpu:haswell", "-o", "{out}.s"]],
    "script": [["apply", "{op}", "{}"], ["apply", "{op}", "{}", "--print", "json"],
               ["compile", "{op}", "--target", "cpu:haswell", "--schedule", "{}", "-o", "{out}.s"]],
    "npy": [["run", "{copy}", "--input", "A=@{}"]],
    "jsonl": [["db", "import", "{}", "--db", "{out}.sqlite"]],
    "pool": [["dataset", "stats", "{}"], ["dataset", "list", "{}"], ["dataset", "export", "{}", "-o", "{out}.jsonl"],
             ["dataset", "prune", "{}", "--by", "random", "--keep", "0.5", "-o", "{out}.json"]],
    "rows": [["dataset", "prune", "{}", "--by", "random", "--keep", "0.5", "-o", "{out}.json"],
             ["dataset", "split", "{}", "--by", "within-task", "--share", "0.5", "-o", "{out}.json"]],
    "model": [["model", "export", "{}", "-o", "{out}"], ["model", "eval", "{}", "{pool}"]],
    "sqlite": [["db", "ls", "--db", "{}"], ["db", "best", "--db", "{}"], ["db", "stats", "--db", "{}"], ["db", "validate", "--db", "{}"],
               ["db", "export", "{out}.jsonl", "--db", "{}"],
               ["compile", "{op}", "--target", "cpu:haswell", "--db", "{}", "-o", "{out}.s"]],
    "limits": [["show", "{op}", "--stage", "scheduled"]],
    "line": [["show", "-e", "{text}", "-D", "i=64"]],
}
SUFFIX = {"prn": ".prn", "prc": ".prc", "script": ".txt", "npy": ".npy", "jsonl": ".jsonl", "pool": ".pool", "rows": ".json",
          "model": ".model", "sqlite": ".sqlite", "limits": ".txt", "line": ""}
# Of the mutations; the slow ones less often.
SHARES = {"prn": 22, "prc": 24, "script": 16, "npy": 8, "jsonl": 8, "pool": 8, "rows": 4, "model": 4, "sqlite": 8, "limits": 2, "line": 4}


def commands_for(kind, rng):
    first, *others = COMMANDS[kind]
    return [first] + ([rng.choice(others)] if others and rng.random() < 0.5 else [])


def mutate_text(data, rng):
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = rng.choice(mutations.TEXT)(data, rng)
    return data


def mutate_bytes(data, rng):
    for _ in range(rng.choice([1, 1, 3])):
        data = rng.choice(mutations.BINARY)(data, rng)
    return data


def mutate_jsonl(data, rng):
    lines = data.split(b"\n")
    i = rng.randrange(max(1, len(lines) - 1))
    if rng.random() < 0.5:
        lines[i] = json.dumps(mutations.in_json(json.loads(lines[i]), rng)).encode()
        return b"\n".join(lines)
    return mutate_text(data, rng)


def mutate_pool(data, rng):
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    header, columns = formats.open_pool(data)
    if rng.random() < 0.6:
        header = mutations.in_json(header, rng)
    else:
        columns = mutate_bytes(columns, rng)
    return formats.seal_pool(header, columns, claimed=rng.choice([None, None, None, 0, 2**32, 2**63]))


def mutate_model(data, rng):
    if rng.random() < 0.4:
        return mutate_bytes(data, rng)
    header, tensors = formats.open_model(data)
    return formats.seal_model(mutations.in_json(header, rng), tensors[: rng.choice([0, 64, 4096])])


def mutate_rows(data, rng):
    if rng.random() < 0.6:
        return json.dumps(mutations.in_json(json.loads(data), rng)).encode()
    return mutate_text(data, rng)


def mutate_sqlite(data, rng):
    """A page or a cell of the file, its header, or its length."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 4, 32])):
        at = rng.choice([rng.randrange(100), rng.randrange(len(out)), 4096 * rng.randrange(max(1, len(out) // 4096)) + rng.randrange(16)])
        out[min(at, len(out) - 1)] = rng.randrange(256)
    if rng.random() < 0.2:
        out = out[: rng.randrange(len(out))]
    return bytes(out)


MUTATORS = {"prn": mutate_text, "prc": mutate_text, "script": mutate_text, "npy": mutate_bytes, "jsonl": mutate_jsonl, "pool": mutate_pool,
            "rows": mutate_rows, "model": mutate_model, "sqlite": mutate_sqlite, "limits": mutate_text, "line": mutate_text}


def mutated(bases, count, rng):
    kinds = [kind for kind in SHARES if bases.get(kind)]
    for n in range(count):
        kind = rng.choices(kinds, [SHARES[k] for k in kinds])[0]
        name, data = rng.choice(bases[kind])
        changed = MUTATORS[kind](data, rng)
        yield Case(kind, "mutation %d of %s" % (n, name), SUFFIX[kind], changed, commands_for(kind, rng))


def made(bases):
    for kind, label, content in hostile_made.files(bases):
        data, make = (content, None) if isinstance(content, bytes) else (None, content)
        yield Case(kind, label, SUFFIX[kind], data, COMMANDS[kind][:3], make)


def cases(bases, count, seed):
    """All that were thought up, and mutations up to `count` files."""
    rng = random.Random(seed)
    found = list(made(bases))
    found += mutated(bases, max(0, count - len(found)), rng)
    return found


def pick(found, count, seed):
    """So many of them, evenly over the kinds."""
    rng = random.Random(seed)
    by_kind = {}
    for case in found:
        by_kind.setdefault(case.kind, []).append(case)
    for group in by_kind.values():
        rng.shuffle(group)
    out = []
    while len(out) < count and any(by_kind.values()):
        out += [group.pop() for group in by_kind.values() if group]
    return out[:count]
