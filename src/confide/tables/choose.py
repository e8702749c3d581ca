"""From the column names that somebody typed to the parts that are read, or to a clear refusal."""

import re
from collections.abc import Sequence

from confide.errors import InputError
from confide.scores.kinds import score_kind
from confide.tables.parts import Label, Number, Probabilities
from confide.tables.source import Table
from confide.tables.sql import identifier, in_words, is_integer, is_number, is_text, list_element


def number(table: Table, name: str) -> Number:
    """A column of finite numbers."""
    _check_number(table, name)
    return Number(table, name)


def score(table: Table, name: str, score_name: str | None) -> Number:
    """A column of scores, within the range that the score's name implies."""
    _check_number(table, name)
    kind = score_kind(score_name)
    return Number(table, name, kind.low, kind.high, kind.range_text)


def probabilities(
    table: Table, pattern: str, classes: Sequence[str] | None = None, label: str | None = None
) -> Probabilities:
    """The columns of class probabilities.

    Parameters
    ----------
    table
        The file.
    pattern
        The name of a list column, or a pattern with one `*`, such as `p_*`, that matches one column per class. The
        classes are then named by what the `*` stands for, in file order.
    classes
        Class names to use instead; by default 0 to K-1 for a list column.
    label
        The label column, which a pattern never matches.
    """
    if "*" in pattern and pattern not in table.columns:
        columns, names = _match(table, pattern, label)
        return Probabilities(table, columns, _names(classes, names), from_list=False)
    kind = table.kind(pattern)
    element = list_element(kind)
    if element is None or not is_number(element):
        raise InputError(
            f"column {pattern!r} holds {in_words(kind)}{'' if element is None else ' of something else than numbers'}; "
            "probabilities come from a column of lists of numbers, or from one column per class by a pattern such as "
            f"'p_*'; {table.existing()}"
        )
    k = _list_length(table, pattern, kind)
    return Probabilities(table, (pattern,), _names(classes, [str(i) for i in range(k)]), from_list=True)


def label(table: Table, name: str, names: tuple[str, ...]) -> Label:
    """The label column, for the classes with these names."""
    kind = table.kind(name)
    if not (is_integer(kind) or is_text(kind) or table.format == "csv"):
        raise InputError(
            f"column {name!r} holds {in_words(kind)}; labels are class names or integers; {table.existing()}"
        )
    return Label(table, name, names)


def group(table: Table, name: str, names: tuple[str, ...]) -> Label:
    """The column of each row's group, for the groups with these names."""
    kind = table.kind(name)
    if not (is_integer(kind) or is_text(kind) or table.format == "csv"):
        raise InputError(
            f"column {name!r} holds {in_words(kind)}; groups are named by texts or integers; {table.existing()}"
        )
    if is_integer(kind) and not all(re.fullmatch("-?[0-9]{1,18}", one) for one in names):
        raise InputError(f"column {name!r} holds integers, and the names of its groups must be integers, too")
    return Label(table, name, names, what="groups")


def _check_number(table: Table, name: str) -> None:
    kind = table.kind(name)
    if not is_number(kind) and table.format != "csv":  # in CSV a bad cell makes a text column: count those cells
        raise InputError(f"column {name!r} must hold numbers; it holds {in_words(kind)}; {table.existing()}")


def _match(table: Table, pattern: str, label: str | None) -> tuple[tuple[str, ...], list[str]]:
    before, _, after = pattern.partition("*")
    if "*" in after:
        raise InputError(f"the pattern {pattern!r} must have one '*'; found {pattern.count('*')}")
    shape = re.compile(f"{re.escape(before)}(.*){re.escape(after)}", re.DOTALL)
    found = {name: match[1] for name in table.columns if name != label and (match := shape.fullmatch(name))}
    if len(found) < 2:
        raise InputError(
            f"the pattern {pattern!r} must match one column per class; it matches {len(found)}; {table.existing()}"
        )
    for name in found:
        _check_number(table, name)
    return tuple(found), list(found.values())


def _list_length(table: Table, name: str, kind: str) -> int:
    fixed = kind[kind.rindex("[") + 1 : -1]
    length = int(fixed) if fixed else table.first(f"len({identifier(name)})")
    if not length:
        raise InputError(f"column {name!r} must hold lists of probabilities; it holds none, or empty ones")
    return int(length)


def _names(classes: Sequence[str] | None, found: list[str]) -> tuple[str, ...]:
    names = found if classes is None else list(classes)
    if len(names) != len(found):
        raise InputError(f"classes must name every class; found {len(names)} names for {len(found)} classes")
    if len(set(names)) != len(names):
        raise InputError(f"classes must differ from one another; found {len(names) - len(set(names))} repeated")
    return tuple(names)
