#!/usr/bin/env python3
"""verify of quantised models: a value that a rounding decides, wrong values, and outputs that say nothing."""

import os
import shutil
import struct

import command

TIES = [0.625, 0.875]  # over the scale of 0.25: 2.5 and 3.5
STABLE = [0.6, 0.85]


class Sensitivity(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.made = command.onnx_writer()
        os.makedirs(self.path("test_data_set_0"))

    def write_bytes(self, name, data):
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def ids(self):
        """An input of one whole number, and a recorded one."""
        m = self.made
        shape = m.message(2, m.message(1, m.number(1, 1)))
        recorded = m.number(1, 1) + m.number(2, 7) + m.message(8, "ids") + m.message(9, struct.pack("<q", 1))
        return m.message(1, "ids") + m.message(2, m.message(1, m.number(1, 7) + shape)), recorded

    def quantised(self, x, y, by_ids=False):
        """A model that quantises x, or rows of a constant that are x, and takes it back; y was recorded."""
        m, n = self.made, len(x)
        nodes = [m.node("QuantizeLinear", ["x", "s"], "q"), m.node("DequantizeLinear", ["q", "s"], "y")]
        weights = [m.tensor("s", [], [0.25])]
        port, recorded = m.port("x", [1, n]), m.tensor("x", [1, n], x)
        if by_ids:
            nodes.insert(0, m.node("Gather", ["E", "ids"], "x"))
            weights.append(m.tensor("E", [3, n], x * 3))
            port, recorded = self.ids()
        graph = b"".join(m.message(1, node) for node in nodes) + m.message(2, "steps")
        graph += b"".join(m.message(5, weight) for weight in weights) + m.message(11, port) + m.message(12, m.port("y", [1, n]))
        self.write_bytes("test_data_set_0/input_0.pb", recorded)
        self.write_bytes("test_data_set_0/output_0.pb", m.tensor("y", [1, n], y))
        return self.write_bytes("steps.onnx", m.number(1, 8) + m.message(7, graph) + m.message(8, m.number(2, 17)))

    def verify(self, model, expect):
        answer = self.prunerc("verify", model, "--seeds", "1", "--json", expect=expect).json()
        self.assertEqual("prunerc.verify_net/1", answer["schema"])
        return answer

    def test_a_value_that_a_rounding_decides_is_accepted_and_told(self):
        for by_ids in (False, True):
            model = self.quantised(TIES * 8 + [24.9], [0.75, 1.0] + [0.5, 1.0] * 7 + [25.0], by_ids)
            answer = self.verify(model, 0)
            self.assertEqual(("within sensitivity", "", 1, 1), tuple(answer[key] for key in ("verdict", "difference", "seeds", "recorded")))
            (one,) = answer["sensitivity"]
            self.assertEqual("y", one["tensor"])
            self.assertAlmostEqual(0.25, one["deviation"], places=4)
            self.assertAlmostEqual(0.01, one["of_largest"], places=4)
            told = self.prunerc("verify", model, "--seeds", "1").out
            self.assertIn("steps: within sensitivity on 1 seed: ", told)
            self.assertIn("and on 1 recorded run", told)
            self.assertIn("y differs by more than roundings of a stable net", told)
            self.assertIn("1% of its largest value, and four times that was allowed", told)
            told = self.prunerc("verify", model, "--seeds", "1", "--cuts").out
            self.assertIn("within sensitivity on 1 seed: ", told)
            self.assertIn("of outputs and all tensors between calls", told)

    def test_more_than_the_net_is_sensitive_to_is_wrong(self):
        answer = self.verify(self.quantised(TIES * 8 + [24.9], [3.0, 1.0] + [0.5, 1.0] * 7 + [25.0]), 4)
        self.assertEqual(("wrong", 0), (answer["verdict"], answer["recorded"]))
        self.assertIn("y[0] is 0.5, recorded in", answer["difference"])
        self.assertIn("four times its sensitivity)", answer["difference"])

    def test_a_step_of_a_stable_net_is_wrong(self):
        model = self.quantised(STABLE * 8 + [24.9], [0.75, 0.75] + [0.5, 0.75] * 7 + [25.0])
        answer = self.verify(model, 4)
        self.assertEqual("wrong", answer["verdict"])
        self.assertIn("(allowed: 0.025)", answer["difference"])
        self.assertLess(answer["sensitivity"][0]["deviation"], 1e-4)
        self.assertIn("steps: wrong: y[0] is 0.5", self.prunerc("verify", model, "--seeds", "1", expect=4).out)

    def test_outputs_that_a_rounding_changes_as_a_whole_verify_nothing(self):
        model = self.quantised(TIES * 8, [0.75, 1.0] + [0.5, 1.0] * 7)
        answer = self.verify(model, 4)
        self.assertEqual("not verifiable", answer["verdict"])
        self.assertIn("a wrong kernel could hide in that", answer["difference"])
        told = self.prunerc("verify", model, "--seeds", "1", expect=4)
        self.assertIn("steps: not verifiable: floats moved by a rounding change y by 0.25, 25% of its largest value", told.out)
        self.assertIn("what this net gives does not tell a wrong kernel from a rounding", told.err)
        self.assertIn("hint: `prunerc verify DATABASE` compares each of its tuned kernels", told.err)

    def test_a_run_that_verifies_nothing_hides_no_wrong_one(self):
        model = self.quantised(TIES * 8, [0.75, 1.0] + [0.5, 1.0] * 7)
        os.makedirs(self.path("test_data_set_1"))
        shutil.copy(self.path("test_data_set_0/input_0.pb"), self.path("test_data_set_1/input_0.pb"))
        for y, verdict, recorded in ([0.5, 1.0], "not verifiable", 2), ([9.0, 1.0], "wrong", 1):
            self.write_bytes("test_data_set_1/output_0.pb", self.made.tensor("y", [1, 16], y + [0.5, 1.0] * 7))
            answer = self.verify(model, 4)
            self.assertEqual((verdict, 1, recorded), (answer["verdict"], answer["seeds"], answer["recorded"]))
            self.assertIn("y[0] is 0.5, recorded in", answer["difference"])
        self.assertIn("test_data_set_1 is 9 ", answer["difference"])

    def test_what_was_recorded_as_it_is_given_is_right(self):
        answer = self.verify(self.quantised(TIES * 8 + [24.9], [0.5, 1.0] * 8 + [25.0]), 0)
        self.assertEqual(("right", 1, []), (answer["verdict"], answer["recorded"], answer["sensitivity"]))


if __name__ == "__main__":
    command.main()
