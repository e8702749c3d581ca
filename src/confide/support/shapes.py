"""Strict JSON: a text becomes an object without surprises, and one table says how each field is written and read.

A `Shape` maps the names of fields to `Field`s. Reading refuses fields that are missing, left over, or something else,
by the name of the field and what it must be; whether the claims of a document follow from each other is checked by
those who know them.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, TypeAlias, TypeVar

from confide.errors import ConfideError, FormatError
from confide.support.checks import MAX_DENOMINATOR, MOST_RECORDS, exact_level

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


Shape: TypeAlias = Mapping[str, "Field"]


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """How a field is read and written.

    Parameters
    ----------
    must
        What it must be, for messages.
    kinds
        The types of its JSON value; a bool is no integer.
    read
        The value of a JSON value of these types. What it refuses, by a `ConfideError` or a `ValueError`, must be
        something else; a `FormatError` has words of its own.
    write
        The JSON value of a value.
    null
        Whether it is null where the value is None.
    optional
        Whether it is left out where the value is None, or empty; a file that lacks it is read as None.
    attribute
        The attribute that holds the value, if it is not called as the field is; "" for an object of several.
    entry
        For lists: how each entry is read and written.
    shape
        For objects: their fields, which `read` is given as a dict; or which fields they have, by those that are there.

    Examples
    --------
    >>> shape = {"n": integer(100), "score": nullable(TEXT)}
    >>> read_shape(Fields("plan", {"n": 3, "score": None}), shape)
    {'n': 3, 'score': None}
    >>> read_shape(Fields("plan", {"n": 0, "score": None}), shape)
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: the plan's field 'n' must be an integer from 1 to 100
    """

    must: str
    kinds: tuple[type, ...]
    read: Callable[[Any], Any] = _itself
    write: Callable[[Any], Any] = _itself
    null: bool = False
    optional: bool = False
    attribute: str | None = None
    entry: "Field | None" = None
    shape: "Shape | Callable[[Mapping[str, Any]], Shape] | None" = None

    def of(self, value: Any, fields: Fields, key: str, each: str = "") -> Any:
        """The value of a JSON value, which stands under a key among other fields, or in the list that stands there."""
        if value is None and self.null:
            return None
        fits = isinstance(value, self.kinds) and (bool in self.kinds or not isinstance(value, bool))
        why = ""
        if fits:
            if self.entry is not None:
                value = tuple(self.entry.of(one, fields, key, "each entry of ") for one in value)
            if self.shape is not None:
                shape = self.shape(value) if callable(self.shape) else self.shape
                value = read_shape(Fields(fields.document, value, key), shape)
            try:
                return self.read(value)
            except FormatError:
                raise
            except (ConfideError, ValueError, OverflowError) as error:
                why = f": {error}" if isinstance(error, ConfideError) else ""
        else:
            why = f"; found {type(value).__name__}"
        raise FormatError(f"{each}{fields.named(key)} must be {self.must}{why}")

    def json(self, value: Any) -> Any:
        """The JSON value of a value."""
        if value is None and self.null:
            return None
        if self.entry is not None and self.write is _itself:
            return [self.entry.json(one) for one in value]
        return self.write(value) if self.shape is None or callable(self.shape) else write_shape(value, self.shape)


def read_shape(fields: Fields, shape: Shape) -> dict[str, Any]:
    """The values of all fields, in the order of the shape; nothing may be left over."""
    found = {
        key: None if field.optional and key not in fields else field.of(fields.pop(key), fields, key)
        for key, field in shape.items()
    }
    fields.finish()
    return found


def write_shape(value: Any, shape: Shape) -> dict[str, Any]:
    """The JSON object of a value."""
    attributes = {key: key if field.attribute is None else field.attribute for key, field in shape.items()}
    values = {key: getattr(value, name) if name else value for key, name in attributes.items()}
    return {
        key: field.json(values[key])
        for key, field in shape.items()
        if not (field.optional and (values[key] is None or values[key] in ((), {})))
    }


def nullable(field: Field) -> Field:
    """The same, or null for None."""
    return replace(field, null=True, must=f"{field.must}, or null")


def optional(field: Field) -> Field:
    """The same, left out for None."""
    return replace(field, optional=True)


def listed(field: Field) -> Field:
    """A list of such, which is read as a tuple."""
    return Field(f"a list, each entry {field.must}", (list,), entry=field)


def record(made: Callable[..., Any], shape: Shape) -> Field:
    """An object of this shape, of which a value is made by keyword."""
    return Field("an object that can be used", (dict,), lambda values: made(**values), shape=shape)


def choice(*names: str, **how: Any) -> Field:
    """One of a few words."""
    return Field(f"one of {', '.join(map(repr, names))}", (str,), lambda text: names[names.index(text)], **how)


def within(holds: Callable[[Any], bool], read: Callable[[Any], Any] = _itself) -> Callable[[Any], Any]:
    """What reads a value for which something holds."""

    def reader(content: Any) -> Any:
        value = read(content)
        if not holds(value):
            raise ValueError
        return value

    return reader


def integer(most: int = MOST_RECORDS, least: int = 1) -> Field:
    """An integer in a range, both ends included."""
    return Field(f"an integer from {least} to {most}", (int,), within(lambda value: least <= value <= most))


def number(low: float = -math.inf, high: float = math.inf) -> Field:
    """A finite number in a range, both ends included, as a float."""
    ends = f" of at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"
    must = "a number" + (ends if low > -math.inf else "")
    return Field(must, (float, int), within(lambda value: low <= value <= high, float))


def or_infinite(finite: Field) -> Field:
    """The same number, or +inf, which is written as a text."""

    def read(value: Any) -> float:
        if isinstance(value, str) and value != "+inf":
            raise ValueError
        found: float = math.inf if isinstance(value, str) else finite.read(value)
        return found

    return replace(finite, must=f"{finite.must}, or '+inf'", kinds=(*finite.kinds, str), read=read, write=json_number)


def json_number(value: float | None) -> float | str | None:
    """A number as JSON has them: infinity is the text "+inf"."""
    return "+inf" if value == math.inf else value


def fraction(where: str = "", holds: Callable[[Fraction], bool] = lambda value: True) -> Field:
    """A text that is a fraction of non-negative integers, for which something holds."""

    def read(text: str) -> Fraction:
        try:
            return read_fraction(text, "it")
        except FormatError:
            raise ValueError from None

    return Field(f"a fraction of non-negative integers {where}".strip(), (str,), within(holds, read), str)


TEXT = Field("a text", (str,))
INTEGER = Field("an integer", (int,))
LEVEL = Field("a level between 0 and 1", (str,), lambda text: exact_level("alpha", text), str)
LOSS = or_infinite(number(0))
"""A privacy loss."""
