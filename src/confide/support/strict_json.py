"""Strict JSON: a text to an object without surprises, and an object read field by field, nothing left over."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self, TypeVar

from confide.errors import FormatError
from confide.support.checks import MOST_RECORDS
from confide.support.rationals import MAX_DENOMINATOR

Value = TypeVar("Value")


def parse_object(text: str, integer_bits: int = 63) -> dict[str, Any]:
    """The JSON object that a text holds, without surprises.

    Raises
    ------
    ValueError
        If a field stands twice in an object, for NaN and infinities, numbers beyond the range of a float, integers of
        more than `integer_bits` bits, halves of surrogate pairs, and what is no object. It holds nothing of the text.

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
    """A JSON object whose fields are taken one by one; what is left over at the end is refused.

    Messages call the whole text `document`, such as "calibration"; `part` is the field under which the object stands in
    it, None for the document itself.

    Examples
    --------
    >>> fields = Fields("calibration", {"alpha": "1/10", "privacy": {}})
    >>> fields.fraction("alpha")
    Fraction(1, 10)
    >>> fields.group("privacy").take("epsilon", float)
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: the calibration lacks the field 'epsilon' of its privacy
    """

    def __init__(self, document: str, content: dict[str, Any], part: str | None = None) -> None:
        self.document, self.content = document, dict(content)
        self._where = "" if part is None else f" of its {part}"

    def named(self, key: str) -> str:
        """What a field is called in messages."""
        return f"the {self.document}'s field {key!r}{self._where}"

    def pop(self, key: str) -> Any:
        """Take a field that has to be there, whatever it is."""
        if key not in self.content:
            raise FormatError(f"the {self.document} lacks the field {key!r}{self._where}")
        return self.content.pop(key)

    def take(self, key: str, kinds: type | tuple[type, ...]) -> Any:
        """Take a field that has to be there and of one of these types."""
        value = self.pop(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise FormatError(f"{self.named(key)} has the wrong type")
        return value

    def optional(self, key: str, kinds: tuple[type, ...], read: Callable[[Any], Value]) -> Value | None:
        """Take a field that may be null."""
        value = self.take(key, (*kinds, type(None)))
        return None if value is None else read(value)

    def group(self, key: str) -> Self:
        """Take a field that is an object."""
        return type(self)(self.document, self.take(key, dict), key)

    def optional_group(self, key: str) -> Self | None:
        """Take a field that is an object or null."""
        value = self.take(key, (dict, type(None)))
        return None if value is None else type(self)(self.document, value, key)

    def fraction(self, key: str) -> Fraction:
        """Take a text that is a fraction of non-negative integers, of a size that a level or a rank can have."""
        return read_fraction(self.take(key, str), self.named(key))

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def finish(self) -> None:
        """Refuse fields that nobody took."""
        if self.content:
            raise FormatError(f"the {self.document} has {len(self.content)} unknown field(s){self._where or ' in it'}")


def read_fraction(text: Any, what: str) -> Fraction:
    """A fraction of non-negative integers, of a size that a level or a rank can have; `what` it is, for messages."""
    try:
        if not isinstance(text, str) or len(text) > 60 or not set(text) <= set("0123456789/"):
            raise ValueError
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise FormatError(f"{what} must be a fraction of non-negative integers") from None
    if value.denominator > 64 * MAX_DENOMINATOR or value > MOST_RECORDS:
        raise FormatError(f"{what} is out of range")
    return value
