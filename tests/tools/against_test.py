#!/usr/bin/env python3
"""`prunerc verify --against`: two programs without a common trace."""

import command

WHOLE = """program p(A: f32[{m}, 64], B: f32[64, {n}]) -> (C: f32[{m}, {n}]) {{
  for i in {m} {{ for j in {n} {{ for k in 64 {{
    block "C" [vi: S({m}) = i, vj: S({n}) = j, vk: R(64) = k] {{
      init {{ C[vi, vj] = 0f32 }}
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  }} }} }} }}
}}
"""
# In tiles of 32 x 32; `where` cuts off what is outside.
TILED = """program p(A: f32[{m}, 64], B: f32[64, {n}]) -> (C: f32[{m}, {n}]) {{
  for i0 in {rows} {{ for j0 in {columns} {{ for k in 64 {{ for i1 in 32 {{ for j1 in 32 {{
    block "C" [vi: S({m}) = i0*32 + i1, vj: S({n}) = j0*32 + j1, vk: R(64) = k]
        where i0*32 + i1 < {m} && j0*32 + j1 < {n} {{
      init {{ C[vi, vj] = 0f32 }}
      C[vi, vj] = C[vi, vj] + {value}
  }} }} }} }} }} }}
}}
"""


class Against(command.CommandTest):
    def programs(self, m, n, value="A[vi, vk]*B[vk, vj]"):
        tiled = TILED.format(m=m, n=n, rows=-(-m // 32), columns=-(-n // 32), value=value)
        return self.write("tiled.prc", tiled), self.write("whole.prc", WHOLE.format(m=m, n=n))

    def verify(self, tiled, whole, **expect):
        return self.prunerc("verify", tiled, "--schedule", "/dev/null", "--seeds", "1", "--against", whole, **expect)

    def test_small_programs_are_compared_whole(self):
        tiled, whole = self.programs(40, 33)
        out = self.verify(tiled, whole).out
        self.assertIn("right on 1 of 1 inputs", out)
        self.assertRegex(out, r"\n  against .*whole\.prc, in finite fields: equal \(chance of error 2\^-\d+, \d tests?\)\n")

    def test_large_programs_are_compared_on_sampled_tiles(self):
        tiled, whole = self.programs(300, 301)
        result = self.verify(tiled, whole)
        self.assertRegex(result.out, r"in finite fields: equal on 12 of 1444 tiles, 8 of them random \(chance of error "
                                     r"2\^-\d+, \d tests?\); a fault in 1 of 10 tiles is missed with chance 0\.43\n")
        tiled, whole = self.programs(300, 301, "A[vi, vk]*B[vk, select(vj == 300, 0, vj)]")
        result = self.verify(tiled, whole, expect=4)
        self.assertIn("in finite fields: not equal: element C[", result.out)
        self.assertIn("error: ", result.err)

    def test_a_schedule_is_compared_too(self):
        tiled, whole = self.programs(40, 33)
        script = self.write("s.txt", "split(@L0, [-1, 8]) -> @L10, @L11\n")
        with_ids = self.write("ids.prc", WHOLE.format(m=40, n=33).replace("for i in 40", "for i in 40 @L0"))
        out = self.prunerc("verify", with_ids, "--schedule", script, "--seeds", "1", "--against", tiled).out
        self.assertIn("tiled.prc, in finite fields: equal", out)

    def test_what_cannot_be_compared(self):
        tiled, whole = self.programs(40, 33)
        other = self.write("other.prc", WHOLE.format(m=40, n=32))
        self.assertIn("invalid: the parameters are others", self.verify(tiled, other, expect=4).out)
        self.verify(tiled, "nowhere.prc", expect=5)
        self.assertIn(":1:", self.verify(tiled, self.write("bad.prc", "program p( {"), expect=1).err)


if __name__ == "__main__":
    command.main()
