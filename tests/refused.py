"""Refusals: which class and which argument, never which words.

`with refused(InputError, "epsilon"):` holds one refusal; a table of `Refused` rows and `check` hold many: each row
changes one thing in a call that works.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from confide.errors import ConfideError
from tests.private import assert_error_is_private


@contextmanager
def refused(kind: type[ConfideError], argument: str) -> Iterator[pytest.ExceptionInfo[ConfideError]]:
    """What runs inside has to refuse this argument, in one line that holds no planted value."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) is kind, f"{type(error).__name__}, not {kind.__name__}: {error}"
    assert error.argument == argument, f"{error.argument!r}, not {argument!r}: {error}"
    assert error.requirement
    assert "\n" not in str(error)
    assert_error_is_private(error)


def numbers(caught: pytest.ExceptionInfo[ConfideError]) -> list[int]:
    """The counts and positions in what the error says was got."""
    return [int(digits) for digits in re.findall(r"\d+", caught.value.got)]


@dataclass(frozen=True)
class Refused:
    """A row of a table of refusals: a call that works, what is changed in it, and what is refused then.

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
        """The call is refused for the argument."""
        arguments = {name: value for name, value in {**self.good, **self.change}.items() if value is not ...}
        with refused(self.kind, self.argument):
            self.call(**arguments)


def bad_rows(caught: pytest.ExceptionInfo[ConfideError]) -> list[tuple[int, int | None]]:
    """Of a refusal of rows: how many break each requirement, and the first of them where rows have an order."""
    found = re.findall(
        r"(\d+)(?: of \d+)? (?:do|does|that do) not(?:, (?:the first is )?row (\d+))?", str(caught.value)
    )
    return [(int(count), int(first) if first else None) for count, first in found]


def _called(value: Any) -> str:
    """The value in the name of a test, which must be the same in every process; of what is released only its type."""
    plain = isinstance(value, str | int | float | list | tuple | dict | type(None))
    return repr(value) if plain else type(value).__name__
