"""Commands that documents name and that no other session runs, in their small form: `nox -s smoke`.

    python -m tests.commands             all of them, two at a time, in some minutes
    python -m tests.commands price       those whose name contains one of these words

Each works in a copy of the checkout, so that nothing here is overwritten, and with stand-ins for the real data. The
walk prints one line for every command, with its seconds; the exit code is 1 if one failed.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.small import ROOT
from tests.stand_ins import write_stand_ins

SECONDS, TOGETHER = 600, 2
"""How long a command may take, and how many run at a time."""


COMMANDS = (  # what takes longest comes first
    "nox -s experiments",
    "nox -s bench",
    "nox -s bench-peers",
    "nox -s experiments -- --full",
    "nox -s fuzz",
    "nox -s screenshots",
    "nox -s gallery",
    "nox -s packages",
    "python -m benchmarks.accelerator",
    "python -m benchmarks.engines",
    "python -m benchmarks.ledger",
    "python -m benchmarks.newer_methods",
    "python -m benchmarks.price",
    "python -m benchmarks.ranked_sets --threads 1",
    "python -m benchmarks.spark",
    "python -m benchmarks.watch",
    "python -m benchmarks.watch --alarms",
    "python -m benchmarks.watch_rivals",
    "python examples/engines/torch_dataloader.py",
    "python examples/from_mapie.py",
    "python -m examples.membership 20",
    "python -m examples.language_models 1",
    "python -m examples.tune_scores",
    "python -m experiments.federated.paper",
    "python -m experiments.price_picture",
    "python -m release.packages .venv",
    "python -m tests.kept",
    "python -m tests.surface.pinned",
    "python -m tests.vectors.make",
    "make help",
)


def files() -> list[Path]:
    """Files that git tracks or would add, relative to the root."""
    known = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [Path(name) for name in names if name and (ROOT / name).exists()]


def walk(words: list[str]) -> int:
    """Run every command that contains one of the words, or all without a word; how many failed."""
    chosen = [command for command in COMMANDS if not words or any(word in command for word in words)]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="confide-commands-") as folder:
        data = Path(folder).resolve()
        write_stand_ins(data)
        with ThreadPoolExecutor(TOGETHER) as pool:
            done = list(pool.map(lambda command: run(command, data), chosen))
    failed = done.count(False)
    print(f"{len(done)} commands in {time.monotonic() - begin:.0f} s, {failed} failed")
    return failed


def write_copy(copy: Path) -> None:
    """The checkout with uncommitted changes, times of files, and links to its environments."""
    for path in files():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, copy / path)
    for environment in ROOT.glob(".venv*"):
        (copy / environment.name).symlink_to(environment.resolve())


def run(command: str, data: Path) -> bool:
    """Run a command in its own copy and print a line about it; return True if it succeeded."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="confide-command-") as folder, tempfile.TemporaryFile("w+") as said:
        copy = Path(folder).resolve() / "confide"
        write_copy(copy)
        words = shlex.split(command)
        settings = {"CONFIDE_SMALL": str(copy), "CONFIDE_DATA": str(data), "PYTHONPATH": str(copy / "src")}
        programs = {"python": sys.executable, "nox": str(Path(sys.executable).with_name("nox"))}
        process = subprocess.Popen(
            [programs.get(words[0], words[0]), *words[1:]],
            cwd=copy,
            env=os.environ | settings | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | str = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = f"none after {SECONDS} s"
        said.seek(0)
        tail = "" if code == 0 else f", FAILED, exit code {code}:\n{said.read()[-4000:]}"
    print(f"{command}: {time.monotonic() - begin:.0f} s{tail}", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(1 if walk(sys.argv[1:]) else 0)
