"""The part of `calibrate` and `predict` for sources other than a single file."""

import re
from typing import Any

from confide.cli.columns import Columns
from confide.errors import InputError
from confide.tables.engine_failures import fixed_words
from confide.tables.expressions import existing, existing_column
from confide.tables.people import People
from confide.tables.what import Classified, Regressed, Scored, Source


def source_of(table: Any, columns: Columns) -> Source:
    """Where the scores come from, in terms of a table's columns."""
    if columns.score_column is not None:
        return Scored(columns.score_column, columns.score)
    if columns.probabilities is not None and columns.label is not None:
        return classified_of(table, columns)[0]
    if columns.prediction is not None and columns.target is not None:
        return Regressed(pair_or_one(columns), columns.target, columns.score_name or "absolute_residual")
    raise InputError(f"say which columns to read, by {columns.ways}; {existing(table)}")


def pair_or_one(columns: Columns) -> str | tuple[str, str]:
    """The column of predictions, or the pair of columns of quantiles."""
    first, *others = columns.predictions
    return (first, others[0]) if others else first


def classified_of(table: Any, columns: Columns) -> tuple[Classified, tuple[str, ...]]:
    """The classification score, and what the classes are called: the label column may hold their positions instead."""
    assert columns.label is not None
    found, names = probabilities_of(table, columns)
    values: tuple[str | int, ...] = names
    if existing_column(table, columns.label).type().is_integer() and not any(map(_reads_as_integer, names)):
        values = tuple(range(len(names)))
    return Classified(found, columns.label, values, columns.score_name or "lac"), names


def probabilities_of(table: Any, columns: Columns) -> tuple[str | tuple[str, ...], tuple[str, ...]]:
    """The columns of probabilities, or the list column, with the class names."""
    pattern = columns.probabilities
    assert pattern is not None
    given = columns.class_names
    if "*" not in pattern or pattern in table.columns:
        lists = existing_column(table, pattern)
        if given is None:
            with fixed_words():
                first = table.select(k=lists.length()).filter(lambda t: t.k.notnull()).limit(1).to_pyarrow().to_pylist()
            if not first or not first[0]["k"]:
                raise InputError(f"column {pattern!r} must hold lists of probabilities; it holds none, or empty ones")
            return pattern, tuple(str(k) for k in range(first[0]["k"]))
        return pattern, tuple(given)
    before, _, after = pattern.partition("*")
    shape = re.compile(f"{re.escape(before)}(.*){re.escape(after)}", re.DOTALL)
    found = {name: match[1] for name in table.columns if name != columns.label and (match := shape.fullmatch(name))}
    if len(found) < 2:
        raise InputError(
            f"the pattern {pattern!r} must match one column per class; it matches {len(found)}; {existing(table)}"
        )
    return tuple(found), tuple(found.values()) if given is None else tuple(given)


def people_of(person: str | None, most: int | None, order: str | None, sample: str | None) -> People | None:
    """Who owns which record, from the options."""
    if person is None and most is None and order is None and sample is None:
        return None
    if person is None or most is None or order is None:
        raise InputError("--person, --max-records-per-person and --order must be given together")
    return People(person, most, tuple(name.strip() for name in order.split(",")), sample)


def _reads_as_integer(name: str) -> bool:
    return name.removeprefix("-").isdigit()
