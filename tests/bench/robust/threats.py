"""Kernels with the faults that fooled other systems, in place of what was compiled: what the measurer says of each.

The faults are in threat_kernels.cc, and threats_test.cc hands them to the measurer of every search.
"""

import os
import re
import subprocess

import common


def measure(world, options):
    binary = os.path.join(world.beside, "threats_test")
    runfiles = os.path.join(binary + ".runfiles", "prunerc")
    # Built as a test, it finds its kernels and its worker from here.
    done = subprocess.run([os.path.abspath(binary)], cwd=runfiles if os.path.isdir(runfiles) else None, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    verdicts = dict(re.findall(r"^threat (\w+) (.*)$", done.stdout, re.M))
    missed = [name for name, how in verdicts.items() if how == "MISSED"]
    if done.returncode != 0:
        world.save("threats.txt", done.stdout)
    return [
        common.row("threats", len(verdicts), "kernels", 11, ", ".join(verdicts)),
        common.row("missed_threats", len(missed) + (done.returncode != 0 and not missed), "kernels", 0,
                   ", ".join(missed) or "; ".join("%s: %s" % (n, how[:60]) for n, how in list(verdicts.items())[:2])),
    ]
