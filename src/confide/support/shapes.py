"""Strict JSON: a text is converted to an object, and one table states how each field is written and read.

A `Shape` maps the names of fields to `Field`s; `shape_of` derives it from a dataclass whose file has the same fields.
Missing, unknown and invalid fields raise errors with their path in the document and the requirement. Each subpackage
checks whether the claims of its documents are consistent.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from confide.errors import ConfideError, FormatError, InputError, InputTypeError
from confide.support.checks import MAX_DENOMINATOR, MOST_RECORDS, OTHER_SCHEMA, SCHEMA, exact_level

Value = TypeVar("Value")


def parse_object(text: str, integer_bits: int = 63) -> dict[str, Any]:
    """Parse a text strictly as a JSON object.

    Raises
    ------
    ValueError
        If a field occurs twice in an object; for NaN and infinities, numbers beyond the range of a float, integers of
        more than `integer_bits` bits, and unpaired surrogates; and if it is not an object. The error contains nothing
        of the text.

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
        if "\\u" in text:  # otherwise an escape could represent an unpaired surrogate
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("not a strict JSON object") from None
    if not isinstance(content, dict):
        raise ValueError("not a strict JSON object")
    return content


class Fields:
    """A JSON object and its path in the document.

    Errors refer to a field by its path, such as `calibration.privacy.epsilon` or `watch.looks[3].made`.

    Examples
    --------
    >>> fields = Fields("calibration", {"alpha": "1/10", "privacy": {}})
    >>> fields.read("alpha", LEVEL)
    Fraction(1, 10)
    >>> Fields(fields.at("privacy"), fields.read("privacy", OBJECT)).read("epsilon", LOSS)
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: calibration.privacy.epsilon: is missing
    """

    def __init__(self, path: str, content: Mapping[str, Any]) -> None:
        self.path, self.content = path, dict(content)

    def at(self, key: str) -> str:
        """The path of a field."""
        return f"{self.path}.{key}"

    def pop(self, key: str) -> Any:
        """Take a required field of any type."""
        if key not in self.content:
            raise _missing(self.path, key)
        return self.content.pop(key)

    def read(self, key: str, field: "Field") -> Any:
        """Take a required field and convert it to a value."""
        return field.of(self.pop(key), self.at(key))

    def take(self, key: str, kinds: type | tuple[type, ...]) -> Any:
        """Take a required field of one of these types."""
        value = self.pop(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise FormatError(self.at(key), "must be of another type", got=type(value).__name__)
        return value

    def group(self, key: str) -> Self:
        """Take a required field that is an object."""
        return type(self)(self.at(key), self.take(key, dict))

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def finish(self) -> None:
        """Raise an error if there are fields that were not taken."""
        if self.content:
            raise _unknown(self.path, len(self.content))


@dataclass(frozen=True)
class Form:
    """The form of a document: one JSON object with its kind, its schema, its fields, and a SHA-256 of them.

    The checksum finds damage; it is not a signature. The meaning of an existing field never changes; a new meaning
    requires a new schema.

    Parameters
    ----------
    kind
        The name of the kind in the document, such as `confide/watch`.
    name
        The first part of the paths of its fields.
    hint
        The remedy if a text is not such a document.
    most_characters, integer_bits
        Longer texts, and integers of more bits, raise an error.
    indent
        Spaces of indentation.

    Examples
    --------
    >>> form = Form("confide/example", "example")
    >>> form.read(form.write({"n": 3}), lambda fields: fields.read("n", INTEGER))
    3
    >>> form.read(form.write({"n": 3}).replace("3", "4", 1), lambda fields: fields.read("n", INTEGER))
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: example: must have the checksum of its content: it was altered or damaged. Get the ...
    """

    kind: str
    name: str
    hint: str = ""
    most_characters: int = 8_000_000
    integer_bits: int = 63
    indent: int = 2

    def write(self, fields: Mapping[str, Any]) -> str:
        """The text of a document with these fields, which are JSON values."""
        content = {"kind": self.kind, "schema": SCHEMA, **fields}
        return json.dumps({**content, "sha256": checksum(content)}, indent=self.indent, allow_nan=False) + "\n"

    def read(self, text: Any, made: Callable[[Fields], Value]) -> Value:
        """Read a text, and make a value of its fields; `made` has to take all of them.

        Raises
        ------
        FormatError
            If the text is not such a document, is damaged, altered or of another schema, or has an invalid field.
        """
        fields = self.open(text)
        names = set(fields.content)
        try:
            document = made(fields)
        except (InputError, InputTypeError) as error:
            if type(error) not in ARGUMENT_ERRORS:
                raise
            raise field_error(error, self.name, names) from None
        fields.finish()
        return document

    def open(self, text: Any) -> Fields:
        """The fields of a text, without those of the form.

        Raises
        ------
        FormatError
            If the text is not such a document, is damaged, altered or of another schema.
        """
        content = parse_document(text, self.name, self.most_characters, self.integer_bits, self.hint)
        check_schema(content, self.kind, self.name)
        if content.get("kind") != self.kind:
            raise FormatError(f"{self.name}.kind", f"must be {self.kind!r}", remedy=self.hint)
        check_checksum(content, self.name)
        return Fields(self.name, {key: content[key] for key in content if key not in ("kind", "schema")})


def check_schema(content: Mapping[str, Any], kind: str, name: str) -> None:
    """Reject a document of this kind that has another schema; its reader checks the kind itself.

    Raises
    ------
    FormatError
        The error states the kind and the schema.

    Examples
    --------
    >>> check_schema({"kind": "confide.release", "schema": 2}, "confide/release", "release")
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: release.schema: must be 1, of kind 'confide/release'; got 2, of kind ...
    """
    stated, schema = content.get("kind"), content.get("schema")
    if stated in (kind, kind.replace("/", ".")) and (stated != kind or schema != SCHEMA or type(schema) is not int):
        written = str(schema) if type(schema) is int and abs(schema) < 1000 else "none"
        must, got = f"must be {SCHEMA}, of kind {kind!r}", f"{written}, of kind {stated!r}"
        raise FormatError(f"{name}.schema", must, got=got, remedy=OTHER_SCHEMA)


def parse_document(text: Any, name: str, most: int, integer_bits: int = 63, hint: str = "") -> dict[str, Any]:
    """The object in a text.

    Raises
    ------
    FormatError, InputTypeError
        If there is none, or the text is longer than `most` characters.
    """
    if not isinstance(text, str):
        raise InputTypeError("text", "must be a JSON document", got=type(text).__name__)
    if len(text) > most:
        raise FormatError(name, f"must have at most {most} characters", got=str(len(text)), remedy=hint)
    try:
        return parse_object(text, integer_bits)
    except ValueError:
        raise FormatError(name, "must be one valid JSON object", remedy=hint) from None


def check_checksum(content: dict[str, Any], name: str = "file") -> None:
    """Remove the checksum from `content`, and compare it with the rest.

    Raises
    ------
    FormatError
        If it differs, or is missing.
    """
    try:
        intact = content.pop("sha256", None) == checksum(content)
    except RecursionError:
        intact = False
    if not intact:
        raise FormatError(
            name,
            "must have the checksum of its content: it was altered or damaged",
            remedy="Get the original",
        )


def checksum(content: Mapping[str, Any] | list[Any]) -> str:
    """SHA-256 of JSON values as text with sorted keys and without spaces, hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


ARGUMENT_ERRORS = InputError, InputTypeError
"""Errors of a value about its arguments: an error of exactly these classes becomes one about the field in the file."""


def field_error(error: ConfideError, at: str, known: Collection[str]) -> FormatError:
    """The error of an object at a path, from the error of its value: about a known field, or the whole object."""
    if error.argument in known:
        return FormatError(f"{at}.{error.argument}", error.requirement, error.got, error.remedy)
    return FormatError(at, "must have fields that can be used", remedy=str(error))


UNUSABLE = "Do not use it"


@contextmanager
def refused_content(path: str, kind: str = "release") -> Iterator[None]:
    """Turn every error about the content of a file into one about its place, without the value.

    Examples
    --------
    >>> with refused_content("release.request"):
    ...     raise ValueError("a value")
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: release.request: must be as a release states it. Do not use it
    """
    place, must = "", f"must be as {'an' if kind[0] in 'aeiou' else 'a'} {kind} states it"
    try:
        yield
    except FormatError:
        raise
    except ConfideError as error:
        place = f".{re.split('[^a-z_.]', str(getattr(error, 'argument', '')))[0]}"
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        match = re.search(r"at `\$\.?([\w.\[\]]*)`", str(error)) if type(error).__module__ == "msgspec" else None
        place = f".{match[1]}" if match and match[1] else ""
    else:
        return
    raise FormatError(f"{path}{place.rstrip('.')}", must, remedy=UNUSABLE)


Shape: TypeAlias = Mapping[str, "Field"]


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """Rules for reading and writing a field.

    Parameters
    ----------
    must
        The requirement, for messages.
    kinds
        The types of its JSON value; a bool is not an integer.
    read
        Convert a JSON value of these types to a value. An error of `ARGUMENT_ERRORS` or a `ValueError` means that the
        value is invalid. The argument in an error is one of the fields of an object, or the field itself.
    write
        Convert a value to a JSON value.
    null
        Whether it is null if the value is None.
    optional
        Whether it is absent if the value is None, False or empty; if it is absent, the value is None.
    attribute
        The attribute with the value, if its name is not that of the field, such as `cost.epsilon`; "" for an object of
        several attributes.
    entry
        For lists: the rules for each entry.
    shape
        For objects: their fields, which `read` gets as a dict; or a function of the object that returns them.

    Examples
    --------
    >>> shape = {"n": integer(100), "score": nullable(TEXT)}
    >>> read_shape(Fields("plan", {"n": 3, "score": None}), shape)
    {'n': 3, 'score': None}
    >>> read_shape(Fields("plan", {"n": 0, "score": None}), shape)
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: plan.n: must be an integer from 1 to 100
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

    def of(self, stated: Any, at: str) -> Any:
        """Convert the JSON value at a path."""
        if stated is None and self.null:
            return None
        if not isinstance(stated, self.kinds) or (isinstance(stated, bool) and bool not in self.kinds):
            raise FormatError(at, f"must be {self.must}", got=type(stated).__name__)
        value: Any = stated
        if self.entry is not None:
            value = tuple(self.entry.of(item, f"{at}[{place}]") for place, item in enumerate(value))
        if self.shape is not None:
            value = _values(value, self.shape(value) if callable(self.shape) else self.shape, at)
        try:
            return self.read(value)
        except (InputError, InputTypeError) as error:
            if type(error) not in ARGUMENT_ERRORS:
                raise
            if self.shape is not None:
                raise field_error(error, at, value) from None
            raise FormatError(at, error.requirement, error.got, error.remedy) from None
        except (ValueError, ArithmeticError):
            raise FormatError(at, f"must be {self.must}") from None

    def json(self, value: Any) -> Any:
        """Convert a value to a JSON value."""
        if value is None and self.null:
            return None
        if self.entry is not None and self.write is _itself:
            return [self.entry.json(item) for item in value]
        return self.write(value) if self.shape is None or callable(self.shape) else write_shape(value, self.shape)


def read_shape(fields: Fields, shape: Shape) -> dict[str, Any]:
    """Read all fields, in the order of the shape; there must be no others."""
    values = _values(fields.content, shape, fields.path)
    fields.content.clear()
    return values


def _values(content: Mapping[str, Any], shape: Shape, path: str) -> dict[str, Any]:
    values, left = {}, len(content)
    for key, field in shape.items():
        if key in content:
            values[key] = field.of(content[key], f"{path}.{key}")
            left -= 1
        elif field.optional:
            values[key] = None
        else:
            raise _missing(path, key)
    if left:
        raise _unknown(path, left)
    return values


def _missing(path: str, key: str) -> FormatError:
    return FormatError(f"{path}.{key}", "is missing")


def _unknown(path: str, count: int) -> FormatError:
    return FormatError(path, "must have no unknown fields", got=str(count))


def write_shape(value: Any, shape: Shape) -> dict[str, Any]:
    """The JSON object of a value."""
    attributes = {key: key if field.attribute is None else field.attribute for key, field in shape.items()}
    values = {key: attrgetter(name)(value) if name else value for key, name in attributes.items()}
    return {
        key: field.json(values[key])
        for key, field in shape.items()
        if not (field.optional and (values[key] is None or values[key] is False or values[key] in ((), {})))
    }


def shape_of(made: type, **different: Field) -> Shape:
    """Derive the shape of a frozen dataclass or a named tuple: one field for each attribute, by its annotation.

    It checks only types, because the value checks itself on construction.

    Parameters
    ----------
    made
        The class.
    **different
        Fields for attributes whose annotation is not specific enough.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Look:
    ...     name: str
    ...     counts: tuple[int, ...]
    ...     share: float | None = None
    >>> look = record(Look, shape_of(Look)).of({"name": "a", "counts": [1, 2], "share": 1}, "watch.looks[0]")
    >>> look, write_shape(look, shape_of(Look))
    (Look(name='a', counts=(1, 2), share=1.0), {'name': 'a', 'counts': [1, 2], 'share': 1.0})
    """
    hints = get_type_hints(made)
    names = [field.name for field in fields(made) if field.init] if is_dataclass(made) else list(made._fields)  # type: ignore[attr-defined]
    return {name: different[name] if name in different else _field_of(hints[name]) for name in names}


def _field_of(kind: Any) -> Field:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return choice(*inner)
    if origin is tuple and inner[1:] == (...,):
        return listed(_field_of(inner[0]))
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        (one,) = set(inner) - {NoneType}
        return nullable(_field_of(one))
    return record(kind, shape_of(kind))


def nullable(field: Field) -> Field:
    """The same field, or null for None."""
    return replace(field, null=True, must=f"{field.must}, or null")


def optional(field: Field) -> Field:
    """The same field, absent for None."""
    return replace(field, optional=True)


def listed(field: Field) -> Field:
    """A list of such fields, which is read as a tuple."""
    return Field(f"a list, each entry {field.must}", (list,), entry=field)


def record(made: Callable[..., Any], shape: Shape) -> Field:
    """An object of this shape; `made` gets its fields as keyword arguments."""
    return Field("an object that can be used", (dict,), lambda values: made(**values), shape=shape)


def choice(*names: str, **how: Any) -> Field:
    """One of a few words."""
    return Field(f"one of {', '.join(map(repr, names))}", (str,), lambda text: names[names.index(text)], **how)


def reads_if(holds: Callable[[Any], bool], read: Callable[[Any], Any] = _itself) -> Callable[[Any], Any]:
    """Return a function that reads a value with a required property."""

    def reader(content: Any) -> Any:
        value = read(content)
        if not holds(value):
            raise ValueError
        return value

    return reader


def integer(most: int = MOST_RECORDS, least: int = 1) -> Field:
    """An integer in a range, both ends included."""
    return Field(f"an integer from {least} to {most}", (int,), reads_if(lambda value: least <= value <= most))


def number(low: float = -math.inf, high: float = math.inf) -> Field:
    """A finite number in a range, both ends included, as a float."""
    ends = f" of at least {low:g}" if high == math.inf else f" from {low:g} to {high:g}"
    must = "a number" + (ends if low > -math.inf else "")
    return Field(must, (float, int), reads_if(lambda value: low <= value <= high, float))


def or_infinite(finite: Field) -> Field:
    """The same number, or +inf, which is written as a string."""

    def read(value: Any) -> float:
        if isinstance(value, str) and value != "+inf":
            raise ValueError
        number: float = math.inf if isinstance(value, str) else finite.read(value)
        return number

    return replace(finite, must=f"{finite.must}, or '+inf'", kinds=(*finite.kinds, str), read=read, write=json_number)


def json_number(value: Any) -> Any:
    """A number as a JSON value: infinity is the string "+inf"."""
    return "+inf" if value == math.inf else value


def fraction(where: str = "", holds: Callable[[Fraction], bool] = lambda value: True) -> Field:
    """A string that is a fraction of non-negative integers with a required property; limited to the size of ranks."""

    def read(text: str) -> Fraction:
        if len(text) > 60 or not set(text) <= set("0123456789/"):
            raise ValueError
        value = Fraction(text)
        if value.denominator > 64 * MAX_DENOMINATOR or value > MOST_RECORDS:
            raise ValueError
        return value

    return Field(f"a fraction of non-negative integers {where}".strip(), (str,), reads_if(holds, read), str)


def hexadecimal(digits: int = 64, **how: Any) -> Field:
    """A string of hexadecimal digits, in lower case."""
    fits = reads_if(lambda text: len(text) == digits and set(text) <= set("0123456789abcdef"))
    return Field(f"{digits} hexadecimal digits", (str,), fits, **how)


TEXT = Field("a text", (str,))
LIST = Field("a list", (list,))
OBJECT = Field("an object", (dict,), write=dict)
NUMBER = Field("a number", (float, int))
"""As it is written, an integer or a float."""
INTEGER = Field("an integer", (int,))
LEVEL = Field("a level between 0 and 1", (str,), lambda text: exact_level("alpha", text), str)
LOSS = or_infinite(number(0))
"""A privacy loss."""
_SIMPLE: Mapping[Any, Field] = {
    int: INTEGER,
    float: number(),
    str: TEXT,
    bool: Field("true or false", (bool,)),
    Fraction: fraction(),
}
