"""What goes: names that still work, say what takes their place, and are listed so that none stays beyond its time.

Whoever deprecates something public says since which version, and in which it may be gone: two minor releases later
(docs/stability.md). `tests/support/test_deprecation.py` fails where that version has come and they are still here.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from confide.errors import ConfideDeprecationWarning, InputTypeError
from confide.support.callers import outside

F = TypeVar("F", bound=Callable[..., Any])

DEPRECATIONS: dict[str, "Deprecation"] = {}
"""All that is deprecated in the rooms imported so far, by its old name."""


@dataclass(frozen=True)
class Deprecation:
    """Something public that goes: what it is, what takes its place, since when, and when it may be gone.

    Examples
    --------
    >>> print(Deprecation("confide.old", "confide.new", "0.2", "0.4"))
    confide.old is deprecated since 0.2 and may be gone in 0.4; use confide.new
    """

    old: str
    instead: str
    since: str
    removed_in: str

    def __str__(self) -> str:
        return f"{self.old} is deprecated since {self.since} and may be gone in {self.removed_in}; use {self.instead}"

    def warn(self) -> None:
        """Say so, at the first line of code outside the library."""
        warnings.warn(str(self), ConfideDeprecationWarning, stacklevel=outside())

    def __call__(self, function: F) -> F:
        """A function or method that says so whenever it is called."""

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.warn()
            return function(*args, **kwargs)

        called.__deprecated__ = str(self)  # type: ignore[attr-defined]  # as PEP 702 calls it
        return called  # type: ignore[return-value]

    def when_given(self, context: Any, parameter: Any, value: Any) -> Any:
        """The `callback` of an option of the command line that goes: says so if the option is given."""
        if value is not None and value is not False and value != ():
            self.warn()
        return value


def deprecated(old: str, instead: str, *, since: str, removed_in: str) -> Deprecation:
    """Deprecate something, and list it: a decorator of functions, or what to `warn` with where there is none.

    Examples
    --------
    >>> @deprecated("twice(x)", "2 * x", since="0.2", removed_in="0.4")
    ... def twice(x):
    ...     return 2 * x
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     twice(21)
    42
    >>> print(caught[0].message)
    twice(x) is deprecated since 0.2 and may be gone in 0.4; use 2 * x
    >>> del DEPRECATIONS["twice(x)"]
    """
    DEPRECATIONS[old] = deprecation = Deprecation(old, instead, since, removed_in)
    return deprecation


def renamed_argument(of: str, old: str, new: str, *, since: str, removed_in: str) -> Callable[[F], F]:
    """Let a function take a keyword argument by its old name, too, and say so."""
    deprecation = deprecated(f"{old}= of {of}", f"{new}=", since=since, removed_in=removed_in)

    def decorate(function: F) -> F:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs:
                    raise InputTypeError(f"{new} must be given once; {old} is its old name")
                deprecation.warn()
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return decorate


def old_names(module: str, today: Mapping[str, str], *, since: str, removed_in: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names have others today: old name to full new name.

    Examples
    --------
    >>> find = old_names("shapes", {"round_area": "math.pi"}, since="0.2", removed_in="0.4")
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     find("round_area")
    3.14159...
    >>> print(caught[0].message)
    shapes.round_area is deprecated since 0.2 and may be gone in 0.4; use math.pi
    >>> del DEPRECATIONS["shapes.round_area"]
    """
    known = {old: deprecated(f"{module}.{old}", new, since=since, removed_in=removed_in) for old, new in today.items()}

    def find(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        known[name].warn()
        room, _, new = known[name].instead.rpartition(".")
        return getattr(import_module(room), new)

    return find
