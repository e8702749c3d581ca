"""Columns of an Ibis table as expressions: cast to double precision without a rounding of the engine's own."""

from collections.abc import Sequence
from typing import Any

from confide.errors import InputError
from confide.support import as_integer, canonical


def exact(column: Any) -> Any:
    """A column in double precision, correctly rounded.

    Engines divide the digits of a decimal, and add the halves of a large integer, in floating point, which rounds
    twice; through text the number is read once. Single precision and integers of 64 bits are converted exactly or
    rounded once by every engine.
    """
    kind = column.type()
    if kind.is_float64():
        return column
    if kind.is_decimal():
        column = column.cast("string")
    return column.cast("float64")


def number(value: float) -> Any:
    """A double-precision constant that reaches the engine unchanged.

    A bare 0.1 in SQL is a decimal number; here the shortest text that reads back as this float is cast.
    """
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def position(column: Any, names: Sequence[str | int]) -> Any:
    """Where a value stands among the names, counted from 0; null if nowhere (positions are not looked at)."""
    import ibis

    if tuple(names) == tuple(range(len(names))) and column.type().is_integer():
        return column.cast("int64")
    clauses = [(column == value, i) for i, name in enumerate(names) if (value := alike(column, name)) is not None]
    return ibis.cases(*clauses, else_=ibis.null("int64")) if clauses else ibis.null("int64")


def alike(column: Any, name: str | int) -> str | int | None:
    """A name as a value of the column's type: text for texts, an integer for integers; None if it is no such value."""
    kind = column.type()
    if kind.is_string():
        return canonical(name)
    if kind.is_integer():
        return as_integer(name)
    raise InputError(f"column {column.get_name()!r} must hold texts or integers; it holds {kind.name}")
