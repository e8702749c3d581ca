"""Which tests reach a line, and how long each takes: measured by `nox -s coverage`, read by `nox -s mutants`."""

import json
import re
from pathlib import Path

from coverage import CoverageData

from tests.mutation.sample import Mutant

LOCAL = 0.1
"""Tests of a mutant's own package come before others that take up to ten times less."""


class Reach:
    def __init__(self, data: Path, seconds: Path):
        self._data = CoverageData(str(data))
        self._data.read()
        self._seconds: dict[str, float] = json.loads(seconds.read_text(encoding="utf-8"))
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that reach the mutant's lines (those of its file, if its lines run at import), quickest first.

        Then tests of its package that reach its file: for a function with cached results, coverage records only
        the first test.
        """
        file = mutant.path
        if file not in self._lines:
            self._lines[file] = self._data.contexts_by_lineno(file)
        by_line = self._lines[file]
        found = {name for line in mutant.lines for name in by_line.get(line, ()) if name in self._seconds}
        of_file = {name for names in by_line.values() for name in names if name in self._seconds}
        package = mutant.site.package
        own = (f"tests/{package}/", f"src/confide/{package}/")
        more = {name for name in of_file - found if name.startswith(own)} if found else of_file

        def cost(name: str) -> float:
            return self._seconds[name] * (LOCAL if name.startswith(own) else 1)

        return sorted(found, key=cost) + sorted(more, key=cost)

    def learn(self, said: str) -> int:
        """Recorded times of tests, and their number."""
        found = re.findall(r"^SECONDS (\S+) (.*)$", said, flags=re.MULTILINE)
        self._seconds |= {name: float(seconds) for seconds, name in found}
        return len(found)

    def quickest(self, tests: list[str], seconds: float) -> list[str]:
        """As many tests as take so many seconds together, at least one."""
        total, chosen = 0.0, []
        for name in tests:
            total += self._seconds[name]
            if chosen and total > seconds:
                break
            chosen.append(name)
        return chosen
