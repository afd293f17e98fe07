#!/usr/bin/env python3
"""The stack that a call of a library takes, beside what its header says that it needs."""

import os
import subprocess

import command
import library_test

# How deep a thread writes to its stack that does the work, beside one that does nothing; and what the header says.
STACK = r"""
#include "library.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { BYTES = 4 << 20, PAINT = 0xA5 };
static void* do_nothing(void* none) { return none; }
static void* work(void* none) {
  %s
  return none;
}
static size_t stack_of(void* (*body)(void*)) {
  unsigned char* const stack = (unsigned char*)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) exit(1);
  memset(stack, PAINT, BYTES);
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, stack, BYTES) != 0 ||
      pthread_create(&thread, &attributes, body, NULL) != 0 || pthread_join(thread, NULL) != 0)
    exit(1);
  size_t clean = 0;
  while (clean < BYTES && stack[clean] == PAINT) ++clean;
  return BYTES - clean;
}
int main(void) {
  const size_t without = stack_of(do_nothing);
  printf("%%zu %%zu\n", stack_of(work) - without, (size_t)%s_STACK_BYTES);
  return 0;
}
"""
CALL_DENSE = """static float x[192 * 96], w[96 * 192], bias[192], y[192 * 192];
  if (op_dense(NULL, w, bias, y) == 0 || op_dense(x, w, bias, y) != 0) exit(1);"""
MLP = command.DENSE + """net mlp(x: f32[3,5]) -> (y: f32[3,6]) {
  const W1: f32[5,6]; const b1: f32[6] = 0.5;
  y = dense(x, W1, b1) as up;
}
"""
CALL_MLP = """static float x[15], y[18];
  if (net_mlp_load_weights("missing") == 0 || net_mlp(x, y) != 0) exit(1);"""


class Stack(library_test.LibraryTest):
    def stack(self, work, name):
        """Of the thread that calls library.so: what it takes, and what the header says that it needs."""
        source = self.write("stack.c", STACK % (work, name))
        subprocess.run([*library_test.C, "-I.", source, "./library.so", "-o", "caller"], cwd=self.folder, check=True)
        done = subprocess.run(["./caller"], cwd=self.folder, capture_output=True, text=True, timeout=60,
                              env=self.with_variables({"PRUNERC_NUM_THREADS": "2"}))
        self.assertEqual(0, done.returncode, done.stderr)
        taken, needed = map(int, done.stdout.split())
        self.assertLessEqual(taken, needed)
        return taken, needed

    def test_the_header_says_what_stack_a_call_needs(self):
        self.compile_dense("library.so", "library.h")
        _, small = self.stack(CALL_DENSE, "OP_DENSE")
        # With rows of an intermediate on the stack of a task.
        script = self.write("steps.txt", "split(@L3, [12, -1]) -> @L20, @L21\ncompute_at(@B0, @L20)\nparallel(@L20)\nparallel(@L5)\n")
        steps = os.path.join(library_test.CALLERS, "dense_steps.prn")
        self.prunerc("compile", steps, *library_test.SIZES, "--threads", "2", "--schedule", script, "-o", "library.so", "-o", "library.h")
        taken, needed = self.stack(CALL_DENSE, "OP_DENSE")
        rows = 192 // 12 * 192 * 4
        self.assertGreater(taken, rows)
        self.assertGreaterEqual(needed, small + rows - 4096)
        # With paths of a file of weights.
        self.prunerc("compile", self.write("mlp.prn", MLP), "--weights", "ones", "-o", "library.so", "-o", "library.h", "-o", "mlp.weights")
        self.stack(CALL_MLP, "NET_MLP")


if __name__ == "__main__":
    command.main()
