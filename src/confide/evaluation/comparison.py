"""Compare labelled records with a release at each of its levels: which sets, intervals or scores cover their labels."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_uniforms
from confide.core import Release, as_release, names_for, warn_about
from confide.errors import InputError, InputTypeError
from confide.evaluation.partitions import Partition, class_parts, group_parts
from confide.evaluation.query import Measure
from confide.sets import holds_class, intervals_of, score_of, sets_of
from confide.support import order_of, require


@dataclass(frozen=True)
class LabelledRecords:
    """Arrays of n records.

    Parameters
    ----------
    outputs
        Probabilities of shape (n, K), predictions as in `predict_interval`, or scores of shape (n,).
    truth
        Of probabilities the positions of the true classes, -1 for none; of predictions the true values; shape (n,).
    u
        For sets by randomised scores: the random numbers, shape (n,); drawn by default.
    difficulty
        For intervals: as in `predict_interval`.
    """

    outputs: NDArray[Any]
    truth: NDArray[Any] | None = None
    u: Uniforms = None
    difficulty: ArrayLike | None = None


@dataclass(frozen=True)
class RecordOutcomes:
    """Coverage and sizes of n records at one level of a release, before counting.

    `size` has set sizes or interval widths, None for scores; `ends` whether the lower and the upper end hold, if each
    has its own threshold.
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None


def outcomes_of(record_outcomes: Sequence[RecordOutcomes]) -> NDArray[Any]:
    """Outcome of each record: the number of levels whose set does not cover it; with one level 0 (covered) or 1.

    Examples
    --------
    >>> outcomes_of([RecordOutcomes(np.array([True, False, False])), RecordOutcomes(np.array([True, True, False]))])
    array([0, 1, 2])
    """
    first = record_outcomes[0]
    if first.ends is not None:
        low, high = map(_missed, first.ends)
        return low + 2 * high  # the outcomes of `SIDE_OUTCOMES`
    if len(record_outcomes) == 1:
        return _missed(first.covered)
    levels: NDArray[np.int64] = np.sum([_missed(level.covered) for level in record_outcomes], axis=0, dtype=np.int64)
    return levels


def _missed(covered: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return (~covered).view(np.uint8)


class RecordComparison(ABC):
    """Comparison of records with a release at each of its levels; a release without levels has one."""

    measure: ClassVar[Measure | None] = None
    """Quantity of each record that is added up without noise."""

    refused: ClassVar[Collection[str]]
    """Thresholds that cannot be compared: those of sides, or of a loss."""

    must_have: ClassVar[str]
    """Thresholds that are required instead, for the error."""

    remedy: ClassVar[str]
    """What to do with a refused release, for the error."""

    def __init__(self, release: Release, classes: Sequence[object] = ()) -> None:
        kind = release.by if as_release(release).loss is None else "loss"
        if kind in self.refused:
            raise InputTypeError("release", f"must have {self.must_have}", got=f"those of a {kind}", remedy=self.remedy)
        self.release = release
        self.classes = tuple(map(str, classes))
        self.levels = [release.at(alpha) for alpha in release.levels]
        self.needs_groups = release.needs_groups(sets=bool(classes))

    @abstractmethod
    def outcomes(self, records: LabelledRecords, groups: Groups | None) -> list[RecordOutcomes]:
        """Coverage and sizes of records at each level."""

    @property
    def keys(self) -> list[Any]:
        """Groups or classes that have thresholds of their own; of sets in the order of the columns."""
        return list(self.release.parts)

    def class_partitions(self, *, wanted: bool) -> list[Partition]:
        """The partition by true class, if classes have thresholds of their own, or if it is wanted and possible."""
        if self.release.by == "class":
            promised = [self.release.parts[key].coverage for key in self.keys]
            return [class_parts(self.classes or self.keys, promised)]
        return [class_parts(self.classes)] if self.classes and wanted else []

    def group_partitions(self) -> list[Partition]:
        """The partitions by groups that have thresholds of their own: several if groups overlap."""
        if self.release.by != "group":
            return []
        names = list(map(str, self.release.parts))
        promised = [threshold.coverage for threshold in self.release.parts.values()]
        columns = [slice(None)] if self.release.overlap is None else self.release.overlap.slices
        return [group_parts(names[column], promised[column]) for column in columns]

    def places(self, groups: Groups | None, n: int) -> NDArray[np.int64] | None:
        """Position of each record's group or true class among those with thresholds; None if there is one threshold.

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        if not self.needs_groups:
            return None
        if groups is None:
            raise InputError("groups", f"must be given, because the release has one threshold per {self.release.by}")
        return self.release.places(groups, n)


class SetOutcomes(RecordComparison):
    """Coverage and sizes of sets; `names` are the K classes in the order of the columns."""

    measure = "size"
    refused = ("side", "loss")
    must_have = "thresholds for sets of classes"
    remedy = "Evaluate the scores or the intervals"

    def __init__(self, release: Release, names: Sequence[object]) -> None:
        super().__init__(release, names)
        self.randomised = score_of(release).randomised
        self.classes = tuple(map(str, names_for(release, tuple(names), len(names)) or names))
        if release.by == "class":
            release.limits(classes=self.classes)  # raises if they are others

    def outcomes(self, records: LabelledRecords, groups: Groups | None) -> list[RecordOutcomes]:
        """Compare sets with true classes; a label that is no class is in no set."""
        y = records.truth
        assert y is not None
        # The sets of all levels are randomised by the same numbers.
        u = records.u
        if self.randomised or u is not None:
            u = as_uniforms("u", u, len(records.outputs), self.randomised)
        keys = self.keys if self.release.by == "class" else None
        compared = []
        for level in self.levels:
            mask = sets_of(records.outputs, level, keys, u=u, groups=groups).mask
            compared.append(RecordOutcomes(holds_class(mask, y), size=mask.sum(axis=1)))
        return compared

    @property
    def keys(self) -> list[Any]:
        """Classes in the order of the columns, whose names may be strings of integer classes; or groups."""
        keys = list(self.release.parts)
        if self.release.by != "class":
            return keys
        # By the names of the columns, or else by their positions.
        order = order_of(self.classes, keys) or order_of(range(len(keys)), keys) or []
        return [keys[place] for place in order]


class IntervalOutcomes(RecordComparison):
    """Coverage and widths of intervals."""

    measure = "width"
    refused = ("loss",)
    must_have = "thresholds for intervals"
    remedy = "Evaluate critical thresholds as scores"

    def outcomes(self, records: LabelledRecords, groups: Groups | None) -> list[RecordOutcomes]:
        """Compare intervals with true values."""
        targets = records.truth
        assert targets is not None
        compared = []
        for level in self.levels:
            intervals = intervals_of(records.outputs, level, difficulty=records.difficulty, groups=groups)
            got = f"{len(targets)} for {len(intervals.lower)}"
            require("targets", len(intervals.lower) == len(targets), "must have one entry per prediction", got=got)
            above_lower = intervals.lower <= targets
            below_upper = targets <= intervals.upper
            ends = (above_lower, below_upper) if self.release.by == "side" else None
            compared.append(RecordOutcomes(above_lower & below_upper, size=intervals.widths, ends=ends))
        return compared


class ScoreOutcomes(RecordComparison):
    """Coverage by the scores of true labels."""

    refused = ("side",)
    must_have = "one threshold per record"
    remedy = "Evaluate the intervals"

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        warn_about(release)

    def outcomes(self, records: LabelledRecords, groups: Groups | None) -> list[RecordOutcomes]:
        """Compare the scores of true labels with the threshold of each record."""
        scores = records.outputs.astype(np.float64)
        places = self.places(groups, len(scores))
        compared = []
        for level in self.levels:
            limits = np.array([threshold.threshold for threshold in level.parts.values()])
            if places is not None:
                # If groups overlap, a record has the largest of its thresholds.
                limits = limits[np.atleast_2d(places.T)].max(axis=0)
            compared.append(RecordOutcomes(scores <= limits))
        return compared
