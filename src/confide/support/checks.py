"""Checks of arguments; and exact levels, with floats rounded in a given direction."""

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import InputError, InputTypeError

# The schema of every document. Kinds of version 0.3 and older begin with `confide.` and are never read in part.
SCHEMA = 1
OTHER_SCHEMA = "Calibrate again with this version, or use the version that made it"

# Largest number of calibration records
MOST_RECORDS = 2**48

# Largest number of candidate thresholds, +inf included
MOST_CANDIDATES = 2**20

# Largest number of records of one person
MOST_PER_PERSON = 10**6

# Largest number of weight steps of one record
MOST_WEIGHT = 2**20

# Range of a privacy loss: less means no information at all, more means no privacy at all
LEAST_LOSS = 1e-6
MOST_LOSS = 1e6

Choice = TypeVar("Choice", bound=str)
Given = ParamSpec("Given")
Result = TypeVar("Result")


def require(argument: str, holds: object, requirement: str, got: str = "", remedy: str = "") -> None:
    """Raise an error about an argument, unless its requirement holds.

    Examples
    --------
    >>> require("tolerance", 0 <= 1.5 < 1, "must lie in [0, 1)", "1.5")
    Traceback (most recent call last):
        ...
    confide.errors.InputError: tolerance: must lie in [0, 1); got 1.5
    """
    if not holds:
        raise InputError(argument, requirement, got, remedy)


def as_number(name: str, value: Any, what: str = "a number") -> float:
    """Convert a number of any type to a float: two numbers that are equal as floats are the same request.

    Examples
    --------
    >>> as_number("epsilon", Decimal("0.5")), as_number("epsilon", np.int64(1))
    (0.5, 1.0)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise InputTypeError(name, f"must be {what}", got=type(value).__name__)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value == abs(value) else -math.inf
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
    require(name, 0 < number < math.inf, "must be a positive, finite number", got=repr(number))
    return number


def privacy_loss(name: str, value: Any) -> float:
    """Validate a privacy loss between 1e-6 and 1e6: less means no information at all, more means no privacy at all."""
    number = positive_number(name, value)
    must = f"must lie between {LEAST_LOSS:g} and {MOST_LOSS:g}"
    require(name, LEAST_LOSS <= number <= MOST_LOSS, must, got=repr(number))
    return number


def positive_integer(name: str, value: Any, *, most: int | None = None) -> int:
    """Validate an integer of at least 1, and at most `most` if given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(name, "must be a positive integer", got=type(value).__name__)
    number = int(value)
    must = f"must be a positive integer{f' of at most {most}' if most else ''}"
    require(name, number >= 1 and (most is None or number <= most), must, got=str(value))
    return number


def raise_for_rows(
    argument: str, invalid: ArrayLike, requirement: str, description: str, remedy: str = "", place: str = "position"
) -> None:
    """Raise an error for marked entries, with their number and the position of the first, without their values."""
    positions = np.flatnonzero(invalid)
    if positions.size:
        got = f"{positions.size} {description}, the first at {place} {positions[0]}"
        raise InputError(argument, requirement, got, remedy)


def several(name: str, values: Any) -> list[Any]:
    """Validate a list of any length; a single value or a string raises an error."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputTypeError(name, "must be a list", got=type(values).__name__)
    return list(values)


def check_types(value: object, **types: type | tuple[type, ...]) -> None:
    """Raise an error for the first field of a value that is neither None nor of the stated types."""
    for name, kinds in types.items():
        field = getattr(value, name)
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        if field is not None and not isinstance(field, kinds):
            must = f"must be {' or '.join(kind.__name__ for kind in kinds)}"
            raise InputTypeError(name, must, got=type(field).__name__)


def check_unknown_arguments(
    function: str,
    given: Iterable[str],
    known: Collection[str],
    hints: Mapping[str, str] = MappingProxyType({}),
    named: Sequence[str] = (),
) -> None:
    """Raise an error for the first argument in `given` that is not in `known`.

    `hints` has advice for some names. `named`: further parameter names, used only for the 'Did you mean' suggestion.
    """
    for name in given:
        if name not in known:
            from difflib import get_close_matches

            similar = "".join(get_close_matches(name, (*named, *known), 1))
            hint = hints.get(name) or (f"Did you mean {similar!r}?" if similar else "")
            raise InputTypeError(name, f"must be left out: {function}() takes no such argument", remedy=hint)


# Names of a level in other libraries
_LEVEL_WORDS = ("confidence_level", "coverage", "coverage_level")


def takes_alpha(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let a function of `alpha` raise an error that names `alpha` if a level has its name of other libraries."""

    @wraps(function)
    def checked(*given: Given.args, **options: Given.kwargs) -> Result:
        for name in _LEVEL_WORDS:
            if name in options:
                must = "must be stated as alpha, the share of true labels or values that may be missed"
                raise InputTypeError(name, must, remedy="alpha is 1 minus the level: alpha=0.1 for a level of 0.9")
        return function(*given, **options)

    return checked


def one_of(name: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """Validate one of a few words."""
    must = f"must be one of {', '.join(map(repr, choices))}"
    if not isinstance(value, str):
        raise InputTypeError(name, must, got=type(value).__name__)
    require(name, value in choices, must, got=repr(value))
    return choices[choices.index(value)]


# Exact levels: the rank ceil((n+1)(1-alpha)) computed in floats is sometimes too high by one, so levels are fractions

Level: TypeAlias = float | str | Fraction | Decimal
"""A probability: a float, a decimal number or its string, or an exact fraction."""

# Largest denominator of a level
MAX_DENOMINATOR = 10**6

# A decimal number or a fraction as text; an exponent of more digits could need more memory than there is
_TEXT = re.compile(r"[0-9.+-]{1,40}(e-?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}", re.ASCII | re.IGNORECASE)


def exact_level(name: str, value: Level) -> Fraction:
    """Convert a level to a fraction strictly between 0 and 1.

    A float stands for the fraction of smallest denominator (at most 10**6) within 1e-12 of it, so that 0.1, 1 - 0.9
    and 1/3 mean one tenth, one tenth and one third.

    Examples
    --------
    >>> exact_level("alpha", 1 - 0.9)
    Fraction(1, 10)
    >>> exact_level("alpha", "0.05")
    Fraction(1, 20)
    """
    hint = "; 0.1 asks for 90 % coverage" if name.startswith("alpha") else ""
    if isinstance(value, bool) or not isinstance(value, Real | str | Decimal):
        raise InputTypeError(name, "must be a number between 0 and 1", got=type(value).__name__)
    try:
        exact = fraction_of(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(name, "must be a finite number between 0 and 1", got=f"{value!r}{hint}") from None
    require(name, 0 < exact < 1, "must lie strictly between 0 and 1", got=f"{value!r}{hint}")
    for bound in (1000, MAX_DENOMINATOR):  # the smaller denominator, if both are within the error of a float
        simple = exact.limit_denominator(bound)
        if abs(simple - exact) <= Fraction(1, 10**12) and 0 < simple < 1:
            return simple
    must = f"must be a fraction with a denominator of at most {MAX_DENOMINATOR}"
    remedy = "Round it to six decimals, none of them closer to 0 or 1 than 0.000001"
    raise InputError(name, must, got=repr(value), remedy=remedy)


def fraction_of(value: Level | Real) -> Fraction:
    """Convert a number or a short string to a fraction; a float is converted by its shortest decimal.

    A string with an exponent above 999 raises `ValueError`: such a fraction can need more digits than fit in memory.
    """
    value = str(value) if isinstance(value, Decimal) else value
    if isinstance(value, str) and not _TEXT.fullmatch(value.strip()):
        raise ValueError
    return Fraction(value if isinstance(value, Fraction | str) else str(float(value)))


def float_below(exact: Fraction) -> float:
    """The largest float that is at most `exact`.

    Examples
    --------
    >>> Fraction(float_below(Fraction(1, 3))) < Fraction(1, 3) < Fraction(float_above(Fraction(1, 3)))
    True
    >>> float_above(Fraction(10) ** 400)
    inf
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return sys.float_info.max if exact > 0 else -math.inf
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def float_above(exact: Fraction) -> float:
    """The smallest float that is at least `exact`."""
    return -float_below(-exact)


def scale_for(range_distance: int | Fraction, epsilon: float) -> float:
    """The smallest float scale at which range_distance/scale, computed exactly, is at most epsilon.

    Examples
    --------
    >>> scale_for(20, 1.0)
    20.0
    """
    scale = range_distance / epsilon
    while Fraction(range_distance) > Fraction(scale) * Fraction(epsilon):
        scale = float(np.nextafter(scale, np.inf))
    return scale


def ceil_to(value: float | Fraction, denominator: int) -> Fraction:
    """The smallest multiple of 1/denominator that is at least `value`.

    Examples
    --------
    >>> ceil_to(0.31, 10)
    Fraction(2, 5)
    """
    return Fraction(math.ceil(Fraction(value) * denominator), denominator)


def bisect(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number above `low` for which `enough` is true; it must stay true from there on, up to `high`.

    Examples
    --------
    >>> bisect(lambda n: n * n >= 50, 0, 50)
    8
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def bisect_upwards(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number above `low` for which `enough` is true; `high`, at least 1, doubles until it is one.

    Examples
    --------
    >>> bisect_upwards(lambda n: n * n >= 50, 0, 1)
    8
    """
    while not enough(high):
        low = high
        high *= 2
    return bisect(enough, low, high)
