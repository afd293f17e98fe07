"""Records for tests of `prunerc report`, made of those that `prunerc db export` prints."""

import json
import shutil


def tune_once(test, key, tune):
    """Calls tune() for the first test of a class that asks for `key`; the others get a copy of that database."""
    kept = test.__class__.__dict__.get("kept", {})
    if key not in kept:
        tune()
        kept[key] = shutil.copy(test.db, test.db + ".kept")
        test.__class__.kept = kept
    shutil.copy(kept[key], test.db)


def with_failures(lines):
    """The same records, each of a candidate that ran into a timeout."""
    out = []
    for line in lines.splitlines():
        record = json.loads(line)
        record.update(status="timeout", median_ns=0, samples_ns=[], detail="ran for 10 s", verified="")
        out.append(json.dumps(record))
    return "\n".join(out) + "\n"
