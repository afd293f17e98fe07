#!/usr/bin/env python3
"""bench, verify, db, devices and doctor."""

import json
import os
import re
import shutil
import sqlite3
import unittest

import command


class Records(command.CommandTest):
    def tune(self, *more):
        return self.prunerc("tune", self.ops, "--op", "dense", "--trials", "3", *more)

    def test_bench_times_each_number_of_threads(self):
        result = self.prunerc("bench", self.ops, "--op", "dense", "--threads", "1,2", "--samples", "5", "--json").json()
        self.assertEqual("prunerc.bench/1", result["schema"])
        self.assertEqual([1, 2], [row["threads"] for row in result["rows"]])
        for row in result["rows"]:
            self.assertEqual("heuristic", row["schedule"])
            self.assertGreater(row["median_ns"], 0)
            self.assertGreater(row["gflops"], 0)
            # Fewer if other work keeps taking the CPU.
            self.assertGreaterEqual(len(row["samples_ns"]), 1 if row["noisy"] else 5)
        table = self.prunerc("bench", self.ops, "--op", "dense", "--threads", "1").out
        self.assertRegex(table, r"\ndense +1 heuristic +[0-9.]+ [nu]s")

    def test_bench_prefers_the_record_unless_told_otherwise(self):
        self.tune("--threads", "1")
        arguments = ["bench", self.ops, "--op", "dense", "--threads", "1", "--samples", "5", "--json"]
        self.assertEqual("record", self.prunerc(*arguments).json()["rows"][0]["schedule"])
        self.assertEqual("heuristic", self.prunerc(*arguments, "--heuristic").json()["rows"][0]["schedule"])
        self.assertEqual("flushed", self.prunerc(*arguments, "--cold").json()["cache"])

    def test_a_store_of_the_first_schema_is_brought_up_to_date(self):
        self.tune()
        with sqlite3.connect(self.db) as db:
            (schema,) = db.execute("pragma user_version").fetchone()
            db.execute("delete from record")
            db.execute("drop table derived")
            first = ("id task fingerprint sketch trace status median_ns spread samples build_s measure_s verify_s detail "
                     "evidence platform timer seed version created checksum").split()
            for (name,) in db.execute("select name from pragma_table_info('record')").fetchall():
                if name not in first:
                    db.execute(f"alter table record drop column {name}")
            db.execute("pragma user_version = 1")
        self.assertRegex(self.prunerc("db", "stats").out, r"(?m)^damaged +0$")
        self.tune()
        self.prunerc("db", "validate")
        with sqlite3.connect(self.db) as db:
            self.assertEqual((schema,), db.execute("pragma user_version").fetchone())
            self.assertLess(0, db.execute("select count(*) from record where reference_ns > 0").fetchone()[0])

    def test_verify_compares_with_the_unscheduled_program(self):
        result = self.prunerc("verify", self.ops, "--op", "dense", "--seeds", "2")
        self.assertRegex(result.out, r"^dense \(heuristic\): right on 2 of 2 inputs; \d+ outputs ")
        self.tune()
        found = self.prunerc("verify", self.ops, "--op", "dense", "--seeds", "2", "--json").json()
        self.assertEqual("prunerc.verify/1", found["schema"])
        self.assertEqual(
            [("dense", "record", "right", 2)],
            [(r["op"], r["schedule"], r["verdict"], r["seeds"]) for r in found["results"]],
        )

    def test_verify_takes_a_whole_database(self):
        self.tune()
        self.tune("-D", "M=8")
        result = self.prunerc("verify", self.db, "--seeds", "1")
        self.assertEqual(2, len(re.findall(r"^dense \(record \d+\): right", result.out, re.M)))
        self.prunerc("verify", self.path("other.sqlite"), expect=5)
        self.assertIn("dense", self.prunerc("verify", self.db, "--op", "dense", "--seeds", "1").out)
        self.assertIn("no verified record", self.prunerc("verify", self.db, "--op", "other", "--seeds", "1").err)
        for option in (["--threads", "1"], ["-D", "M=3"], ["--against", self.ops], ["-O", "1"]):
            self.assertIn(f"{option[0]}: is of an operator", self.prunerc("verify", self.db, *option, expect=2).err)

    def test_a_kernel_that_takes_too_long_is_not_checked_and_stays(self):
        self.prunerc("tune", self.ops, "--op", "dense", "--trials", "1", "--threads", "1", "-D", "M=1024,N=1024,K=1024")
        # Its run takes 10 ms or more, alone as well.
        late = self.prunerc("verify", self.db, "--seeds", "1", "--timeout", "1ms", expect=5)
        self.assertRegex(late.out, r"(?m)^dense \(record \d+\): not checked: right on 0 of 1 inputs; seed 1: took longer than 0\.003 s \(")
        self.assertNotIn("marked as wrong", late.err)
        self.assertRegex(self.prunerc("verify", self.db, "--seeds", "1", "--timeout", "1m").out, r"^dense \(record \d+\): right on 1 of 1 ")
        for option in ("soon", "0s"):
            self.assertIn("--timeout: needs a duration", self.prunerc("verify", self.db, "--timeout", option, expect=2).err)

    def exported(self):
        self.prunerc("db", "export", "out.jsonl")
        with open(self.path("out.jsonl"), encoding="utf-8") as file:
            return file.read()

    def test_records_survive_export_and_import(self):
        self.tune()
        text = self.exported()
        self.assertGreaterEqual(len(text.splitlines()), 3)
        other = self.path("copy.sqlite")
        self.assertIn("imported ", self.prunerc("db", "import", "out.jsonl", "--db", other).out)
        again = self.prunerc("db", "export", "-", "--db", other).out
        self.assertEqual(text, again.replace(',"imported":true', ""))
        again = self.prunerc("db", "import", "out.jsonl", "--db", other).out
        self.assertTrue(again.startswith("imported 0 records"), again)
        # Tuning begins with imported records, and trusts none.
        task = self.prunerc("tune", self.ops, "--op", "dense", "--trials", "1", "--db", other, "--json").json()
        self.assertEqual((0, 1), (task["reused"], task["trials"]))

    def test_an_exported_file_is_read_as_a_database(self):
        machine = ["--target", "cpu:haswell", "--threads", "1"]
        self.tune(*machine)
        self.tune(*machine, "-D", "N=8")
        self.prunerc("db", "export", "--best", "best.jsonl")
        with open(self.path("best.jsonl"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(2, len(text.splitlines()))
        arguments = [self.ops, "--op", "dense", "--db", "best.jsonl", *machine]
        compiled = self.prunerc("compile", *arguments, "--require-tuned", "-o", "dense.o")
        self.assertRegex(compiled.err, r"schedule: record; imported, equal \(.*\), in finite fields; not timed here")
        self.assertIn("dense (record): right", self.prunerc("verify", *arguments, "--seeds", "1").out)
        self.assertIn("dense", self.prunerc("db", "ls", "--db", "best.jsonl").out)
        # Of what is not in it nothing is known, and nothing is put into it.
        other = self.prunerc("compile", *arguments, "-D", "M=3", "--require-tuned", "-o", "other.o", expect=6)
        self.assertIn("no record of 'dense' for target cpu:haswell in best.jsonl", other.err)
        refused = self.prunerc("tune", *arguments, "--trials", "1", expect=2)
        self.assertIn("option --db: names a file of exported records, which are only read", refused.err)
        with open(self.path("best.jsonl"), encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_a_file_that_is_not_all_records_is_refused(self):
        self.write("mixed.jsonl", "not json\n")
        result = self.prunerc("compile", self.ops, "--op", "dense", "--db", "mixed.jsonl", "-o", "a.o", expect=1)
        self.assertIn("line 1 of 'mixed.jsonl' cannot be imported", result.err)
        self.prunerc("compile", self.ops, "--op", "dense", "--db", "missing.jsonl", "-o", "a.o", expect=5)
        self.write("empty.jsonl", "")
        result = self.prunerc("compile", self.ops, "--op", "dense", "--db", "empty.jsonl", "-o", "a.o")
        self.assertIn("schedule: heuristic", result.err)

    def test_a_line_that_is_no_record_ends_an_import_and_nothing_is_stored(self):
        self.tune()
        text = self.exported()
        self.write("mixed.jsonl", text + "not json\n" + text)
        other = self.path("b.sqlite")
        result = self.prunerc("db", "import", "mixed.jsonl", "--db", other, expect=1)
        line = len(text.splitlines()) + 1
        self.assertIn(f"error: line {line} of 'mixed.jsonl' cannot be imported: it is no JSON object", result.err)
        self.assertIn("hint: mend or remove that line; nothing of the file has been stored", result.err)
        self.assertIn("records   0\n", self.prunerc("db", "stats", "--db", other).out)
        self.prunerc("db", "import", "missing.jsonl", expect=5)

    def test_the_database_can_be_looked_into(self):
        self.prunerc("db", "best", expect=6)
        self.tune()
        self.assertRegex(self.prunerc("db", "ls").out, r"\n +1 dense +cpu/\d+ ")
        best = self.prunerc("db", "best", "--op", "dense").out
        self.assertIn("# verified: ", best)
        self.assertIn("records   ", self.prunerc("db", "stats").out)
        self.assertIn(": 0 problem(s)\n", self.prunerc("db", "validate").out)

    def test_looking_into_a_database_makes_none(self):
        result = self.prunerc("db", "ls", "--db", "typo.sqlite")
        self.assertIn("there is no typo.sqlite yet", result.err)
        self.assertEqual(["ops.prn"], os.listdir(self.folder))

    def test_a_database_that_may_only_be_read_is_read(self):
        self.tune()
        listed = self.prunerc("db", "ls").out
        shared = self.path("shared")
        os.mkdir(shared)
        shutil.copy(self.db, shared)
        database = os.path.join(shared, "db.sqlite")
        os.chmod(database, 0o444)
        os.chmod(shared, 0o555)
        self.addCleanup(os.chmod, shared, 0o755)
        self.assertEqual(listed, self.prunerc("db", "ls", "--db", database).out)
        self.assertIn("record", self.prunerc("verify", self.ops, "--op", "dense", "--db", database).out)
        self.assertEqual(["db.sqlite"], os.listdir(shared) if os.geteuid() else ["db.sqlite"])

    def test_the_cache_folder_is_its_owners(self):
        home = self.path("home")
        os.mkdir(home)
        self.prunerc("db", "ls", env=self.with_variables({"XDG_CACHE_HOME": "", "HOME": home, "PRUNERC_DB": ""}))
        self.assertEqual(0o700, os.stat(os.path.join(home, ".cache", "prunerc")).st_mode & 0o777)

    def test_damage_is_found(self):
        self.tune()
        with sqlite3.connect(self.db) as db:
            db.execute("update record set trace = trace || ' '")
        self.prunerc("db", "validate", expect=4)

    def test_devices_describe_the_machine(self):
        result = self.prunerc("devices", "--json").json()
        self.assertEqual("prunerc.devices/1", result["schema"])
        cpu = result["devices"][0]
        self.assertEqual("cpu", cpu["target"])
        self.assertEqual(f"{cpu['model']} ({cpu['llvm_cpu']})", cpu["name"])
        self.assertIn(cpu["vector_bytes"], (32, 64))
        self.assertGreater(cpu["limits"]["fma_gflops"], 1)
        self.assertGreater(cpu["limits"]["memory_gbps"], 0.1)
        self.assertIn("cpu:haswell", result["targets"])
        self.assertIn("f32 GFLOP/s", self.prunerc("devices").out)

    def test_devices_describe_a_gpu_even_if_it_cannot_be_measured(self):
        # A driver without a device takes no cubins.
        driver = os.path.abspath("tests/runtime/cuda/libfake_cuda.so")
        variables = self.with_variables({"PRUNERC_LIBCUDA": driver})
        result = self.prunerc("devices", "--json", env=variables).json()
        text = self.prunerc("devices", env=variables).out
        gpu = result["devices"][1]
        self.assertEqual(("cuda:sm_90a", "fake", 4), (gpu["target"], gpu["model"], gpu["num_sms"]))
        self.assertNotIn("limits", gpu)
        self.assertNotEqual("", gpu["not_measured"])
        self.assertIn("gpu: fake, driver 13.0", text)
        self.assertIn("not measured", text)

    def test_doctor_finds_this_machine_fit(self):
        result = self.prunerc("doctor")
        names = ("cpu", "cache folder", "database", "kernel", "C compiler", r"C\+\+ compiler", "nvrtc", "cupti", "gpu", "noise")
        for name in names:
            self.assertRegex(result.out, rf"(?m)^(ok|warning) +{name} ")

    def test_doctor_warns_of_parts_for_gpus_that_are_missing(self):
        missing = {name: "/no/such/file" for name in ("PRUNERC_NVRTC", "PRUNERC_CUPTI", "PRUNERC_LIBCUDA", "PRUNERC_CXX")}
        result = self.prunerc("doctor", env=dict(self.environment, **missing))
        for name in (r"C\+\+ compiler", "nvrtc", "cupti"):
            self.assertRegex(result.out, rf"(?m)^warning +{name} .*\n +fix: ")
        self.assertRegex(result.out, r"(?m)^ok +gpu +no CUDA device: /no/such/file")

    def test_doctor_warns_of_an_nvrtc_that_is_newer_than_the_driver(self):
        driver = os.path.abspath("tests/runtime/cuda/libfake_cuda.so")
        old = self.with_variables({"PRUNERC_LIBCUDA": driver, "CUDA_FAKE_VERSION": "8000"})
        out = self.prunerc("doctor", env=old).out
        if re.search(r"(?m)^ok +nvrtc ", out):
            self.assertRegex(out, r"(?m)^warning +gpu +fake\n +fix: the driver knows CUDA 8\.0, NVRTC of CUDA 1\d\.0 ")

    def test_doctor_names_what_is_broken_and_how_to_mend_it(self):
        path = self.write("garbage.sqlite", "no database " * 100)
        result = self.prunerc("doctor", "--db", path, expect=5)
        self.assertRegex(result.out, r"(?m)^failed +database .*\n +fix: ")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_doctor_wants_a_cache_folder(self):
        environment = dict(self.environment, XDG_CACHE_HOME="/proc")
        self.assertRegex(self.prunerc("doctor", expect=5, env=environment).out, r"(?m)^failed +cache folder")


if __name__ == "__main__":
    command.main()
