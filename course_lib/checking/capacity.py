"""How many notebooks or candidates this machine can run at once."""

import os
from pathlib import Path

MB_PER_CHILD = 1200  # torch, matplotlib and a small model, with some room
CGROUP = Path("/sys/fs/cgroup")  # what a container may use of its machine


def usable_cpus(cgroup: Path = CGROUP) -> int:
    """Count the CPUs that this process may use: by its affinity and by its container's quota."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        cpus = os.process_cpu_count() or 1
    elif hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
        return max(1, min(cpus, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no container, or its quota is the word "max"
        return cpus


def free_memory_mb(cgroup: Path = CGROUP) -> int:
    """Return the memory in MB (10^6 bytes) that is free here, in the container if there is one."""
    import psutil  # a notebook's client, which imports this file, has no need of it

    free = psutil.virtual_memory().available
    try:
        most = int((cgroup / "memory.max").read_text(encoding="ascii"))
        taken = int((cgroup / "memory.current").read_text(encoding="ascii"))
        free = min(free, max(0, most - taken))
    except (OSError, ValueError):
        pass
    return free // 10**6


def usable_workers() -> int:
    """Say how many to run at once: one a CPU, fewer when the memory is short."""
    return max(1, min(usable_cpus(), free_memory_mb() // MB_PER_CHILD))
