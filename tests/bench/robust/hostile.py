"""Hostile files given to the binary that people get: crashes, time, memory, messages, and what reaches a terminal."""

import concurrent.futures
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

import common
import hostile_bases
import hostile_files

KILL_AFTER = 60  # seconds by the clock; on a busy machine prunerc has the CPU for a part of them
ADDRESS_SPACE = 8 << 30
CODES = range(0, 7)
FAULT = re.compile(rb"internal error|check failed|PRUNERC_CHECK|terminate called|AddressSanitizer|runtime error:|json\.exception|"
                   rb"std::|bad_alloc|basic_string|vector::|stack smashing|Assertion", re.IGNORECASE)
# As printable() of ir/support/file.h, from the Unicode standard: controls, format characters, line and paragraph separators.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
PLACE = re.compile(rb":\d+|<[a-z ]+>|option|--\w|'[^']*'|operator|\bline\b", re.IGNORECASE)
MEASURING = b"measuring this machine"


class Outcome:
    """One run of one command: `faults` are words of the rows."""

    def __init__(self, code, seconds, kib, out, err, hung):
        self.code, self.seconds, self.kib, self.out, self.err, self.hung = code, seconds, kib, out, err, hung
        self.faults = set()

    def judge(self, names):
        if self.hung or self.code < 0 or self.code not in CODES:
            self.faults.add("hung" if self.hung else "crash")
        if FAULT.search(self.err):
            self.faults.add("internal")
        for limit in (1, 2):
            if (self.hung or self.seconds > limit) and MEASURING not in self.err:
                self.faults.add("over_%ds" % limit)
        for word, kib in (("over_512mib", 512 << 10), ("over_1gib", 1 << 20)):
            if self.kib > kib:
                self.faults.add(word)
        for stream in (self.out, self.err):
            try:
                if UNPRINTABLE.search(stream.decode()):
                    self.faults.add("escape")
            except UnicodeDecodeError:
                self.faults.add("escape")
        if self.code > 0 and not self.hung:
            said = b"error:" in self.err or b"hint:" in self.err or self.err.strip()
            placed = any(name in self.err + self.out for name in names) or PLACE.search(self.err)
            if not said or not placed:
                self.faults.add("no_place")
        return self


def run_delay(pid):
    """Seconds that it waited for a CPU; the zombie still tells."""
    try:
        with open("/proc/%d/schedstat" % pid, encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def is_sanitized(binary):
    """Sanitizers reserve more addresses than there is memory."""
    with open(binary, "rb") as file:
        return re.search(rb"__[at]san_init", file.read()) is not None


def execute(argv, environment, folder, stem, address_space=ADDRESS_SPACE):
    """Runs it with its own time (without waiting for a CPU) and its largest resident set."""
    def limit():
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with open(stem + ".stdout", "w+b") as out, open(stem + ".stderr", "w+b") as err:
        begun = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder,
                                   preexec_fn=limit, start_new_session=True)
        killed = []
        killer = threading.Timer(KILL_AFTER, lambda: (killed.append(1), os.killpg(process.pid, signal.SIGKILL)))
        killer.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.monotonic() - begun
        killer.cancel()
        waited = run_delay(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        texts = out.read(1 << 22), err.read(1 << 22)
    # Where others have most of the CPUs, the clock tells of them.
    busy = os.getloadavg()[0] > 2 * os.cpu_count()
    computed = usage.ru_utime + usage.ru_stime
    own = computed if busy and not killed else max(computed, seconds - waited)
    return Outcome(process.returncode, own, usage.ru_maxrss, *texts, bool(killed))


class Runner:
    def __init__(self, world):
        self.world = world
        self.fixed = {"{op}": world.write("op.prn", hostile_files.OP), "{copy}": world.write("copy.prn", hostile_files.COPY),
                      "{empty}": world.write("empty.txt", "")}
        self.pool = world.pool
        self.address_space = None if is_sanitized(world.binary) else ADDRESS_SPACE

    def run(self, number, case):
        """All commands of the case, in a folder of its own; the outcomes with their command lines."""
        folder = self.world.path("case%d" % number)
        os.mkdir(folder)
        environment = dict(self.world.environment)
        path = os.path.join(folder, "case" + case.suffix)
        if case.kind == "limits":
            cache = os.path.join(folder, "cache", "prunerc")
            os.makedirs(cache, 0o700)
            environment["XDG_CACHE_HOME"] = os.path.dirname(cache)
            path = os.path.join(cache, self.world.limits_name)
        if not case.suffix:
            text = case.data.replace(b"\0", b"")[:100000]
        elif case.make is not None:
            case.make(path)
        else:
            with open(path, "wb") as out:
                out.write(case.data)
        os.mkfifo(os.path.join(folder, "pipe"))
        os.symlink("loop", os.path.join(folder, "loop"))
        known = dict(self.fixed, **{"{}": path, "{pool}": self.pool})
        outcomes = []
        for n, command in enumerate(case.commands):
            argv = [self.world.binary]
            for word in command:
                word = known.get(word, word).replace("{}", path).replace("{out}", os.path.join(folder, "out%d" % n))
                argv.append(text if word == "{text}" else word)
            done = execute(argv, environment, folder, os.path.join(folder, "run%d" % n), self.address_space)
            outcomes.append((argv, done.judge([b"case", b"out%d" % n])))
        shutil.rmtree(folder, ignore_errors=True)
        return outcomes


PLANTED = {
    "crash": "kill -SEGV $$",
    "over_1s": "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done",
    "over_512mib": "head -c 700000000 /dev/zero | tail",
    "escape": "printf 'case.prn:1: \\033[2J'",
    "internal": "echo 'error: internal error: case.prn' >&2; exit 1",
    "no_place": "echo 'error: something is wrong' >&2; exit 1",
    "hung": "sleep 100",
}


def control(world):
    """How many planted faults are noticed; of those that are not, the names."""
    missed = []
    for word, script in PLANTED.items():
        if word == "hung":
            continue  # takes as long as the others together
        done = execute(["/bin/sh", "-c", script], world.environment, world.folder, world.path("control")).judge([b"case"])
        if word not in done.faults:
            missed.append(word)
    return len(PLANTED) - 1 - len(missed), missed


def run_cases(world, found, jobs, tell=None):
    """[(case, argv, outcome)] of all commands of all cases."""
    runner = Runner(world)
    results = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, outcomes in enumerate(pool.map(runner.run, range(len(found)), found)):
            results += [(found[number], argv, done) for argv, done in outcomes]
            if tell and (number + 1) % 250 == 0:
                tell("%d of %d files" % (number + 1, len(found)))
    return results


def describe(case, argv, done):
    words = " ".join(a if isinstance(a, str) else ascii(a) for a in argv[1:])
    return "%s, %s: %s: exit %d, %.2f s, %d MiB: %s\n    %s\n" % (
        case.kind, case.label, ", ".join(sorted(done.faults)), done.code, done.seconds, done.kib >> 10, words[:300],
        done.err[:300].decode(errors="replace").replace("\n", "\n    "))


def measure(world, options):
    noticed, missed = control(world)
    found = hostile_files.cases(hostile_bases.make(world), options.hostile, options.seed)
    results = run_cases(world, found, os.cpu_count(), lambda text: print("hostile: " + text, flush=True))
    bad = [result for result in results if result[2].faults]
    for n, (case, argv, done) in enumerate(bad):
        print(describe(case, argv, done), end="", flush=True)
        if world.keep and case.data is not None:
            world.save("hostile%d%s" % (n, case.suffix), case.data)
    kinds = {}
    for case in found:
        kinds[case.kind] = kinds.get(case.kind, 0) + 1
    count = lambda word: sum(word in done.faults for _, _, done in results)
    slowest = max(done.seconds for case, _, done in results if MEASURING not in done.err)
    largest = max(done.kib for _, _, done in results)
    of = "of %d runs" % len(results)
    return [
        common.row("hostile", len(found), "files", options.hostile, ", ".join("%d %s" % (n, k) for k, n in sorted(kinds.items()))),
        common.row("hostile_crash", count("crash") + count("hung"), "runs", 0, of),
        common.row("hostile_over_1s", count("over_1s"), "runs", None, "the longest took %.2f s" % slowest),
        common.row("hostile_over_2s", count("over_2s"), "runs", 0, of),
        common.row("hostile_over_512mib", count("over_512mib"), "runs", 0, "the largest had %d MiB" % (largest >> 10)),
        common.row("hostile_over_1gib", count("over_1gib"), "runs", 0, of),
        common.row("hostile_no_place", count("no_place"), "runs", 0, "failed without a place in the message"),
        common.row("hostile_internal", count("internal"), "runs", 0, "said that prunerc is at fault"),
        common.row("hostile_escape", count("escape"), "runs", 0, "printed what a terminal obeys"),
        common.row("hostile_control", noticed, "faults", len(PLANTED) - 1, "planted; missed: " + (", ".join(missed) or "none")),
    ]
