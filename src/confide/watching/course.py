"""What is tested: that parts are covered; or that sets are no larger and no smaller than in a reference batch.

Whether sizes drift says nothing about coverage: sets can keep their sizes and miss, and change their sizes and cover.

What the looks say about coverage itself, at every one of them: a confidence sequence on a grid.

For each p0 of the grid there is one e-process against "every record is covered with probability at least p0", and, with
covered and missed records exchanged, one against "at most p0". What either of them ever rejects at half the error is
out, so with probability 1 - error these hold at all looks together: some record so far had a coverage below `high`, and
some had one above `low`. If coverage stays what it is, it lies between them.

`Watch`: what was fixed before the first look, and the noisy counts of every look. All else follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.evaluation import PrivateEvaluation
from confide.mechanisms import Neighbors, PrivacyStatement
from confide.noisy_counts import coverage_interval, draw_counts
from confide.releases import Document, Release
from confide.support import Level, exact_level, library_versions
from confide.watching.e_process import DROPS, SIZE_DROPS, Bets, advance, bets, cash, log_e_values, log_evidence, stake
from confide.watching.settings import (
    ERROR,
    LOOKS,
    MOST_LOOKS,
    TOLERANCE,
    Reference,
    Settings,
    check_look_name,
    promised_of,
    reference_of,
)

_LEAST = 0.02
"""A share that may be smaller is not tested: there is nothing it could fall to."""


@dataclass(frozen=True, eq=False)
class Tests:
    """Tests of "this share is at least so much", each of which reads its counts off those of a look.

    Parameters
    ----------
    names
        Of the tests.
    least
        What is tested, float64, shape (tests,).
    members
        Which counts are records with the property, boolean, shape (tests, counts); and those without it.
    others
        The same.
    drops
        The drops that bets suit.
    """

    names: tuple[str, ...]
    least: NDArray[np.float64]
    members: NDArray[np.bool_]
    others: NDArray[np.bool_]
    drops: tuple[float, ...]

    @property
    def noises(self) -> NDArray[np.int64]:
        """How many noises the records with and without the property hold, shape (tests, 2)."""
        return np.stack([self.members.sum(axis=1), self.others.sum(axis=1)], axis=1)

    def sums(self, counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Records with and without the property, int64, shape (tests,)."""
        found = np.asarray(counts, np.int64)
        return self.members @ found, self.others @ found


def coverage_tests(least: Sequence[float], names: Sequence[str]) -> Tests:
    """That each part is covered at least so well; of every part a look has a covered and a missed count.

    Examples
    --------
    >>> coverage_tests([0.88, 0.86], ["a", "b"]).sums([9, 1, 7, 3])
    (array([9, 7]), array([1, 3]))
    """
    one = np.eye(len(names), dtype=np.bool_)
    covered, missed = (np.kron(one, np.array([pair], np.bool_)) for pair in ([1, 0], [0, 1]))
    return Tests(tuple(names), np.asarray(least, np.float64), covered, missed, DROPS)


def size_tests(reference: Reference, bins: Sequence[int], error: float) -> Tests:
    """That sets up to each size are as frequent as in a reference, and those above it.

    Each share is bounded from below by the reference, all bounds together with half of the error: where they hold, and
    sizes have not changed, each test has an e-process, and so has their average, with the other half for its alarm.

    Parameters
    ----------
    reference
        Noisy numbers of records by bin.
    bins
        The smallest size of each bin.
    error
        The chance of a false alarm in all.

    Examples
    --------
    >>> tests = size_tests(Reference((1400, 400, 140, 60), 1.0), [0, 1, 2, 3], 0.05)
    >>> tests.names[:2], [bool(0.65 < share < 0.7) for share in tests.least[:2]]
    (('sets of 0', 'sets of 1 and more'), [True, False])
    """
    cuts, counts = len(bins) - 1, np.asarray(reference.counts, np.int64)
    up_to = np.tri(cuts, len(bins), dtype=np.bool_)
    noises = reference.noises * np.stack([up_to.sum(axis=1), (~up_to).sum(axis=1)], axis=1)
    low, high = np.zeros(cuts), np.ones(cuts)
    for cut in range(cuts):
        below, above = counts[up_to[cut]].sum(), counts[~up_to[cut]].sum()
        ends = coverage_interval(
            [below], [above], reference.epsilon, error=error / (2 * cuts), guess=0.5, noises=tuple(noises[cut].tolist())
        )
        low[cut], high[cut] = float(ends[0][0]), float(ends[1][0])
    names, least, members = [], [], []
    for cut in range(cuts):
        top, bottom = bins[cut + 1] - 1, bins[cut + 1]
        names += [f"sets of {top}" if top == 0 else f"sets of at most {top}", f"sets of {bottom} and more"]
        least += [low[cut], 1 - high[cut]]
        members += [up_to[cut], ~up_to[cut]]
    kept = [place for place, share in enumerate(least) if share >= _LEAST]
    chosen = np.array(members, np.bool_)[kept].reshape(len(kept), len(bins))
    return Tests(tuple(names[place] for place in kept), np.array(least)[kept], chosen, ~chosen, SIZE_DROPS)


STEP = 0.005
_GRID = np.arange(1, round(1 / STEP)) * STEP


def confidence_sequence(
    covered: Sequence[int],
    missed: Sequence[int],
    batch: float,
    epsilon: float,
    *,
    looks: int = 52,
    error: float = 0.05,
    noises: int = 1,
    per_person: int = 1,
) -> list[tuple[float, float]]:
    """Low and high after each look.

    Parameters
    ----------
    covered, missed
        Noisy counts of each look, each with `noises` noises of the scale 1/epsilon.
    batch, looks
        The planned records of a look, and how many looks are planned.
    error
        The chance that one of the statements is wrong, ever.
    per_person
        The most records of one person in a look.

    Examples
    --------
    >>> course = confidence_sequence([90, 181, 268], [10, 19, 32], 100, 1.0)
    >>> course[0] != course[-1], all(low < 0.9 < high for low, high in course)
    (True, True)
    """
    bet = _bets(batch, epsilon, noises, per_person)
    below = _rejected(covered, missed, bet, looks, error / 2)
    above = _rejected(missed, covered, bet, looks, error / 2)
    # The coverage lies up to one step above the largest value that is not out.
    return [(max(0.0, 1 - _end(down)), min(1.0, _end(up))) for up, down in zip(below, above, strict=True)]


def _rejected(x: Sequence[int], y: Sequence[int], bet: Bets, looks: int, error: float) -> list[NDArray[np.bool_]]:
    """Which values of the grid are out after each look."""
    alarm, log_stakes = math.log(1 / error), np.full(bet.price.shape, -np.inf)
    out, found = np.zeros(len(_GRID), np.bool_), []
    for look, (one, other) in enumerate(zip(x, y, strict=True), start=1):
        log_e = log_e_values(bet, np.full(len(_GRID), one), np.full(len(_GRID), other))
        log_stakes = advance(log_stakes, log_e, stake(look, looks))
        out = out | (log_evidence(log_stakes, cash(look, looks)) >= alarm)
        found.append(out)
    return found


@lru_cache(maxsize=16)
def _bets(batch: float, epsilon: float, noises: int, per_person: int) -> Bets:
    return bets(_GRID, batch, epsilon, noises=(noises, noises), per_person=per_person)


def _end(out: NDArray[np.bool_]) -> float:
    """One step above the largest value that is not out."""
    inside = np.flatnonzero(~out)
    return round(float(_GRID[inside[-1]]) + STEP, 6) if len(inside) else STEP


MOST_COUNT = 2**50


@dataclass(frozen=True)
class Look:
    """One batch of records, as its noisy counts: these are public.

    Parameters
    ----------
    name
        What the batch is called, as `2026-03-02`; no two looks of a watch have one name.
    made
        When it was drawn, UTC, ISO 8601.
    counts
        Covered and missed records of each part, in turn; or the records whose sets have a size in each bin. With noise,
        so they can be negative.
    versions
        The libraries that drew it; empty where the file does not say.
    """

    name: str
    made: str
    counts: tuple[int, ...]
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))


@dataclass(frozen=True)
class Point:
    """Where a watch stands after a look.

    Parameters
    ----------
    look
        The look.
    log_evidence
        The logarithm of the e-process: of all parts together.
    parts
        The same of each part, by its name.
    alarmed
        Whether the alarm had been reached by then.
    low, high
        The confidence sequence of coverage; None for set sizes.
    """

    look: Look
    log_evidence: float
    parts: Mapping[str, float]
    alarmed: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, repr=False)
class Watch(Document):
    """Whether a release still covers what it promised, look by look, at any time, with a bounded chance of false alarm.

    Every look is one batch of new records with known truth: of them two noisy counts are kept, covered and missed, and
    nothing else. If at every look every record is covered with probability at least `promised - tolerance`, whatever
    else changes, then the alarm is raised with probability at most `error`, however many looks there are and whenever
    one stops. An alarm that was raised stays: it is a finding about the course so far. After the release was renewed,
    its watch begins anew.

    Parameters
    ----------
    settings
        What was fixed before the first look.
    looks
        The looks so far, oldest first. Of a watch of set sizes without a reference the first is it.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.random.default_rng(0).random(4000), alpha=0.1, epsilon=1.0)
    >>> watch = Watch.start(released, epsilon=1.0, batch=500)
    >>> for day in range(1, 9):
    ...     watch = watch.look(f"day {day}", [424, 76])
    >>> watch.alarm is not None, watch.points[0].alarmed, len(watch.looks)
    (True, False, 8)
    """

    settings: Settings
    looks: tuple[Look, ...] = ()

    def __post_init__(self) -> None:
        names = [look.name for look in self.looks]
        if len(set(names)) != len(names) or len(names) > MOST_LOOKS:
            raise InputError(f"looks must be at most {MOST_LOOKS}, each with a name of its own")
        for look in self.looks:
            check_look_name(look.name)
            if len(look.counts) != self.settings.cells or any(abs(count) > MOST_COUNT for count in look.counts):
                raise InputError(f"looks must have {self.settings.cells} counts each, each of at most 2**50")

    @classmethod
    def start(
        cls,
        release: Release,
        *,
        epsilon: float,
        batch: int,
        tolerance: float = TOLERANCE,
        looks: int = LOOKS,
        error: Level = ERROR,
        bins: Sequence[int] = (),
        neighbors: Neighbors = "add_remove",
        records_per_person: int = 1,
        reference: PrivateEvaluation | None = None,
    ) -> Watch:
        """A watch of a release, before its first look. Choose everything before any record is looked at.

        Parameters
        ----------
        release
            What is watched: of one level; of groups or classes, each is tested, and all together.
        epsilon
            The privacy loss of one look per person. Whoever is in several looks loses it several times.
        batch
            The planned number of records of a look.
        tolerance
            How far below the promise coverage may lie.
        looks
            How many are planned; there may be more.
        error
            The chance of a false alarm, ever.
        bins
            For a watch of set sizes, without truth: the smallest size of each bin, as `size_bins` gives them.
        neighbors, records_per_person
            What epsilon is stated for, as in `calibrate`.
        reference
            For set sizes: a private evaluation of the release that counted them; without one the first look is it.

        Raises
        ------
        InputError
            If the release promises no coverage, or an argument is out of range.
        """
        return cls(
            Settings(
                release.checksum,
                epsilon,
                batch,
                {} if bins else promised_of(release),
                0.0 if bins else tolerance,
                tuple(bins),
                looks,
                float(exact_level("error", error)),
                neighbors,
                records_per_person,
                None if reference is None else reference_of(reference, release.checksum, tuple(bins)),
            )
        )

    @property
    def privacy(self) -> PrivacyStatement:
        """What one look costs everybody who is in it."""
        return self.settings.privacy

    def draw(self, counts: ArrayLike) -> tuple[int, ...]:
        """Counts of a batch with fresh noise: from here on they are public, and cost their epsilon.

        Parameters
        ----------
        counts
            Covered and missed records, of each part in turn; or records by bin of the set size. Not negative.
        """
        found = np.asarray(counts)
        if found.shape != (self.settings.cells,) or found.dtype.kind not in "iu" or (found < 0).any():
            raise InputError(f"counts must be {self.settings.cells} counts of records, as integers")
        return tuple(int(count) for count in draw_counts(found, self.settings.noise_epsilon))

    def with_look(
        self, name: str, counts: Sequence[int], made: str | None = None, versions: Mapping[str, str] | None = None
    ) -> Watch:
        """The watch after one more look, whose noisy counts are known; `versions` drew them, if that is known, too."""
        when = datetime.now(UTC).isoformat(timespec="seconds") if made is None else made
        return replace(self, looks=(*self.looks, Look(name, when, tuple(counts), versions or {})))

    def look(self, name: str, counts: ArrayLike) -> Watch:
        """The watch after one more look, drawn from the counts of a batch."""
        check_look_name(name)
        if any(one.name == name for one in self.looks):
            raise self.taken(name)
        return self.with_look(name, self.draw(counts), versions=library_versions())

    def taken(self, name: str) -> InputError:
        """The error for the name of a look that was taken: a batch counts once."""
        return InputError(f"look {name!r} was taken already: a batch counts once; give another batch its own name")

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Where the watch stood after each look."""
        return tuple(self._points())

    @property
    def alarm(self) -> Point | None:
        """The look that raised the alarm; None if none did."""
        return next((point for point in self.points if point.alarmed), None)

    @property
    def of_sizes(self) -> bool:
        """Whether set sizes are watched, not coverage."""
        return bool(self.settings.bins)

    @property
    def alarm_at(self) -> float:
        """The value of the e-process that raises the alarm. Of set sizes half of the error is the reference's."""
        return (2 if self.of_sizes else 1) / self.settings.error

    @cached_property
    def tests(self) -> Tests | None:
        """What is tested; None for set sizes without a reference."""
        made = self.settings
        if not self.of_sizes:
            return coverage_tests(made.least, tuple(made.promised))
        known = made.reference
        if known is None and self.looks:
            known = Reference(self.looks[0].counts, made.noise_epsilon)
        return None if known is None else size_tests(known, made.bins, made.error)

    def _points(self) -> Iterator[Point]:
        made, tests = self.settings, self.tests
        if tests is None:
            return
        alarm, alarmed, start = math.log(self.alarm_at), False, int(self.of_sizes and made.reference is None)
        if start:
            yield Point(self.looks[0], 0.0, dict.fromkeys(tests.names, 0.0), alarmed=False)
        size = made.batch / max(len(made.promised), 1)
        bet = bets(
            tests.least,
            size,
            made.noise_epsilon,
            drops=tests.drops,
            noises=tests.noises,
            per_person=made.records_per_person,
        )
        log_stakes, spans = np.full(bet.price.shape, -np.inf), self._spans()
        for t, look in enumerate(self.looks[start:], start=1):
            x, y = tests.sums(look.counts)
            log_stakes = advance(log_stakes, log_e_values(bet, x, y), stake(t, made.looks))
            parts = log_evidence(log_stakes, cash(t, made.looks))
            together = _mean(parts)
            alarmed |= together >= alarm
            named = dict(zip(tests.names, parts.tolist(), strict=True))
            yield Point(look, together, named, alarmed, *(spans[t - 1] if spans else ()))

    def _spans(self) -> list[tuple[float, float]]:
        if self.of_sizes or not self.looks:
            return []
        made = self.settings
        counts = np.array([look.counts for look in self.looks], np.int64).reshape(len(self.looks), -1, 2).sum(axis=1)
        return confidence_sequence(
            counts[:, 0].tolist(),
            counts[:, 1].tolist(),
            made.batch,
            made.noise_epsilon,
            looks=made.looks,
            error=made.error,
            noises=len(made.promised),
            per_person=made.records_per_person,
        )

    def named_by(self, point: Point) -> list[str]:
        """The parts that alone are surely below, among several: each with its share of the error."""
        alone = math.log(self.alarm_at * max(len(point.parts), 1))
        return [name for name, log in point.parts.items() if name and log >= alone]

    def __str__(self) -> str:
        return "\n".join([*self._fixed(), self.standing])

    def _brief(self) -> str:
        what = "set sizes" if self.of_sizes else f"coverage at least {min(self.settings.least):.6g}"
        alarm = "no alarm" if self.alarm is None else f"ALARM since look {self.alarm.look.name!r}"
        return f"{what}, {len(self.looks):,} looks, {alarm}, {self.privacy.brief} a look"

    def _fixed(self) -> Iterator[str]:
        made = self.settings
        planned = f"{made.looks:,} looks of {made.batch:,} records planned"
        if self.of_sizes:
            yield f"watch of set sizes, against those of {made.compared}; {planned}"
        else:
            levels = sorted(made.least)
            least = " to ".join(dict.fromkeys(f"{level:.6g}" for level in (levels[0], levels[-1])))
            of = f" in each of {len(levels)} parts" if len(levels) > 1 else ""
            yield f"watch of coverage: at least {least}{of}; {planned}"
        yield f"false alarm: with probability at most {made.error:g}, ever"
        yield f"privacy: {self.privacy} in one look; whoever is in k looks loses k times as much"

    @property
    def standing(self) -> str:
        """Where the watch stands after its last look, in words."""
        return "\n".join(self._standing())

    def _standing(self) -> Iterator[str]:
        if not self.looks:
            yield "no look was taken yet"
            return
        last = self.points[-1]
        yield f"looks: {len(self.looks):,}, the last {last.look.name!r}"
        if self.of_sizes:
            yield f"{self.settings.compared} is the reference; sizes say nothing about coverage"
        else:
            yield self._coverage(last)
        yield f"evidence: {evidence_text(last.log_evidence)}, alarm at {self.alarm_at:.6g}"
        yield self._verdict()

    def _coverage(self, point: Point) -> str:
        assert point.low is not None
        assert point.high is not None
        if point.low <= point.high:
            return f"coverage of all looks: {point.low:.3f} to {point.high:.3f}, if it has not changed"
        return (
            f"coverage has changed: it was at most {point.high:.3f} for some records, at least {point.low:.3f} for some"
        )

    def _verdict(self) -> str:
        if (alarm := self.alarm) is None:
            return "no alarm"
        parts = self.named_by(self.points[-1])
        named = f"; surely in {', '.join(parts[:10])}" if parts else ""
        what = "set sizes are not those of the reference" if self.of_sizes else "coverage was below what is watched for"
        return f"ALARM since look {alarm.look.name!r}: {what}{named}"


def evidence_text(log_evidence: float) -> str:
    """An e-process as people read it.

    Examples
    --------
    >>> evidence_text(0.0), evidence_text(3.0), evidence_text(1000.0)
    ('1', '20.1', '2e+434')
    """
    if log_evidence < 13:
        return f"{math.exp(log_evidence):.3g}"
    tens = log_evidence / math.log(10)
    return f"{10 ** (tens - math.floor(tens)):.2g}e+{math.floor(tens)}"


def _mean(logs: NDArray[np.float64]) -> float:
    """The logarithm of the mean."""
    return float(np.logaddexp.reduce(logs) - math.log(len(logs))) if len(logs) else 0.0
