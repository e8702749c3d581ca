"""From the columns of a record to its prediction set or interval: in this process, or as SQL."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    GroupCalibration,
    LevelCalibration,
    Release,
    RiskCalibration,
    SidesCalibration,
)
from confide.scores import interval_ends, score_kind, set_mask, smallest_probability
from confide.tables.expressions import alike, exact, number
from confide.tables.named_column import NamedColumn, Names, group_column
from confide.tables.readings import Findings, ProbabilityColumns, finite_columns, finite_expression, finite_requirement
from confide.tables.table import Read, Table
from confide.tables.what import Classified, Losses, Regressed, What

SET, SIZE, LOWER, UPPER = "prediction_set", "set_size", "lower", "upper"
_DOUBLE = np.dtype(np.float64)


class Predictor(Protocol):
    """What is added to each record."""

    @property
    def reads(self) -> tuple[Read, ...]:
        """The columns that are read."""

    @property
    def adds(self) -> tuple[str, ...]:
        """The columns that are added; the last is null where a record has no prediction."""

    @property
    def width(self) -> int:
        """About how many numbers are read of each record."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What every record has to fulfil, in words."""

    @property
    def in_sql(self) -> bool:
        """Whether engines can compute it."""

    def columns(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Findings]:
        """The added columns of a batch, and what is wrong with records; `as_text` writes lists as JSON."""

    def expressions(self, table: Any) -> dict[str, Any]:
        """The same in terms of an Ibis table."""


@dataclass(frozen=True, eq=False)
class SetPredictor:
    """Sets of classes, or of labels.

    Parameters
    ----------
    probabilities
        Their columns.
    names
        The class names, in the order of the probabilities.
    score
        The score's name. Randomised ones draw fresh numbers.
    thresholds
        float64: one for all, shape (1,); one per class, shape (K,); or one per group, in the order of its names.
    by_class
        Whether there is one per class.
    group
        The column of each record's group, for thresholds per group.
    suffix
        What the names of the added columns end in.
    """

    probabilities: ProbabilityColumns
    names: Names
    score: str
    thresholds: NDArray[np.float64]
    by_class: bool = False
    group: NamedColumn | None = None
    suffix: str = ""

    @property
    def reads(self) -> tuple[Read, ...]:
        """Probabilities and group."""
        return (*self.probabilities.reads, *([] if self.group is None else [self.group.read]))

    @property
    def width(self) -> int:
        """Probabilities of each record."""
        return self.probabilities.width

    @property
    def adds(self) -> tuple[str, ...]:
        """The set and its size."""
        return SET + self.suffix, SIZE + self.suffix

    @property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, lists of the right length, and a known group."""
        return (*self.probabilities.requirements, *_group_requirement(self.group))

    @property
    def in_sql(self) -> bool:
        """LAC alone, which compares probabilities."""
        return score_kind(self.score).family == "lac"

    def columns(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Findings]:
        """Lists of class names, and their lengths."""
        p, findings = self.probabilities.matrix(batch)
        limits: Any = self.thresholds if self.by_class else float(self.thresholds[0])
        if self.group is not None:
            place, findings = _places(self.group, batch, findings, 3)
            limits = self.thresholds[place]
        u = np.random.default_rng() if score_kind(self.score).randomised else None
        if findings is None:
            mask = set_mask(p, self.score, limits, u=u, per_class=self.by_class) if len(p) else np.zeros(p.shape, bool)
            return _set_columns(mask, self.names, None, as_text=as_text), None
        mask, good = np.zeros(p.shape, dtype=np.bool_), findings == 0
        if good.any():
            own = limits[good] if self.group is not None else limits
            mask[good] = set_mask(p[good], self.score, own, u=u, per_class=self.by_class)
        return _set_columns(mask, self.names, ~good, as_text=as_text), findings

    def expressions(self, table: Any) -> dict[str, Any]:
        """The same for LAC: p >= the smallest probability inside, in double precision."""
        import ibis

        names, usable = self.names, ibis.literal(True)
        if self.group is None:
            cuts = [number(_cut(float(t))) for t in self.thresholds] * (1 if self.by_class else len(names))
        else:
            cut = _per_group(table, self.group, [_cut(float(t)) for t in self.thresholds])
            cuts, usable = [cut] * len(names), cut.notnull()
        if self.probabilities.from_list:
            lists = table[self.probabilities.columns[0]]
            held = ibis.array([ibis.literal(name) for name in names])
            limits = ibis.array(cuts) if self.by_class else None
            members = held.filter(lambda _, i: exact(lists[i]) >= (cuts[0] if limits is None else limits[i]))
            valid = lists.filter(lambda p: (exact(p) >= number(0.0)) & (exact(p) <= number(1.0)))
            usable &= (lists.length() == len(names)) & (valid.length() == len(names))
        else:
            columns = [exact(table[name]) for name in self.probabilities.columns]
            nothing = ibis.null(ibis.literal(names[0]).type())
            inside = [
                (p >= cut).ifelse(ibis.literal(name), nothing)
                for p, cut, name in zip(columns, cuts, names, strict=True)
            ]
            members = ibis.array(inside).filter(lambda name: name.notnull())
            for p in columns:
                usable &= ((p >= number(0.0)) & (p <= number(1.0))).fill_null(False)
        sets = usable.fill_null(False).ifelse(members, ibis.null(members.type()))
        return {self.adds[0]: sets, self.adds[1]: sets.length().cast("int32")}


@dataclass(frozen=True, eq=False)
class IntervalPredictor:
    """Intervals around predictions, or around predicted quantiles.

    Parameters
    ----------
    predictions
        Their columns.
    scores
        The scores of the lower and of the upper end; two different ones if each has a threshold of its own.
    thresholds
        float64, shape (2, 1), or (2, groups): of the lower and of the upper end.
    group, suffix
        As in `SetPredictor`.
    """

    predictions: tuple[str, ...]
    scores: tuple[str, str]
    thresholds: NDArray[np.float64]
    group: NamedColumn | None = None
    suffix: str = ""
    in_sql: bool = True
    width: int = 2

    @property
    def reads(self) -> tuple[Read, ...]:
        """Predictions and group."""
        return (*map(Read, self.predictions), *([] if self.group is None else [self.group.read]))

    @property
    def adds(self) -> tuple[str, ...]:
        """Both ends."""
        return LOWER + self.suffix, UPPER + self.suffix

    @property
    def requirements(self) -> tuple[str, ...]:
        """Finite predictions, and a known group."""
        return (*map(finite_requirement, self.predictions), *_group_requirement(self.group))

    def columns(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Findings]:
        """Both ends, rounded outwards."""
        import pyarrow as pa

        f, findings = finite_columns(batch, self.predictions, first=1)
        thresholds: Any = self.thresholds[:, 0]
        if self.group is not None:
            place, findings = _places(self.group, batch, findings, 1 + len(f))
            thresholds = self.thresholds[:, place]
        good = np.ones(len(f[0]), dtype=np.bool_) if findings is None else findings == 0
        ends = np.full((2, len(good)), np.nan)
        if good.any():
            kept = f[0][good] if len(f) == 1 else np.column_stack(f)[good]
            for side, score in enumerate(self.scores):
                own = thresholds[side][good] if self.group is not None else float(thresholds[side])
                ends[side, good] = interval_ends(kept, score, own)[side]
        return [pa.array(end, mask=None if findings is None else ~good) for end in ends], findings

    def expressions(self, table: Any) -> dict[str, Any]:
        """The same in double precision."""
        import ibis

        f, finite = [exact(table[name]) for name in self.predictions], ibis.literal(True)
        for value in f:
            finite &= finite_expression(value)
        low, high = (self._reach(table, side) for side in (0, 1))
        lower = number(-np.inf) if self.scores[0] == "cqr_high" else f[0] - low
        upper = number(np.inf) if self.scores[1] == "cqr_low" else f[-1] + high
        nothing = ibis.null("float64")
        return {self.adds[0]: finite.ifelse(lower, nothing), self.adds[1]: finite.ifelse(upper, nothing)}

    def _reach(self, table: Any, side: int) -> Any:
        reaches = [float(np.nextafter(t, np.inf)) for t in self.thresholds[side]]
        return number(reaches[0]) if self.group is None else _per_group(table, self.group, reaches)


def predictors_of(table: Table, what: What, release: Release, by: str | None = None) -> tuple[Predictor, ...]:
    """What a release adds to the records of a table: one predictor, or one for each of its levels.

    Raises
    ------
    InputError
        If the release was made for other scores than the columns give, or has thresholds per group and `by`, their
        column, is not named.
    """
    if isinstance(release, LevelCalibration):
        return tuple(_predictor(table, what, part, by, f"_{float(alpha):g}") for alpha, part in release.parts.items())
    return (_predictor(table, what, release, by, ""),)


def _predictor(table: Table, what: What, release: Any, by: str | None, suffix: str) -> Predictor:
    per_group = isinstance(release, GroupCalibration) and release.by == "group"
    if per_group != (by is not None):
        raise InputError("by must name the column of each record's group, if the release has thresholds per group")
    group, parts = None, [release]
    if isinstance(release, GroupCalibration):
        parts = list(release.parts.values())
        group = group_column(table, by, tuple(release.parts)) if by is not None else None
    if isinstance(what, Regressed):
        what.check_predictions(table)
        if isinstance(release, SidesCalibration):
            sides = np.array([[release.low.threshold], [release.high.threshold]])
            return IntervalPredictor(what.predictions, ("cqr_low", "cqr_high"), sides, None, suffix)
        _check_score(release, "regression")
        score = parts[0].score or str(what.kind.name)
        thresholds = np.array([[part.threshold for part in parts]] * 2)
        return IntervalPredictor(what.predictions, (score, score), thresholds, group, suffix)
    if isinstance(what, Losses):
        p, names = what.columns(table)
        if not isinstance(release, RiskCalibration) or release.loss != FALSE_NEGATIVES:
            raise InputError("the release must be of the false-negative rate, to make sets of labels")
        return SetPredictor(p, names, "lac", np.array([release.threshold]), suffix=suffix)
    if not isinstance(what, Classified):
        raise InputError("probabilities or predictions must be given: sets and intervals are made from them")
    _check_score(release, "classification")
    p, names = what.columns(table)
    by_class = isinstance(release, GroupCalibration) and release.by == "class"
    thresholds = release.class_thresholds(names, len(names)) if by_class else np.array([p.threshold for p in parts])
    return SetPredictor(p, names, parts[0].score or "lac", thresholds, by_class, group, suffix)


def _check_score(release: Any, task: str) -> None:
    if not isinstance(release, Calibration | GroupCalibration):
        raise InputError(f"the release has no thresholds of a {task} score; its kind is {type(release).__name__}")
    if release.score is not None and score_kind(release.score).task != task:
        raise InputError(f"the release was made for the score {release.score!r}, which is no {task} score")


def _group_requirement(group: NamedColumn | None) -> tuple[str, ...]:
    return () if group is None else (group.requirement,)


def _places(group: NamedColumn, batch: Any, findings: Findings, finding: int) -> tuple[NDArray[np.int64], Findings]:
    """The position of each record's group; 0, and a finding, where it has none."""
    place = group.places(batch)
    unknown = place < 0
    if unknown.any():
        findings = np.zeros(len(place), np.int8) if findings is None else findings
        findings[unknown & (findings == 0)] = finding
    return np.maximum(place, 0), findings


def _per_group(table: Any, group: NamedColumn, values: Sequence[float]) -> Any:
    import ibis

    member = table[group.column]
    clauses = [
        (member == name, number(value))
        for one, value in zip(group.names, values, strict=True)
        if (name := alike(member, one)) is not None
    ]
    return ibis.cases(*clauses, else_=ibis.null("float64"))


def _cut(threshold: float) -> float:
    """For float32 probabilities the comparison in double precision has the same answer."""
    if threshold >= 1:
        return 0.0
    return 2.0 if threshold < 0 else float(smallest_probability(threshold, _DOUBLE))


def _set_columns(
    mask: NDArray[np.bool_], names: Names, without: NDArray[np.bool_] | None, *, as_text: bool
) -> list[Any]:
    """Lists of class names (as_text: JSON arrays) and their lengths, built from whole arrays, never row by row.

    Examples
    --------
    >>> columns = _set_columns(np.array([[True, True], [False, False]]), ("cat", "dog"), None, as_text=True)
    >>> columns[0].to_pylist(), columns[1].to_pylist()
    (['["cat", "dog"]', '[]'], [2, 0])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.count_nonzero(mask, axis=1)
    offsets = np.zeros(len(mask) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    shown = pa.array([json.dumps(name, ensure_ascii=False) for name in names] if as_text else list(names))
    members = shown.take(pa.array(np.flatnonzero(mask) % mask.shape[1]))
    nulls = None if without is None else pa.array(without)
    lists = pa.ListArray.from_arrays(pa.array(offsets), members, mask=nulls)
    if as_text:
        lists = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
    return [lists, pa.array(sizes.astype(np.int32), mask=without)]
