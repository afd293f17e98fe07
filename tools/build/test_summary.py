#!/usr/bin/env python3
"""Counts the test cases of a `bazel test` run and prints `N passed, N failed`.

usage: test_summary.py EVENTS STATUS
EVENTS is the file of --build_event_json_file, STATUS the exit status of Bazel. Cases are counted from the log of each
target: Catch2's and unittest's last lines, or a line of the same form as ours. A target that says nothing of the kind
counts as one case, and so does one that ended otherwise than its last line tells (a crash, a time-out).
"""

import json
import re
import sys
import urllib.parse

CATCH_ALL = re.compile(r"^All tests passed \(.* in (\d+) test cases?\)", re.M)
CATCH_SOME = re.compile(r"^test cases: *(\d+)(.*)$", re.M)
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.M)
OURS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def count_log(text):
    """Returns (passed, failed, skipped) as the log has it, or None if it does not say."""
    passed = failed = skipped = 0
    known = False
    for match in CATCH_ALL.finditer(text):
        passed += int(match[1])
        known = True
    for match in CATCH_SOME.finditer(text):
        bad = re.search(r"(\d+) failed\b(?! as)", match[2])
        bad = int(bad[1]) if bad else 0
        failed += bad
        passed += int(match[1]) - bad
        known = True
    for match in OURS.finditer(text):
        passed += int(match[1])
        failed += int(match[2])
        skipped += int(match[3] or 0)
        known = True
    for match in UNITTEST_RAN.finditer(text):
        end = UNITTEST_END.search(text, match.end())
        notes = dict(re.findall(r"(\w+)=(\d+)", end[1] or "")) if end else {}
        bad = int(notes.get("failures", 0)) + int(notes.get("errors", 0))
        left_out = int(notes.get("skipped", 0))
        failed += bad
        skipped += left_out
        passed += int(match[1]) - bad - left_out
        known = True
    return (passed, failed, skipped) if known else None


def read_log(outputs):
    for output in outputs:
        if output.get("name") == "test.log" and output.get("uri", "").startswith("file://"):
            path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
            try:
                with open(path, encoding="utf-8", errors="replace") as log:
                    return log.read()
            except OSError:
                return ""
    return ""


def count_result(status, text):
    """Cases of one target (one shard, one run) that ended with this status and this log."""
    passed, failed, skipped = count_log(text) or (1 if status in ("PASSED", "FLAKY") else 0, 0, 0)
    if status not in ("PASSED", "FLAKY") and failed == 0:
        failed = 1
    return passed, failed, skipped


def summarise(events):
    """Returns the totals over the lines of an event file, and the labels of targets with a failure."""
    results = {}
    built = {}
    summarised = {}
    for line in events:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # Bazel was stopped in the middle of a line.
        key = event.get("id", {})
        if "testResult" in key and "testResult" in event:
            which = key["testResult"]
            # The last attempt of a flaky test is the one that counts.
            results[(which["label"], which.get("shard"), which.get("run"))] = event["testResult"]
        elif "targetCompleted" in key:
            # An aborted target has no "completed" field, one that does not build no "success".
            built[key["targetCompleted"]["label"]] = event.get("completed", {}).get("success", False)
        elif "testSummary" in key and "testSummary" in event:
            summarised[key["testSummary"]["label"]] = event["testSummary"].get("overallStatus")
    total = [0, 0, 0]
    bad = set()
    for (label, _, _), result in results.items():
        status = result.get("status", "NO_STATUS")
        counts = count_result(status, read_log(result.get("testActionOutput", [])))
        total = [a + b for a, b in zip(total, counts)]
        if counts[1]:
            bad.add(label)
    with_result = {label for (label, _, _) in results}
    unbuilt = {label for label, success in built.items() if not success}
    without_result = {label for label in summarised if label not in with_result}
    for label in (unbuilt | without_result) - with_result:
        total[1] += 1
        bad.add(label)
    return total, sorted(bad)


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    with open(arguments[1], encoding="utf-8", errors="replace") as events:
        (passed, failed, skipped), bad = summarise(events)
    if failed == 0 and arguments[2] != "0":
        failed = 1  # Something else went wrong, such as a BUILD file that cannot be read.
    for label in bad:
        print("failed:", label)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
