"""Columns of a table expression: looked up, checked by type, and cast to double precision without an own rounding."""

from typing import Any

from confide.errors import InputError
from confide.tables.engine_findings import Finding


def existing_column(table: Any, name: str) -> Any:
    """A column by its name, or a refusal that lists those that exist."""
    if name not in table.columns:
        raise InputError(f"column {name!r} is not in the table; {existing(table)}")
    return table[name]


def numeric_column(table: Any, name: str) -> Any:
    """A column of numbers."""
    column = existing_column(table, name)
    if not column.type().is_numeric():
        raise InputError(f"column {name!r} must hold numbers; it holds {column.type().name}; {existing(table)}")
    return column


def existing(table: Any) -> str:
    """The columns that exist, in words."""
    names = list(table.columns)
    return f"its columns are {', '.join(names[:40])}" + (f" and {len(names) - 40} more" if len(names) > 40 else "")


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


def own_probability(
    table: Any, probabilities: str | tuple[str, ...], label: str, classes: tuple[str | int, ...] | None
) -> tuple[Any, dict[Finding, Any]]:
    """The probability of each row's own class, as it is stored, and the rows that have none."""
    import ibis

    own_class = existing_column(table, label)
    if isinstance(probabilities, tuple):
        names = _names(classes, len(probabilities))
        columns = [exact(numeric_column(table, name)) for name in probabilities]
        clauses = [(own_class == alike(own_class, name), column) for name, column in zip(names, columns, strict=True)]
        unknown = own_class.isnull() | ~own_class.isin([alike(own_class, name) for name in names])
        return ibis.cases(*clauses, else_=ibis.null("float64")), {Finding.LABEL: unknown}
    lists = existing_column(table, probabilities)
    if not (lists.type().is_array() and lists.type().value_type.is_numeric()):
        raise InputError(f"column {probabilities!r} must hold lists of numbers; {existing(table)}")
    if classes is None:
        raise InputError("classes must be given for a list of probabilities: their names, or 0 .. K-1, in its order")
    place = position(own_class, classes)
    if classes == tuple(range(len(classes))) and own_class.type().is_integer():
        unknown = own_class.isnull() | (own_class < 0) | (own_class >= len(classes))
    else:
        unknown = own_class.isnull() | ~own_class.isin([alike(own_class, name) for name in classes])
    length = lists.length()
    usable = ~unknown & (length == len(classes))
    own = usable.ifelse(lists[usable.ifelse(place, 0).cast("int32")], ibis.null(lists.type().value_type))
    return own, {Finding.LABEL: unknown, Finding.LENGTH: (length != len(classes)).fill_null(True)}


def position(column: Any, names: tuple[str | int, ...]) -> Any:
    """Where a value stands among the names, counted from 0; null if nowhere."""
    import ibis

    if names == tuple(range(len(names))):
        return column.cast("int64")
    clauses = [(column == alike(column, name), place) for place, name in enumerate(names)]
    return ibis.cases(*clauses, else_=ibis.null("int64"))


def same(column: Any, name: str | int) -> Any:
    """Whether a column holds this name."""
    return column == alike(column, name)


def _names(classes: tuple[str | int, ...] | None, count: int) -> tuple[str | int, ...]:
    names = tuple(range(count)) if classes is None else classes
    if len(names) != count or len(set(names)) != count:
        raise InputError(f"classes must name every column once; found {len(set(names))} names for {count} columns")
    return names


def alike(column: Any, name: str | int) -> Any:
    """A name as a value of the column's type: text for texts, an integer for integers."""
    kind = column.type()
    if kind.is_string():
        return str(name)
    if kind.is_integer():
        try:
            return int(name)
        except ValueError:
            raise InputError(f"column {column.get_name()!r} holds integers, and {name!r} is none") from None
    raise InputError(f"column {column.get_name()!r} must hold texts or integers; it holds {kind.name}")
