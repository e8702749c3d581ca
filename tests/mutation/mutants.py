"""A tool's mutants: `make mutants` puts each into a copy of the source and runs the tests that reach it.

    python -m tests.mutation.mutants run SESSION COVERAGE SECONDS [--each N] [--processes K] [--budget S] [--again]
    python -m tests.mutation.mutants report SESSION [--each N]
    python -m tests.mutation.mutants killers SESSION

`run` goes on where it stopped; results stay in SESSION, which cosmic-ray's own tools read too (cr-html, cr-report).
`--again` tries survivors once more. `killers` prints the tests that killed mutants, which have to pass without one.
"""

import argparse
import difflib
import gc
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult
from scipy.stats import binomtest

from tests.mutation.forks import QUIET, Copy, Fork, run_collected, run_imported
from tests.mutation.patched import Functions
from tests.mutation.reach import Reach
from tests.mutation.session import SETTINGS, Mutant, mutants, opened

FIRST = 3.0
"""Seconds of tests that a mutant meets at first; a mutant that survives them meets the others up to --budget."""
TIMEOUT: float = SETTINGS["cosmic-ray"]["timeout"]
PASSED, FAILED, BROKEN, USAGE = 0, 1, 2, 4
_NO_MORE = object()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "report", "killers"):
        command = commands.add_parser(name)
        command.add_argument("session", type=Path)
        command.add_argument("--each", type=int, default=None, help="mutants of each room; all if left out")
        command.add_argument("--rooms", nargs="+", default=list(SETTINGS["rooms"]), choices=list(SETTINGS["rooms"]))
        if name == "run":
            command.add_argument("coverage", type=Path)
            command.add_argument("seconds", type=Path)
            command.add_argument("--processes", type=int, default=2)
            command.add_argument("--budget", type=float, default=120.0, help="seconds of tests that a mutant meets")
            command.add_argument("--marked", default="not slow and not long", help="tests that may be run, for pytest")
            command.add_argument("--again", action="store_true", help="try those that survived once more")
    options = parser.parse_args(arguments)
    database = opened(options.session)
    chosen = {room: found[: options.each] for room, found in mutants(database).items() if room in options.rooms}
    if options.command == "run":
        done = dict(database.results)
        in_turn = [mutant for several in zip_longest(*chosen.values()) for mutant in several if mutant is not None]
        left = [
            mutant
            for mutant in in_turn
            if mutant.job not in done or (options.again and done[mutant.job].test_outcome == TestOutcome.SURVIVED)
        ]
        reach = Reach(options.coverage, options.seconds)
        run(database, left, reach, options)
    elif options.command == "report":
        print(report(database, chosen))
    else:
        print("\n".join(sorted({result.output for _, result in database.results if "::" in str(result.output)})))
    return 0


def run(database: WorkDB, left: list[Mutant], reach: Reach, options: argparse.Namespace) -> None:
    """Try each mutant, in so many processes at once, with tests that are collected once."""
    files = sorted({name.partition("::")[0] for mutant in left for name in reach.tests(mutant)})
    trials = Trials(database, left, reach, options)
    arguments = ["-s", *QUIET, "-m", options.marked, *files]
    if (code := pytest.main(arguments, plugins=[trials])) != PASSED:
        raise SystemExit(f"the tests could not be collected (exit code {code})")


class Trials:
    """A plugin of pytest that tries mutants instead of running the tests once."""

    def __init__(self, database: WorkDB, left: list[Mutant], reach: Reach, options: argparse.Namespace):
        self._database, self._left, self._reach, self._options = database, left, reach, options
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = Functions({mutant.file for mutant in self._left})
        self._functions.forget()
        gc.freeze()
        with tempfile.TemporaryDirectory() as folder:
            lines = [self._line(Copy(Path(folder) / str(i))) for i in range(self._options.processes)]
            while lines:  # each goes on to its next mutant by itself
                lines = [line for line in lines if next(line, _NO_MORE) is not _NO_MORE]
                time.sleep(0.005)
        return True

    def _line(self, copy: Copy) -> Iterator[None]:
        while self._left:
            mutant, begin = self._left.pop(0), time.monotonic()
            right, mutated = mutant.file.read_text(encoding="utf-8"), mutant.source()
            if not _is_python(mutated):
                self._database.set_result(mutant.job, WorkResult(WorkerOutcome.SKIPPED, "no Python"))
                continue
            copy.put(mutant.file, mutated)
            outcome, said = yield from self._tried(copy, mutant, right, mutated)
            copy.restore(mutant.file)
            diff = "\n".join(difflib.unified_diff(right.split("\n"), mutated.split("\n"), lineterm="", n=2))
            self._database.set_result(mutant.job, WorkResult(WorkerOutcome.NORMAL, said, outcome, diff))
            took = f"{time.monotonic() - begin:.1f} s"
            print(f"{outcome.value:9}{mutant.room:11}{mutant!s:70}{said}  ({took})", flush=True)

    def _tried(
        self, copy: Copy, mutant: Mutant, right: str, mutated: str
    ) -> Generator[None, None, tuple[TestOutcome, str]]:
        """Whether tests kill a mutant, and which one; yields while they run."""
        budget, ran = self._options.budget, 0
        known = [name for name in self._reach.tests(mutant) if name in self._items]
        tests = self._reach.quickest(known, 2 * budget)  # stopped in time, should these seconds be too low
        if not tests:
            return TestOutcome.SURVIVED, "no test reaches it"
        if changes := self._functions.changes(mutant.file, right, mutated):
            items = [self._items[name] for name in tests]
            stages = [(tests, partial(run_collected, items, self._failed, changes, budget))]
        else:
            first = self._reach.quickest(tests, FIRST)
            second = self._reach.quickest(tests[len(first) :], budget)
            stages = [(stage, partial(run_imported, copy, stage)) for stage in (first, second)]
        for stage, body in stages:
            if stage:
                fork = Fork(copy, body, TIMEOUT + budget)
                while not fork.ended():
                    yield
                ran += self._reach.learn(fork.said()) if changes else len(stage)
                if killer := killed_by(fork):
                    return TestOutcome.KILLED, killer
        return TestOutcome.SURVIVED, f"{ran} tests passed, of {len(known)} that reach it"


def _is_python(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def killed_by(fork: Fork) -> str:
    """The test that failed, or what else happened; nothing if all passed."""
    said = fork.said()
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", said, flags=re.MULTILINE)
    if fork.timed_out:
        return "ran out of time"
    if fork.code == PASSED:
        return ""
    if fork.code == FAILED and failed:
        return failed[0]
    if fork.code in (BROKEN, USAGE) and "not found: " not in said:
        return "cannot be imported"
    if fork.code < 0:
        return f"crashed with signal {-fork.code}"
    raise SystemExit(f"the tests could not be run (exit code {fork.code}):\n{said}")


def report(database: WorkDB, chosen: dict[str, list[Mutant]]) -> str:
    """Per room how many there are, were tried and were killed, with an exact interval at 95 %; then the survivors."""
    results, there_are = dict(database.results), {room: len(found) for room, found in mutants(database).items()}
    rows, survivors, total = [], [], Counter[str]()
    for room, found in chosen.items():
        tried = [m for m in found if m.job in results and results[m.job].worker_outcome == WorkerOutcome.NORMAL]
        alive = [m for m in tried if results[m.job].test_outcome == TestOutcome.SURVIVED]
        total.update(all=there_are[room], tried=len(tried), alive=len(alive))
        rows.append(_row(room, there_are[room], len(tried), len(alive)))
        survivors += [f"## {m}\n{results[m.job].output}\n{results[m.job].diff}\n" for m in alive]
    names = "| room | mutants | tried | killed | survived | share killed, and its interval at 95 % |"
    return "\n".join(
        [
            names,
            "|---|---|---|---|---|---|",
            *rows,
            _row("together", total["all"], total["tried"], total["alive"]),
            "",
            *survivors,
        ]
    )


def _row(room: str, there_are: int, tried: int, alive: int) -> str:
    low, high = binomtest(tried - alive, tried).proportion_ci(0.95) if tried else (0.0, 1.0)
    share = f"{(tried - alive) / max(tried, 1):.1%} ({low:.1%} to {high:.1%})"
    return f"| {room} | {there_are} | {tried} | {tried - alive} | {alive} | {share} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
