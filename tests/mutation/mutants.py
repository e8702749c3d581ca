"""A sample of a tool's mutants: `nox -s mutants` puts each into a copy of the source and runs the tests that reach it.

    python -m tests.mutation.mutants draw COUNT                  writes sample.txt, from the tree as it is
    python -m tests.mutation.mutants find                        place of the sample in this tree
    python -m tests.mutation.mutants run RESULTS [--coverage FILE --seconds FILE --processes K --budget S --again]
    python -m tests.mutation.mutants report RESULTS [--before OTHER-RESULTS]

`run` continues where it stopped: RESULTS has one line of JSON for each tried mutant. `report --before` compares with
the results of another tree, and exits with 1 if a mutant that was killed there survives here.
"""

import argparse
import difflib
import gc
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from tests.mutation.forks import QUIET, Copy, Fork, run_collected, run_imported
from tests.mutation.patched import Functions
from tests.mutation.reach import Reach
from tests.mutation.sample import SAMPLE, Mutant, Site, drawn, found, sample

FIRST = 3.0
"""Seconds of the first tests of a mutant; a mutant that survives them is run with the others up to --budget."""
TIMEOUT = 60.0
"""Processor seconds that a mutant may take beyond the budget of its tests."""
KILLED, SURVIVED, NO_PYTHON, NOT_RUN, GONE = "killed", "survived", "no Python", "not run", "gone"
PASSED, FAILED, BROKEN, USAGE = 0, 1, 2, 4
_NO_MORE = object()

Results = dict[Site, dict[str, Any]]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("draw").add_argument("count", type=int)
    commands.add_parser("find")
    running, reporting = commands.add_parser("run"), commands.add_parser("report")
    for command in (running, reporting):
        command.add_argument("results", type=Path)
    running.add_argument("--coverage", type=Path, default=Path(".coverage"), help="by `nox -s coverage`")
    running.add_argument(
        "--seconds", type=Path, default=Path(".coverage-seconds.json"), help="the same option for seconds"
    )
    running.add_argument("--processes", type=int, default=2)
    running.add_argument("--budget", type=float, default=20.0, help="seconds of tests that a mutant meets")
    running.add_argument("--marked", default="not slow", help="tests that may be run, for pytest")
    running.add_argument("--count", type=int, default=None, help="how many of the sample; all if left out")
    running.add_argument("--again", action="store_true", help="try those that survived once more")
    reporting.add_argument("--before", type=Path, default=None, help="results of the same sample on another tree")
    options = parser.parse_args(arguments)
    if options.command == "draw":
        lines = ["# " + "\t".join(Site.__dataclass_fields__), *(site.written() for site in drawn(options.count))]
        SAMPLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif options.command == "find":
        for site, (mutant, how) in found(sample()).items():
            print(f"{how:10}{mutant or f'{site.file} {site.function} {site.operator}: {site.line}'}")
    elif options.command == "run":
        run(options)
    else:
        return report(read(options.results), read(options.before) if options.before else {})
    return 0


def read(path: Path) -> Results:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Site(**row["site"]): row for row in rows}  # the last row of a mutant that was tried again


def run(options: argparse.Namespace) -> None:
    """Try each mutant, in so many processes at once, with tests that are collected once."""
    reach = Reach(options.coverage, options.seconds)
    done, left = read(options.results), []
    for site, (mutant, how) in found(sample()[: options.count]).items():
        outcome = done[site]["outcome"] if site in done else None
        if outcome is None or (options.again and outcome in (SURVIVED, NOT_RUN)):
            if mutant is None:
                write(options.results, site, GONE, "", how, "")
            else:
                left.append((site, mutant, how))
    files = sorted({name.partition("::")[0] for _, mutant, _ in left for name in reach.tests(mutant)})
    arguments = ["-s", *QUIET, "-m", options.marked, *(file for file in files if Path(file).exists())]
    if left and (code := pytest.main(arguments, plugins=[Trials(left, reach, options)])) != PASSED:
        raise SystemExit(f"the tests could not be collected (exit code {code})")


def write(path: Path, site: Site, outcome: str, killer: str, how: str, diff: str) -> None:
    row = {"site": asdict(site), "outcome": outcome, "found": how, "by": killer, "diff": diff}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


class NotRunError(Exception):
    """The result of the mutant is unknown."""


class Trials:
    """A plugin of pytest that tries mutants instead of running the tests once."""

    def __init__(self, left: list[tuple[Site, Mutant, str]], reach: Reach, options: argparse.Namespace):
        self._left, self._reach, self._options = left, reach, options
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = Functions({mutant.file for _, mutant, _ in self._left})
        self._functions.forget()
        gc.freeze()
        with tempfile.TemporaryDirectory() as folder:
            copies = [Copy(Path(folder) / str(i)) for i in range(self._options.processes)]
            self._control(copies[0])
            lines = [self._line(copy) for copy in copies]
            while lines:  # each continues with its next mutant by itself
                lines = [line for line in lines if next(line, _NO_MORE) is not _NO_MORE]
                time.sleep(0.005)
        return True

    def _control(self, copy: Copy) -> None:
        """Run tests of the first mutant in both ways without it: if one fails, no mutant has a result."""
        mutant = self._left[0][1]
        known = [name for name in self._reach.tests(mutant) if name in self._items]
        tests = self._reach.quickest(known, FIRST)
        collected = partial(run_collected, [self._items[name] for name in tests], self._failed, [], FIRST)
        for body in (collected, partial(run_imported, copy, tests)) if tests else ():
            copy.put(mutant.file, mutant.file.read_text(encoding="utf-8"))
            fork = Fork(copy, body, TIMEOUT)
            while not fork.ended():
                time.sleep(0.005)
            copy.restore(mutant.file)
            if killer := killed_by(fork):
                raise NotRunError(f"{killer}, without a mutant:\n{fork.said()}")

    def _line(self, copy: Copy) -> Iterator[None]:
        while self._left:
            (site, mutant, how), begin = self._left.pop(0), time.monotonic()
            right, mutated = mutant.file.read_text(encoding="utf-8"), mutant.source
            outcome, said = NO_PYTHON, ""
            if _is_python(mutated):
                copy.put(mutant.file, mutated)
                try:
                    outcome, said = yield from self._tried(copy, mutant, right, mutated)
                except NotRunError as error:
                    outcome, said = NOT_RUN, str(error)[:2000]
                copy.restore(mutant.file)
            diff = "\n".join(difflib.unified_diff(right.split("\n"), mutated.split("\n"), lineterm="", n=2))
            write(self._options.results, site, outcome, said, how, diff)
            print(f"{outcome:10}{mutant!s:80}{said}  ({time.monotonic() - begin:.1f} s)", flush=True)

    def _tried(self, copy: Copy, mutant: Mutant, right: str, mutated: str) -> Generator[None, None, tuple[str, str]]:
        """Return whether tests kill a mutant, and which one; yields while they run."""
        budget, ran = self._options.budget, 0
        known = [name for name in self._reach.tests(mutant) if name in self._items]
        tests = self._reach.quickest(known, 2 * budget)  # stopped in time if these seconds are too low
        if not tests:
            return SURVIVED, "no test reaches it"
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
                    return KILLED, killer
        return SURVIVED, f"{ran} tests passed, of {len(known)} that reach it"


def _is_python(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def killed_by(fork: Fork) -> str:
    """The failed test, or the other outcome; empty if all passed."""
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
    raise NotRunError(f"the tests could not be run (exit code {fork.code}):\n{said}")


def report(results: Results, before: Results) -> int:
    """Numbers of tried and killed mutants by package, with an exact interval at 95 %, followed by details.

    Details are the survivors; of two trees, the mutants that were killed before and survive now.
    """
    counted = Counter((site.package, row["outcome"]) for site, row in results.items())
    print("| package | tried | killed | survived | gone | share killed, and its interval at 95 % |")
    print("|---|---|---|---|---|---|")
    for package in sorted({package for package, _ in counted}):
        print(_row(package, *(counted[package, outcome] for outcome in (KILLED, SURVIVED, GONE))))
    print(_row("together", *(sum(n for (_, o), n in counted.items() if o == w) for w in (KILLED, SURVIVED, GONE))))
    worse = [site for site, row in results.items() if row["outcome"] == SURVIVED]
    if before:
        worse = [site for site in worse if site in before and before[site]["outcome"] == KILLED]
        better = [site for site, row in before.items() if row["outcome"] == SURVIVED and site in results]
        died = sum(results[site]["outcome"] == KILLED for site in better)
        print(f"\n{len(worse)} were killed before and survive now; {died} survived before and are killed now.")
    for site in worse:
        output = [f"before: {before[site]['by']}"] if before else []
        row = results[site]
        print("\n".join([f"\n## {site.file} {site.function} {site.operator}", row["by"], *output, row["diff"]]))
    return int(bool(before and worse))


def _row(package: str, killed: int, survived: int, gone: int) -> str:
    tried = killed + survived
    low, high = binomtest(killed, tried).proportion_ci(0.95) if tried else (0.0, 1.0)
    share = f"{killed / max(tried, 1):.1%} ({low:.1%} to {high:.1%})"
    return f"| {package} | {tried} | {killed} | {survived} | {gone} | {share} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
