"""Every command that a document, a docstring, the Makefile or the noxfile names, in its small form: `nox -s smoke`.

    python -m tests.commands             all of them, two at a time, in some minutes
    python -m tests.commands price       those whose name contains one of these words

Each works in a copy of the checkout, so that nothing here is overwritten, and with stand-ins for the real data. The
walk prints one line for every command, with its seconds; the exit code is 1 if one failed. A command that a document
names has a row below, or `tests/test_commands.py` fails.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from benchmarks.small import ROOT
from tests.stand_ins import write_stand_ins

SECONDS, TOGETHER = 600, 2
"""How long a command may take, and how many run at a time."""


class Row(NamedTuple):
    """How a command is run."""

    small: str = ""
    """The command to run instead, if not the command itself; {data} has stand-ins, {out} is an empty folder."""
    elsewhere: str = ""
    """The reason for not running it here."""


IN_CI = Row(elsewhere=".ci/run runs it whole")
BENCH, FUZZ = (Row(elsewhere=f"nox -s {name}") for name in ("bench", "fuzz"))
PEERS, PACKAGES = (Row(elsewhere=f"nox -s {name}") for name in ("bench-peers", "packages"))
PART, FULL = Row(elsewhere="nox -s experiments"), Row(elsewhere="nox -s experiments -- --full")
DRAWN, STORIES = Row(elsewhere="make docs"), Row(elsewhere="tests/docs/test_stories.py")
ENGINES = Row(elsewhere="tests/tables/test_counts_file.py")

ROWS = {  # what takes longest comes first
    "nox -s experiments": Row(),
    "nox -s bench": Row(),
    "nox -s bench-peers": Row(),
    "nox -s experiments -- --full": Row(),
    "nox -s fuzz": Row(),
    "nox -s screenshots": Row(),
    "nox -s gallery": Row(),
    "nox -s packages": Row(),
    "python -m benchmarks.accelerator": Row(),
    "python -m benchmarks.accelerator --device cuda --rows 50000 --classes 1000": Row(
        elsewhere="needs a GPU; without --device the processor stands in"
    ),
    "python -m benchmarks.calibrate": BENCH,
    "python -m benchmarks.command_line": BENCH,
    "python -m benchmarks.engines": Row(),
    "python -m benchmarks.federated": BENCH,
    "python -m benchmarks.first_call": BENCH,
    "python -m benchmarks.ledger": Row(),
    "python -m benchmarks.ledger --folder FOLDER": Row(elsewhere="python -m benchmarks.ledger"),
    "python -m benchmarks.newer_methods": Row(),
    "python -m benchmarks.newer_methods pcoqs": Row(elsewhere="python -m benchmarks.newer_methods"),
    "python -m benchmarks.newer_methods rob-fcp": Row(elsewhere="python -m benchmarks.newer_methods"),
    "python -m benchmarks.peers": PEERS,
    "python -m benchmarks.price": Row(),
    "python -m benchmarks.price --runs 20 sizes": BENCH,
    "python -m benchmarks.ranked_sets": BENCH,
    "python -m benchmarks.ranked_sets --threads 1": Row(),
    "python -m benchmarks.spark": Row(),
    "python -m benchmarks.watch": Row(),
    "python -m benchmarks.watch --alarms": Row(),
    "python -m benchmarks.watch_rivals": Row(),
    "python examples/from_mapie.py": Row(),
    "python -m examples.membership": Row("python -m examples.membership 20"),
    "python -m examples.language_models": Row("python -m examples.language_models 1"),
    "python -m examples.tune_scores": Row(),
    "python -m experiments": PART,
    "python -m experiments --full federated-paper-full": FULL,
    "python -m experiments --full pps-figure3": FULL,
    "python -m experiments cost": PART,
    "python -m experiments federated-paper": PART,
    "python -m experiments pps-figure2": PART,
    "python -m experiments pps-figures1-6": PART,
    "python -m experiments pps-figures4-5": PART,
    "python -m experiments.federated.paper": Row(),
    "python -m experiments.price_picture": Row(),
    "python -m fuzz.run": FUZZ,
    "python -m fuzz.run --each 1000000": FUZZ,
    "python -m release.packages .venv": Row(),
    "python -m release.sbom dist": PACKAGES,
    "python -m tests.commands": Row(elsewhere="nox -s smoke"),
    "python -m tests.golden": Row(elsewhere="tests/golden/test_golden.py"),
    "python -m tests.kept": Row(),
    "python -m tests.surface.pinned": Row(),
    "python -m tests.vectors.make": Row(),
    "python examples/engines/ray_map_batches.py": ENGINES,
    "python examples/engines/spark_map_in_arrow.py spark": ENGINES,
    "python examples/engines/torch_dataloader.py": ENGINES,
    "python examples/mlflow_sets.py sets": Row(elsewhere="tests/test_recipes.py"),
    "python examples/monai_masks.py": Row(elsewhere="tests/test_recipes.py"),
    "python examples/stories/hospitals.py": STORIES,
    "python examples/stories/images.py": STORIES,
    "python examples/stories/year.py": STORIES,
    "python examples/stories/year.py pages": STORIES,
    "python requirements/lock.py --keep": Row(elsewhere="takes files' hashes from the network"),
    "make check": IN_CI,
    "make clean": Row(elsewhere="removes the environments that the others need"),
    "nox -s coverage": Row(elsewhere="takes two hours"),
    "nox -s long": Row(elsewhere="takes half an hour"),
    "make demo": Row(elsewhere="tests/test_demo.py"),
    "nox -s dist": Row(elsewhere="nox -s packages, and nox -s long, which has its tests"),
    "make docs": IN_CI,
    "nox -s extras": IN_CI,
    "make help": Row(),
    "make setup": IN_CI,
    "nox -s lock": Row(elsewhere="takes newer versions from the network"),
    "nox -s mlflow": IN_CI,
    "nox -s nvflare": IN_CI,
    "nox -s peers": IN_CI,
    "nox -s proofs": Row(elsewhere="tests/proofs"),
    "nox -s smoke": IN_CI,
    "nox -s stores": IN_CI,
    "make test": IN_CI,
    "make test-slow": IN_CI,
}

FOLDERS = ("benchmarks", "docs", "examples", "experiments", "fuzz", "release", "requirements", "tests")
_ANY = "|".join(FOLDERS)
_COMMAND = re.compile(rf"python3? (-m (?:{_ANY})\b(?:\.\w+)*|(?:{_ANY})/[\w/]+\.py)((?: [\w./=-]+)*)")
_TEXTS = (".md", ".py", ".toml", ".in", ".sh", "Makefile")


def files() -> list[Path]:
    """Files that git tracks or would add, relative to the root."""
    known = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(known, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [Path(name) for name in names if name and (ROOT / name).exists()]


def named() -> dict[str, list[str]]:
    """Every command of ours that a text of the repository names, targets of make and sessions of nox, with places."""
    found: dict[str, list[str]] = {}
    for path in files():
        if path.name.endswith(_TEXTS) and path != Path("tests/commands.py"):
            text = (ROOT / path).read_text(encoding="utf-8")
            for what, words in _COMMAND.findall(text):
                found.setdefault(f"python {what}{words}".rstrip("."), []).append(str(path))
    makefile, noxfile = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "noxfile.py"))
    targets = re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE)
    sessions = [
        name.replace("_", "-") for name in re.findall(r"^@nox.session.*\ndef (\w+)", noxfile, flags=re.MULTILINE)
    ]
    return (
        found
        | {f"make {target}": ["Makefile"] for target in targets}
        | {f"nox -s {session}": ["noxfile.py"] for session in [*sessions, "experiments -- --full"]}
    )


def walk(words: list[str]) -> int:
    """Run every row whose name contains one of the words, or all that do not run elsewhere; how many failed."""
    wanted = (any(word in name for word in words) if words else not row.elsewhere for name, row in ROWS.items())
    chosen = dict(compress(ROWS.items(), wanted))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="confide-commands-") as folder:
        data = Path(folder).resolve()
        write_stand_ins(data)
        with ThreadPoolExecutor(TOGETHER) as pool:
            done = list(pool.map(lambda name: run(name, chosen[name], data), chosen))
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


def run(name: str, row: Row, data: Path) -> bool:
    """Run a row in its own copy and print a line about it; return True if it succeeded."""
    if row.elsewhere:
        print(f"{name}: not here: {row.elsewhere}", flush=True)
        return True
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="confide-command-") as folder, tempfile.TemporaryFile("w+") as said:
        copy, out = Path(folder).resolve() / "confide", Path(folder).resolve() / "out"
        write_copy(copy)
        out.mkdir()
        words = shlex.split((row.small or name).format(data=data, out=out))
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
    print(f"{name}: {time.monotonic() - begin:.0f} s{tail}", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(1 if walk(sys.argv[1:]) else 0)
