"""Names of classes and groups: the rule for matching values in data with the names in a release.

A name is a string or an integer. A value matches a name if both are equal, or if one is an integer and the other is the
string that Python writes for it: 7 and "7" are the same name, while "07", "1.0" and " 7" are other names. Public names
must differ under this rule.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError, replaced_errors
from confide.support.checks import positive_integer, raise_for_rows, require, several

Name: TypeAlias = str | int
"""The name of a class or a group."""


# An integer as Python writes it
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}", re.ASCII)


def canonical_name(name: Name) -> str:
    """The canonical string of a name: two strings are equal exactly if the names are the same.

    Examples
    --------
    >>> canonical_name(7) == canonical_name("7"), canonical_name(7) == canonical_name("07")
    (True, False)
    """
    return name if isinstance(name, str) else str(int(name))


def name_text(name: object) -> str:
    """The canonical name of a class or column; of a value that cannot be one, its printed form."""
    return canonical_name(name) if isinstance(name, str | int) else repr(name)


def as_integer(name: object) -> int | None:
    """The integer of a name; None for other names, and for values that are no names.

    Examples
    --------
    >>> [as_integer(name) for name in (7, "7", "-3", "07", "1.0", " 7", "-0", 7.0)]
    [7, 7, -3, None, None, None, None, None]
    """
    if isinstance(name, str):
        return int(name) if _INTEGER.fullmatch(name) else None
    return int(name) if isinstance(name, int) else None


def check_names(argument: str, names: Iterable[Any]) -> tuple[Name, ...]:
    """Validate a public list of names as strings and integers of Python; it must not be empty or contain a name twice.

    Examples
    --------
    >>> check_names("names", np.array([3, 1]))
    (3, 1)
    >>> check_names("names", [1, "1"])
    Traceback (most recent call last):
        ...
    confide.errors.InputError: names: must differ from one another, also as str; got 1 repeated
    """
    listed = [name.item() if isinstance(name, np.generic) else name for name in several(argument, names)]
    if not listed or not all(isinstance(name, str | int) for name in listed):
        raise InputTypeError(argument, "must be one or more str or int")
    checked = tuple(str(name) if isinstance(name, str) else int(name) for name in listed)
    repeated = len(checked) - len(set(map(canonical_name, checked)))
    require(argument, not repeated, "must differ from one another, also as str", got=f"{repeated} repeated")
    return checked


def plain_names(argument: str, names: Iterable[Any]) -> list[Name]:
    """Names as strings and integers of Python, also from numpy's types and from whole floats such as 1.0.

    Examples
    --------
    >>> plain_names("classes", [np.float64(1.0), "a", np.int64(3)])
    [1, 'a', 3]
    """
    items = [name.item() if hasattr(name, "item") else name for name in names]
    plain = [int(name) if isinstance(name, float) and name.is_integer() else name for name in items]
    if other := next((type(name).__name__ for name in plain if not isinstance(name, str | int)), None):
        must = "must have str or int as names"
        remedy = "Write the names as texts, there and in the labels"
        raise InputTypeError(argument, must, got=f"a name of type {other}", remedy=remedy)
    return plain


# Names of a list in messages
_SHOWN = 3


def first_names(names: Sequence[Any]) -> str:
    """The first names of a list, for messages."""
    return ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")


# Values with these names


class _Places(dict[Any, int]):
    """Positions of names; looked up a million times, therefore without a function in between."""

    def __missing__(self, value: object) -> int:
        return -1


def places(names: Iterable[Any]) -> Mapping[Any, int]:
    """A mapping from each value that matches a name to its position; -1 for all other values.

    If two names of the list are the same name, as 7 and "7", an equal string or integer has priority. Names of other
    types, which classes in memory may have, only match themselves.

    Examples
    --------
    >>> table = places(["cat", 7, "9"])
    >>> [table[value] for value in ("cat", 7, "7", 9, "07", None)]
    [0, 1, 1, 2, -1, -1]
    """
    listed = list(names)
    table = _Places((name, i) for i, name in enumerate(listed))
    for i, name in enumerate(listed):
        same = as_integer(name) if isinstance(name, str) else _text(name)
        if same is not None:
            table.setdefault(same, i)
    return table


def _text(name: object) -> str | None:
    """An integer as text; None for longer integers than Python writes, and for other types."""
    return str(int(name)) if isinstance(name, int) and abs(name) < 10**1000 else None


def positions(argument: str, values: Sequence[Any] | NDArray[Any], names: Iterable[Any]) -> NDArray[np.int64]:
    """The position of every value in a list of names, -1 for a value without a match; int64, shape (n,).

    Examples
    --------
    >>> positions("groups", np.array(["2", "1", "x"]), [1, 2])
    array([ 1,  0, -1])
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    no_names = InputTypeError(argument, "must be names", got="values that cannot be compared")
    with replaced_errors(lambda error: no_names if isinstance(error, TypeError) else None):
        return np.fromiter(map(places(names).__getitem__, listed), dtype=np.int64, count=len(listed))


def known_positions(
    argument: str, values: Sequence[Any] | NDArray[Any], names: Sequence[Any], called: str = "public names"
) -> NDArray[np.int64]:
    """The position of every value in a list of names, int64, shape (n,); unknown values raise an error without them.

    Examples
    --------
    >>> known_positions("groups", ["south", "north"], ["north", "south"])
    array([1, 0])
    """
    result = positions(argument, values, names)
    must = f"must be among the {len(names)} {called}"
    remedy = "Add the name; a release from the other records alone has no guarantee for these"
    if called == "classes":
        must = f"{must}, {first_names(names)}"
        remedy = "Name the classes as the labels do, by the columns or with classes=[...]"
    raise_for_rows(argument, result < 0, must, "that are not", remedy)
    return result


def order_of(names: Sequence[Any], known: Sequence[Any]) -> list[int] | None:
    """The positions of the names of one list in another list with the same names; None if the lists differ in a name.

    Examples
    --------
    >>> order_of(["b", "2"], [2, "b"]), order_of(["b"], [2, "b"])
    ([1, 0], None)
    """
    result: list[int] = positions("names", names, known).tolist()
    return result if sorted(result) == list(range(len(known))) else None


# Classes


Classes: TypeAlias = tuple[Name, ...] | int
"""Classes: their names, or their number if they have only positions."""


# Largest total length of class names in a release; longer lists are replaced by their number
_MOST_CHARACTERS = 1_000_000


def class_count(classes: Sequence[object] | int) -> int:
    """The number of classes, which are named or only counted.

    Examples
    --------
    >>> class_count(("cat", "dog")), class_count(3)
    (2, 3)
    """
    return classes if isinstance(classes, int) else len(classes)


def public_classes(argument: str, classes: Iterable[Any] | int) -> Classes:
    """The form of classes in a release: their names, or their number.

    Whole floats become integers. Only the number is stored if the names are the positions 0 to K-1, are not printed the
    same way everywhere, or have more than a million characters.

    Examples
    --------
    >>> public_classes("classes", ["cat", "dog"]), public_classes("classes", np.array([0, 1, 2]))
    (('cat', 'dog'), 3)
    >>> public_classes("classes", [1.0, 2.0])
    (1, 2)
    """
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        return positive_integer(argument, int(classes))
    names = check_names(argument, plain_names(argument, several(argument, classes)))
    texts = list(map(canonical_name, names))
    stated = not is_numbering(texts) and all(map(str.isprintable, texts))
    return names if stated and sum(map(len, texts)) <= _MOST_CHARACTERS else len(names)


def is_numbering(texts: Sequence[str]) -> bool:
    """Whether names are the positions 0 to K-1, in this order, so that they contain no information.

    Examples
    --------
    >>> is_numbering(["0", "1", "2"]), is_numbering(["1", "0"])
    (True, False)
    """
    return list(texts) == list(map(str, range(len(texts))))


# Columns of classes


def column_order(
    argument: str, classes: Sequence[Any], columns: Sequence[Any] | None, called: str = "columns"
) -> list[int]:
    """The position of each class's column: by name if both sides have names, else by order.

    Columns without names, and columns or classes with only numbers, are matched by order. Names that agree except for a
    common prefix or suffix, such as `p_cat` and `cat`, must have the same order.

    Examples
    --------
    >>> column_order("classes", ["dog", "cat"], ["cat", "dog"]), column_order("classes", ["no", "yes"], ["p1", "p2"])
    ([1, 0], [0, 1])
    >>> column_order("classes", ["dog", "cat"], ["p_cat", "p_dog"])
    Traceback (most recent call last):
        ...
    confide.errors.InputError: classes: classes and columns must have the same order; got column 'p_cat' for 'dog'. ...
    """
    # Without names, or with numbers alone, the order counts
    as_listed = list(range(len(classes)))
    if columns is None or is_numbering(texts := list(map(name_text, columns))):
        return as_listed
    # The same names in any order; names with a common prefix or suffix in the same order
    if (order := order_of(classes, columns)) is not None:
        return order
    check_column_order(argument, classes, columns, called)
    if _cores(columns) != _cores(classes) and not _numbered(classes, texts):
        must = f"{argument} and {called} must have the same names"
        got = f"columns {first_names(columns)} and {argument} {first_names(classes)}"
        raise InputError(argument, must, got, "Rename one of them, or give one of them without names")
    return as_listed


# Prefix, number and suffix of a name
_NUMBERED = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)", re.DOTALL | re.ASCII)


def _numbered(classes: Sequence[Any], columns: list[str]) -> bool:
    """Whether one side has only numbers, from 0 or 1 on, and the other has no numbers as names."""
    matches = [_NUMBERED.fullmatch(column) for column in columns]
    numbers = [int(match[2]) for match in matches if match is not None]
    affixes = {(match[1], match[3]) for match in matches if match is not None}
    if len(numbers) == len(columns) and len(affixes) == 1 and _counts_up(numbers):
        return numbers[0] == 0 or all(as_integer(name) is None for name in classes)
    return _counts_up(list(map(as_integer, classes))) and all(as_integer(column) is None for column in columns)


def _counts_up(numbers: Sequence[int | None]) -> bool:
    """Whether these are 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(list(numbers) == [i + first for i in range(len(numbers))] for first in (0, 1))


def check_column_order(argument: str, classes: Sequence[Any], columns: Sequence[Any], called: str = "columns") -> None:
    """Raise an error if column names without their common prefix and suffix are the classes in another order.

    Examples
    --------
    >>> check_column_order("classes", ["cat", "dog"], ["p_cat", "p_dog"])
    """
    column_cores = _cores(columns)
    class_cores = _cores(classes)
    if sorted(column_cores) == sorted(class_cores) and column_cores != class_cores:
        pairs = zip(columns, classes, column_cores, class_cores, strict=True)
        column, name = next((column, name) for column, name, core, other in pairs if core != other)
        must = f"{argument} and {called} must have the same order"
        got = f"column {column!r} for {name!r}"
        remedy = "Give both in the same order, or give the columns exactly these names"
        raise InputError(argument, must, got, remedy)


def _cores(names: Sequence[Any]) -> list[str]:
    """Names without their common prefix, and then without their common suffix."""
    rest = _without_common_prefix(list(map(name_text, names)))
    return [text[::-1] for text in _without_common_prefix([text[::-1] for text in rest])]


def _without_common_prefix(texts: list[str]) -> list[str]:
    start = common_length(texts)
    return [text[start:] for text in texts]


def common_length(texts: Sequence[str]) -> int:
    """The length of the common prefix of all strings: that of the first and the last in sorted order."""
    first, last = min(texts), max(texts)
    unequal = (place for place, (left, right) in enumerate(zip(first, last, strict=False)) if left != right)
    return next(unequal, len(first))


def refuse_first_of_pair(column: str, classes: Sequence[Any]) -> None:
    """Raise an error if the one column for two classes is named as the first class: it is read as the second class.

    Examples
    --------
    >>> refuse_first_of_pair("p_yes", ("no", "yes"))
    >>> refuse_first_of_pair("p_yes", ("yes", "no"))
    Traceback (most recent call last):
        ...
    confide.errors.InputError: classes: must be 'no', 'yes', in this order, for column 'p_yes' to be the probability ...
    """
    if len(classes) != 2:
        return
    first, second = map(str, classes)
    has_name_of_first = re.fullmatch(rf"(.*[^A-Za-z0-9])?{re.escape(first)}", column, re.DOTALL)
    must = (
        f"must be {second!r}, {first!r}, in this order, for column {column!r} to be the probability "
        f"of {first!r}: it is that of the second class"
    )
    require("classes", not has_name_of_first, must, remedy=f"If it is that of {second!r}, rename it")
