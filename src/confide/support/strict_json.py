"""Strict JSON: a text to an object without surprises, and an object read field by field, nothing left over."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self, TypeVar

from confide.errors import FormatError
from confide.planning.request import MOST_RECORDS
from confide.support.rationals import MAX_DENOMINATOR

Value = TypeVar("Value")


def parse_object(text: str, integer_bits: int = 63) -> dict[str, Any]:
    """The JSON object that a text holds.

    Parameters
    ----------
    text
        JSON; no field twice in an object, no NaN or infinities, no number beyond the range of a float, no half of a
        surrogate pair, which no file could hold as text.
    integer_bits
        Integers of this many bits or more, apart from their sign, are refused.

    Raises
    ------
    ValueError
        If it is anything else; the message holds nothing of the text.

    Examples
    --------
    >>> parse_object('{"n": 3}')
    {'n': 3}
    >>> parse_object('{"n": 3, "n": 4}')
    Traceback (most recent call last):
        ...
    ValueError: not a strict JSON object
    """

    def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            raise ValueError
        return content

    def no_constants(name: str) -> float:
        raise ValueError

    def bounded(number: str) -> int:
        value = int(number)
        if value.bit_length() > integer_bits:
            raise ValueError
        return value

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            raise ValueError
        return value

    try:
        content = json.loads(
            text, object_pairs_hook=no_repeats, parse_constant=no_constants, parse_int=bounded, parse_float=finite
        )
        text.encode()
        if "\\u" in text:  # else an escape could still write half of a pair
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("not a strict JSON object") from None
    if not isinstance(content, dict):
        raise ValueError("not a strict JSON object")
    return content


class Fields:
    """A JSON object whose fields are taken one by one; what is left over at the end is refused."""

    document = "calibration"
    """What the object is a part of, for messages."""

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        self.name, self.content = name, dict(content)

    def take(self, key: str, kinds: type | tuple[type, ...]) -> Any:
        """Take a field that has to be there and of one of these types."""
        if key not in self.content:
            raise FormatError(f"the {self.document} lacks the field {key!r} of its {self.name}")
        value = self.content.pop(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise FormatError(f"the {self.document}'s field {key!r} of its {self.name} has the wrong type")
        return value

    def optional(self, key: str, kinds: tuple[type, ...], read: Callable[[Any], Value]) -> Value | None:
        """Take a field that may be null."""
        value = self.take(key, (*kinds, type(None)))
        return None if value is None else read(value)

    def group(self, key: str) -> Self:
        """Take a field that is an object."""
        return type(self)(key, self.take(key, dict))

    def optional_group(self, key: str) -> Self | None:
        """Take a field that is an object or null."""
        value = self.take(key, (dict, type(None)))
        return None if value is None else type(self)(key, value)

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def finish(self) -> None:
        """Refuse fields that nobody took."""
        if self.content:
            raise FormatError(f"the {self.document} has {len(self.content)} unknown field(s) in its {self.name}")


def read_fraction(text: str, name: str) -> Fraction:
    """A fraction of non-negative integers, of a size that a calibration can have."""
    try:
        if len(text) > 60 or any(character not in "0123456789/" for character in text):
            raise ValueError
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise FormatError(f"the calibration's {name} must be a fraction of non-negative integers") from None
    if value.denominator > 64 * MAX_DENOMINATOR or value > MOST_RECORDS:
        raise FormatError(f"the calibration's {name} is out of range")
    return value
