#!/usr/bin/env python3
"""`prunerc algebra`: other programs of an operator, what is told of them, and files that verify judges anew."""

import json
import os

import command

LIBRARY = os.path.abspath("tools/std/algebra.prn")


class Algebra(command.CommandTest):
    def forms(self, *arguments):
        return json.loads(self.prunerc("algebra", LIBRARY, *arguments, "--json").out)

    def test_the_table_says_recipe_gain_bound_and_class(self):
        out = self.prunerc("algebra", LIBRARY, "--op", "lora_merged").out
        self.assertIn("as written", out)
        self.assertRegex(out, r"\n +1 .* 2\^-[4-9][0-9] +strict +\(\(X\*A\)\*B\)\n")

    def test_a_badly_ordered_product_is_found_and_its_file_is_right(self):
        found = self.forms("--op", "lora_merged", "-D", "M=3,K=40,N=50,R=2", "-o", self.path("forms"))
        self.assertEqual("prunerc.algebra/1", found["schema"])
        best = found["forms"][0]
        self.assertGreater(found["spec"]["flops"], 5 * best["flops"])
        self.assertEqual(["order"], best["rules"])
        self.assertLessEqual(best["log2_error"], -40)
        files = [self.path("forms/1.prc"), "--schedule", "/dev/null", "--against", self.path("forms/spec.prc")]
        self.assertIn("right", self.prunerc("verify", *files).out)

    def test_verify_refuses_a_form_that_was_changed(self):
        self.forms("--op", "lora_merged", "-D", "M=3,K=40,N=50,R=2", "-o", self.path("forms"))
        with open(self.path("forms/1.prc"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn(" + ", text)
        changed = self.write("changed.prc", text.replace(" + ", " - ", 1))
        files = [changed, "--schedule", "/dev/null", "--against", self.path("forms/spec.prc")]
        self.assertIn("wrong", self.prunerc("verify", *files, expect=4).out)

    def test_nothing_found_is_no_error(self):
        out = self.prunerc("algebra", LIBRARY, "--op", "relu_between").out
        self.assertIn("no cheaper form (", out)
        self.assertEqual([], self.forms("--op", "relu_between")["forms"])

    def test_what_was_turned_down_is_said(self):
        # Behind the product the division comes too late: exp of a large score overflows.
        refused = self.forms("--op", "raw_attention")["refused"]
        self.assertTrue(any("inf instead of" in why for why in refused), refused)

    def test_rules_and_classes_choose(self):
        self.assertEqual([], self.forms("--op", "lora_merged", "--rules", "axis")["forms"])
        strict = self.forms("--op", "lora_added", "--numerics", "strict")
        self.assertEqual([], [f for f in strict["forms"] if f["numerics"] != "strict"])
        self.assertTrue(strict["refused"])

    def test_a_limit_of_time_is_kept_and_said(self):
        found = self.forms("--op", "grouped_decode", "--time", "0.000001")
        self.assertIs(True, found["stopped"])
        self.assertEqual([], found["forms"])
        self.assertIn("ended by --time", self.prunerc("algebra", LIBRARY, "--op", "chain3", "--time", "0.000001").out)

    def test_wrong_arguments_are_refused(self):
        for arguments, said in (
            (["--rules", "magic"], "magic not in {order,axis"),
            (["--numerics", "wild"], "wild not in {strict,normal,loose}"),
            (["--time", "0"], "needs a duration"),
        ):
            result = self.prunerc("algebra", LIBRARY, "--op", "lora_merged", *arguments, expect=2)
            self.assertIn(said, result.err)
        self.assertIn("several operators", self.prunerc("algebra", LIBRARY, expect=1).err)

    def test_a_folder_that_cannot_be_made_is_an_error(self):
        taken = self.write("taken", "")
        self.prunerc("algebra", LIBRARY, "--op", "lora_merged", "-o", os.path.join(taken, "forms"), expect=5)


if __name__ == "__main__":
    command.main()
