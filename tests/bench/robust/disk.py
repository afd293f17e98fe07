"""Searches whose disk becomes full at one write or another: an error in words, nothing lost that was stored, no crash."""

import os
import re
import subprocess

import acknowledged
import common

LAST_WRITES = 12  # of a run: what they hold may be stored already, so that their failure may pass in silence
ARGUMENTS = ["--op", "dense", "--threads", "1", "--trials", "6", "--strategy", "random", "--fresh", "-v"]


def shim(world):
    """The library that fills the disk: built beside this script, or here."""
    built = os.path.join(world.beside or "", "libfull_disk.so")
    if os.path.exists(built):
        return os.path.abspath(built)
    here = os.path.dirname(os.path.realpath(__file__))
    made = world.path("full_disk.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", os.path.join(here, "full_disk.c"), "-o", made, "-ldl"], check=True)
    return made


def complains(done):
    """Whether it says that something failed; "largest error 0.1 of the bound" says that nothing did."""
    return done.code != 0 or re.search(r"(^|: )(error|warning): ", done.err, re.M) is not None


def tune(world, database, variables):
    return world.run(["tune", world.path("ops.prn"), "--db", database] + ARGUMENTS, variables)


def measure(world, options):
    world.write("ops.prn", common.OPERATORS)
    library = shim(world)
    tune(world, world.path("warm.sqlite"), {})  # limits of the machine are kept
    base = {"LD_PRELOAD": library, "FULL_DISK_NAME": ".sqlite"}
    counts = world.path("counts")
    counted = tune(world, world.path("counted.sqlite"), dict(base, FULL_DISK_COUNT=counts))
    with open(counts, encoding="utf-8") as file:
        num_writes = int(file.read())
    if complains(counted) or num_writes < options.places:
        raise RuntimeError("a run of %d writes: %s" % (num_writes, counted.err))
    stats = {"crash": 0, "asked": 0, "silent": 0, "lost": 0, "broken": 0}
    for place in range(options.places):
        at = 1 + place * (num_writes - 1) // max(1, options.places - 1)
        database = world.path("full%d.sqlite" % place)
        variables = dict(base, FULL_DISK_AT=str(at))
        if place % 3 == 2:
            variables["FULL_DISK_ONCE"] = "1"
        done = tune(world, database, variables)
        told, _ = acknowledged.claims(done.err)
        stats["crash"] += done.crashed()
        # Until it is done there is something to store, so a disk that stays full cannot be a success.
        if "FULL_DISK_ONCE" not in variables and at < num_writes - LAST_WRITES:
            stats["asked"] += 1
            if not complains(done):
                stats["silent"] += 1
                world.save("silent%d.txt" % at, done.out + done.err)
        # With room again, the next process must find what was told, and be able to go on.
        records = acknowledged.stored(world, database)
        lost = told - {(r["fingerprint"], r["status"]) for r in records or []}
        stats["lost"] += len(lost)
        again = tune(world, database, {})
        valid = world.run(["db", "validate", "--db", database])
        if again.code != 0 or valid.code != 0:
            stats["broken"] += 1
        if lost or done.crashed() or again.code != 0 or valid.code != 0:
            world.save("full%d.txt" % at, "\n".join(map(str, [lost, done.code, done.err, again.code, again.err, valid.out, valid.err])))
    return [
        common.row("disk_full", options.places, "places", options.places, "of %d writes to the database and its log" % num_writes),
        common.row("disk_full_crash", stats["crash"], "runs", 0, "ended by a signal"),
        common.row("disk_full_silent", stats["silent"], "runs", 0, "said nothing of it, of %d in which it stayed full before the last writes" % stats["asked"]),
        common.row("disk_full_lost", stats["lost"], "records", 0, "told, and not in the database afterwards"),
        common.row("disk_full_broken", stats["broken"], "databases", 0, "that cannot be tuned into or are not valid once there is room"),
    ]
