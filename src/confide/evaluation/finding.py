"""What the counts of an evaluation state about one promise: a function of its public query and of the counts alone.

Without noise every interval is exact by itself. With noise all intervals hold together: the error probability
a = 1 - confidence is divided evenly among the families of statements (Bonferroni). For each promise these are the
coverage over all records and the coverage by each partition, and for each partition into bins the shares of its bins.
Within a partition the coverage intervals are independent given the part sizes, so each may miss with probability
1 - (1 - a')^(1/k) (Sidak). Shares of bins are not independent and divide a' by k. The mean of a binned number follows
from its shares on the same event. It lies between the two optima of a linear program over the intervals of the shares,
at no further error.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.core import Release
from confide.evaluation.parts import CoverageTable, Part, TableKind, below_at_once, interval_text, parts_of
from confide.evaluation.query import SIDES, Partition
from confide.guarantee import coverage_text
from confide.noisy_counts import coverage_interval, one_count_interval, simultaneous
from confide.sets import CHANCE, Shortfall, exact_interval, mean_limit, shortfall_at
from confide.support import Described, Facts, Section, short_number

if TYPE_CHECKING:
    from confide.evaluation.evaluation import Evaluation

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


class Measured(Described, ABC):
    """Coverage of all records and by part, at one statement of a release."""

    @property
    @abstractmethod
    def finding(self) -> "Finding":
        """Finding about this statement."""

    def table(self, kind: TableKind) -> CoverageTable:
        """Coverage of the parts of one kind; without parts if it was not counted."""
        return next((table for table in self.finding.tables if table.kind == kind), CoverageTable(kind, ()))

    @property
    def classes(self) -> CoverageTable:
        """Coverage by true class."""
        return self.table("class")

    @property
    def groups(self) -> CoverageTable:
        """Coverage by group, with or without thresholds of their own."""
        return self.table("group")

    @property
    def sizes(self) -> CoverageTable:
        """Coverage by set size, from 1 on."""
        return self.table("size")

    @property
    def widths(self) -> CoverageTable:
        """Coverage by interval width."""
        return self.table("width")

    @property
    def ends(self) -> CoverageTable:
        """Coverage of the two ends of intervals, if each has its own threshold."""
        return self.table("end")

    @property
    def singletons(self) -> float | None:
        """Share of sets with one class; None without sets."""
        return self._share("1")

    @property
    def empty(self) -> float | None:
        """Share of empty sets; None without sets."""
        return self._share("0")

    def _share(self, name: str) -> float | None:
        shares = self.finding.shares
        if shares is None or shares.kind != "size":
            return None
        return next((part.value for part in shares if part.name == name), 0.0)


@dataclass(frozen=True, repr=False)
class Finding(Measured):
    """What the counts state about one promise: that of the release, of a level, or of an end of its intervals.

    Parameters
    ----------
    evaluation
        The counts and their question.
    name
        Name of the statement.
    """

    evaluation: "Evaluation"
    name: str

    @property
    def finding(self) -> "Finding":
        """The finding itself."""
        return self

    @property
    def label(self) -> str:
        """Name of the statement for people."""
        return f"alpha {float(Fraction(self.name[6:])):g}" if self.name.startswith("alpha ") else self.name

    @property
    def promised(self) -> float:
        """Promised coverage."""
        return self.evaluation.query.statements[self.name]

    @property
    def examples(self) -> tuple[Example, ...]:
        """Records that the user chose to show; usually empty."""
        place, shown = list(self.evaluation.query.statements).index(self.name), self.evaluation.examples
        return shown[place] if place < len(shown) else ()

    # Coverage.

    def coverage_at(self, error: float) -> Part:
        """Coverage over all records, with an interval that misses with probability at most `error`."""
        q, (x, y, noises, table) = self.evaluation.query, self._counts()
        means = self._means(table, x + y)
        (part,) = self._parts([""], x, y, noises, [self.promised], error, means=means, guess=self.promised, n=q.n)
        if q.epsilon is None and q.outcome != "area":
            (below,) = below_at_once(x, x + y, self.promised, 1 - error / len(q.statements)).tolist()
            part = replace(part, below=below)
        return part

    @cached_property
    def coverage(self) -> Part:
        """Coverage over all records. For a bound on a loss it is that of critical thresholds."""
        return self.coverage_at(self.evaluation.error)

    @cached_property
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by class, group, set size, interval width or end; groups that overlap are in one table."""
        q, parts, own = self.evaluation.query, dict[TableKind, tuple[Part, ...]](), dict[TableKind, bool]()
        if q.outcome == "sides" and not self.name:
            ends = (self.evaluation.findings[name] for name in SIDES[1:])
            parts["end"] = tuple(replace(end.coverage, name=end.name, mean_width=None) for end in ends)
            own["end"] = True
        for place, partition in enumerate(q.partitions):
            if partition.statement in ("", self.name):
                parts[partition.kind] = parts.get(partition.kind, ()) + self._by_part(place, partition)
                own[partition.kind] = partition.promised is not None
        if q.epsilon is None and q.outcome != "area":
            parts = {kind: _marked(some) for kind, some in parts.items()}
        advised = self.shortfall is None
        return tuple(CoverageTable(kind, some, own[kind], advised) for kind, some in parts.items() if some)

    def _by_part(self, place: int, partition: Partition) -> tuple[Part, ...]:
        q, (x, y, noises, table) = self.evaluation.query, self._counts(place)
        first = int(partition.kind == "size")  # the empty set covers no label, so only its share is reported
        names, promised = partition.names[first:], partition.promised or (self.promised,) * len(partition)
        promised, means = promised[first:], self._means(table, x + y)[first:]
        x, y, error = x[first:], y[first:], self.evaluation.error
        if q.epsilon is not None:
            error = simultaneous(error, len(names))
            return self._parts(names, x, y, noises, promised, error, guess=self.promised)
        stated = () if q.outcome == "area" else promised  # a bound on the loss of all classes
        parts = self._parts(names, x, y, noises, stated, error, means=means)
        return tuple(part for part in parts if part.value is not None)

    # Sizes.

    @cached_property
    def shares(self) -> CoverageTable | None:
        """Share of all records in each bin of sizes or widths, None if they were not counted."""
        q, error = self.evaluation.query, self.evaluation.error
        if self._bins is None:
            return None
        partition, (counts, _, noises) = q.partitions[self._bins], self._cells(self._bins)
        inside, k = counts.sum(axis=1), len(partition)
        rest, own = inside.sum() - inside, noises * counts.shape[1]
        if q.epsilon is None:
            parts = self._parts(partition.names, inside, rest, (0, 0), (), error)
            parts = tuple(part for part in parts if part.covered)
        elif k == 1:
            parts = (Part(partition.names[0], int(inside[0]), 0, 1.0, 1.0, 1.0),)
        else:
            noise = own, own * (k - 1)
            parts = self._parts(partition.names, inside, rest, noise, (), error / k, guess=Fraction(1, k), n=q.n)
        return CoverageTable(partition.kind, parts, of="share")

    @property
    def _bins(self) -> int | None:
        """Place of the partition into sizes or widths."""
        partitions = self.evaluation.query.partitions
        return next((i for i, one in enumerate(partitions) if one.binned and one.statement == self.name), None)

    @property
    def mean_size(self) -> float | None:
        """Mean set size; with noise within its bounds."""
        return self.coverage.mean_size if self._mean is None else self._mean[0]

    @property
    def mean_size_bounds(self) -> Bounds | None:
        """With noise: bounds of the mean set size, which hold together with all intervals."""
        return None if self._mean is None else self._mean[1]

    @cached_property
    def _mean(self) -> tuple[float | None, Bounds] | None:
        """Mean set size with noise, and its bounds."""
        q, shares = self.evaluation.query, self.shares
        if q.epsilon is None or self._bins is None or shares is None or shares.kind != "size":
            return None
        return mean_of_shares(q.partitions[self._bins], shares.parts)

    @property
    def mean_width(self) -> float | None:
        """Mean interval width."""
        return self.coverage.mean_width

    # From counts to parts.

    def _cells(self, partition: int | None = None) -> tuple[NDArray[Any], int, int]:
        """Counts by part and outcome, or of all records; the place of their table; the number of noises in each."""
        q, cells = self.evaluation.query, self.evaluation.cells
        places = [place for place, table in enumerate(q.tables) if partition is None or partition in table]
        place = min(places, key=lambda place: prod(cells[place].shape[:-1]))
        counts, k = cells[place], 1
        if partition is not None:
            counts, k = np.moveaxis(counts, q.tables[place].index(partition), 0), len(q.partitions[partition])
        counts = counts.reshape(k, -1, counts.shape[-1])
        return counts.sum(axis=1), place, counts.shape[1]

    def _counts(self, partition: int | None = None) -> tuple[NDArray[Any], NDArray[Any], tuple[int, int], int]:
        """Covered and missed records of each part, or of all; the noises in each; the place of their table."""
        q, (counts, place, noises) = self.evaluation.query, self._cells(partition)
        if q.one_count:
            return counts[:, 0], q.n - counts[:, 0], (1, 0), place
        held = q.held(self.name, q.tables[place])
        numbers = int(held.sum()) * noises, int((~held).sum()) * noises
        return counts[:, held].sum(axis=1), counts[:, ~held].sum(axis=1), numbers, place

    def _means(self, table: int, n: NDArray[Any]) -> list[float | None]:
        """Mean set size or width of each part of a table; empty if it was not measured."""
        q, sums = self.evaluation.query, self.evaluation.sums
        if not sums or q.measure == "area":
            return []
        columns = q.sums_shape(q.tables[table])[-1]
        level = list(q.statements).index(self.name) if columns > 1 else 0
        return [mean_of(total, records) for total, records in zip(sums[table][level::columns], n.tolist(), strict=True)]

    def _parts(
        self,
        names: Sequence[str],
        x: NDArray[Any],
        y: NDArray[Any],
        noises: tuple[int, int],
        promised: Sequence[float | None],
        error: float,
        *,
        means: Sequence[float | None] = (),
        guess: float | Fraction = 0.5,
        n: int | None = None,
    ) -> tuple[Part, ...]:
        """Parts from counts of covered and missed records, with intervals that each miss with probability `error`."""
        q, size = self.evaluation.query, None if n is None else np.full(len(x), n)
        ends: tuple[ArrayLike, ArrayLike]
        if q.outcome == "area":  # means of losses, whose intervals are those of Hoeffding
            records = np.round(x + y).astype(int).tolist()
            missed, covered = (
                [mean_limit(total / count, count, error) for total, count in zip(one.tolist(), records, strict=True)]
                for one in (y, x)
            )
            ends = [1 - high for high in missed], covered
        elif q.epsilon is None:
            ends = exact_interval(x, x + y, 1 - error)
        elif size is not None and not noises[1]:
            ends = one_count_interval(x, size, q.noise, error=error)
        else:
            public = guess if isinstance(guess, Fraction) else f"{min(max(round(guess, 2), 0.01), 0.99):.2f}"
            ends = coverage_interval(x, y, q.noise, error=error, guess=public, noises=noises, size=size)
        confidence = 1 - error if q.epsilon is None else None
        return parts_of(names, x, y, ends, promised, size=size, means=means, measure=q.measure, confidence=confidence)

    # A broken guarantee.

    @cached_property
    def shortfall(self) -> Shortfall | None:
        """Finding that coverage over all records lies below the promise by more than chance in calibration explains.

        Without the evaluated release it is not known whether an unlucky calibration explains it.
        """
        evaluation = self.evaluation
        part = self.coverage_at(CHANCE / 2 if evaluation.private else CHANCE)
        if part.value is None:
            return None
        n = evaluation.query.n if evaluation.private else part.n
        if evaluation.release is not None:
            return shortfall_at(self._release_of(evaluation.release), part.value, part.high, n)
        if part.high >= self.promised:
            return None
        return Shortfall(part.value, part.high, n, self.promised, "not read", loss=evaluation.query.loss)

    def _release_of(self, release: Release) -> Release:
        """The release of this statement."""
        if release.by == "level":
            return release.at(Fraction(self.name[6:]))
        return release.alone(("low", "high")[SIDES.index(self.name) - 1]) if self.name else release

    # In words.

    def _section(self) -> Section:
        """Coverage or loss of all records, the promise, sizes, and a table for each kind of parts."""
        tables = tuple(table.as_table() for table in self.shown)
        return Section(self.label, facts=self._facts(), tables=tables, notes=self.sentences)

    @property
    def shown(self) -> list[CoverageTable]:
        """Tables with losses if they are bounded; the ends of intervals have findings of their own."""
        loss, tables = self.evaluation.query.loss, [table for table in self.tables if table.kind != "end"]
        tables = tables if loss is None else [table.as_loss(loss[1]) for table in tables]
        return tables if self.shares is None else [*tables, self.shares]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about parts that are covered less than promised beyond chance; none for a bound on a loss."""
        tables = () if self.evaluation.query.loss is not None else self.tables
        return tuple(table.sentence for table in tables if table.below)

    def _facts(self) -> Facts:
        """Coverage of all records, or their loss, the promise, and the sizes of all sets or intervals."""
        loss, part, bounds = self.evaluation.query.loss, self.coverage, self.mean_size_bounds
        head, total = ("coverage", part) if loss is None else (f"loss {loss[0]!r}", part.as_loss(loss[1]))
        beyond = f", {'below' if loss is None else 'above'} the promise beyond chance" if part.below else ""
        rows = [(head, f"{total.estimate}{beyond}"), ("promise", self._promise())]
        if self.mean_size is not None:
            ends = "" if bounds is None else f" (interval {interval_text(*bounds)})"
            rows.append(("classes per set, on average", f"{self.mean_size:.4g}{ends}"))
        if self.mean_width is not None:
            rows.append(("width of intervals, on average", short_number(self.mean_width)))
        if self.evaluation.area_ratio is not None:
            rows.append(("predicted area", f"{self.evaluation.area_ratio:.2f} times the true area"))
        return tuple(rows)

    def _promise(self) -> str:
        """The promise of a statement; that of the release in its words, if the release is known."""
        release, loss = self.evaluation.release, self.evaluation.query.loss
        if release is not None and self.evaluation.query.outcome != "sides":
            promises = self._release_of(release).promises
            return "; ".join(f"for {name}: {text}" if name else text for name, text in promises.items())
        if loss is None:
            return f"coverage at least {coverage_text(self.promised)}"
        return f"at most {loss[1] * (1 - self.promised):.6g} in expectation"

    def _brief(self) -> str:
        return f"{self.name!r}: {self.coverage.estimate}" if self.name else self.coverage.estimate

    def fields(self) -> dict[str, Any]:
        """JSON values of everything that follows from the counts about this statement."""
        stated: dict[str, Any] = without_none(msgspec.to_builtins({name: getattr(self, name) for name in _STATED}))
        return stated


_STATED = (
    "name", "coverage", "tables", "shares", "mean_size", "mean_size_bounds", "mean_width", "shortfall", "examples",
    "sentences",
)  # fmt: skip


def without_none(value: Any) -> Any:
    """JSON values without the fields that do not apply."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    return [without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _marked(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Mark parts without noise that are covered less than promised, all parts of a kind at once."""
    hits, n = np.array([part.covered for part in parts]), np.array([part.n for part in parts])
    short = below_at_once(hits, n, [part.promised or 0.0 for part in parts])
    return tuple(replace(part, below=below) for part, below in zip(parts, short.tolist(), strict=True))


def mean_of(total: float, n: float) -> float | None:
    """Mean of n sizes or widths from their sum, which may be infinite; None without records."""
    if not n:
        return None
    return total / n if math.isfinite(total) else math.inf


def mean_of_shares(partition: Partition, shares: Sequence[Part]) -> tuple[float | None, Bounds]:
    """Mean of a binned number, and its bounds: extremes over all shares in their intervals that add up to 1."""
    assert partition.most is not None
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), float(partition.most)])
    low, high = np.array([one.low for one in shares]), np.array([one.high for one in shares])
    if math.fsum(low) > 1 or math.fsum(high) < 1:  # no shares fit, so an interval misses: use the trivial bounds
        bounds = float(least[0]), float(most[-1])
    else:
        bounds = _extreme(least, low, high), -_extreme(-most[::-1], low[::-1], high[::-1])
    estimates = np.array([one.value or 0.0 for one in shares])
    total = math.fsum(estimates)
    value = float(np.clip(_weighed(estimates, (least + most) / 2) / total, *bounds)) if total > 0 else None
    return value, bounds


def _extreme(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """Smallest mean of increasing values whose shares lie in [low, high] and add up to 1."""
    room = np.diff(np.minimum(np.cumsum(high - low), 1 - math.fsum(low)), prepend=0.0)
    return _weighed(values, low + room)


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sum of products, correctly rounded, so that files contain the same digits on every machine."""
    return math.fsum(values * weights)
