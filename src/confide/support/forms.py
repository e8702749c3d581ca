"""Strict JSON documents: a kind, a schema, fields and a checksum. Each subpackage states the fields of its documents.

msgspec converts fields to values. A document is accepted only if writing its value again gives the same content.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confide.errors import ConfideError, FormatError, InputTypeError, MissingExtraError
from confide.support.checks import OTHER_SCHEMA, SCHEMA

# The remedy for a file whose content cannot be right
UNUSABLE = "Do not use it"


def parse_object(text: str, integer_bits: int = 63) -> dict[str, Any]:
    """Parse a text strictly as a JSON object.

    Raises
    ------
    ValueError
        If the text is not a JSON object, if a field occurs twice in an object, and for NaN and infinities, numbers
        beyond the range of a float, integers of more than `integer_bits` bits, and unpaired surrogates. The error
        contains nothing of the text.

    Examples
    --------
    >>> parse_object('{"n": 3}')
    {'n': 3}
    >>> parse_object('{"n": 3, "n": 4}')
    Traceback (most recent call last):
        ...
    ValueError: not a strict JSON object
    """

    def bounded(number: str) -> int:
        value = int(number)
        if value.bit_length() > integer_bits:
            raise ValueError
        return value

    try:
        content = json.loads(
            text, object_pairs_hook=_without_repeats, parse_int=bounded, parse_float=_finite, parse_constant=_finite
        )
        text.encode()
        if "\\u" in text:  # otherwise an escape could represent an unpaired surrogate
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("not a strict JSON object") from None
    if not isinstance(content, dict):
        raise ValueError("not a strict JSON object")
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError
    return content


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError
    return value


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
    most_characters, integer_bits
        Longer texts, and integers of more bits, raise an error.
    indent
        Spaces of indentation.

    Examples
    --------
    >>> form = Form("confide/example", "example")
    >>> form.read(form.write({"n": 3}))
    {'n': 3}
    >>> form.read(form.write({"n": 3}).replace("3", "4", 1))
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: example: must have the checksum of its content: it was altered or damaged. Get the ...
    """

    kind: str
    name: str
    most_characters: int = 8_000_000
    integer_bits: int = 63
    indent: int = 2

    def write(self, fields: Mapping[str, Any]) -> str:
        """The text of a document with these fields, which are JSON values."""
        content = {"kind": self.kind, "schema": SCHEMA, **fields}
        return json.dumps({**content, "sha256": checksum(content)}, indent=self.indent, allow_nan=False) + "\n"

    def read(self, text: Any) -> dict[str, Any]:
        """The fields of a text, without those of the form."""
        content = parse_document(text, self.name, self.most_characters, self.integer_bits)
        check_schema(content, self.kind, self.name)
        if content.get("kind") != self.kind:
            raise FormatError(f"{self.name}.kind", f"must be {self.kind!r}")
        check_checksum(content, self.name)
        return {key: content[key] for key in content if key not in ("kind", "schema")}


def check_schema(content: Mapping[str, Any], kind: str, name: str) -> None:
    """Reject a document of this kind that has another schema; its reader checks the kind itself.

    Examples
    --------
    >>> check_schema({"kind": "confide.release", "schema": 2}, "confide/release", "release")
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: release.schema: must be 1, of kind 'confide/release'; got 2, of kind ...
    """
    stated = content.get("kind")
    schema = content.get("schema")
    kind_before_schema_1 = kind.replace("/", ".")
    is_current = stated == kind and type(schema) is int and schema == SCHEMA
    if stated in (kind, kind_before_schema_1) and not is_current:
        written = str(schema) if type(schema) is int and abs(schema) < 1000 else "none"
        must = f"must be {SCHEMA}, of kind {kind!r}"
        got = f"{written}, of kind {stated!r}"
        raise FormatError(f"{name}.schema", must, got=got, remedy=OTHER_SCHEMA)


def parse_document(text: Any, name: str, most: int, integer_bits: int = 63, hint: str = "") -> dict[str, Any]:
    """The object in a text."""
    if not isinstance(text, str):
        raise InputTypeError("text", "must be a JSON document", got=type(text).__name__)
    if len(text) > most:
        raise FormatError(name, f"must have at most {most} characters", got=str(len(text)), remedy=hint)
    try:
        return parse_object(text, integer_bits)
    except ValueError:
        raise FormatError(name, "must be one valid JSON object", remedy=hint) from None


def check_checksum(content: dict[str, Any], name: str) -> None:
    """Remove the checksum from `content`, and compare it with the rest."""
    try:
        intact = content.pop("sha256", None) == checksum(content)
    except RecursionError:
        intact = False
    if not intact:
        must = "must have the checksum of its content: it was altered or damaged"
        raise FormatError(name, must, remedy="Get the original")


def checksum(content: Mapping[str, Any] | list[Any]) -> str:
    """SHA-256 of JSON values as text with sorted keys and without spaces, hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextmanager
def refused_content(path: str, kind: str = "release") -> Iterator[None]:
    """Replace every error about the content of a file by one that names the field and contains no value.

    Examples
    --------
    >>> with refused_content("release.request"):
    ...     raise ValueError("a value")
    Traceback (most recent call last):
        ...
    confide.errors.FormatError: release.request: must be as a release states it. Do not use it
    """
    try:
        yield
    except (FormatError, MissingExtraError):  # a package that is missing says nothing about the file
        raise
    # The place is the name of an argument, without values, or the path in an error of msgspec, such as at `$.silos[0]`
    except ConfideError as error:
        place = re.split("[^a-z_.]", str(getattr(error, "argument", "")))[0]
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        match = re.search(r"at `\$\.?([\w.\[\]]*)`", str(error)) if type(error).__module__ == "msgspec" else None
        place = match[1] if match else ""
    else:
        return
    article = "an" if kind[0] in "aeiou" else "a"
    where = f"{path}.{place}".rstrip(".")
    raise FormatError(where, f"must be as {article} {kind} states it", remedy=UNUSABLE)


def json_number(value: Any) -> Any:
    """A number as a JSON value: infinity is the string "+inf"."""
    return "+inf" if value == math.inf else value
