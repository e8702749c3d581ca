"""Checks of scalar arguments: each returns the value or says what is wrong with it."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import InputError, InputTypeError

MOST_RECORDS = 2**48
"""Calibration records."""

MOST_CANDIDATES = 2**20
"""Candidate thresholds, +inf included."""

MOST_PER_PERSON = 10**6
"""Records of one person."""

MOST_WEIGHT = 2**20
"""Steps of weight that one record may have."""

LEAST_LOSS, MOST_LOSS = 1e-6, 1e6
"""A privacy loss: less is no information at all, more is no privacy at all."""

Choice = TypeVar("Choice", bound=str)


def as_number(name: str, value: Any, what: str = "a number") -> float:
    """A number of any type as a float: two that are equal as floats are one request.

    Examples
    --------
    >>> as_number("epsilon", Decimal("0.5")), as_number("epsilon", np.int64(1))
    (0.5, 1.0)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise InputTypeError(f"{name} must be {what}; found {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def positive_number(name: str, value: Any) -> float:
    """A finite number above zero.

    Examples
    --------
    >>> positive_number("epsilon", 1)
    1.0
    """
    number = as_number(name, value, "a positive number")
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive, finite number; found {number!r}")
    return number


def privacy_loss(name: str, value: Any) -> float:
    """A privacy loss between 1e-6 and 1e6: less is no information at all, more is no privacy at all."""
    number = positive_number(name, value)
    if not LEAST_LOSS <= number <= MOST_LOSS:
        raise InputError(f"{name} must lie between {LEAST_LOSS:g} and {MOST_LOSS:g}; found {number!r}")
    return number


def positive_integer(name: str, value: Any, *, most: int | None = None) -> int:
    """An integer of at least 1, and at most `most` if given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be a positive integer; found {type(value).__name__}")
    number = int(value)
    if number < 1 or (most is not None and number > most):
        raise InputError(f"{name} must be a positive integer{f' of at most {most}' if most else ''}; found {value}")
    return number


def refuse_marked(wrong: ArrayLike, must: str, found: str, then: str = "", place: str = "position") -> None:
    """Refuse marked entries: how many they are, and where the first is; not what they are.

    Examples
    --------
    >>> refuse_marked(np.array([False, True]), "u must be finite", "that are not", "; drop them")
    Traceback (most recent call last):
        ...
    confide.errors.InputError: u must be finite; found 1 that are not, the first at position 1; drop them
    """
    at = np.flatnonzero(wrong)
    if at.size:
        raise InputError(f"{must}; found {at.size} {found}, the first at {place} {at[0]}{then}")


def several(name: str, values: Any) -> list[Any]:
    """A list of some length; not one value, and not a text, which is one.

    Examples
    --------
    >>> several("alphas", 0.1)
    Traceback (most recent call last):
        ...
    confide.errors.InputTypeError: alphas must be a list; found float
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputTypeError(f"{name} must be a list; found {type(values).__name__}")
    return list(values)


def refuse_unknown(
    function: str, given: Iterable[str], known: Collection[str], hints: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse arguments that a call does not take, by their names; `hints` says more of some.

    Raises
    ------
    InputTypeError
        If there are others than the known ones.

    Examples
    --------
    >>> refuse_unknown("plan", ["epsilom"], ["epsilon", "rho"])
    Traceback (most recent call last):
        ...
    confide.errors.InputTypeError: plan() takes no argument 'epsilom'; did you mean 'epsilon'?
    """
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = hints.get(name) or (f"did you mean {close[0]!r}?" if close else "")
            raise InputTypeError(f"{function}() takes no argument {name!r}{'; ' + hint if hint else ''}")


def one_of(name: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """One of a few words."""
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be one of {', '.join(map(repr, choices))}; found {type(value).__name__}")
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}; found {value!r}")
    return choices[choices.index(value)]
