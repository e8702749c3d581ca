"""Fuzz one target, or all of them in turn: `python -m fuzz.run [--each RUNS] [TARGET [libFuzzer options]]`.

Coverage-guided by atheris (libFuzzer). A crash stops the run and leaves its input in a file `crash-*`; a target that
takes longer than 20 seconds counts as a hang, one that needs more than 2 GB as excessive memory.
"""

import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from benchmarks.small import small

LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1")


def main() -> int:
    """Fuzz the targets of the command line."""
    each = int(sys.argv[2]) if sys.argv[1:2] == ["--each"] else None
    if len(sys.argv) > 1 and each is None:
        return _one(sys.argv[1], sys.argv[2:])
    from fuzz.targets import RUNS

    total, begin = 0, time.monotonic()
    for name, usual in small(RUNS, dict(islice(RUNS.items(), 2))).items():
        runs = small(each or usual, 100)
        command = [sys.executable, "-m", "fuzz.run", name, f"-runs={runs}"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(done.stderr[-4000:])
            return done.returncode
        counted = next(line for line in done.stderr.splitlines() if "number_of_executed_units" in line)
        executed = int(counted.rsplit(maxsplit=1)[1])
        total += executed
        print(f"{name:20} {executed:>9} executions, nothing found", flush=True)
    print(f"{'total':20} {total:>9} executions in {time.monotonic() - begin:.0f} s")
    return 0


def _one(name: str, options: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["confide"]):
        from fuzz.targets import TARGETS, seeds

        starts = seeds(name)
    with tempfile.TemporaryDirectory() as corpus:
        for number, start in enumerate(starts):
            (Path(corpus) / str(number)).write_bytes(start)
        atheris.Setup([sys.argv[0], *LIMITS, *options, corpus], TARGETS[name])
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
