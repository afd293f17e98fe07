#!/usr/bin/env python3
"""`prunerc report`: its JSON, and a page that is well formed, complete in itself and free of what records smuggle in."""

import html.parser
import json
import os
import re
import sqlite3

import command
import pages

SCRIPT = "</script><script>alert(1)</script><!--"


class Page(html.parser.HTMLParser):
    """Checks that every element is closed in order, and collects attributes and texts of scripts."""

    EMPTY = {"meta", "link", "input", "br", "hr", "img"}

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.faults = []
        self.elements = []
        self.texts = {}
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def handle_comment(self, data):
        self.faults.append(f"a comment: {data}")

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


class Report(command.CommandTest):
    def tune(self):
        pages.tune_once(self, "dense", self.tune_more)

    def tune_more(self, *more):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "4", "--threads", "1", "--quiet", *more)

    def report(self, *arguments):
        result = self.prunerc("report", *arguments, "-o", "report.html", "--json")
        with open(self.path("report.html"), encoding="utf-8") as file:
            return result.json(), file.read()

    def num_records(self):
        return sqlite3.connect(self.db).execute("SELECT COUNT(*) FROM record").fetchone()[0]

    def test_json_has_every_trial_and_what_explains_the_best(self):
        self.tune()
        found, _ = self.report(self.ops, "--op", "dense")
        self.assertEqual("prunerc.report/1", found["schema"])
        (op,) = found["operators"]
        self.assertEqual("dense", op["op"])
        self.assertEqual(1, op["threads"])
        self.assertEqual(self.num_records(), len(op["trials"]))
        best = self.prunerc("db", "best").out
        self.assertEqual(int(re.search(r"record (\d+) of", best)[1]), op["best"]["record"])
        self.assertIn(op["best"]["verified"], best)
        times = [t["ns"] for t in op["trials"] if t["status"] == "ok"]
        self.assertGreaterEqual(op["best"]["ns"], min(times))
        self.assertEqual(sorted(t["seconds"] for t in op["trials"]), [t["seconds"] for t in op["trials"]])
        self.assertTrue(all(t["predicted_ns"] > 0 for t in op["trials"] if t["status"] == "ok"))
        self.assertTrue(-1 <= op["rank_correlation"] <= 1)
        self.assertIn("arithmetic", [roof["unit"] for roof in op["roofs"]])
        self.assertTrue(0 < op["best"]["limit_fraction"] <= 1)
        schedule = op["schedule"]
        self.assertIn("core", [part["part"] for nest in schedule["estimate"]["nests"] for part in nest["parts"]])
        self.assertEqual("assembly", schedule["code_kind"])
        self.assertRegex("\n".join(schedule["code"]["lines"]), r"\tret")
        self.assertEqual(schedule["loop"]["instructions"], sum(m["count"] for m in schedule["loop"]["mix"]))
        # With the operator at hand its names are known.
        self.assertIn("bias", "\n".join(schedule["program"]["lines"]))

    def test_a_record_is_shown_by_its_number_and_all_operators_without_one(self):
        self.tune()
        self.tune_more("-D", "M=8")
        found, _ = self.report()
        self.assertEqual(["", "M=8"], [op["bindings"] for op in found["operators"]])
        asked = found["operators"][1]["trials"][0]["record"]
        (op,) = self.report(str(asked))[0]["operators"]
        self.assertEqual((asked, True), (op["best"]["record"], op["best"]["asked_for"]))
        (op,) = self.report(self.ops, "--op", "dense", "-D", "M=8")[0]["operators"]
        self.assertEqual("M=8", op["bindings"])

    def test_integer_work_is_rated_as_such_and_has_no_limit_of_floats(self):
        text = "op sum8(A: i8[64,256], B: i8[256]) -> (C: i32[64]) { C[i] = sum[k] i32(A[i,k]) * i32(B[k]); }"
        with open(self.path("sum8.prn"), "w", encoding="utf-8") as file:
            file.write(text)
        self.prunerc("tune", "sum8.prn", "--trials", "2", "--threads", "1", "--quiet")
        (op,) = self.report("sum8.prn")[0]["operators"]
        self.assertEqual("GOP/s", op["rate_unit"])
        self.assertGreaterEqual(op["ops"], 2 * 64 * 256)
        self.assertAlmostEqual(op["ops"] / op["best"]["ns"], op["best"]["gops"], delta=1e-4 * op["best"]["gops"])
        self.assertNotIn("arithmetic", [roof["unit"] for roof in op["roofs"]])

    def test_imported_times_are_shown_as_claims(self):
        self.tune()
        self.prunerc("db", "export", "rows.jsonl")
        os.remove(self.db)
        self.prunerc("db", "import", "rows.jsonl")
        (op,) = self.report()[0]["operators"]
        self.assertTrue(all(trial["imported"] for trial in op["trials"]))
        self.assertEqual(0, op["ranked"])
        asked = op["trials"][0]["record"]
        (op,) = self.report(str(asked))[0]["operators"]
        self.assertTrue(op["best"]["imported"])

    def test_the_page_is_well_formed_and_asks_nothing_of_a_network(self):
        self.tune()
        found, text = self.report(self.ops, "--op", "dense")
        page = Page(text)
        self.assertEqual([], page.faults)
        self.assertNotRegex(text, r"\w+://")
        for _, attributes in page.elements:
            self.assertFalse({"src", "srcset", "action", "onload", "style"} & attributes.keys(), attributes)
        (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http", policy)
        # What the page draws is what --json prints.
        self.assertEqual(found, json.loads(page.texts["script"][0]))
        self.assertNotIn(self.folder, text)

    def test_what_records_hold_stays_text(self):
        self.tune()
        with sqlite3.connect(self.db) as database:
            for column in ("name", "op_text", "bindings"):
                database.execute(f"UPDATE task SET {column} = ?", [column + SCRIPT])
            for column in ("sketch", "version", "timer"):
                database.execute(f"UPDATE record SET {column} = ?", [column + SCRIPT])
        found, text = self.report()
        self.assertEqual("name" + SCRIPT, found["operators"][0]["op"])
        self.assertEqual("timer" + SCRIPT, found["operators"][0]["best"]["timer"])
        page = Page(text)
        self.assertEqual([], page.faults)
        self.assertEqual(2, len(page.all("script")))
        self.assertEqual(found, json.loads(page.texts["script"][0]))

    def test_folders_of_users_do_not_leave_the_machine(self):
        self.tune()
        with sqlite3.connect(self.db) as database:
            database.execute("UPDATE task SET op_text = '// from /home/someone/secret/dense.prn'")
            database.execute("UPDATE record SET timer = 'the clock in (/home/someone/clock)'")
        found, text = self.report()
        self.assertNotIn("someone", text)
        self.assertEqual("// from dense.prn", found["operators"][0]["text"])
        self.assertEqual("the clock in (clock)", found["operators"][0]["best"]["timer"])

    def test_failures_come_with_their_messages(self):
        self.tune()
        lines = pages.with_failures(self.prunerc("db", "export", "-").out)
        self.prunerc("db", "import", self.write("failed.jsonl", lines), "--db", "failed.sqlite")
        (op,) = self.report("--db", "failed.sqlite")[0]["operators"]
        self.assertIsNone(op["best"])
        self.assertIsNone(op["schedule"])
        (failure,) = op["failures"]
        self.assertEqual(("timeout", len(op["trials"])), (failure["status"], failure["count"]))
        self.assertEqual([{"text": "ran for 10 s", "count": failure["count"]}], failure["messages"])

    def test_a_missing_record_says_what_to_do(self):
        for arguments, what in (((self.ops, "--op", "dense"), "no record of dense in"), (("12345",), "no record 12345 in"),
                                ((), "no record in")):
            result = self.prunerc("report", *arguments, "-o", "report.html", expect=6)
            self.assertIn(what, result.err)
            self.assertIn("hint: `prunerc tune FILE`", result.err)
        self.tune()
        result = self.prunerc("report", self.ops, "--op", "dense", "--threads", "7", "--json", expect=6)
        self.assertIn("for 7 thread(s)", result.err)
        # Of several operators those that have records are shown, and the others named.
        found, _ = self.report(self.ops)
        self.assertEqual(["dense"], [op["op"] for op in found["operators"]])
        self.assertEqual(["linear", "scale", "total", "widen"], found["missing"])

    def test_a_wrong_command_line_is_refused(self):
        self.assertIn("-o", self.prunerc("report", self.ops, expect=2).err)
        self.assertIn("--op", self.prunerc("report", "--op", "dense", "--json", expect=2).err)
        self.prunerc("report", "none.prn", "--json", expect=5)
        self.prunerc("report", "--json", "--db", "none/at/all.sqlite", expect=5)


if __name__ == "__main__":
    command.main()
