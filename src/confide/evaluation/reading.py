"""Evaluations read from JSON: every count checked against the others, every share and interval computed again."""

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from confide.errors import ConfideError, FormatError
from confide.evaluation.parts import CONFIDENCE, SIDES, Division, Subgroup
from confide.evaluation.private import KIND as PRIVATE_KIND
from confide.evaluation.private import PrivateEvaluation
from confide.evaluation.result import KIND, MOST_EXAMPLES, SCHEMAS, Evaluation, Example, LevelEvaluation, shares
from confide.sets import Shortfall, count_limit, coverage_from_counts
from confide.support import Fields, exact_level, mistaken, parse_object, read_as
from confide.support import Kind as FileKind

SAID = ("worst", "warnings", "left_out", "shortfalls")
"""What `confide evaluate --json` says besides: it follows from the rest, or is for the one who evaluated."""
MOST_PARTS = 100_000
MOST_LEVELS = 1000
_MOST_RECORDS, _MOST_MEMBERS = 2**48, 2**62


def read_evaluation(text: str) -> Evaluation | LevelEvaluation:
    """Read an evaluation, of one level or of several.

    Raises
    ------
    FormatError
        If the text is not an evaluation, or contradicts itself.
    """
    try:
        content = parse_object(text)
    except (TypeError, ValueError):
        raise FormatError("the file is not an evaluation: it is not valid JSON, or not one object") from None
    if content.get("kind") != KIND:
        other = mistaken(text, FileKind.EVALUATION)
        raise FormatError(other or "the file is not an evaluation; make one with `confide evaluate --out FILE`")
    if content.get("schema") not in SCHEMAS:
        raise FormatError(
            f"the evaluation must have schema {SCHEMAS[0]} or {SCHEMAS[1]}; use the version of confide that wrote it"
        )
    fields = Fields("evaluation", {name: value for name, value in content.items() if name not in SAID})
    schema, _, _ = (fields.take(name, kind) for name, kind in (("schema", int), ("kind", str), ("private", bool)))
    try:
        found = _levels(fields) if "levels" in fields else _one(fields)
    except FormatError:
        raise
    except ConfideError as error:
        raise FormatError(f"the evaluation has a field that cannot be used: {error}") from None
    fields.finish()
    one_by_one = found.levels.values() if isinstance(found, LevelEvaluation) else [found]
    if schema != (right := SCHEMAS[any(one.subgroups for one in one_by_one)]):
        raise FormatError(f"the evaluation must have schema {right}, which alone knows what it holds; found {schema}")
    return found


def load_evaluation(path: str | Path) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    """Read a file that `confide evaluate --out` wrote, with or without --epsilon."""
    return read_as(path, _read_either)


def _read_either(text: str) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    try:
        private = parse_object(text).get("kind") == PRIVATE_KIND
    except (TypeError, ValueError):
        private = False
    return PrivateEvaluation.from_json(text) if private else read_evaluation(text)


def _levels(fields: Fields) -> LevelEvaluation:
    rows = fields.take("levels", list)
    if len(rows) > MOST_LEVELS:
        raise FormatError(f"the evaluation has more than {MOST_LEVELS} levels")
    levels: dict[Fraction, Evaluation] = {}
    for row in rows:
        one = Fields("evaluation", row if isinstance(row, dict) else {}, "levels")
        levels[exact_level("alpha", one.take("alpha", str))] = _one(one)
        one.finish()
    if len(levels) != len(rows):
        raise FormatError("the evaluation has the same level twice")
    return LevelEvaluation(fields.take("calibration", str), levels)


def _one(fields: Fields) -> Evaluation:
    counted = fields.group("coverage")
    for known in ("value", "low", "high", "confidence"):
        counted.take(known, (float, int))
    n, covered = (_count(counted.take(name, int), _MOST_RECORDS) for name in ("n", "covered"))
    counted.finish()
    if not 0 <= covered <= n or n == 0:
        raise FormatError("the evaluation covers more records than it has")
    classes, sizes, groups, subgroups = (
        _parts(fields, name) if name in fields else () for name in ("classes", "sizes", "groups", "subgroups")
    )
    by = _by(fields, groups)
    has_sets = bool(sizes)
    divisions = {"classes": classes, "sizes": sizes, "groups": groups if by == "group" else (), "subgroups": subgroups}
    for name, parts in divisions.items():
        if not parts:
            continue
        if any((part.members is not None) != has_sets for part in parts):
            raise FormatError(f"the evaluation must count the labels in sets for {name}, and only if it is of sets")
        if sum(part.n for part in parts) != n or sum(part.covered for part in parts) != covered:
            raise FormatError("the evaluation contradicts itself: its parts do not add up")
        if has_sets and _members(parts) != _members(sizes):
            raise FormatError("the evaluation contradicts itself: the labels in its sets do not add up")
    if by == "side":
        _check_sides(groups, n, covered)
    if has_sets:
        _check_sizes(sizes, classes)
        for name in ("mean_size", "singletons", "empty"):
            fields.take(name, (float, int))
    width = _width(fields) if "mean_width" in fields else None
    if has_sets and width is not None:
        raise FormatError("the evaluation must be of sets or of intervals; it is of both")
    stated = fields.take("examples", list) if "examples" in fields else []
    if len(stated) > min(MOST_EXAMPLES, n):
        raise FormatError(f"the evaluation has more than {MOST_EXAMPLES} examples, or more than it has records")
    promised, high = _level(fields), count_limit(covered, n)
    return Evaluation(
        calibration=fields.take("calibration", str),
        promised=promised,
        coverage=coverage_from_counts(covered, n, CONFIDENCE),
        mean_width=width,
        classes=classes,
        sizes=sizes,
        groups=groups,
        by=by,
        examples=tuple(_example(one) for one in stated),
        subgroups=subgroups,
        shortfall=Shortfall(covered / n, high, n, promised, "not read") if high < promised else None,
        **(shares(classes, sizes, n) if has_sets else {}),
    )


def _by(fields: Fields, groups: Sequence[Subgroup]) -> Division | None:
    by: Division | None = fields.take("by", str) if "by" in fields else None
    if by not in (None, "group", "class", "side") or (by in ("group", "side")) != bool(groups):
        raise FormatError("the evaluation must say what its groups are, and have groups if it says so")
    return by


def _check_sides(ends: Sequence[Subgroup], n: int, covered: int) -> None:
    """Two ends of every interval; a truth is covered if both hold."""
    if tuple(part.name for part in ends) != SIDES or any(part.n != n for part in ends):
        raise FormatError("the evaluation must have two ends, lower and upper, of the same records")
    low, high = (part.covered for part in ends)
    if not max(0, low + high - n) <= covered <= min(low, high):
        raise FormatError("the evaluation contradicts itself: its ends do not agree with the whole")


def _check_sizes(sizes: Sequence[Subgroup], classes: Sequence[Subgroup]) -> None:
    if not classes:
        raise FormatError("the evaluation has set sizes without classes")
    for part in sizes:
        if not (part.name.isascii() and part.name.isdigit() and len(part.name) < 10):
            raise FormatError("the evaluation must name its set sizes by numbers")
        if part.members != int(part.name) * part.n or (part.name == "0" and part.covered):
            raise FormatError("the evaluation contradicts itself: its sets do not have their size")
    if len({int(part.name) for part in sizes}) != len(sizes):
        raise FormatError("the evaluation has the same set size twice")


def _members(parts: Sequence[Subgroup]) -> int:
    return sum(part.members or 0 for part in parts)


def _parts(fields: Fields, name: str) -> tuple[Subgroup, ...]:
    rows = fields.take(name, list)
    if not 0 < len(rows) <= MOST_PARTS:
        raise FormatError(f"the evaluation must have 1 to {MOST_PARTS} {name} where it has any")
    return tuple(_part(name, row) for row in rows)


def _part(name: str, row: Any) -> Subgroup:
    fields = Fields("evaluation", row if isinstance(row, dict) else {}, name)
    for known in ("coverage", "low", "high"):
        fields.take(known, (float, int))
    n, covered = (_count(fields.take(key, int), _MOST_RECORDS) for key in ("n", "covered"))
    part = Subgroup(
        fields.take("name", str),
        n,
        covered,
        members=_count(fields.take("members", int), _MOST_MEMBERS) if "members" in fields else None,
        promised=_level(fields) if "promised" in fields else None,
        mean_width=_width(fields) if "mean_width" in fields else None,
    )
    fields.finish()
    if not 0 <= part.covered <= part.n or part.n == 0:
        raise FormatError(f"the evaluation has a part of {name} that covers more records than it has")
    return part


def _count(value: int, most: int) -> int:
    if not 0 <= value <= most:
        raise FormatError("the evaluation has a count out of range")
    return value


def _level(fields: Fields) -> float:
    value = float(fields.take("promised", (float, int)))
    if not 0 <= value <= 1:
        raise FormatError("the evaluation's promised coverage must lie in [0, 1]")
    return value


def _width(fields: Fields) -> float:
    value = fields.take("mean_width", (float, int, str))
    if value == "+inf":
        return math.inf
    if isinstance(value, str):
        raise FormatError("the evaluation's mean_width must be a number")
    return float(value)


def _example(one: Any) -> Example:
    fields = Fields("evaluation", one if isinstance(one, dict) else {}, "examples")
    members = fields.take("set", list)
    if not all(isinstance(name, str) for name in members):
        raise FormatError("the evaluation has an example whose set is not made of names")
    group = fields.take("group", str) if "group" in fields else None
    example = Example(tuple(members), fields.take("truth", str), group)
    fields.finish()
    return example
