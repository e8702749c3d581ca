"""Tests of one mutant, in a process that has collected them before, and in a copy of the repository.

The mutant is put into the functions in memory, and into the copy, which other processes that a test starts import. A
mutant of code that runs at import must be imported: its process removes `confide` and collects the tests again.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutation.sample import ROOT

COPIED = ("src", "tests", "docs", "examples", "benchmarks", "experiments", "fuzz", "requirements", "docker")
MEMORY = 8 << 30  # of addresses, of which few are used
CHANGED = 1_000_000_000  # a modification time that no compiled file has
FAILED_ITSELF = 70  # an exit code that pytest does not have
QUIET = [
    "--no-header",
    "--tb=line",
    "-rfE",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]


class Copy:
    """A copy of the repository that contains one mutant at a time."""

    def __init__(self, folder: Path):
        self.folder, self.temporary = folder, folder / "temporary"
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build"), symlinks=True)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, folder)

    def put(self, file: Path, text: str) -> None:
        place = self.folder / file.relative_to(ROOT)
        place.write_text(text, encoding="utf-8")
        os.utime(place, (CHANGED, CHANGED))  # files compiled before are not used for it
        self.temporary.mkdir()

    def restore(self, file: Path) -> None:
        shutil.copy2(file, self.folder / file.relative_to(ROOT))
        shutil.rmtree(self.temporary, ignore_errors=True)


class Fork:
    """A process that runs `body` and exits with its result; `ended` after that or after the timeout.

    `timeout` is in seconds of processor time; ten times as much wall time may pass, because others use the processor.
    """

    def __init__(self, copy: Copy, body: Callable[[], int], timeout: float):
        self.output = copy.folder / "output.txt"
        self._until, self.code, self.timed_out = time.monotonic() + 10 * timeout, 0, False
        sys.stdout.flush()
        self._pid = os.fork()
        if not self._pid:
            try:
                _settle(copy, self.output, int(timeout))
                os._exit(body())
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(FAILED_ITSELF)

    def ended(self) -> bool:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid and time.monotonic() > self._until:
            self.timed_out = True
            os.killpg(self._pid, signal.SIGKILL)
            pid, status = os.waitpid(self._pid, 0)
        if not pid:
            return False
        with contextlib.suppress(ProcessLookupError):  # processes that tests left running, in this group
            os.killpg(self._pid, signal.SIGKILL)
        self.code = os.waitstatus_to_exitcode(status)
        self.timed_out |= self.code == -signal.SIGXCPU
        return True

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")


def _settle(copy: Copy, output: Path, timeout: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout + 5))
    os.chdir(copy.folder)
    to = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(to, 1)
    os.dup2(to, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    tempfile.tempdir = str(copy.temporary)
    sys.dont_write_bytecode = True
    paths = os.pathsep.join([str(copy.folder / "src"), str(copy.folder)])
    os.environ |= {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(copy.temporary)}


def run_collected(
    items: list[pytest.Item], failed: list[str], changes: list[tuple[FunctionType, CodeType]], budget: float
) -> int:
    """Apply the mutant and run tests up to the first failure, which a plugin records in `failed`.

    No test starts after `budget` seconds of processor time. The time of each is printed.
    """
    for function, code in changes:
        function.__code__ = code
    session, begun = items[0].session, time.process_time()
    for item, following in pairwise([*items, None]):
        assert item is not None
        if time.process_time() - begun > budget:
            break
        before = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        print(f"\nSECONDS {time.process_time() - before:.3f} {item.nodeid}")
        if failed:
            print(f"\nFAILED {failed[0]}")
            break
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=int(bool(failed)))  # end what fixtures started
    sys.stdout.flush()
    return int(bool(failed))


def run_imported(copy: Copy, tests: list[str]) -> int:
    """Import all modules of the repository again and run tests up to the first failure."""
    ours = ("confide", "tests", "conftest", "benchmarks", "examples", "experiments", "fuzz")
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    kept = [path for path in sys.path if not path.startswith(str(ROOT))]
    sys.path[:] = [str(copy.folder / "src"), str(copy.folder), *kept]
    code = pytest.main(["-x", "-q", *QUIET, *tests])
    sys.stdout.flush()
    return int(code)
