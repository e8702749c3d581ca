"""Count labelled records, batch by batch, by part and by outcome.

A `RecordComparison` compares records with a release at each of its levels: which sets, intervals or scores cover. A
`Tally` counts the outcomes in the tables of a query, whether noise is added later or not. It stores no other data of a
record, except for examples that the user chose to show.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_array, as_uniforms
from confide.core import UNNAMED, Release, as_release, names_for, warn_about
from confide.errors import InputError, InputTypeError
from confide.evaluation.count_tables import Example
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.query import OTHER, CountQuery, Measure, Partition, class_parts, group_parts, size_parts
from confide.noisy_counts import draw_counts
from confide.scores import score_kind
from confide.sets import intervals_of, sets_of
from confide.support import canonical_name, library_versions, order_of, positions, raise_for_rows, require


@dataclass(frozen=True)
class RecordOutcomes:
    """Coverage and sizes of n records at one level of a release, before counting.

    `size` has set sizes or interval widths, None for scores; `ends` whether the lower and the upper end hold, if each
    has its own threshold; `shown` the sets of the first records, for examples, bool, shape (examples, K).
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
    shown: NDArray[np.bool_] | None = None


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


# Comparisons of records with a release.


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
        self.release, self.classes = release, tuple(map(str, classes))
        self.levels = [release.at(alpha) for alpha in release.levels]
        self.needs_groups = release.needs_groups(sets=bool(classes))

    @abstractmethod
    def outcomes(self, *arrays: Any, **options: Any) -> list[RecordOutcomes]:
        """Coverage and sizes of records at each level; the option `groups` states those with thresholds."""

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
        """Position of each record's group or true class among those with their own thresholds; None for one threshold.

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        if not self.needs_groups:
            return None
        if groups is None:
            raise InputError("groups", f"must be given, because the release has one threshold per {self.release.by}")
        places: NDArray[np.int64] = self.release.places(groups, n)
        return places


class SetOutcomes(RecordComparison):
    """Coverage and sizes of sets; `names` are the K classes in the order of the columns."""

    measure = "size"
    refused = ("side", "loss")
    must_have, remedy = "thresholds for sets of classes", "Evaluate the scores or the intervals"

    def __init__(self, release: Release, names: Sequence[object]) -> None:
        super().__init__(release, names)
        if any(threshold.score is None for threshold in release.parts.values()):
            raise InputError(*UNNAMED)
        self.classes = tuple(map(str, names_for(release, tuple(names), len(names)) or names))
        self.randomised = any(score_kind(threshold.score).randomised for threshold in release.parts.values())
        if release.by == "class":
            release.limits(classes=self.classes)  # raises if they are others

    def outcomes(
        self, p: NDArray[Any], y: NDArray[np.int64], *, groups: Groups | None, u: Uniforms = None, shown: int = 0
    ) -> list[RecordOutcomes]:
        """Compare records: probabilities (n, K), and positions of the true classes, -1 for none, shape (n,)."""
        # The sets of all levels are randomised by the same numbers.
        if self.randomised or u is not None:
            u = as_uniforms("u", u, len(p), self.randomised)
        keys, compared = self.keys if self.release.by == "class" else None, []
        for level in self.levels:
            mask = sets_of(p, level, keys, u=u, groups=groups).mask
            covered = mask[np.arange(len(y)), y] & (y >= 0)
            compared.append(RecordOutcomes(covered, size=mask.sum(axis=1), shown=mask[:shown]))
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
    must_have, remedy = "thresholds for intervals", "Evaluate critical thresholds as scores"

    def outcomes(
        self, predictions: NDArray[Any], targets: NDArray[Any], *, groups: Groups | None, difficulty: Any = None
    ) -> list[RecordOutcomes]:
        """Compare records: predictions and difficulty as in `predict_interval`, and true values of shape (n,)."""
        compared = []
        for level in self.levels:
            intervals = intervals_of(predictions, level, difficulty=difficulty, groups=groups)
            got = f"{len(targets)} for {len(intervals.lower)}"
            require("targets", len(intervals.lower) == len(targets), "must have one entry per prediction", got=got)
            above, below = intervals.lower <= targets, targets <= intervals.upper
            ends = (above, below) if self.release.by == "side" else None
            compared.append(RecordOutcomes(above & below, size=intervals.widths, ends=ends))
        return compared


class ScoreOutcomes(RecordComparison):
    """Coverage by the scores of true labels."""

    refused = ("side",)
    must_have, remedy = "one threshold per record", "Evaluate the intervals"

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        warn_about(release)

    def outcomes(self, scores: NDArray[Any], *, groups: Groups | None) -> list[RecordOutcomes]:
        """Compare scores, shape (n,)."""
        exact, places, compared = scores.astype(np.float64), self.places(groups, len(scores)), []
        for level in self.levels:
            limits = np.array([threshold.threshold for threshold in level.parts.values()])
            if places is not None:
                # If groups overlap, a record has the largest of its thresholds.
                limits = limits[np.atleast_2d(places.T)].max(axis=0)
            compared.append(RecordOutcomes(exact <= limits))
        return compared


# Groups without thresholds of their own.

MOST_GROUPS = 1000


class TooManyGroupsError(InputError):
    """More different groups than an evaluation allows."""


def too_many_groups(argument: str = "groups", column: str = "") -> TooManyGroupsError:
    """Return the error for more than 1000 groups; `column` is the name of their column."""
    more = f"more in column {column!r}" if column else "more"
    remedy = "Give groups of people, not the names of records"
    return TooManyGroupsError(argument, f"must have at most {MOST_GROUPS:,} different values", more, remedy)


def group_names(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct group names as strings, and the position of each record's group among them.

    Examples
    --------
    >>> group_names([7, 3, 7], 3)
    (['3', '7'], array([1, 0, 1]))
    """
    array = as_array("groups", groups)
    require("groups", array.shape == (n,), f"must have shape ({n},), one entry per record", got=f"shape {array.shape}")

    # Every group is a text or an integer.
    if array.dtype.kind == "O":
        wrong = np.array([not isinstance(value, str | int) for value in array.tolist()], dtype=np.bool_)
        remedy = "Name the group of every record"
        raise_for_rows("groups", wrong, "must be texts or integers", "that are not", remedy)
        array = np.array([canonical_name(value) for value in array.tolist()], dtype=np.str_)
    elif array.dtype.kind not in "iubU":
        remedy = "Name the group of every record, for example by .astype(str)"
        raise InputTypeError("groups", "must be texts or integers", got=f"dtype {array.dtype}", remedy=remedy)

    # The distinct ones.
    names, place = np.unique(array, return_inverse=True)
    return list(map(canonical_name, names.tolist())), place


# Counts.


class Counts:
    """Numbers of records by part and outcome, and the sums of their set sizes or interval widths by part and level.

    Shapes: the numbers of parts of the divisions that are crossed, then the number of outcomes (of `cells`), or of
    levels at which sizes or widths are added up (of `sums`). Without a division all records are one part.

    Examples
    --------
    >>> counts = Counts((2, 2), (2, 1))
    >>> counts.add([np.array([0, 1, 1])], np.array([0, 0, 1]), [np.array([1, 2, 4])])
    >>> counts.cells.tolist(), counts.sums.tolist()
    ([[1, 0], [1, 1]], [[1.0], [6.0]])
    """

    def __init__(self, cells: Sequence[int], sums: Sequence[int] = (0,)) -> None:
        self.cells, self.sums = np.zeros(cells, np.int64), np.zeros(sums)

    def add(
        self, places: Sequence[NDArray[np.int64]], outcome: NDArray[Any], sizes: Sequence[NDArray[Any] | None] = ()
    ) -> None:
        """Count n records by their part in each division, their outcome (0: covered), and their set size at each level.

        Sums of widths may overflow to infinity.
        """
        *parts, outcomes = self.cells.shape
        with np.errstate(over="ignore"):
            # All records are one part.
            if not parts:
                self.cells += [np.count_nonzero(outcome == number) for number in range(outcomes)]
                self.sums += [0 if size is None else size.sum() for size in sizes[: len(self.sums)]]
                return

            # Count by the combination of parts.
            row = np.ravel_multi_index(tuple(places), tuple(parts)) if len(parts) > 1 else places[0]
            self.cells += np.bincount(row * outcomes + outcome, minlength=self.cells.size).reshape(self.cells.shape)
            for level, size in zip(range(self.sums.shape[-1]), sizes, strict=False):
                self.sums[..., level] += np.bincount(row, size, self.sums[..., level].size).reshape(parts)


class Tally:
    """Exact counts of the cells of a query, whose `n` is not used; and if requested the first records, as examples."""

    def __init__(self, comparison: RecordComparison, query: CountQuery, examples: int = 0) -> None:
        if examples and not isinstance(comparison, SetOutcomes):
            raise InputError("examples", "must be left out unless sets of classes are evaluated")
        self.comparison, self.query = comparison, query
        self._tables = [Counts(query.shape(table), query.sums_shape(table)) for table in query.tables]
        self._most_examples = examples
        self._examples: list[list[Example]] = [[] for _ in range(query.levels)]
        self._groups: dict[str, int] = {}  # without noise, the groups so far in order of appearance

    def add(self, *arrays: Any, groups: Groups | None = None, places: Any = None, **options: Any) -> None:
        """Count records, given by the arguments of the comparison's `outcomes`.

        Parameters
        ----------
        groups
            Group of each record, shape (n,); its true class if these have their own thresholds.
        places
            Instead of `groups`, if groups have no thresholds of their own: the position of each record's group in the
            public list, -1 for other groups.
        """
        # Compare with the release at each level.
        needs_groups, query = self.comparison.needs_groups, self.query
        if self._most_examples:
            options["shown"] = self._most_examples - len(self._examples[0])
        compared = self.comparison.outcomes(*arrays, groups=groups if needs_groups else None, **options)
        levels, outcome = dict(zip(query.statements, compared, strict=False)), outcomes_of(compared)

        # The part of each record in each partition.
        n = len(compared[0].covered)
        if needs_groups:
            places = self.comparison.places(groups, n)
        elif groups is not None:
            places = self._places(groups, n)
        starts = np.cumsum([0, *(len(groups) for groups in query.partitions if groups.kind == "group")])
        columns = iter([] if places is None else [*map(np.subtract, np.atleast_2d(places.T), starts)])

        # Of sets, classes are those of the labels; else they are the groups.
        axes = []
        by_class = arrays[1] if isinstance(self.comparison, SetOutcomes) else places
        for partition in query.partitions:
            place = next(columns, None) if partition.kind == "group" else by_class
            axes.append(_axis(partition, levels.get(partition.statement, compared[0]), place))

        # Count in each table, of one level or of all.
        for table, counts in zip(query.tables, self._tables, strict=True):
            level = query.level_of(table)
            counted = [levels[level]] if level else compared
            sizes = [records.size for records in counted]
            counts.add([axes[place] for place in table], outcomes_of(counted) if level else outcome, sizes)
        if self._most_examples:
            self._add_examples(compared, arrays[1], places if needs_groups else None)

    def _places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """Position of each record's group in the public list, -1 for others; without noise in order of appearance."""
        names, place = group_names(groups, n)  # type: ignore[arg-type]  # a mapping raises
        if self.query.epsilon is not None:
            listed = next(partition.names for partition in self.query.partitions if partition.kind == "group")
            return positions("groups", names, listed[:-1])[place]
        numbers = [self._groups.setdefault(name, len(self._groups)) for name in names]
        if len(self._groups) > MOST_GROUPS:
            raise too_many_groups()
        return np.array(numbers, np.int64)[place]

    def _add_examples(self, compared: Sequence[RecordOutcomes], truth: NDArray[np.int64], places: Any) -> None:
        classes, names = self.comparison.classes, list(map(str, self.comparison.release.parts))
        for examples, level in zip(self._examples, compared, strict=True):
            assert level.shown is not None  # examples are of sets
            for i, inside in enumerate(level.shown):
                members = tuple(classes[k] for k in np.flatnonzero(inside))
                group = None if places is None else ", ".join(names[place] for place in np.atleast_1d(places[i]))
                examples.append(Example(members, OTHER if truth[i] < 0 else classes[truth[i]], group))

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self._tables[0].cells.sum())

    def content(self) -> bytes:
        """All counts as bytes, which are the same for the same data on every machine and engine."""
        return b"".join(counts.cells.astype("<i8").tobytes() for counts in self._tables)

    def draw(self, query: CountQuery, confidence: float) -> Evaluation:
        """Draw the private evaluation with fresh noise; `query` is the counted one, with `n` if it is public."""
        cells = [counts.cells.ravel() for counts in self._tables]
        exact = [cells[0][:1]] if query.one_count else cells  # the first outcome is: covered
        noisy = tuple(tuple(draw_counts(counts, query.noise).tolist()) for counts in exact)
        return Evaluation(query, noisy, confidence, versions=library_versions(), release=self.comparison.release)

    def result(self) -> Evaluation:
        """Evaluation of all records so far, without noise; parts that do not occur are left out."""
        # Only the parts that occur; the first table counts all records.
        partitions = []
        for partition, counts in zip(self.query.partitions, self._tables[1:], strict=True):
            occurring, chosen = self._occurring(partition, counts.cells.sum(axis=1))
            counts.cells, counts.sums = counts.cells[chosen], counts.sums[chosen]
            partitions.append(occurring)

        # The counts in their order.
        return Evaluation(
            replace(self.query, partitions=tuple(partitions)),
            tuple(tuple(counts.cells.ravel().tolist()) for counts in self._tables),
            sums=tuple(tuple(counts.sums.ravel().tolist()) for counts in self._tables) if self.query.measure else (),
            examples=tuple(map(tuple, self._examples)) if self._most_examples else (),
            release=self.comparison.release,
        )

    def _occurring(self, partition: Partition, n: NDArray[np.int64]) -> tuple[Partition, NDArray[np.int64]]:
        """The parts of a partition that have records, or all sizes up to the largest, and their positions."""
        chosen, names = np.flatnonzero(n), list(partition.names)
        if partition.kind == "size":
            most = int(chosen[-1])
            return size_parts(most, exact=True, statement=partition.statement), np.arange(most + 1)
        if partition.kind == "group" and self._groups:
            names = list(self._groups)
            chosen = np.array(sorted(range(len(names)), key=names.__getitem__))
        promised = None if partition.promised is None else tuple(partition.promised[i] for i in chosen)
        return Partition(partition.kind, tuple(names[i] for i in chosen), promised), chosen

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or in all."""
        total, *others = (counts.cells for counts in self._tables)
        divided = zip(self.query.partitions, others, strict=True)
        rows = [row for partition, cells in divided if partition.promised is not None for row in cells]
        if not rows:
            return np.array([[total[0], total[1:].sum()]])
        keys = self.comparison.keys
        return np.array([rows[keys.index(key)] for key in self.comparison.release.parts])


def _axis(partition: Partition, compared: RecordOutcomes, place: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Part of each record; `place` is that of its class or group, -1 for all others."""
    if partition.binned:
        assert compared.size is not None
        place = np.searchsorted(np.array(partition.edges), compared.size, side="right") - 1
        return np.maximum(place, 0)  # an interval whose ends are crossed has no width
    if place is None:
        raise InputError("groups", f"must be given to evaluate coverage by {partition.kind}")
    return np.where(place < 0, len(partition) - 1, place)
