#!/usr/bin/env python3
"""What is read from results, which claim it belongs to, and the page that is made of it."""

import base64
import glob
import html.parser
import json
import os
import random
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import claims
import page
import rows as results


def row(name, value=1.0, unit="", goal=None, note=""):
    return {"name": name, "value": value, "unit": unit, "goal": goal, "note": note}


def file_of(*rows, bench="draft"):
    return json.dumps({"bench": bench, "machine": "a machine", "rows": rows}, indent=1)


def rows_of(*rows):
    return results.parse(file_of(*rows)).rows


def just(value):
    return results.Point(value, value, value)


class Reading(unittest.TestCase):
    def rejects(self, content, reason):
        with self.assertRaises(results.Damaged) as caught:
            results.parse(content)
        self.assertIn(reason, str(caught.exception))

    def test_rows_keep_their_fields_and_order(self):
        read = results.parse(file_of(row("b", 2, "ms", 3, "one"), row("a", None)))
        self.assertEqual(("draft", "a machine"), (read.bench, read.machine))
        self.assertEqual([results.Row("b", 2.0, "ms", 3.0, "one"), results.Row("a", None)], list(read.rows.values()))

    def test_the_day_of_a_measurement_is_said_where_it_is_known(self):
        content = json.dumps({"bench": "draft", "machine": "a machine", "date": "2026-11-23", "rows": []})
        self.assertEqual("a machine, 2026-11-23", results.parse(content).machine)
        self.rejects(content.replace('"2026-11-23"', "20261123"), "date is not a text")

    def test_other_benchmarks_are_none_of_ours_whatever_their_rows_are(self):
        self.assertIsNone(results.parse('{"bench": "cpu", "rows": [[1, 2]]}'))

    def test_no_beginning_of_a_file_is_read(self):
        content = file_of(row("top1/pacm", 0.9, note="0.8 to 1.0"), bench="costmodel")
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
        self.assertIsNone(results.Row("top1/pacm", None, goal=0.92).meets_goal())
        for name in ("infer_512_ms", "update_2000_s", "overhead_fraction/gemm", "live_overhead_fraction/resnet50", "o1_ratio/x",
                     "seconds_to_tvm_ansor/x", "draft_50000_s/cpu/gemm"):
            with self.subTest(name=name):
                self.assertTrue(results.Row(name, 1, goal=2).meets_goal())
                self.assertFalse(results.Row(name, 3, goal=2).meets_goal())

    def test_the_first_range_of_a_note_is_the_rows(self):
        self.assertEqual(results.Point(0.9, 0.88, 0.93), results.point(results.Row("x", 0.9, note="0.88 to 0.93")))
        self.assertEqual(results.Point(0.0, -0.01, 0.02),
                         results.point(results.Row("x", 0.0, note="95 %: -0.010 to +0.020, 3 to 4 pairs")))
        self.assertEqual(just(0.5), results.point(results.Row("x", 0.5, note="nan to nan, to 78 % of the limit")))

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
                     results.pruning, results.transfer, results.transfer_searches, results.final_latencies):
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

    def test_speedups_are_by_baseline_strategy_and_task(self):
        rows = rows_of(row("speedup/pruner_vs_ansor", 2.0), row("speedup/pruner_vs_ansor/conv", 9.0),
                       row("speedup/moa-pruner-paper_vs_tlp-offline/gemm", 1.0), row("trials/pruner_vs_ansor", 7.0))
        self.assertEqual({"ansor": {"pruner": {"all": 2.0, "conv": 9.0}}, "tlp-offline": {"moa-pruner-paper": {"gemm": 1.0}}},
                         results.beside_baselines(rows, "speedup"))
        self.assertEqual({"ansor": {"pruner": {"all": 7.0}}}, results.beside_baselines(rows, "trials"))
        self.assertEqual({}, results.beside_baselines(rows, "final"))

    def test_final_latencies_are_by_task(self):
        rows = rows_of(row("final_latency/pruner/conv", 2.0), row("final_latency/ansor/conv", 3.0), row("final_latency/pruner/gemm", 5.0))
        self.assertEqual({"conv": {"pruner": 2.0, "ansor": 3.0}, "gemm": {"pruner": 5.0}}, results.final_latencies(rows))


class Claims(unittest.TestCase):
    def text(self, name):
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            return file.read()

    def test_each_claim_has_a_script_and_each_script_a_claim(self):
        scripts = {os.path.basename(path) for path in glob.glob(os.path.join(HERE, "*.sh"))} - {"plot.sh"}
        self.assertEqual({claim.name + ".sh" for claim in claims.CLAIMS}, scripts)
        for claim in claims.CLAIMS:
            with self.subTest(claim=claim.name):
                command = f"./dev bench {claim.bench} --only {claim.group} --json tests/bench/results/{claim.name}.json"
                script = self.text(claim.name + ".sh")
                self.assertIn(f'\ntime {command} "$@"\n', script)
                self.assertTrue(os.access(os.path.join(HERE, claim.name + ".sh"), os.X_OK))
                self.assertLess(0, script.index("\n# Published: "))
                self.assertLess(script.index("\n# Published: "), script.index("\n# Here: "))

    def test_the_readme_has_a_line_for_each_claim(self):
        lines = self.text("README.md").splitlines()
        for claim in claims.CLAIMS:
            self.assertEqual(1, sum(f"| `{claim.name}.sh` |" in line for line in lines), claim.name)

    def test_a_row_belongs_to_one_claim(self):
        for bench, name, owner in (
            ("draft", "draft_per_s/gpu/conv2d/gpu+row per thread (exhausted)", "draft_throughput"),
            ("draft", "best20_at_64/softmax", "draft_quality"),
            ("draft", "best1_at_128/task/conv_3x3", "draft_quality"),
            ("draft", "best1_at_128_without/paper/memory/conv", "draft_quality"),
            ("draft", "regret/conv_3x3/no_quotas", "ablation"),
            ("draft", "trials_to_ansor/gemm_odd", "search_vs_ansor"),
            ("draft", "overhead_fraction/gemm_odd", "search_vs_ansor"),
            ("draft", "live_time_to_ansor/conv_3x3", "search_live"),
            ("draft", "live_time_to_ansor/resnet50", "resnet50"),
            ("draft", "seconds_to_tvm_ansor/gemm_512", "seconds_to_tvm"),
            ("draft", "o1_good", "o1"),
            ("costmodel", "top5/pacm-paper@10%", "model_accuracy"),
            ("costmodel", "pairwise/pacm_less_tlp/depthwise", "model_accuracy"),
            ("costmodel", "update_2000_s", "model_speed"),
            ("costmodel", "top1_pruned/all", "data_pruning"),
            ("costmodel", "top1/znver5/1_to_x86-64-v3/1/moa-paper@64", "transfer"),
            ("costmodel", "tuned/znver5/1_to_x86-64-v3/1/warm@150", "transfer"),
            ("costmodel", "final_latency/moa-pruner/conv_3x3", "end_to_end"),
            ("costmodel", "final/pruner-untrained_vs_tenset-offline", "end_to_end"),
            ("costmodel", "overhead/pruner/conv_3x3", "end_to_end"),
        ):
            with self.subTest(name=name):
                owners = [claim.name for claim in claims.CLAIMS if claim.bench == bench and claim.has(name)]
                self.assertEqual([owner], owners)

    def test_a_claims_own_file_goes_first(self):
        accuracy = next(claim for claim in claims.CLAIMS if claim.name == "model_accuracy")
        mine, other = (results.parse(file_of(row("top1/pacm"), bench="costmodel")) for _ in range(2))
        files = {"a/all.json": other, "a/model_accuracy.json": mine,
                 "a/draft.json": results.parse(file_of(row("top1/pacm"))),
                 "a/speed.json": results.parse(file_of(row("infer_512_ms"), bench="costmodel"))}
        self.assertEqual(["a/model_accuracy.json"], claims.sources_of(accuracy, files, prefer_own=True))
        self.assertEqual(["a/all.json", "a/model_accuracy.json"], claims.sources_of(accuracy, files, prefer_own=False))
        del files["a/model_accuracy.json"]
        self.assertEqual(["a/all.json"], claims.sources_of(accuracy, files, prefer_own=True))


class Tags(html.parser.HTMLParser):
    """Whether tags close in order, what they load, and the texts."""

    EMPTY = {"meta", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.names, self.loads, self.texts = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.loads += [value for name, value in attributes if name in ("src", "href", "style")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)


class Page(unittest.TestCase):
    HOSTILE = '<script src="http://elsewhere"></script> & "more" </table>'

    def section(self, **fields):
        values = {"claim": claims.CLAIMS[0], "source": "results.json", "machine": "a machine", "rows": []}
        return page.Section(**{**values, **fields})

    def tags(self, sections, missing=()):
        tags = Tags()
        tags.feed(page.page_html(sections, missing))
        tags.close()
        self.assertEqual([], tags.open)
        return tags

    def test_it_loads_nothing_and_shows_hostile_text_as_text(self):
        picture = page.Picture("name", self.HOSTILE, b"\x89PNG...")
        rows = [results.Row(self.HOSTILE, 1.5, self.HOSTILE, 2.0, self.HOSTILE)]
        tags = self.tags([self.section(source=self.HOSTILE, machine=self.HOSTILE, rows=rows, pictures=[picture])])
        self.assertNotIn("script", tags.names)
        self.assertEqual(1, len(tags.loads))
        head, data = tags.loads[0].split(",")
        self.assertEqual(("data:image/png;base64", picture.png), (head, base64.b64decode(data)))
        self.assertEqual(3, tags.texts.count(self.HOSTILE))

    def test_goals_are_counted_and_values_that_are_missing_shown(self):
        rows = [results.Row("top1/pacm", 0.93, goal=0.92), results.Row("top5/pacm", 0.9, goal=0.98), results.Row("x", None)]
        texts = self.tags([self.section(rows=rows)]).texts
        self.assertIn("1 of 2 met", texts)
        self.assertIn("none", texts)

    def test_claims_without_results_are_named(self):
        text = "".join(self.tags([], claims.CLAIMS).texts)
        for claim in claims.CLAIMS:
            self.assertIn(f"tests/bench/paper/{claim.name}.sh", text)

    def test_the_short_text_has_the_pictures_of_each_section(self):
        text = page.page_markdown([self.section(pictures=[page.Picture("some", "Some", b"")]), self.section()])
        self.assertIn("\n![Some](some.png)\n", text)
        self.assertEqual(1, text.count("\n## "))


if __name__ == "__main__":
    unittest.main()
