"""When a turn is repeated: other work had the CPUs."""

import os

RETRIES = 2  # of such a turn
NOISE = 0.05  # of the CPUs' time, for others


def cpu_seconds():
    """Of all processes, since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft_irq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def is_loud(others, wall):
    """others: CPU seconds of others during `wall` seconds."""
    return others > NOISE * os.cpu_count() * wall
