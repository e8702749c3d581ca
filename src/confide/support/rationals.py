"""Exact levels: the rank ceil((n+1)(1-alpha)) computed in floats is one too high in places, so levels are fractions."""

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

from confide.errors import InputError, InputTypeError

Level: TypeAlias = float | str | Fraction | Decimal
"""A probability: a float, a decimal number or its text, or an exact fraction."""

MAX_DENOMINATOR = 10**6

_TEXT = re.compile(r"[0-9.+-]{1,40}(e-?[0-9]{1,3})?|[0-9]{1,40}/[0-9]{1,40}", re.ASCII | re.IGNORECASE)


def exact_level(name: str, value: Level) -> Fraction:
    """The fraction strictly between 0 and 1 that `value` stands for.

    A float stands for the fraction of smallest denominator (at most 10**6) within 1e-12 of it, so that 0.1, 1 - 0.9
    and 1/3 mean one tenth, one tenth and one third.

    Raises
    ------
    InputTypeError, InputError
        If it is not a number, not strictly between 0 and 1, or needs a denominator above 10**6.

    Examples
    --------
    >>> exact_level("alpha", 1 - 0.9)
    Fraction(1, 10)
    >>> exact_level("alpha", "0.05")
    Fraction(1, 20)
    """
    hint = "; 0.1 asks for 90 % coverage" if name.startswith("alpha") else ""
    if isinstance(value, bool) or not isinstance(value, Real | str | Decimal):
        raise InputTypeError(f"{name} must be a number between 0 and 1; found {type(value).__name__}")
    try:
        exact = fraction_of(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"{name} must be a finite number between 0 and 1; found {value!r}{hint}") from None
    if not 0 < exact < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1; found {value!r}{hint}")
    for bound in (1000, MAX_DENOMINATOR):
        simple = exact.limit_denominator(bound)
        if abs(simple - exact) <= Fraction(1, 10**12) and 0 < simple < 1:
            return simple
    raise InputError(
        f"{name} must be a fraction with a denominator of at most {MAX_DENOMINATOR}; found {value!r}; round it to six "
        "decimals, none of them closer to 0 or 1 than 0.000001"
    )


def fraction_of(value: Level | Real) -> Fraction:
    """The fraction that a number or a short text stands for: a float is what its shortest decimal says.

    Raises
    ------
    ValueError, ZeroDivisionError, OverflowError
        If it is none, or a text with an exponent above 999: such a fraction can have more digits than fit in memory.
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


def ceil_to(value: float | Fraction, denominator: int) -> Fraction:
    """The smallest multiple of 1/denominator that is at least `value`.

    Examples
    --------
    >>> ceil_to(0.31, 10)
    Fraction(2, 5)
    """
    return Fraction(math.ceil(Fraction(value) * denominator), denominator)
