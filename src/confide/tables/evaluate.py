"""How often sets contain the truth, and how large they are, over a file. These numbers are not private."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation import Evaluation, LevelEvaluation
from confide.evaluation.interval_tally import IntervalTally
from confide.evaluation.score_tally import ScoreTally
from confide.evaluation.set_tally import SetTally
from confide.releases.reading import Release
from confide.releases.several import GroupCalibration
from confide.tables.choose import label as label_column
from confide.tables.parts import Label, Number, Part, Probabilities, one_or_pairs
from confide.tables.scan import Progress, scan, silent
from confide.tables.source import Table


@dataclass(frozen=True)
class GroupColumn:
    """The column that says to which group, or true class, of a release a record belongs."""

    label: Label
    keys: NDArray[Any]

    @classmethod
    def of(cls, table: Table, name: str, release: GroupCalibration) -> "GroupColumn":
        """The column of a file for the names of a release, which are matched as text.

        Raises
        ------
        InputError
            If the file has no such column, or two names of the release read alike.
        """
        keys = tuple(release.parts)
        names = tuple(map(str, keys))
        if len(set(names)) != len(names):
            raise InputError("calibration has names that read alike as text; evaluate it in Python")
        made = label_column(table, name, names)
        held = np.empty(len(keys), dtype=object)
        held[:] = keys
        return cls(replace(made, what="groups"), held)


def of_sets(
    probabilities: Probabilities,
    label: Label,
    release: Release,
    progress: Progress = silent,
    *,
    groups: GroupColumn | None = None,
    examples: int = 0,
) -> Evaluation | LevelEvaluation:
    """Evaluate prediction sets; the first `examples` rows of the file are kept as they are."""
    tally = SetTally(release, probabilities.names, examples)
    u = np.random.default_rng() if tally.randomised else None
    for (p, y), where in _batches(probabilities.table, [probabilities, label], groups, progress):
        tally.add(p, y, where, u)
    return tally.result()


def of_intervals(
    predictions: tuple[Number, ...],
    target: Number,
    release: Release,
    progress: Progress = silent,
    *,
    groups: GroupColumn | None = None,
) -> Evaluation | LevelEvaluation:
    """Evaluate prediction intervals, from predictions or from lower and upper quantiles."""
    tally = IntervalTally(release)
    for (*f, y), where in _batches(target.table, [*predictions, target], groups, progress):
        tally.add(one_or_pairs(f), y, where)
    return tally.result()


def of_scores(
    column: Number, release: Release, progress: Progress = silent, *, groups: GroupColumn | None = None
) -> Evaluation | LevelEvaluation:
    """Evaluate the scores of the true labels: covered are those up to the threshold."""
    tally = ScoreTally(release)
    for (scores,), where in _batches(column.table, [column], groups, progress):
        tally.add(scores, where)
    return tally.result()


def _batches(
    table: Table, parts: list[Part], groups: GroupColumn | None, progress: Progress
) -> Iterator[tuple[list[NDArray[Any]], NDArray[Any] | None]]:
    """The arrays of the parts, and the group of every record."""
    if groups is None:
        for arrays, _ in scan(table, parts, progress=progress):
            yield arrays, None
        return
    for arrays, _ in scan(table, [*parts, groups.label], progress=progress):
        yield arrays[:-1], groups.keys[arrays[-1]]
