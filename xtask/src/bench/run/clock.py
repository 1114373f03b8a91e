"""Runs a program and prints two numbers: microseconds from start to end, and microseconds of
processor time that it and everything it waited for used, in their own code and in the kernel."""

import os
import sys
import time

null = os.open(os.devnull, os.O_RDWR)
quiet = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1)]
started = time.monotonic_ns()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
wall = time.monotonic_ns() - started
code = os.waitstatus_to_exitcode(status)
if code != 0:
    sys.exit(f"it ended with {code}")
print(wall // 1000, round((usage.ru_utime + usage.ru_stime) * 1e6))
