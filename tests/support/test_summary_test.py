#!/usr/bin/env python3
"""What tools/build/test_summary.py makes of logs and of Bazel's events."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "build"))
import test_summary


class Logs(unittest.TestCase):
    def test_catch_logs_are_counted_by_case(self):
        self.assertEqual(test_summary.count_log("All tests passed (7 assertions in 2 test cases)\n"), (2, 0, 0))
        self.assertEqual(test_summary.count_log("All tests passed (1 assertion in 1 test case)\n"), (1, 0, 0))
        self.assertEqual(test_summary.count_log("test cases: 5 | 3 passed | 2 failed\n"), (3, 2, 0))
        self.assertEqual(test_summary.count_log("test cases: 12 | 11 passed | 1 failed as expected\n"), (12, 0, 0))

    def test_unittest_logs_are_counted_by_case(self):
        self.assertEqual(test_summary.count_log("Ran 11 tests in 0.1s\n\nOK\n"), (11, 0, 0))
        self.assertEqual(test_summary.count_log("Ran 3 tests in 0.1s\n\nOK (skipped=1)\n"), (2, 0, 1))
        self.assertEqual(test_summary.count_log("Ran 4 tests in 1s\n\nFAILED (failures=1, errors=2)\n"), (1, 3, 0))

    def test_our_own_form_is_read_back(self):
        self.assertEqual(test_summary.count_log("4 passed, 1 failed\n"), (4, 1, 0))
        self.assertEqual(test_summary.count_log("4 passed, 1 failed, 2 skipped\n"), (4, 1, 2))

    def test_a_log_that_does_not_say_is_one_case(self):
        self.assertIsNone(test_summary.count_log("it went well\n"))
        self.assertEqual(test_summary.count_result("PASSED", "it went well\n"), (1, 0, 0))
        self.assertEqual(test_summary.count_result("FAILED", ""), (0, 1, 0))

    def test_a_crash_after_the_last_line_is_a_failure(self):
        log = "All tests passed (7 assertions in 2 test cases)\n"
        self.assertEqual(test_summary.count_result("FAILED", log), (2, 1, 0))
        self.assertEqual(test_summary.count_result("TIMEOUT", log), (2, 1, 0))


class Events(unittest.TestCase):
    def summarise(self, *events):
        return test_summary.summarise([json.dumps(event) for event in events])

    def result(self, label, status, log):
        with tempfile.NamedTemporaryFile("w", suffix=".log", delete=False) as file:
            file.write(log)
        self.addCleanup(os.remove, file.name)
        outputs = [{"name": "test.log", "uri": "file://" + file.name}]
        return {
            "id": {"testResult": {"label": label, "run": 1, "shard": 1}},
            "testResult": {"status": status, "testActionOutput": outputs},
        }

    def test_cases_of_all_targets_are_added_up(self):
        total, bad = self.summarise(
            self.result("//a:a", "PASSED", "All tests passed (7 assertions in 2 test cases)\n"),
            self.result("//b:b", "FAILED", "test cases: 5 | 3 passed | 2 failed\n"),
        )
        self.assertEqual(total, [5, 2, 0])
        self.assertEqual(bad, ["//b:b"])

    def test_a_target_that_does_not_build_is_one_failure(self):
        total, bad = self.summarise({"id": {"targetCompleted": {"label": "//a:a"}}, "completed": {}})
        self.assertEqual((total, bad), ([0, 1, 0], ["//a:a"]))

    def test_a_built_target_without_tests_does_not_count(self):
        total, bad = self.summarise({"id": {"targetCompleted": {"label": "//a:a"}}, "completed": {"success": True}})
        self.assertEqual((total, bad), ([0, 0, 0], []))

    def test_a_test_that_never_ran_is_one_failure(self):
        total, bad = self.summarise(
            {"id": {"targetCompleted": {"label": "//a:a"}}, "completed": {"success": True}},
            {"id": {"testSummary": {"label": "//a:a"}}, "testSummary": {"overallStatus": "NO_STATUS"}},
        )
        self.assertEqual((total, bad), ([0, 1, 0], ["//a:a"]))

    def test_a_cut_off_event_file_is_read_as_far_as_it_goes(self):
        good = json.dumps(self.result("//a:a", "PASSED", "4 passed, 0 failed\n"))
        self.assertEqual(test_summary.summarise([good, good[:40]])[0], [4, 0, 0])


if __name__ == "__main__":
    unittest.main()
