"""Put each deliberate fault into a copy of the source and see that its test fails: `make mutation`.

    python -m tests.mutation.run [--list | NAME ...]

Prints one line per fault; the exit code is 1 if a fault was not caught, or if a test fails without any fault.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.small import small
from tests.mutation.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1


def main(names: list[str]) -> int:
    if names == ["--list"]:
        print(table())
        return 0
    if unknown := sorted(set(names) - {fault.name for fault in FAULTS}):
        print(f"no fault is called {unknown[0]!r}; --list names all of them")
        return 2
    chosen = [fault for fault in FAULTS if fault.name in names] or small(FAULTS, FAULTS[:3])
    for fault in chosen:
        faulty(fault)  # refuses a table that does not fit the source, before any test is run
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        tests = sorted({fault.test for fault in chosen})
        code, output = run(tests, source)
        if code != PASSED:
            print(f"the tests fail without any fault:\n{output}")
            return 1
        missed = [fault for fault in chosen if not caught(fault, source)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults caught")
    return 1 if missed else 0


def caught(fault: Fault, source: Path) -> bool:
    path, begin = source / "confide" / fault.file, time.monotonic()
    right = path.read_text(encoding="utf-8")
    path.write_text(faulty(fault), encoding="utf-8")
    try:
        code, output = run([fault.test], source)
    finally:
        path.write_text(right, encoding="utf-8")
    failed = re.findall(r"^(?:FAILED|ERROR) \S*?::(\S+)", output, flags=re.MULTILINE)
    verdict = (
        f"caught by {failed[0]}" if code == FAILED and failed else f"NOT CAUGHT by {fault.test} (exit code {code})"
    )
    print(f"{fault.name:55} {verdict}  ({time.monotonic() - begin:.0f} s)", flush=True)
    return code == FAILED and bool(failed)


def faulty(fault: Fault) -> str:
    text = (ROOT / "src" / "confide" / fault.file).read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise SystemExit(
            f"{fault.name}: its text occurs {text.count(fault.old)} times in {fault.file}; update the table"
        )
    return text.replace(fault.old, fault.new)


def run(tests: list[str], source: Path) -> tuple[int, str]:
    """The first failure of the tests, with `confide` imported from `source`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import confide; print(confide.__file__)"],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert Path(where.strip()).is_relative_to(source), "the copy is not the one that is imported"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def table() -> str:
    rows = [f"| {fault.name} | `{fault.file}` | `{fault.test}` |" for fault in FAULTS]
    return "\n".join(["| fault | file | caught by |", "|---|---|---|", *rows])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
