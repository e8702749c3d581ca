"""A pytest plugin: coverage says which test reached a line, and each test's seconds are written to a file.

`CONFIDE_SECONDS=FILE coverage run -m pytest -p tests.mutation.contexts ...`, as `nox -s coverage` does.
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
    """A test's name without the group that pytest-xdist writes behind it."""
    return re.sub(r"@\w+$", "", test)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lines that a test, its fixtures included, reaches are noted under its name."""
    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(named(item.nodeid))
    yield
    if measuring is not None:
        measuring.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[named(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # of the processes of pytest-xdist the first one knows all tests
        Path(os.environ["CONFIDE_SECONDS"]).write_text(json.dumps(_seconds, indent=0), encoding="utf-8")
