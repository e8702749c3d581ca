"""Shortest times of calls, and the cost of whole processes."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


def shortest(
    calls: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The least time of each call in seconds; the calls alternate, so that all have the same conditions."""
    times = dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            times[name] = min(times[name], clock() - start)
    return times


@dataclass(frozen=True)
class Cost:
    """Time, processor time and largest memory of a process."""

    seconds: float
    processor: float
    peak_bytes: int


def cost_of(arguments: list[str], folder: Path, repeats: int) -> Cost:
    """Run Python in a folder with modules that are compiled already: the least times, and the largest memory."""
    costs = [_run(arguments, folder) for _ in range(repeats)]
    return Cost(min(c.seconds for c in costs), min(c.processor for c in costs), max(c.peak_bytes for c in costs))


def _run(arguments: list[str], folder: Path) -> Cost:
    """Run one process; stop if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a process failed: {arguments}")
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, used.ru_utime + used.ru_stime, peak)
