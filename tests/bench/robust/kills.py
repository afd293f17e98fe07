"""Searches that are killed at any moment: what they said was stored is there, the database opens, and no worker stays behind.

Most kills are spread evenly over a run's whole time, from the start of the process to after its last line; the others wait
for a write to the database and follow it within two milliseconds, since commits are short.
"""

import os
import random
import signal
import statistics
import subprocess
import time

import acknowledged
import common

TRIALS = 4
AIMED_SHARE = 0.25  # of kills, at commits
AIMED_WITHIN_S = 0.002
GRACE_S = 5.0  # for a worker to notice that its parent is gone
RUNS_OF_DATABASE = 20  # so many killed runs write to one database, then it is given up


def command(world, database, seed):
    return ["tune", world.path("ops.prn"), "--op", ("dense", "scale", "soft")[seed % 3], "--threads", "1", "--trials",
            str(TRIALS), "--db", database, "--seed", str(seed), "--strategy", "random" if seed % 2 else "pruner", "--fresh", "-v"]


def wal_bytes(database):
    try:
        return os.stat(database + "-wal").st_mtime_ns, os.stat(database + "-wal").st_size
    except OSError:
        return None


class Killed:
    """One run and its end."""

    def __init__(self, world, database, seed, delay_s, aimed):
        out, err = world.path("out"), world.path("err")
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            begun = time.monotonic()
            process = world.start(command(world, database, seed), stdout, stderr)
            if aimed:
                # The delay says how long commits are let pass.
                self.follow_commit(process, database, begun + delay_s)
                time.sleep(random.Random(seed).uniform(0, AIMED_WITHIN_S))
            else:
                while time.monotonic() < begun + delay_s and process.poll() is None:
                    time.sleep(min(0.0005, max(0, begun + delay_s - time.monotonic())))
            self.was_running = process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
        with open(err, encoding="utf-8", errors="replace") as file:
            self.log = file.read()
        with open(out, encoding="utf-8", errors="replace") as file:
            self.out = file.read()

    @staticmethod
    def follow_commit(process, database, not_before):
        before = wal_bytes(database)
        while process.poll() is None:
            now = wal_bytes(database)
            if now != before and time.monotonic() >= not_before:
                return
            before = now

    def phase(self):
        if self.out:
            return "answered"
        if "\ntell" in self.log:
            return "stored"
        if "\nask" in self.log:
            return "measuring"
        return "planning" if "plan:" in self.log else "starting"


def wait_for_orphans(world):
    """Processes that outlive their parent by too much; they are ended."""
    deadline = time.monotonic() + GRACE_S
    left = world.marked_processes()
    while left and time.monotonic() < deadline:
        time.sleep(0.002)
        left = world.marked_processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def control_finds_an_orphan(world):
    """1 if a worker can be told from other processes while its parent lives, and a process without a parent is found."""
    with open(os.devnull, "wb") as nowhere:
        process = world.start(command(world, world.path("control.sqlite"), 0), nowhere, nowhere)
        worker = None
        while worker is None and process.poll() is None:
            worker = next((pid for pid in world.marked_processes() if pid != process.pid), None)
        process.send_signal(signal.SIGKILL)
        process.wait()
    if worker is None or wait_for_orphans(world):
        return 0
    left = subprocess.run(["sh", "-c", "setsid sleep 60 > /dev/null & echo $!"], env=world.environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True)
    orphan = int(left.stdout)
    # While a process becomes another program it shows no environment.
    deadline = time.monotonic() + GRACE_S
    is_found = False
    while not is_found and time.monotonic() < deadline:
        is_found = orphan in world.marked_processes()
    os.kill(orphan, signal.SIGKILL)
    return int(is_found)


def run_time(world):
    """Of a run that is left alone; the first measures the machine, which others need not."""
    seconds = []
    for seed in range(4):
        done = world.run(command(world, world.path("whole%d.sqlite" % seed), seed))
        if done.code != 0:
            raise RuntimeError("tune fails: " + done.err)
        told, _ = acknowledged.claims(done.err)
        records = acknowledged.stored(world, world.path("whole%d.sqlite" % seed))
        if not told or not records:
            raise RuntimeError("a whole run says nothing of what it stored")
        seconds.append(done.seconds)
    return statistics.median(seconds[1:])


def check(world, database, told, stats):
    """Opens the database as the next process would."""
    valid = world.run(["db", "validate", "--db", database])
    if valid.code != 0 and os.path.exists(database):
        stats["invalid"] += 1
        world.save("invalid.txt", valid.out + valid.err)
    records = acknowledged.stored(world, database)
    if records is None:
        # Killed before the file was made.
        lost = set(told)
    else:
        lost = told - {(r["fingerprint"], r["status"]) for r in records}
    stats["lost"] += len(lost)
    return lost


def measure(world, options):
    world.write("ops.prn", common.OPERATORS)
    rng = random.Random(options.seed)
    whole_s = run_time(world)
    control = control_finds_an_orphan(world)
    stats = {"kills": 0, "lost": 0, "invalid": 0, "orphans": 0, "acknowledged": 0, "aimed": 0}
    phases = {}
    database, told, runs = None, set(), 0
    while stats["kills"] < options.kills:
        if runs % RUNS_OF_DATABASE == 0:
            database, told = world.path("killed%d.sqlite" % (runs // RUNS_OF_DATABASE)), set()
        aimed = rng.random() < AIMED_SHARE
        # Evenly spread, however many there are: multiples of the golden ratio.
        part = (0.6180339887498949 * runs + 0.01 * rng.random()) % 1
        killed = Killed(world, database, options.seed + runs, whole_s * (part if aimed else 1.1 * part), aimed)
        runs += 1
        new, _ = acknowledged.claims(killed.log)
        told |= new
        stats["acknowledged"] += len(new)
        stats["orphans"] += len(wait_for_orphans(world))
        lost = check(world, database, told, stats)
        if lost:
            world.save("lost%d.txt" % runs, "%s\n%s" % (lost, killed.log))
            told -= lost
        if killed.was_running:
            stats["kills"] += 1
            stats["aimed"] += aimed
            phases[killed.phase()] = phases.get(killed.phase(), 0) + 1
    where = ", ".join("%d %s" % (phases[p], p) for p in ("starting", "planning", "measuring", "stored", "answered") if p in phases)
    return [
        common.row("kills", stats["kills"], "kills", options.kills,
                   "over %.2f s; %d after a write; %s" % (whole_s, stats["aimed"], where)),
        common.row("acknowledged", stats["acknowledged"], "records", None, "printed as told before the kill"),
        common.row("lost_acknowledged", stats["lost"], "records", 0, "of these, not in the database afterwards"),
        common.row("invalid_databases", stats["invalid"], "databases", 0, "that `db validate` finds fault with"),
        common.row("orphans", stats["orphans"], "processes", 0, "still there %g s after their parent" % GRACE_S),
        common.row("orphan_control", control, "found", 1, "a process whose parent had ended"),
    ]
