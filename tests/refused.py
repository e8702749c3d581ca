"""Tables of errors: class and argument, not words.

`with refused(InputError, "epsilon"):` holds one refusal; a table of `Refused` rows and `check` hold many: each row
changes one thing in a call that works. Planted private values are searched for in everything that an error carries.
"""

import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from confide.errors import ConfideError

PLANTED = (0.123456789, 987654.321, 0.7654321987)
"""Values that appear in private inputs and nowhere else."""

DIGITS = re.compile(r"123456789|12345678|987654|7654321987|76543219")


def planted_scores(n: int = 50) -> np.ndarray:
    """Scores of which all are planted values."""
    return np.resize(np.array(PLANTED), n)


def assert_no_private_value(text: object) -> None:
    found = DIGITS.search(str(text))
    assert found is None, f"a private value is visible: {found.group()}"


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that led to it, shown in tracebacks or not."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            todo += [link.__cause__, link.__context__]
            yield link


def assert_error_is_private(error: BaseException) -> None:
    """No planted value in the message, the arguments, the formatted traceback or any error behind it."""
    for link in chain(error):
        assert_no_private_value(link)
        assert_no_private_value(repr(link.args))
        assert_no_private_value(repr(getattr(link, "__notes__", "")))
    lines = traceback.format_exception_only(error)
    assert_no_private_value("".join(lines))


@contextmanager
def refused(
    kind: type[ConfideError] | tuple[type[ConfideError], ...], argument: str
) -> Iterator[pytest.ExceptionInfo[ConfideError]]:
    """Expect an error about this argument within the block, in one line without planted values."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) in (kind if isinstance(kind, tuple) else (kind,)), f"{type(error).__name__}, not {kind}: {error}"
    assert error.argument == argument, f"{error.argument!r}, not {argument!r}: {error}"
    assert error.requirement
    assert "\n" not in str(error)
    assert_error_is_private(error)


def numbers(caught: pytest.ExceptionInfo[ConfideError]) -> list[int]:
    """The counts and positions in the `got` part of an error."""
    return [int(digits) for digits in re.findall(r"\d+", caught.value.got)]


@dataclass(frozen=True)
class Refused:
    """A row of a table of errors: a valid call, a change, and the argument of the error.

    The value `...` leaves an argument out.
    """

    call: Callable[..., Any]
    good: Mapping[str, Any]
    change: Mapping[str, Any]
    argument: str
    kind: type[ConfideError] = field(kw_only=True)

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={_called(value)}"[:40] for name, value in self.change.items())
        return f"{getattr(self.call, '__name__', self.call)}({changed})"

    def check(self) -> None:
        """The call raises an error about the argument."""
        arguments = {name: value for name, value in {**self.good, **self.change}.items() if value is not ...}
        with refused(self.kind, self.argument):
            self.call(**arguments)


def bad_rows(caught: pytest.ExceptionInfo[ConfideError]) -> list[tuple[int, int | None]]:
    """For an error about rows: the number that violate each requirement, and the first one if rows have an order."""
    found = re.findall(
        r"(\d+)(?: of \d+)? (?:do|does|that do) not(?:, (?:the first is )?row (\d+))?", str(caught.value)
    )
    return [(int(count), int(first) if first else None) for count, first in found]


def _called(value: Any) -> str:
    """The value in the name of a test, equal in every process; for releases only the type."""
    plain = isinstance(value, str | int | float | list | tuple | dict | type(None))
    return repr(value) if plain else type(value).__name__
