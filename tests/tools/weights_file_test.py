#!/usr/bin/env python3
"""A library of a net with its weights in a file beside it: found, refused, given."""

import _ctypes
import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import threading

import command

NET = command.DENSE + """net mlp(x: f32[3,5]) -> (y: f32[3,4]) {
  const W1: f32[5,6]; const b1: f32[6] = 0.5;
  const W2: f32[6,4]; const b2: f32[4];
  let h = dense(x, W1, b1) as up;
  y = dense(h, W2, b2) as down;
}
"""

# Loads the library anew: what a process has mapped it keeps.
CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.net_mlp_error.restype = ctypes.c_char_p
codes = [library.net_mlp_load_weights(path.encode()) for path in sys.argv[2:]]
x, y = (ctypes.c_float * 15)(*range(15)), (ctypes.c_float * 12)(*[-1] * 12)
codes.append(library.net_mlp(x, y))
print(codes, library.net_mlp_error().decode(), list(y), sep="|")
"""


# After what the library does at exit, a thread still calls.
CALLED_AT_EXIT = """#include "libmlp.h"
#include <pthread.h>
#include <unistd.h>
static void* call_on(void* nothing) {
  float x[15] = {0}, y[12];
  while (net_mlp(x, y) == 0) {}
  return nothing;
}
__attribute__((destructor(101))) static void stay(void) { usleep(20000); }
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, call_on, NULL) != 0) return 1;
  usleep(20000);
  return 0;
}
"""

CALLED_AFTER_EXIT = """#include "libmlp.h"
#include <stdio.h>
#include <unistd.h>
static int call(void) {
  float x[15] = {0}, y[12];
  return net_mlp(x, y);
}
__attribute__((destructor(101))) static void call_late(void) {
  const int code = call();
  puts(net_mlp_error());
  fflush(stdout);
  _exit(code);
}
int main(void) { return call(); }
"""

# A fork while another thread is about to read what it has mapped. Says how the child and that thread fared.
FORKS = """#include "libmlp.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static sem_t mapped, forked;
static int is_first = 1;
// In the place of the C library's.
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  void* const bytes = (void*)syscall(SYS_mmap, at, size, protection, flags, file, offset);
  if (file >= 0 && is_first) {
    is_first = 0;
    sem_post(&mapped);
    sem_wait(&forked);
  }
  return bytes;
}
static void* call(void* code) {
  float x[15] = {0}, y[12];
  *(int*)code = net_mlp(x, y);
  return NULL;
}
int main(void) {
  int code = -1, status = -1;
  pthread_t thread;
  sem_init(&mapped, 0, 0);
  sem_init(&forked, 0, 0);
  if (pthread_create(&thread, NULL, call, &code) != 0) return 1;
  sem_wait(&mapped);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    call(&code);
    _exit(code);
  }
  if (waitpid(child, &status, 0) != child) return 1;
  sem_post(&forked);
  pthread_join(thread, NULL);
  printf("%d %d\\n", status, code);
  return 0;
}
"""

# Weights of 4 MiB.
LARGE = command.DENSE + """net large(x: f32[1,1024]) -> (y: f32[1,1024]) {
  const W: f32[1024,1024]; const b: f32[1024];
  y = dense(x, W, b);
}
"""

# Where the system's files are those below ./system. Says how often huge pages were asked for, and the bits of the
# results of two calls, which after a copy have no file to read.
HUGE = """#include "liblarge.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
// In the place of the C library's.
FILE* fopen(const char* path, const char* mode) {
  char there[1000];
  snprintf(there, sizeof there, "./system%s", path);
  const int file = open(there, O_RDONLY);
  return file < 0 ? NULL : fdopen(file, mode);
}
static int num_asked;
int madvise(void* at, size_t size, int advice) {
  num_asked += advice == MADV_HUGEPAGE && size >= 4 << 20 && (size_t)at % (2 << 20) == 0;
  return 0;
}
static float x[1024], y[2][1024];
int main(void) {
  for (int i = 0; i < 1024; ++i) x[i] = (float)(i % 7 - 3);
  if (net_large_load_weights("large.weights") != 0) return puts(net_large_error()), 1;
  if (num_asked > 0 && truncate("large.weights", 0) != 0) return 1;
  for (int i = 0; i < 2; ++i)
    if (net_large(x, y[i]) != 0) return puts(net_large_error()), 1;
  printf("%d %d\\n", num_asked, memcmp(y[0], y[1], sizeof y[0]) == 0);
  FILE* const out = fdopen(open("y.bin", O_WRONLY | O_CREAT | O_TRUNC, 0600), "w");
  return fwrite(y, sizeof y[0], 1, out) != 1 || fclose(out) != 0;
}
"""

# There is nothing to prepare.
PLAIN = """op plus<N>(a: f32[N], b: f32[N]) -> (c: f32[N]) { c[i] = a[i] + b[i]; }
net plain(x: f32[8]) -> (y: f32[8]) { y = plus(x, x); }
"""


class WeightsFile(command.CommandTest):
    def setUp(self):
        super().setUp()
        net = self.write("mlp.prn", NET)
        line = ("compile", net, "--weights", "rand:normal(0,0.5):seed=3")
        self.prunerc(*line, "-o", "whole.so")
        y = (ctypes.c_float * 12)()
        whole = ctypes.CDLL(self.path("whole.so"))
        self.assertEqual(0, whole.net_mlp((ctypes.c_float * 15)(*range(15)), y))
        self.want = list(y)
        self.assertGreater(max(self.want), 0)
        self.assertFalse(hasattr(whole, "net_mlp_load_weights"))
        err = self.prunerc(*line, "-o", "libmlp.so", "-o", "libmlp.a", "-o", "mlp.weights").err
        self.assertIn("reads its weights from mlp.weights in its own folder", err)
        self.weights = self.path("mlp.weights")

    def call(self, library="libmlp.so", *paths, cwd=None):
        """Exit codes, the last message, and what it gives."""
        line = [sys.executable, "-c", CALL, self.path(library), *paths]
        out = subprocess.run(line, check=True, capture_output=True, text=True, cwd=cwd).stdout
        codes, message, y = out.strip().split("|")
        return [int(c) for c in codes.strip("[]").split(",")], message, [float(v) for v in y.strip("[]").split(",")]

    def build(self, text, *flags, library="libmlp.a"):
        """A program with the library in it."""
        main = self.write("main.c", text)
        line = ["cc", *flags, "-Wall", "-Werror", "-pthread", main, self.path(library), "-o", self.path("main")]
        subprocess.run(line, check=True)

    def num_maps(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return sum(self.weights in line for line in maps)

    def copied_bytes(self):
        """Of the maps of this process that are no file's and only read, as copies of weights are."""
        with open("/proc/self/maps", encoding="utf-8") as maps:
            fields = [line.split() for line in maps]
        ranges = [f[0].split("-") for f in fields if len(f) == 5 and f[1] == "r--p"]
        return sum(int(to, 16) - int(begin, 16) for begin, to in ranges)

    def assert_refused(self, message, result):
        codes, said, y = result
        self.assertEqual((6, [-1] * 12), (codes[-1], y))
        self.assertIn(message, said)

    def test_it_is_found_beside_the_library_wherever_both_go(self):
        self.assertEqual(([0], "", self.want), self.call())
        folder = self.path("a folder")
        os.mkdir(folder)
        for name in ("libmlp.so", "mlp.weights"):
            shutil.move(self.path(name), os.path.join(folder, name))
        self.assertEqual(([0], "", self.want), self.call("a folder/libmlp.so", cwd="/"))

    def test_what_is_not_the_librarys_is_refused(self):
        with open(self.weights, "rb") as file:
            data = file.read()

        def put(content):
            with open(self.weights, "wb") as file:
                file.write(content)

        os.remove(self.weights)
        self.assert_refused("mlp.weights: No such file or directory; _load_weights takes another path", self.call())
        put(data[:-1])
        self.assert_refused(f"not a file of {len(data)} bytes", self.call())
        put(data + b"\0")
        self.assert_refused(f"not a file of {len(data)} bytes", self.call())
        for at in (0, 63, len(data) // 2, len(data) - 1):
            put(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
            self.assert_refused("not the bytes that this library was compiled with", self.call())
        put(data[64:128] + data[:64] + data[128:])
        self.assert_refused("not the bytes", self.call())
        os.remove(self.weights)
        os.mkdir(self.weights)
        self.assert_refused("not a file", self.call())
        os.rmdir(self.weights)
        os.mkfifo(self.weights)
        self.assert_refused("not a file", self.call())
        os.remove(self.weights)
        put(data)
        self.assertEqual(([0], "", self.want), self.call())

    def test_it_is_taken_from_a_path_once(self):
        other = self.path("elsewhere.bin")
        shutil.move(self.weights, other)
        self.assertEqual([0, 0], self.call("libmlp.so", other)[0])
        self.assertEqual(self.want, self.call("libmlp.so", other)[2])
        # A failure leaves all as it was; after success nothing is looked at.
        codes, _, y = self.call("libmlp.so", self.path("none"), other, self.path("none"))
        self.assertEqual(([6, 0, 0, 0], self.want), (codes, y))

    def test_it_is_taken_from_memory(self):
        with open(self.weights, "rb") as file:
            data = file.read()
        os.remove(self.weights)
        library = ctypes.CDLL(self.path("libmlp.so"))
        library.net_mlp_error.restype = ctypes.c_char_p
        memory = mmap.mmap(-1, len(data) + 64)
        memory.write(data)
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        use = lambda address, size: library.net_mlp_use_weights(ctypes.c_void_p(address), ctypes.c_int64(size))
        self.assertEqual(1, use(None, len(data)))
        self.assertEqual(1, use(at + 4, len(data)))
        self.assertEqual(6, use(at, len(data) + 64))
        self.assertIn(f"have {len(data) + 64} bytes, not {len(data)}", library.net_mlp_error().decode())
        memory[5] ^= 1
        self.assertEqual(6, use(at, len(data)))
        memory[5] ^= 1
        x, y = (ctypes.c_float * 15)(*range(15)), (ctypes.c_float * 12)()
        self.assertEqual(6, library.net_mlp(x, y))
        self.assertEqual(0, use(at, len(data)))
        self.assertEqual(0, library.net_mlp(x, y))
        self.assertEqual(self.want, list(y))

    def test_threads_may_make_the_first_call_at_once(self):
        library, count = ctypes.CDLL(self.path("libmlp.so")), 8
        together, results = threading.Barrier(count), [None] * count

        def first_call(i):
            x, y = (ctypes.c_float * 15)(*range(15)), (ctypes.c_float * 12)()
            together.wait()
            results[i] = (library.net_mlp(x, y), list(y))

        threads = [threading.Thread(target=first_call, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(0, self.want)] * count, results)
        self.assertEqual(1, self.num_maps())
        _ctypes.dlclose(library._handle)
        self.assertEqual(0, self.num_maps())

    def test_threads_may_call_while_the_process_ends(self):
        self.build(CALLED_AT_EXIT)
        for _ in range(5):
            self.assertEqual(0, subprocess.run([self.path("main")], check=False).returncode)
        self.build(CALLED_AFTER_EXIT)
        ran = subprocess.run([self.path("main")], check=False, capture_output=True, text=True)
        self.assertEqual((6, "the weights were unmapped at exit\n"), (ran.returncode, ran.stdout))

    def test_a_fork_during_the_first_call_may_call(self):
        self.build(FORKS)
        ran = subprocess.run([self.path("main")], check=True, capture_output=True, text=True)
        self.assertEqual("0 0\n", ran.stdout)

    def test_large_weights_are_copied_into_huge_pages_where_there_is_room(self):
        line = ("compile", self.write("large.prn", LARGE), "--weights", "rand:normal(0,0.5):seed=3")
        self.prunerc(*line, "-o", "whole_large.so")
        self.prunerc(*line, "-o", "liblarge.so", "-o", "liblarge.a", "-o", "large.weights")
        self.build(HUGE, library="liblarge.a")
        shutil.copy(self.path("large.weights"), self.path("kept.weights"))
        x, y = (ctypes.c_float * 1024)(*(i % 7 - 3 for i in range(1024))), (ctypes.c_float * 1024)()
        self.assertEqual(0, ctypes.CDLL(self.path("whole_large.so")).net_large(x, y))
        have, free = "sys/kernel/mm/transparent_hugepage/enabled", "MemTotal: 99999999 kB\nMemAvailable:   %d kB\n"
        on, own, limit = {have: "always [madvise] never\n"}, "proc/self/cgroup", "sys/fs/cgroup/"
        old, wish = limit + "memory/%smemory.limit_in_bytes", "PRUNERC_COPY_WEIGHTS"
        for files, asked, *variables in (
            (on, 1),
            ({have: "[always] madvise never\n"}, 1),
            ({have: "always madvise [never]\n"}, 0),
            ({}, 0),
            ({**on, limit + "memory.max": "max\n"}, 1),
            ({**on, limit + "memory.max": "16000000\n"}, 0),
            ({**on, limit + "memory.max": "40000000\n"}, 1),
            ({**on, own: "0::/a/b\n", limit + "a/b/memory.max": "max\n", limit + "a/memory.max": "16000000\n"}, 0),
            ({**on, old % "": "16000000\n"}, 0),
            ({**on, old % "": "9223372036854771712\n"}, 1),
            ({**on, own: "4:memory:/a/b\n", old % "": "9223372036854771712\n", old % "a/": "16000000\n"}, 0),
            ({**on, own: "5:memory2:/a\n4:cpu:/a\n0::/a\n", old % "a/": "16000000\n"}, 1),
            ({**on, "proc/meminfo": free % 16000}, 0),
            ({**on, "proc/meminfo": free % 40000}, 1),
            (on, 0, {wish: "0"}),
            (on, 1, {wish: "1"}),
            (on, 1, {wish: ""}),
        ):
            with self.subTest(files=files, variables=variables):
                shutil.copy(self.path("kept.weights"), self.path("large.weights"))
                shutil.rmtree(self.path("system"), ignore_errors=True)
                for name, text in files.items():
                    os.makedirs(os.path.dirname(self.path("system/" + name)), exist_ok=True)
                    self.write("system/" + name, text)
                ran = subprocess.run([self.path("main")], check=False, capture_output=True, text=True, cwd=self.folder,
                                     env=self.with_variables(*variables or ({},)))
                self.assertEqual((0, f"{asked} 1\n"), (ran.returncode, ran.stdout), ran.stderr)
                with open(self.path("y.bin"), "rb") as out:
                    self.assertEqual(bytes(y), out.read())
        # As it is here, from threads at once, and all goes away with it.
        os.replace(self.path("kept.weights"), self.path("large.weights"))
        before = self.copied_bytes()
        library = ctypes.CDLL(self.path("liblarge.so"))
        results, codes = [(ctypes.c_float * 1024)() for _ in range(4)], []
        threads = [threading.Thread(target=lambda y=y: codes.append(library.net_large(x, y))) for y in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([0] * 4, codes)
        self.assertEqual([bytes(y)] * 4, [bytes(result) for result in results])
        _ctypes.dlclose(library._handle)
        self.assertLess(self.copied_bytes() - before, 4 << 20)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.assertNotIn("large.weights", maps.read())

    def test_a_net_without_constants_has_a_file_of_no_bytes(self):
        net = self.write("plain.prn", PLAIN)
        self.prunerc("compile", net, "-o", "libplain.so", "-o", "plain.weights")
        self.assertEqual(0, os.path.getsize(self.path("plain.weights")))
        library = ctypes.CDLL(self.path("libplain.so"))
        library.net_plain_error.restype = ctypes.c_char_p
        x, y = (ctypes.c_float * 8)(*range(8)), (ctypes.c_float * 8)()
        for _ in range(2):
            self.assertEqual(0, library.net_plain(x, y), library.net_plain_error())
            self.assertEqual([2.0 * i for i in range(8)], list(y))
        self.assertEqual(0, library.net_plain_use_weights(None, ctypes.c_int64(0)))

    def test_a_static_program_finds_it_beside_itself(self):
        self.build("""#include "libmlp.h"
#include <stdio.h>
int main(void) {
  float x[15], y[12];
  for (int i = 0; i < 15; ++i) x[i] = (float)i;
  if (net_mlp(x, y) != 0) return puts(net_mlp_error()), PRUNERC_ERROR_WEIGHTS;
  for (int i = 0; i < 12; ++i) printf("%.9g ", y[i]);
  return 0;
}
""", "-static")
        ran = subprocess.run([self.path("main")], check=True, capture_output=True, text=True, cwd="/")
        self.assertEqual(self.want, [ctypes.c_float(float(v)).value for v in ran.stdout.split()])
        os.remove(self.weights)
        self.assertEqual(6, subprocess.run([self.path("main")], check=False, capture_output=True).returncode)

    def test_temporary_files_may_lie_in_a_folder_of_any_name(self):
        folder = self.path('a, "b"')
        os.mkdir(folder)
        line = ("compile", self.path("mlp.prn"), "--weights", "rand:normal(0,0.5):seed=3", "-o", "odd.so")
        self.prunerc(*line, env=self.with_variables({"TMPDIR": folder}))
        self.assertEqual([], os.listdir(folder))
        y = (ctypes.c_float * 12)()
        self.assertEqual(0, ctypes.CDLL(self.path("odd.so")).net_mlp((ctypes.c_float * 15)(*range(15)), y))
        self.assertEqual(self.want, list(y))
        err = self.prunerc(*line, env=self.with_variables({"TMPDIR": "/nonexistent/folder"}), expect=None).err
        self.assertIn("cannot make '/nonexistent/folder/prunerc-codegen-XXXXXX': No such file or directory", err)

    def test_only_a_net_has_it(self):
        self.assertIn("cannot be written to", self.prunerc("compile", self.ops, "--op", "dense", "-o", "d.weights", expect=2).err)


if __name__ == "__main__":
    command.main()
