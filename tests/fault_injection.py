"""Faults put into the library while tests run that have to notice them: see test_faults.py."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from confide.errors import ConfideError

ROOT = Path(__file__).parents[1]

NOTICED = "noticed"

Change = Callable[[Any], Any]
"""From a function or property as it is to a faulty one."""


class Fault(NamedTuple):
    what: str
    """Description of the fault."""
    target: str
    """The module and the name of a function, method or property: `confide.ledger.payment:Bill.charge`."""
    change: Change
    test: str
    """The test that has to fail: its file below tests/, and its name; with the case where only some can notice."""


def arguments(change: Callable[..., Sequence[Any]]) -> Change:
    """The function gets other positional arguments."""
    return lambda right: lambda *given, **named: right(*change(*given), **named)


def result(change: Callable[[Any], Any]) -> Change:
    """The function, or the property, gives something else."""

    def faulty(right: Any) -> Any:
        if isinstance(right, property):
            return property(lambda self: change(right.fget(self)))  # type: ignore[misc]
        return lambda *given, **named: change(right(*given, **named))

    return faulty


def always(value: Any) -> Change:
    """The function, or the property, gives one value: a check that checks nothing returns None."""
    return lambda right: property(lambda self: value) if isinstance(right, property) else lambda *_, **__: value


def put(fault: Fault, patch: pytest.MonkeyPatch) -> None:
    """Replace the target under all its names, and clear the caches of the original."""
    module_name, _, path = fault.target.partition(":")
    owner: Any = import_module(module_name)
    *classes, name = path.split(".")
    for one in classes:
        owner = getattr(owner, one)
    held = vars(owner)[name]
    right = held.__func__ if isinstance(held, staticmethod | classmethod) else held
    wrong = type(held)(fault.change(right)) if right is not held else fault.change(right)
    patch.setattr(owner, name, wrong)
    if not classes:
        for module in ours():
            for known in [known for known, value in vars(module).items() if value is held]:
                patch.setattr(module, known, wrong)
    forget()


def forget() -> None:
    """Clear the caches of the library's functions."""
    for module in ours():
        for value in list(vars(module).values()):
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()


def ours() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in ("confide", "tests")]


class Tried:
    """A plugin of pytest that runs the test of each fault with the fault applied; `ends` has the results."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.ends = dict.fromkeys(faults, "its test was not found")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        yield
        if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
            self._error = call.excinfo.value

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for fault in self.ends:
            self._error: BaseException | None = None
            with pytest.MonkeyPatch.context() as patch:
                put(fault, patch)
                for item in session.items:
                    if f"tests/{fault.test}" in (item.nodeid, *item.nodeid.split("::")[:1], item.nodeid.split("[")[0]):
                        self.ends[fault] = "its test passes"
                        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                        if self._error is not None:
                            break
            forget()
            if self._error is not None:
                noticed = isinstance(self._error, AssertionError | pytest.fail.Exception | ConfideError | UserWarning)
                self.ends[fault] = NOTICED if noticed else f"its test cannot run: {self._error!r}"
        return True


def unnoticed(faults: Sequence[Fault]) -> dict[str, str]:
    """The faults whose test did not fail as it should, and how it ended."""
    tried = Tried(faults)
    tests = sorted({str(ROOT / "tests" / fault.test) for fault in faults})
    pytest.main(["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *tests], plugins=[tried])
    return {fault.what: end for fault, end in tried.ends.items() if end != NOTICED}
