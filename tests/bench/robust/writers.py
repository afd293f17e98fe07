"""Many processes that tune into one database at once."""

import acknowledged
import common


def measure(world, options):
    world.write("ops.prn", common.OPERATORS)
    world.run(["tune", world.path("ops.prn"), "--op", "scale", "--trials", "1", "--threads", "1", "-q"])  # limits are kept
    database = world.path("shared.sqlite")
    processes = []
    for n in range(options.writers):
        err = open(world.path("err%d" % n), "w+b")
        arguments = ["tune", world.path("ops.prn"), "--op", ("dense", "scale", "soft")[n % 3], "--threads", "1", "--trials", "4",
                     "--db", database, "--seed", str(options.seed + n), "--strategy", "random", "--fresh", "-v"]
        processes.append((world.start(arguments, err, err), err))
    told, failed = set(), 0
    for n, (process, err) in enumerate(processes):
        process.wait()
        err.seek(0)
        log = err.read().decode(errors="replace")
        err.close()
        claims, _ = acknowledged.claims(log)
        told |= claims
        if process.returncode != 0 or not claims:
            failed += 1
            world.save("writer%d.txt" % n, log)
    records = acknowledged.stored(world, database) or []
    lost = told - {(r["fingerprint"], r["status"]) for r in records}
    valid = world.run(["db", "validate", "--db", database])
    return [
        common.row("writers", options.writers, "processes", options.writers, "at one database; %d records" % len(records)),
        common.row("writers_failed", failed + (valid.code != 0), "processes", 0, "that did not end well, or the database is not valid"),
        common.row("writers_lost", len(lost), "records", 0, "of %d that were printed as told" % len(told)),
    ]
