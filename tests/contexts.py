"""A pytest plugin: coverage records which test reached a line, and a file records each test's seconds.

`CONFIDE_SECONDS=FILE coverage run -m pytest -p tests.contexts ...`, as `nox -s coverage` does.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

_seconds: Counter[str] = Counter()


def named(test: str) -> str:
    """A test's name without the group that pytest-xdist appends."""
    return re.sub(r"@\w+$", "", test)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the lines that a test and its fixtures reach under its name."""
    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(named(item.nodeid))
    yield
    if measuring is not None:
        measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[named(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # of the processes of pytest-xdist only the first one has all tests
        Path(os.environ["CONFIDE_SECONDS"]).write_text(json.dumps(_seconds, indent=0), encoding="utf-8")
