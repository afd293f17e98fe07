#!/usr/bin/env python3
"""What is read from results, which claim it belongs to, and the tables that are made of it."""

import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "rival")]
import claims
import published
import judge
import layouts
import limits
import rows as results
import tables


def row(name, value=1.0, unit="", goal=None, note=""):
    return {"name": name, "value": value, "unit": unit, "goal": goal, "note": note}


FACTS = {"machine": "a machine", "date": "2026-11-23", "commit": "0123456789ab", "seeds": [1]}


def file_of(*rows, bench="draft", **facts):
    return json.dumps({"bench": bench, **FACTS, **facts, "rows": rows}, indent=1)


def rows_of(*rows):
    return results.parse(file_of(*rows)).rows


def just(value):
    return results.Point(value, value, value)


# Claims whose measurement is described and not yet run.
UNMEASURED = set()


class Reading(unittest.TestCase):
    def rejects(self, content, reason):
        with self.assertRaises(results.Damaged) as caught:
            results.parse(content)
        self.assertIn(reason, str(caught.exception))

    def test_rows_keep_their_fields_and_order(self):
        read = results.parse(file_of(row("b", 2, "ms", 3, "one"), row("a", None)))
        self.assertEqual(("draft", "a machine"), (read.bench, read.machine))
        self.assertEqual([results.Row("b", 2.0, "ms", 3.0, "one"), results.Row("a", None)], list(read.rows.values()))

    def test_a_short_name_of_a_machine_is_that_of_its_cpu(self):
        for machine, short in (("AMD EPYC, 2 threads (znver5)", "znver5"), ("Xeon, 2 threads (icelake-server)", "icelake-server"), ("H100", "H100")):
            self.assertEqual(short, results.parse(file_of(machine=machine)).short_machine())

    def test_machine_date_commit_and_seeds_are_wanted(self):
        self.rejects(file_of(machine=""), "names no machine")
        self.rejects(file_of(date="yesterday"), "names no date")
        self.rejects(file_of(date=20261123), "date is not a text")
        self.rejects(file_of(commit=""), "names no commit")
        for seeds in ([], 3, ["1"], [True], None):
            self.rejects(file_of(seeds=seeds), "names no seeds")

    def test_no_beginning_of_a_file_is_read(self):
        content = file_of(row("top1/pacm", 0.9, note="0.8 to 1.0"), bench="costmodel").rstrip()
        for length in range(len(content)):
            with self.assertRaises(results.Damaged, msg=content[:length]):
                results.parse(content[:length])

    def test_what_is_no_result_is_rejected(self):
        self.rejects("[]", "no results of a benchmark")
        self.rejects("3", "no results of a benchmark")
        self.rejects('{"rows": []}', "no results of a benchmark")
        self.rejects('{"bench": 1, "rows": []}', "no results of a benchmark")
        self.rejects('{"bench": "draft"}', "rows are missing")
        self.rejects('{"bench": "draft", "rows": {}}', "rows are missing")
        self.rejects('{"bench": "draft", "machine": 7, "rows": []}', "machine is not a text")
        self.rejects("[" * 100_000, "no JSON")

    def test_damaged_rows_are_rejected_by_name(self):
        self.rejects(file_of([]), "row 0 has no name or value")
        self.rejects(file_of({"name": "x"}), "row 0 has no name or value")
        self.rejects(file_of({"value": 1}), "row 0 has no name or value")
        self.rejects(file_of(row("x"), row(3)), "row 1 has no name or value")
        self.rejects(file_of(row("x"), row("x", 2)), "row 1, x: is there twice")
        self.rejects(file_of(row("x", note=5)), "row 0, x: note is not a text")
        self.rejects(file_of(row("x", unit=None)), "row 0, x: unit is not a text")
        self.rejects(file_of(row("x", goal="3")), "row 0, x: goal is not a number")

    def test_values_that_are_no_numbers_are_rejected(self):
        for value in ("0.5", True, [], {}, float("nan"), float("inf"), 10**400):
            with self.subTest(value=value):
                self.rejects(file_of(row("x", value)), "row 0, x: value is not a number")
        self.rejects(file_of(row("x")).replace("1.0", "1e999"), "value is not a number")

    def test_files_that_cannot_be_read_are_rejected(self):
        with self.assertRaises(results.Damaged):
            results.read(os.path.join(HERE, "no_such_file.json"))
        with tempfile.NamedTemporaryFile(dir=os.environ.get("TEST_TMPDIR")) as file:
            file.write(b'{"bench": "\xff"}')
            file.flush()
            with self.assertRaises(results.Damaged):
                results.read(file.name)

    def test_goals_are_lower_limits_but_of_times_and_shares(self):
        self.assertTrue(results.Row("top1/pacm", 0.93, goal=0.92).meets_goal())
        self.assertFalse(results.Row("top1/pacm", 0.91, goal=0.92).meets_goal())
        self.assertIsNone(results.Row("top1/pacm", 0.91).meets_goal())
        self.assertFalse(results.Row("top1/pacm", None, goal=0.92).meets_goal(), "no number meets no goal")
        for name in ("infer_512_ms", "update_2000_s", "net_overhead/pruner", "net_wall/pruner", "overhead/ansor",
                     "draft_50000_s/cpu/gemm"):
            with self.subTest(name=name):
                self.assertTrue(results.Row(name, 1, goal=2).meets_goal())
                self.assertFalse(results.Row(name, 3, goal=2).meets_goal())

    def test_of_faults_any_is_too_many_and_of_planted_ones_none_may_be_missed(self):
        for name in ("false_alarms", "mutants_accepted", "above_bound_23", "right_refused", "strays_missed", "fpv_twins_not_equal", "hostile_crash",
                     "found_where_none_is", "gain/relu_between"):
            with self.subTest(name=name):
                self.assertEqual((True, False), (results.Row(name, 0, goal=0).meets_goal(), results.Row(name, 1, goal=0).meets_goal()))
        for name in ("hostile_control", "winners_control", "orphan_control", "violations_caught/x", "gain/chain3"):
            with self.subTest(name=name):
                self.assertEqual((True, False), (results.Row(name, 6, goal=6).meets_goal(), results.Row(name, 5, goal=6).meets_goal()))

    def test_a_file_may_say_that_a_goal_is_an_upper_limit(self):
        (read,) = rows_of(dict(row("new", 3, goal=2), at_most=True)).values()
        self.assertEqual((True, False), (read.at_most, read.meets_goal()))

    def test_a_missed_aim_is_said(self):
        ((_, table),) = layouts.as_rows({"x": results.parse(file_of(row("derive_worst", 12, goal=10), row("speed/a", 12, goal=10), row("b", 1)))})
        self.assertEqual(["10, missed", "10", ""], [line[3] for line in table[1:]])

    def test_the_first_range_of_a_note_is_the_rows(self):
        self.assertEqual(results.Point(0.9, 0.88, 0.93), results.point(results.Row("x", 0.9, note="0.88 to 0.93")))
        self.assertEqual(results.Point(0.0, -0.01, 0.02),
                         results.point(results.Row("x", 0.0, note="95 %: -0.010 to +0.020, 3 to 4 pairs")))
        self.assertEqual(just(0.5), results.point(results.Row("x", 0.5, note="nan to nan, to 78 % of the limit")))

    def test_a_mean_may_lie_outside_of_the_quartiles(self):
        row = results.Row("x", 0.9, note="quartiles 0.48 to 0.85")
        self.assertEqual(results.Point(0.9, 0.48, 0.85), results.stated(row))
        self.assertEqual(results.Point(0.9, 0.48, 0.9), results.point(row))

    def test_no_range_ends_short_of_its_value(self):
        rng = random.Random(1)
        for _ in range(300):
            value, a, b = (rng.uniform(-2, 2) for _ in range(3))
            point = results.point(results.Row("x", value, note=f"95 %: {min(a, b):+.3f} to {max(a, b):+.3e}"))
            self.assertLessEqual(point.low, point.value)
            self.assertGreaterEqual(point.high, point.value)


class Views(unittest.TestCase):
    def test_nothing_comes_of_no_rows(self):
        for view in (results.rates, results.draft_quality, results.penalties, results.accuracy, results.differences,
                     results.pruning, results.transfer, results.transfer_searches):
            with self.subTest(view=view.__name__):
                self.assertEqual({}, view({}))
                self.assertEqual({}, view(rows_of(row("corpus_rows"), row("top1/"), row("/"), row("best1_at_x/conv"))))

    def test_rows_without_a_value_are_left_out(self):
        self.assertEqual({}, results.accuracy(rows_of(row("top1/pacm", None))))
        self.assertEqual({}, results.values(rows_of(row("regret/all", None)), "regret"))

    def test_rates_stand_beside_those_of_programs(self):
        rows = rows_of(row("draft_per_s/cpu/gemm/pack+block", 3e6), row("programs_per_s/cpu/gemm", 5e3), row("derive_ms/cpu/gemm"))
        self.assertEqual({"cpu/gemm": {"pack+block": 3e6, "programs": 5e3}}, results.rates(rows))

    def test_draft_quality_reads_other_analyzers_from_the_note(self):
        note = "95 %: 0.96 to 0.99; release 0.900, paper 0.910, calibrated 0.985, random 0.800"
        rows = rows_of(row("best1_at_128/conv", 0.98, note=note), row("best5_at_128/conv"), row("best1_at_128/task/conv_3x3"),
                       row("best1_at_128_release/conv", 0.9, note="95 %: 0.85 to 0.92"))
        found = results.draft_quality(rows)
        self.assertEqual(["conv"], list(found))
        self.assertEqual({128: results.Point(0.98, 0.96, 0.99)}, found["conv"]["prunerc"])
        self.assertEqual({128: results.Point(0.9, 0.85, 0.92)}, found["conv"]["release"])
        self.assertEqual({128: just(0.8)}, found["conv"]["random"])

    def test_penalties_are_means_over_classes(self):
        rows = rows_of(row("best1_at_128_without/paper/waves/conv", 0.7, note="with it 0.8; @512 without 0.9, with 1.0"),
                       row("best1_at_128_without/paper/waves/gemm", 0.7, note="with it 0.8; @512 without 0.5, with 0.8"),
                       row("best1_at_128_without/paper/warps/gemm", 0.7, note="cut off"))
        self.assertEqual(["waves"], list(results.penalties(rows)["paper"]))
        without, whole = results.penalties(rows)["paper"]["waves"]
        self.assertAlmostEqual(0.7, without)
        self.assertAlmostEqual(0.9, whole)

    def test_accuracy_and_differences_do_not_mix(self):
        rows = rows_of(row("top1/pacm", 0.9), row("top1/pacm@30%", 0.8), row("pairwise/tenset-mlp", 0.7),
                       row("top1/pacm_less_xgb", 0.1, note="95 %: +0.05 to +0.15, 9 pairs"), row("top1/pacm_less_xgb/conv", -0.1))
        self.assertEqual({"top1": {"pacm": {100: just(0.9), 30: just(0.8)}}, "pairwise": {"tenset-mlp": {100: just(0.7)}}},
                         results.accuracy(rows))
        self.assertEqual({"top1": {"xgb": {"all": results.Point(0.1, 0.05, 0.15), "conv": just(-0.1)}}},
                         results.differences(rows))

    def test_pruning_counts_what_is_removed(self):
        rows = rows_of(row("pairwise_pruned/all", 0.9), row("pairwise_pruned/quantile@55%", 0.8), row("pruned_fraction", 0.45))
        self.assertEqual({"pairwise": {"all": {0: just(0.9)}, "quantile": {45: just(0.8)}}}, results.pruning(rows))

    def test_transfer_splits_names_with_slashes(self):
        rows = rows_of(row("top1/x86-64-v3/1_to_znver5/1/warm@16", 0.8), row("pairwise/znver5/1_to_x86-64-v3/1/moa@0", 0.7))
        self.assertEqual({("x86-64-v3/1", "znver5/1"): {"top1": {"warm": {16: just(0.8)}}},
                          ("znver5/1", "x86-64-v3/1"): {"pairwise": {"moa": {0: just(0.7)}}}}, results.transfer(rows))
        self.assertEqual({}, results.accuracy(rows))

    def test_searches_after_a_transfer_are_by_trials(self):
        rows = rows_of(row("tuned/x86-64-v3/1_to_znver5/1/moa@20", 0.9, note="0.850 to 0.940; 8 tasks a seed"),
                       row("top1/x86-64-v3/1_to_znver5/1/moa@16", 0.8))
        self.assertEqual({("x86-64-v3/1", "znver5/1"): {"moa": {20: results.Point(0.9, 0.85, 0.94)}}},
                         results.transfer_searches(rows))

    def test_gains_are_by_baseline_and_strategy(self):
        rows = rows_of(row("speedup_own/pruner_vs_ansor", 2.0), row("speedup_own/moa-pruner-paper_vs_tlp-offline", 1.0),
                       row("speedup/pruner_vs_ansor", 9.0), row("trials_own/pruner_vs_ansor+heuristics", 7.0))
        self.assertEqual({"ansor": {"pruner": 2.0}, "tlp-offline": {"moa-pruner-paper": 1.0}}, results.beside_baselines(rows, "speedup_own"))
        self.assertEqual({"ansor+heuristics": {"pruner": 7.0}}, results.beside_baselines(rows, "trials_own"))
        self.assertEqual({}, results.beside_baselines(rows, "final"))

    def test_curves_are_by_strategy(self):
        rows = rows_of(row("curve/ansor+heuristics@20", 0.9, note="quartiles 0.850 to 0.940, 40 searches"), row("curve_s/ansor@2.5", 0.8))
        self.assertEqual({"ansor+heuristics": {20.0: results.Point(0.9, 0.85, 0.94)}}, results.search_curves(rows, "curve"))
        self.assertEqual({"ansor": {2.5: just(0.8)}}, results.search_curves(rows, "curve_s"))

    def test_searches_with_an_equal_start_stand_apart_and_losses_are_marked(self):
        note = "geometric mean of 8 operators, quartiles 0.60 to 1.90; {} start; 3 of 40 searches never"
        rows = [row(f"{name}/pruner_vs_{baseline}", 0.9, note=note.format(start))
                for name in ("speedup_own", "trials_own", "speedup_near", "trials_near", "speedup", "trials", "final")
                for baseline, start in (("ansor", "unequal"), ("ansor+checkpoint", "equal"))]
        read = results.parse(file_of(*rows, bench="costmodel"))
        equal, unequal = layouts.gains(read, True), layouts.gains(read, False)
        self.assertEqual((["pruner", "ansor+checkpoint"], ["pruner", "ansor"]), (equal[1][:2], unequal[1][:2]))
        self.assertEqual((2, 2), (len(equal), len(unequal)))
        self.assertEqual("0.9 (0.6 to 1.9) x ▼", equal[1][2])
        self.assertEqual(["0.900 x ▼", "3 of 40"], equal[1][-2:])


class Claims(unittest.TestCase):
    def test_a_row_belongs_to_one_claim(self):
        for bench, name, owner in (
            ("draft", "draft_per_s/gpu/conv2d/gpu+row per thread (exhausted)", "draft_throughput"),
            ("draft", "best20_at_64/softmax", "draft_quality"),
            ("draft", "best1_at_128/task/conv_3x3", "draft_quality"),
            ("draft", "best1_at_128_without/paper/memory/conv", "draft_quality"),
            ("draft", "regret/conv_3x3/no_quotas", "ablation"),
            ("draft", "net_time_own/pruner-untrained", "resnet50"),
            ("draft", "net_wall/pruner", "resnet50"),
            ("gpu", "time/softmax_4096/compile", "gpu"),
            ("gpu", "limit/launch_ns", "gpu"),
            ("gpu", "tuned/matvec_8192", "gpu"),
            ("gpu_host", "sass/softmax_4096/cuda:h100", "cubins"),
            ("draft", "first8/gemm_square", "o1"),
            ("draft", "geomean/o1_speed", "o1"),
            ("costmodel", "top5/pacm-paper@10%", "model_accuracy"),
            ("costmodel", "pairwise/pacm_less_tlp/depthwise", "model_accuracy"),
            ("costmodel", "update_2000_s", "model_speed"),
            ("costmodel", "top1_pruned/all", "data_pruning"),
            ("costmodel", "top1/znver5/1_to_x86-64-v3/1/moa-paper@64", "transfer"),
            ("costmodel", "tuned/znver5/1_to_x86-64-v3/1/warm@150", "transfer"),
            ("costmodel", "curve_s/ansor+heuristics@20", "searches"),
            ("costmodel", "final/pruner-untrained_vs_tenset-offline", "searches"),
            ("costmodel", "overhead/pruner", "searches"),
            ("costmodel", "frozen/top1/built-in_less_tlp@20000", "frozen_models"),
            ("costmodel", "top1/pacm-paper/all_less_no_flow", "model_ablation"),
            ("algebra", "gain/lora_merged", "algebra_find"),
            ("algebra", "prune/7/fewer", "algebra_prune"),
            ("algebra", "mutants_accepted_167", "algebra_bound"),
            ("algebra", "speed/chain3", "algebra_speed"),
            ("algebra", "auto/resnet50/fc", "algebra_networks"),
            ("algebra", "auto_geomean/bert_base", "algebra_networks"),
            ("cpu", "algebra/chain3/t1/ratio", "algebra_peers"),
            ("cpu", "geomean/algebra/t1/ratio", "algebra_peers"),
        ):
            with self.subTest(name=name):
                owners = [claim.name for claim in claims.CLAIMS if claim.bench == bench and claim.has(name)]
                self.assertEqual([owner], owners)

    def test_each_claim_has_a_layout_and_a_file_of_its_benchmark(self):
        self.assertEqual({claim.name for claim in claims.CLAIMS}, set(layouts.LAYOUTS))
        files = tables.read_all(HERE)
        for claim in claims.CLAIMS:
            with self.subTest(claim=claim.name):
                self.assertEqual(set(), {read.bench for read in tables.files_of(claim, files).values()} - {claim.bench})
            self.assertLessEqual({name for name, _ in claim.others}, set(tables.files_of(claim, files)) - {claim.name})
        self.assertLessEqual({claim.name for claim in claims.CLAIMS if not tables.files_of(claim, files)}, UNMEASURED, "others are measured")

    def test_kernels_of_others_say_something_and_who_said_it(self):
        head, *lines = published.PUBLISHED_KERNELS
        for line in lines:
            with self.subTest(kernel=line[0]):
                self.assertEqual(len(head), len(line))
                self.assertTrue(any(line[1:-1]) and line[-1])

    def test_every_command_stands_on_the_page(self):
        page = tables.read_text(os.path.join(HERE, "README.md"))
        o1 = next(claim for claim in claims.CLAIMS if claim.name == "o1")
        self.assertEqual(4, len(o1.commands()))
        self.assertIn("--only o1 --o1-operators tools/std/nets/resnet50.prn --o1-trials 128 --json tests/bench/results/o1-resnet50.json", o1.commands()[1])
        for claim in claims.CLAIMS:
            self.assertEqual([], [command for command in claim.commands() if f"    {command}\n" not in page])


class Paper(unittest.TestCase):
    SCRIPT = os.path.join(HERE, "..", "paper", "paper.py")

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, self.SCRIPT, *arguments], capture_output=True, text=True)

    def test_without_arguments_it_lists_every_claim(self):
        out = self.run_it().stdout
        for claim in claims.CLAIMS:
            self.assertIn(f"\n{claim.name}: {claim.title}\n", "\n" + out)
            self.assertIn(f"  {claim.command()}\n", out)

    def test_all_names_every_file_and_what_is_not_measured(self):
        lines = [line.split("  ")[0] for line in self.run_it("--all").stdout.splitlines()]
        self.assertEqual({claim.name for claim in claims.CLAIMS}, set(lines) - {"claim"})
        out = self.run_it("--all").stdout
        for name, read in tables.read_all(HERE).items():
            (line,) = (line for line in out.splitlines() if f" {name}.json " in line)
            for cell in (read.machine, read.date, read.commit, tables.seeds_text(read.seeds)):
                self.assertIn(cell, line)

    def test_a_network_wants_models(self):
        done = self.run_it("network")
        self.assertEqual((2, True), (done.returncode, "wants models" in done.stderr), done.stderr)

    def test_an_unknown_claim_is_named(self):
        done = self.run_it("nothing")
        self.assertEqual((2, True), (done.returncode, "no claim 'nothing'" in done.stderr))


class Tables(unittest.TestCase):
    """On a copy of the results, with one thing changed."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        for path in glob.glob(os.path.join(HERE, "*.json")) + glob.glob(os.path.join(HERE, "*.md")):
            shutil.copyfile(path, os.path.join(self.folder, os.path.basename(path)))

    def change(self, name, old, new):
        path = os.path.join(self.folder, name)
        content = tables.read_text(path)
        self.assertIn(old, content)
        tables.write(path, content.replace(old, new, 1))

    def refused(self, reason):
        with self.assertRaises(tables.Refused) as caught:
            tables.check(self.folder, [])
        self.assertIn(reason, str(caught.exception))

    def test_the_page_is_what_the_files_say(self):
        self.assertEqual([], tables.check(HERE, []), "run tests/bench/results/tables.py")

    def test_the_readme_is_what_the_files_say(self):
        readme = os.path.join(HERE, "..", "..", "..", "README.md")
        self.assertEqual([], tables.check(HERE, [readme]), "run tests/bench/results/tables.py --update README.md")

    def test_a_changed_value_is_noticed(self):
        self.assertEqual([], tables.check(self.folder, []))
        self.change("model_speed.json", '"unit":"ms"', '"unit":"s"')
        self.assertIn("not what the JSON files say", tables.check(self.folder, [])[0])

    def test_a_changed_table_is_noticed(self):
        self.change("README.md", "| infer_512_ms |", "| infer_513_ms |")
        self.assertIn("not what the JSON files say", tables.check(self.folder, [])[0])

    def test_limits_count_what_the_files_have(self):
        rows = [row("a/t1/prunerc", 1.0, note="1.0 to 1.2, 3 rounds"), row("a/t1/openvino", 1.0, note="2.0 to 2.2, 3 rounds"),
                row("a/t1/ratio", 1.0, note="1.0 to 9.0, 3 rounds")]
        files = {"network": results.parse(file_of(*rows, bench="network")), "o1": results.parse(file_of(row("x"), seeds=[1, 2, 3]))}
        text = limits.page(files, tables.files_of, 80)
        for words in ("2 files; those of CPUs are of virtual machines", "no file names their versions", "| a machine | 2 | 2026-11-23 |", "networks 20 % (median of 1;", "others' 10 % (median of 1;",
                      "1 of 2 files are of fewer than three seeds", "They are 80 operators", "`searches`"):
            self.assertIn(words, text)
        self.assertNotIn("`network`", text.split("**Not measured yet**")[1])

    def test_results_without_machine_date_commit_or_seeds_are_refused(self):
        for key in ("machine", "date", "commit", "seeds"):
            with self.subTest(key=key):
                self.setUp()
                self.change("model_speed.json", f'"{key}":', f'"no {key}":')
                self.refused(f"model_speed.json: names no {key}")

    def test_only_committed_code_counts(self):
        for commit in ("unknown", "6ab91d1efe34-dirty"):
            with self.subTest(commit=commit):
                self.setUp()
                self.change("model_speed.json", "6ab91d1efe34", commit)
                self.refused(f"no committed code was measured: {commit}")

    def test_a_file_that_no_table_shows_is_refused(self):
        shutil.copyfile(os.path.join(HERE, "model_speed.json"), os.path.join(self.folder, "forgotten.json"))
        self.refused("no entry of claims.py shows forgotten")

    def test_no_table_is_longer_than_thirty_rows(self):
        files = tables.read_all(HERE)
        for claim in claims.CLAIMS:
            if claim.name in UNMEASURED:
                continue
            for caption, table in layouts.LAYOUTS[claim.name](tables.files_of(claim, files)):
                with self.subTest(claim=claim.name, caption=caption):
                    self.assertLess(1, len(table), "it shows something")
                    self.assertGreaterEqual(31, len(table))
                    self.assertEqual({len(table[0])}, set(map(len, table)))

    def test_a_rival_ahead_is_marked(self):
        rows = [row("gemm/t1/prunerc", 99.0), row("gemm/t1/onednn", 100.0), row("gemm/t1/eigen", 50.0), row("gemm/t1/limit", 200.0)]
        behind = layouts.kernels({"cpu": results.parse(file_of(*rows, bench="cpu"))}, 1)
        self.assertEqual(["gemm", "", "99.0", "100.0 (onednn)", "0.990 ▼", "200.0", "50 %"], behind[1])
        rows[0].update(value=101.0, noisy=True)
        ahead = layouts.kernels({"cpu": results.parse(file_of(*rows, bench="cpu"))}, 1)
        self.assertEqual(["101.0*", "1.010"], [ahead[1][2], ahead[1][4]], "other work had the CPUs")
        rows[0].update(value=None)
        without = layouts.kernels({"cpu": results.parse(file_of(*rows, bench="cpu"))}, 1)
        self.assertEqual(["gemm", "", "none", "100.0 (onednn)", "none ▼", "200.0", ""], without[1])
        self.assertEqual("0.5 x ▼", layouts.gain(results.Row("x", 0.5)))

    def test_rivals_are_marked_where_they_are_ahead(self):
        note = "its time / ours, 1 of 2 operators, ours behind on 1; median 0.900; least 0.900 gemm, most 0.900 gemm; by seed 0.8 to 1.1"
        rows = [row("speed/gemm/pruner@64", 2, "us"), row("seconds/gemm/pruner@64", 5, "s"),
                row("speed/gemm/tvm@64", 1.8, "us", note="1.8 to 1.8, 1 seed; 1 made fewer trials: 1 at least"),
                row("seconds/gemm/tvm@64", 90, "s"), dict(row("ratio/gemm/tvm@64", 0.9, "x", note="0.8 to 1.1, 2 seeds"), noisy=True),
                row("speed/gemm/ansor@64", None, "us", note="1 failed: no end"), row("seconds/gemm/ansor@64", None, "s"), row("geomean/tvm@64", 0.9, "x", note=note),
                row("geomean_reach_own/tvm@64", 12, "x", note="12 to 12, 1 operators; 1 of 2 of ours never"), row("geomean_reach_near/tvm@64", 0.5, "x")]
        (_, means), (_, each), (_, short) = layouts.rivals({"rival": results.parse(file_of(*rows, bench="rival"))})
        self.assertEqual(["tvm", "64", "1 of 2", "0.900 (0.800 to 1.100)" + layouts.BEHIND, "0.900" + layouts.BEHIND, "1", "12 x", "0.5 x" + layouts.BEHIND, "",
                          "1 of 2"], means[1])
        self.assertEqual([["operator", "trials", "ours, us", "s", "tvm / ours", "s"],
                          ["gemm", "64", "2", "5", "0.900 (0.800 to 1.100)*" + layouts.BEHIND, "90"]], each)
        self.assertEqual([["gemm", "tvm", "64", "1 made fewer trials: 1 at least"], ["gemm", "ansor", "64", "1 failed: no end"]], short[1:])

    def test_rows_of_an_older_benchmark_say_how_they_are_made_anew(self):
        old = results.parse(file_of(row("geomean/tvm@64", 2, "x", note="its time / ours, 20 operators, ours behind on 1"), bench="rival"))
        with self.assertRaisesRegex(results.Damaged, "judge.py"):
            layouts.rivals({"rival": old})

    def test_rows_of_rivals_are_those_of_their_searches(self):
        for path in glob.glob(os.path.join(HERE, "rival*.json")):
            with open(path, encoding="utf-8") as file:
                stored = json.load(file)
            self.assertEqual(judge.all_rows(stored, stored["searches"]), stored["rows"], f"run tests/bench/rival/judge.py {os.path.basename(path)}")

    def test_a_network_that_fails_stays_in_sight(self):
        rows = [row("a/t1/prunerc", None, "ms", note="wrong values"), row("a/t1/openvino", 2.0, "ms"), row("geomean/t1", 1.1, note="1 of 2 networks"),
                dict(row("b/t2/prunerc", 4.0, "ms"), noisy=True), row("b/t2/openvino", 3.0, "ms"), dict(row("b/t2/ratio", 0.75, note="0.7 to 0.8 by round"), noisy=True)]
        (one, table), (two, other) = layouts.networks({"network": results.parse(file_of(*rows, bench="network"))})
        self.assertEqual([["a", "wrong values", "", "", "none" + layouts.BEHIND, ""], ["geometric mean, 1 of 2 networks", "", "", "", "1.10", ""]], table[1:])
        self.assertEqual(("1 thread", "2 threads", [["b", "4*", "3", "openvino", "0.75 (0.70 to 0.80)*" + layouts.BEHIND, ""]]), (one, two, other[1:]))

    def test_the_suite_shows_its_losses_first(self):
        rows = []
        for i in range(40):
            note = f"gcc; {0.4 + i / 20} to {0.6 + i / 20}, 3 rounds"
            rows += [row(f"scan/a{i}/t1/ratio", 0.5 + i / 20, note=note), row(f"scan/a{i}/t1/prunerc", 10.0, unit="us"),
                     row(f"scan/a{i}/t1/gcc", 5.0, unit="us"), row(f"scan/a{i}/t1/limit", 2.0, unit="us")]
        rows += [row("scan/b/t2/ratio", None, note="nothing to compare"), row("scan/b/t2/prunerc", None, unit="us", note="does not compile"),
                 row("geomean/all/t1/ratio", 1.2, note="40 operators"), row("geomean/scan/t1/ratio", 0.9, note="1 operators"),
                 row("absent/torch", None, note="not installed: torch"), row("version/gcc", None, note="12.2.0"),
                 row("call/c/t2/gcc", 0.5, unit="us")]
        found = layouts.cpu_suite({"cpu_suite": results.parse(file_of(*rows, bench="cpu"))})
        self.assertEqual(["Geometric means, lowest first", "1 thread, lowest first (1 to 30 of 40)", "1 thread, lowest first (31 to 40 of 40)",
                          "2 threads, lowest first", "A call of an operator on one element",
                          "Who took part, and who is missing in how many rows"], [caption for caption, _ in found])
        means, one, _, two, calls, who = (table for _, table in found)
        self.assertEqual(["0.900 ▼", "1.200"], [line[3] for line in means[1:]])
        self.assertEqual(["a0", "scan", "10", "", "5 (gcc)", "0.500 (0.400 to 0.600) ▼", "20 %"], one[1])
        self.assertEqual([31, "1.000 (0.900 to 1.100)"], [len(one), one[11][5]])
        self.assertEqual(["b", "scan", "does not compile", "", "", "none ▼", ""], two[1])
        self.assertEqual([["gcc", "", "version 12.2.0"], ["prunerc", "1", "does not compile"], ["torch", "all", "not installed: torch"]], who[1:])
        self.assertEqual([["gcc", "", "0.5"]], calls[1:])

    def test_the_small_table_goes_between_its_marks_alone(self):
        text = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
        self.assertEqual(f"before\n{tables.BEGIN}\nnew\n{tables.END}\nafter\n", tables.update(text, "new"))
        self.assertEqual("no marks", tables.update("no marks", "new"))
        rows = [line for line in tables.small_table(HERE).splitlines() if line.startswith("|")]
        self.assertGreaterEqual(12, len(rows), "a head and ten rows")


if __name__ == "__main__":
    unittest.main()
