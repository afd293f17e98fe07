"""What a file of results says before its rows, and the one name of this machine."""

import datetime
import functools
import json
import os
import subprocess
import sys


@functools.lru_cache(maxsize=None)
def machine(prunerc):
    """"AMD EPYC, 2 threads (znver5)", as the benchmarks in C++ have it."""
    done = subprocess.run([prunerc, "devices", "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s devices: %s" % (prunerc, done.stderr.strip()))
    return json.loads(done.stdout)["devices"][0]["name"]


def of(bench, prunerc, **more):
    """The commit is what `./dev bench` says that it is."""
    return {"bench": bench, "machine": machine(prunerc), "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "commit": os.environ.get("PRUNERC_COMMIT") or "unknown", **more}
