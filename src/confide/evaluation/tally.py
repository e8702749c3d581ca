"""Count labelled records: which sets, intervals or scores of a release cover, batch by batch, by part and by outcome.

`SetOutcomes`, `IntervalOutcomes` and `ScoreOutcomes` compare records with a release at each of its levels. A `Tally`
counts what they return in the tables of a query, whether noise is added later or not.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_uniforms
from confide.core import UNNAMED, Release, as_release, names_for, warn_about
from confide.errors import InputError, InputTypeError
from confide.evaluation.counts import (
    MOST_GROUPS,
    Counts,
    RecordOutcomes,
    group_names,
    missed,
    outcomes_of,
    refuse_many_groups,
)
from confide.evaluation.evaluation import Evaluation, Example
from confide.evaluation.query import (
    OTHER,
    CountQuery,
    Measure,
    Partition,
    class_parts,
    exact_tables,
    group_parts,
    size_parts,
    statements_of,
)
from confide.noisy_counts import draw_counts
from confide.scores import score_kind
from confide.sets import intervals_of, sets_of
from confide.support import canonical_name, library_versions


class RecordComparison:
    """Comparison of records with a release at each of its levels; a release without levels has one."""

    measure: Measure | None = None

    def __init__(self, release: Release, classes: Sequence[object] = ()) -> None:
        self.release, self.classes = release, tuple(map(str, classes))
        self.levels = [release.at(alpha) for alpha in release.levels]
        self.needs_groups = release.needs_groups(sets=bool(classes))

    def outcomes(self, *arrays: Any) -> list[RecordOutcomes]:
        """Coverage and sizes of records at each level."""
        raise NotImplementedError

    def places(self, groups: Groups | None, n: int) -> NDArray[np.int64] | None:
        """Position of each record's group or true class among those with a threshold; None for one threshold.

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        if not self.needs_groups:
            return None
        if groups is None:
            raise InputError("groups", f"must be given, because the release has one threshold per {self.release.by}")
        places: NDArray[np.int64] = self.release.places(groups, n)
        return places

    def _refuse(self, kinds: Collection[str], requirement: str, *, remedy: str) -> None:
        """Refuse a release whose thresholds are of a kind that cannot be compared."""
        kind = self.release.by if as_release(self.release).loss is None else "loss"
        if kind in kinds:
            raise InputTypeError("release", f"must have {requirement}", got=f"those of a {kind}", remedy=remedy)


class SetOutcomes(RecordComparison):
    """Coverage and sizes of sets.

    Parameters
    ----------
    release
        A release of a classification score.
    names
        The K class names, in the order of the columns.
    """

    measure = "size"

    def __init__(self, release: Release, names: Sequence[object]) -> None:
        self.release = release
        self._refuse(("side", "loss"), "thresholds for sets of classes", remedy="Evaluate the scores or the intervals")
        if any(part.score is None for part in release.parts.values()):
            raise InputError(*UNNAMED)
        super().__init__(release, names_for(release, tuple(names), len(names)) or tuple(names))
        self.randomised = any(score_kind(part.score).randomised for part in release.parts.values())

    def outcomes(
        self,
        probabilities: NDArray[Any],
        y: NDArray[np.int64],
        groups: Groups | None = None,
        u: Uniforms = None,
        shown: int = 0,
    ) -> list[RecordOutcomes]:
        """Compare records: probabilities (n, K), and positions of the true classes, -1 for none, shape (n,)."""
        uniforms = None
        if self.randomised or u is not None:
            uniforms = as_uniforms("u", u, len(probabilities), self.randomised)
        keys = self.class_keys() if self.release.by == "class" else None
        compared = []
        for level in self.levels:
            own = groups if self.needs_groups else None
            mask = sets_of(probabilities, level, keys, u=uniforms, groups=own).mask
            covered = mask[np.arange(len(y)), y] & (y >= 0)
            compared.append(RecordOutcomes(covered, mask.sum(axis=1), shown=mask[:shown]))
        return compared

    def class_keys(self) -> list[str | int]:
        """Classes of a release in the order of the columns; column names may be the strings of integer classes.

        Raises
        ------
        InputError
            If the columns have other classes, unless the release has 0 to K-1 and the columns K names.
        """
        by_text = {str(key): key for key in self.release.parts}
        if len(by_text) == len(self.release.parts) and sorted(self.classes) == sorted(by_text):
            return [by_text[text] for text in self.classes]
        if set(self.release.parts) == set(range(len(self.classes))):
            return list(range(len(self.classes)))
        some = ", ".join(list(by_text)[:10]) + (", ..." if len(by_text) > 10 else "")
        raise InputError(
            "classes",
            f"must be the {len(self.release.parts)} calibrated classes ({some})",
            got=f"{len(self.classes)} columns or other names",
            remedy="Give the names in the order of the columns",
        )


class IntervalOutcomes(RecordComparison):
    """Coverage and widths of intervals."""

    measure = "width"

    def __init__(self, release: Release) -> None:
        self.release = release
        self._refuse(("loss",), "thresholds for intervals", remedy="Evaluate critical thresholds as scores")
        super().__init__(release)

    def outcomes(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: Groups | None = None,
        difficulty: ArrayLike | None = None,
    ) -> list[RecordOutcomes]:
        """Compare records: predictions as in `predict_interval`, and true values of shape (n,)."""
        compared = []
        for level in self.levels:
            own = groups if self.needs_groups else None
            intervals = intervals_of(predictions, level, difficulty=difficulty, groups=own)
            if len(intervals.lower) != len(targets):
                got = f"{len(targets)} for {len(intervals.lower)}"
                raise InputError("targets", "must have one entry per prediction", got=got)
            above, below = intervals.lower <= targets, targets <= intervals.upper
            ends = (above, below) if self.release.by == "side" else None
            compared.append(RecordOutcomes(above & below, intervals.widths, ends))
        return compared


class ScoreOutcomes(RecordComparison):
    """Coverage by the scores of true labels."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self._refuse(("side",), "one threshold per record", remedy="Evaluate the intervals")
        super().__init__(release)
        warn_about(release)

    def outcomes(self, scores: NDArray[Any], groups: Groups | None = None) -> list[RecordOutcomes]:
        """Compare scores, shape (n,)."""
        exact, place = scores.astype(np.float64), self.places(groups, len(scores))
        compared = []
        for level in self.levels:
            thresholds = np.array([part.threshold for part in level.parts.values()])
            if place is not None:
                thresholds = thresholds[place] if place.ndim == 1 else thresholds[place].max(axis=1)
            compared.append(RecordOutcomes(exact <= thresholds))
        return compared


def own_partitions(comparison: RecordComparison) -> list[Partition]:
    """Partitions of a release by the groups or classes that have thresholds of their own."""
    release = comparison.release
    promised = [part.coverage for part in release.parts.values()]
    if isinstance(comparison, SetOutcomes) and release.by == "class":
        return [class_parts(comparison.classes, [release.parts[key].coverage for key in comparison.class_keys()])]
    if not comparison.needs_groups:
        return []
    names = list(map(str, release.parts))
    if release.by == "class":
        return [class_parts(names, promised)]
    pieces = [slice(None)] if release.overlap is None else release.overlap.slices
    return [group_parts(names[piece], promised[piece]) for piece in pieces]


def exact_query(comparison: RecordComparison, *, grouped: bool) -> CountQuery:
    """Query without noise: by class, by single set sizes at every level, and by group.

    Groups without thresholds of their own take their names from the records; at most 1000 are allowed.
    """
    release = comparison.release
    outcome, statements = statements_of(release)
    partitions = own_partitions(comparison)
    if isinstance(comparison, SetOutcomes):
        names = list(statements) if outcome == "levels" else [""]
        by_class = partitions if release.by == "class" else [class_parts(comparison.classes)]
        by_size = [size_parts(len(comparison.classes), exact=True, statement=name) for name in names]
        partitions = [*by_class, *by_size, *(partitions if release.by == "group" else [])]
    if grouped and not comparison.needs_groups:
        partitions.append(Partition("group", tuple(map(str, range(MOST_GROUPS)))))
    return CountQuery(
        calibration=release.checksum,
        outcome=outcome,
        statements=statements,
        partitions=tuple(partitions),
        tables=exact_tables(len(partitions)),
        loss=release.bounded,
        measure=comparison.measure,
    )


class Tally:
    """Exact counts of the cells of a query.

    Parameters
    ----------
    comparison
        Comparison that gives coverage and set sizes or interval widths of records.
    query
        The cells to count; its `n` is not used.
    examples
        Number of records to store as examples.
    """

    def __init__(self, comparison: RecordComparison, query: CountQuery, examples: int = 0) -> None:
        self.comparison, self.query = comparison, query
        self._tables = [
            Counts(query.shape(table)[:-1], query.shape(table)[-1], query.sums_shape(table)[-1])
            for table in query.tables
        ]
        self._most_examples = examples
        self.examples: list[list[Example]] = [[] for _ in range(query.levels)]
        self._names: dict[str, int] = {}

    def add(self, *arrays: Any, groups: Groups | None = None, places: Any = None, **more: Any) -> None:
        """Count records.

        Parameters
        ----------
        *arrays, **more
            Arguments of the comparison's `outcomes`.
        groups
            Group of each record, shape (n,); its true class if these have their own thresholds.
        places
            Instead of groups without thresholds of their own: their positions in the public list, shape (n,); -1 for a
            group that is not in the list.
        """
        own = groups if self.comparison.needs_groups else None
        more |= {"shown": self._most_examples - len(self.examples[0])} if self._most_examples else {}
        compared = self.comparison.outcomes(*arrays, own, **more)
        n = len(compared[0].covered)
        if own is not None or self.comparison.needs_groups:
            places = self.comparison.places(groups, n)
        elif groups is not None:
            places = self._places(groups, n)
        by_class = arrays[1] if isinstance(self.comparison, SetOutcomes) else places
        columns = iter(self._by_column(places))
        levels = dict(zip(self.query.statements, compared, strict=False))
        outcome, axes = outcomes_of(compared), []
        for partition in self.query.partitions:
            sized = levels[partition.statement] if partition.statement else compared[0]
            axes.append(_axis(partition, sized, by_class, next(columns) if partition.kind == "group" else None))
        for table, counts in zip(self.query.tables, self._tables, strict=True):
            statement = "".join(self.query.partitions[place].statement for place in table)
            some = [levels[statement]] if statement else compared
            sizes = [one.size for one in some if one.size is not None] if counts.sums.size else []
            counts.add([axes[place] for place in table], missed(some[0].covered) if statement else outcome, sizes)
        if self._most_examples:
            self._keep(compared, arrays[1], places if own is not None else None)

    def _places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """Position of each record's group in the public list, -1 for others; without noise in any order."""
        names, place = group_names(groups, n)  # type: ignore[arg-type]  # a mapping raises
        if self.query.epsilon is None:
            positions = [self._names.setdefault(name, len(self._names)) for name in names]
            refuse_many_groups(len(self._names))
        else:
            listed = next(partition.names for partition in self.query.partitions if partition.kind == "group")
            public = {name: i for i, name in enumerate(listed[:-1])}
            positions = [public.get(canonical_name(name), -1) for name in names]
        return np.array(positions, np.int64)[place]

    def _by_column(self, places: NDArray[np.int64] | None) -> list[NDArray[np.int64] | None]:
        """Positions of the groups in each partition of kind group, which are several if groups overlap."""
        if places is None or places.ndim == 1:
            return [places]
        sizes = [len(partition) for partition in self.query.partitions if partition.kind == "group"]
        return [column - start for column, start in zip(places.T, np.cumsum([0, *sizes[:-1]]), strict=True)]

    def _keep(self, compared: Sequence[RecordOutcomes], truth: NDArray[np.int64], places: Any) -> None:
        """Store the first records as examples."""
        classes, names = self.comparison.classes, list(map(str, self.comparison.release.parts))
        for examples, level in zip(self.examples, compared, strict=True):
            for i, inside in enumerate(() if level.shown is None else level.shown):
                members = tuple(classes[k] for k in np.flatnonzero(inside))
                group = None if places is None else ", ".join(names[own] for own in np.atleast_1d(places[i]))
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
        exact = [cells[0][:1]] if query.one_count else cells
        noisy = tuple(tuple(draw_counts(counts, query.noise).tolist()) for counts in exact)
        return Evaluation(query, noisy, confidence, versions=library_versions(), release=self.comparison.release)

    def result(self) -> Evaluation:
        """Evaluation of all records so far, without noise; parts that do not occur are left out."""
        first, *others = self._tables
        partitions, tables = [], [first]
        for partition, counts in zip(self.query.partitions, others, strict=True):
            kept, chosen = self._occurring(partition, counts.cells.sum(axis=1))
            counts.cells, counts.sums = counts.cells[chosen], counts.sums[chosen]
            partitions.append(kept)
            tables.append(counts)
        return Evaluation(
            replace(self.query, partitions=tuple(partitions)),
            tuple(tuple(counts.cells.ravel().tolist()) for counts in tables),
            sums=tuple(tuple(counts.sums.ravel().tolist()) for counts in tables) if self.query.measure else (),
            examples=tuple(map(tuple, self.examples)) if self.examples[0] else (),
            release=self.comparison.release,
        )

    def _occurring(self, partition: Partition, n: NDArray[np.int64]) -> tuple[Partition, NDArray[np.int64]]:
        """The parts of a partition that have records, or all sizes up to the largest, and their positions."""
        chosen = np.flatnonzero(n)
        if partition.kind == "size":
            most = int(chosen[-1])
            return size_parts(most, exact=True, statement=partition.statement), np.arange(most + 1)
        names: Sequence[str] = partition.names
        if partition.kind == "group" and self._names:
            names = list(self._names)
            chosen = np.array(sorted(range(len(names)), key=names.__getitem__))
        promised = None if partition.promised is None else tuple(partition.promised[i] for i in chosen)
        return Partition(partition.kind, tuple(names[int(i)] for i in chosen), promised), chosen

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or in all."""
        release, names, rows = self.comparison.release, list[str](), list[NDArray[np.int64]]()
        for partition, counts in zip(self.query.partitions, self._tables[1:], strict=True):
            if partition.promised is not None:
                names += partition.names
                rows += list(counts.cells)
        if not rows:
            cells = self._tables[0].cells
            return np.array([[cells[0], cells[1:].sum()]])
        keys: Sequence[object] = names
        if isinstance(self.comparison, SetOutcomes) and release.by == "class":
            keys = self.comparison.class_keys()
        by_text = list(map(str, keys))
        return np.array([rows[by_text.index(str(key))] for key in release.parts])


def _axis(
    partition: Partition,
    compared: RecordOutcomes,
    classes: NDArray[np.int64] | None,
    groups: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """Part of each record."""
    if partition.binned:
        assert compared.size is not None
        place = np.searchsorted(np.array(partition.edges), compared.size, side="right") - 1
        return np.maximum(place, 0)  # an interval whose ends are crossed has no width
    positions = classes if partition.kind == "class" else groups
    if positions is None:
        raise InputError("groups", f"must be given to evaluate coverage by {partition.kind}")
    return np.where(positions < 0, len(partition) - 1, positions)
