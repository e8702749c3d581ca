"""`Watch`: the settings of a monitor and the noisy counts of every look, as a value and as a file.

Test results are computed from these and are not stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.core import Document, Release, documents
from confide.errors import FormatError, InputError
from confide.evaluation import CountPrivacy, Evaluation
from confide.mechanisms import Neighbors, PrivacyStatement
from confide.noisy_counts import draw_counts
from confide.support import VERSIONS, Fields, Level, Section, decimal_text, exact_level, library_versions, shapes
from confide.watching.correction import SPAN_ERROR, Correct, Correction, Realised, Scale, realised
from confide.watching.e_process import advance, bets, cash, entering_wealth, log_e_values, log_evidence
from confide.watching.sequence import ShareTests, confidence_sequence, coverage_tests, size_tests
from confide.watching.settings import (
    ERROR,
    LOOKS,
    MOST_COUNT,
    MOST_LOOKS,
    TOLERANCE,
    Reference,
    Settings,
    check_look_name,
    deserved_batch,
    promised_of,
    reference_of,
)


@dataclass(frozen=True)
class Look:
    """The noisy counts of one batch of records; they are public.

    Parameters
    ----------
    name
        Name of the batch, for example `2026-03-02`; unique within a watch.
    made
        Time of the draw, UTC, ISO 8601.
    counts
        For coverage: covered and missed records of each part in turn. For set sizes: records in each size bin. The
        noise can make them negative.
    versions
        Versions of the libraries that drew the counts.
    """

    name: str
    made: str
    counts: tuple[int, ...]
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))


@dataclass(frozen=True)
class Point:
    """State of a watch after a look.

    Parameters
    ----------
    look
        The look.
    log_evidence
        Logarithm of the e-process of all parts together.
    parts
        Logarithm of the e-process of each part, by its name.
    alarmed
        Whether the alarm was raised at this look or before.
    low, high
        Confidence sequence of coverage; None for set sizes.
    """

    look: Look
    log_evidence: float
    parts: Mapping[str, float]
    alarmed: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, repr=False)
class Watch(Document):
    """Monitor that tests look by look whether a release keeps its coverage, with a bounded false-alarm probability.

    A look is an interim look at one batch of new records with known labels. Two noisy counts of each part are kept,
    covered and missed records, and nothing else. Suppose that at every look every record is covered with probability at
    least `promised - tolerance`, whatever else changes. Then the alarm is raised with probability at most `error`, for
    any number of looks and any stopping rule. An alarm stays raised, because it is a finding about all looks so far.
    Start a new watch after you renew the release.

    Parameters
    ----------
    settings
        Choices that are fixed before the first look.
    looks
        Looks so far, oldest first. For set sizes without a reference, the first look is the reference.

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
            raise InputError("looks", f"must be at most {MOST_LOOKS}, each with a name of its own")
        for look in self.looks:
            check_look_name(look.name)
            if len(look.counts) != self.settings.cells or any(abs(count) > MOST_COUNT for count in look.counts):
                raise InputError("looks", f"must have {self.settings.cells} counts each, each of at most 2**50")

    @classmethod
    def start(
        cls,
        release: Release,
        *,
        epsilon: float,
        batch: int | None = None,
        tolerance: float = TOLERANCE,
        looks: int = LOOKS,
        error: Level = ERROR,
        bins: Sequence[int] = (),
        neighbors: Neighbors = "add_remove",
        records_per_person: int = 1,
        reference: Evaluation | None = None,
        correct: Correct | None = None,
        delay: int | None = None,
    ) -> Watch:
        """Start a watch of a release. Choose every argument before any record is used.

        Parameters
        ----------
        release
            The release to monitor, with one level. Groups or classes are tested one by one and all together.
        epsilon
            Privacy loss of one look for each person in it. A person in k looks incurs k times the loss.
        batch
            Planned number of records in a look; by default as many as let the sampling error exceed the noise, in each
            part: about 22/epsilon^2 at a level of 0.9.
        tolerance
            How far coverage may lie below the coverage guarantee.
        looks
            Planned number of looks; more may follow.
        error
            Probability of a false alarm over all looks together.
        bins
            For a watch of set sizes, which needs no labels: the smallest size of each bin, as `size_bins` returns them.
        neighbors, records_per_person
            Adjacency and contribution bound that epsilon refers to, as in `calibrate`.
        reference
            For set sizes: a private evaluation of the release that counted them. The default is the first look.
        correct
            Also correct the thresholds from the noisy counts, at no further privacy cost: the share gamma of the scale
            of scores by which a look moves them at most, in (0, 0.2], or `"auto"`. Each look must then count the
            records at the thresholds that they were served, those of `CorrectedRelease`.
        delay
            With `correct`: the number of looks by which labels are late (default: 0).

        Raises
        ------
        InputError
            If the release has no coverage guarantee, or an argument is out of range.
        """
        if correct is None and delay is not None:
            raise InputError("delay", "must be left out without correct")
        bins, promised = tuple(bins), {} if bins else promised_of(release)
        noise = CountPrivacy(neighbors, epsilon, records_per_person, public_n=False).noise
        settings = Settings(
            release.checksum,
            epsilon,
            deserved_batch(promised, noise) if batch is None else batch,
            promised,
            0.0 if bins else tolerance,
            bins,
            looks,
            float(exact_level("error", error)),
            neighbors,
            records_per_person,
            None if reference is None else reference_of(reference, release.checksum, bins),
        )
        if correct is None:
            return cls(settings)
        return cls(replace(settings, correction=Correction.of(release, correct, delay or 0, settings.batch, noise)))

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of one look for each person in it."""
        return self.settings.privacy

    def draw(self, counts: ArrayLike) -> tuple[int, ...]:
        """Add fresh noise to the counts of a batch. The result is public and costs its epsilon.

        Parameters
        ----------
        counts
            Nonnegative integers: covered and missed records of each part in turn, or records in each size bin.
        """
        exact = np.asarray(counts)
        if exact.shape != (self.settings.cells,) or exact.dtype.kind not in "iu" or (exact < 0).any():
            raise InputError("counts", f"must be {self.settings.cells} counts of records, as integers")
        return tuple(int(count) for count in draw_counts(exact, self.settings.noise_epsilon))

    def with_look(
        self, name: str, counts: Sequence[int], made: str | None = None, versions: Mapping[str, str] | None = None
    ) -> Watch:
        """Return the watch with one more look, whose noisy counts are given; `versions` are those that drew them."""
        return replace(self, looks=(*self.looks, Look(name, made or now(), tuple(counts), versions or {})))

    def look(self, name: str, counts: ArrayLike) -> Watch:
        """Draw noisy counts of a batch and return the watch with this look."""
        check_look_name(name)
        if any(earlier.name == name for earlier in self.looks):
            raise self.name_error(name)
        return self.with_look(name, self.draw(counts), versions=library_versions())

    def name_error(self, name: str) -> InputError:
        """Return the error for a look name that is already used."""
        remedy = "Give another batch its own name"
        return InputError("look", "must be a new name, because a batch counts once", got=repr(name), remedy=remedy)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """State of the watch after each look."""
        return tuple(self._points())

    @property
    def alarm(self) -> Point | None:
        """The look that raised the alarm; None without an alarm."""
        return next((point for point in self.points if point.alarmed), None)

    @property
    def monitors_sizes(self) -> bool:
        """Whether the watch tests set sizes and not coverage."""
        return bool(self.settings.bins)

    @property
    def alarm_at(self) -> float:
        """Value of the e-process at which the alarm is raised. For set sizes the reference uses half of the error."""
        return (2 if self.monitors_sizes else 1) / self.settings.error

    @cached_property
    def tests(self) -> ShareTests | None:
        """The tests; None for set sizes without a reference."""
        settings = self.settings
        if not self.monitors_sizes:
            return coverage_tests(settings.least, tuple(settings.promised))
        reference = settings.reference
        if reference is None and self.looks:
            reference = Reference(self.looks[0].counts, settings.noise_epsilon)
        return None if reference is None else size_tests(reference, settings.bins, settings.error)

    @cached_property
    def positions(self) -> list[tuple[int, ...]]:
        """With a correction: the position of each part on its scale before the first look and after each look."""
        made, looks = self.settings, [look.counts for look in self.looks]
        return [] if made.correction is None else made.correction.positions(looks, made.batch)

    def realised(self, last: int | None = None) -> list[Realised]:
        """With a correction: the coverage that records had in each part, in all looks or in the `last` ones.

        That of all looks holds after every look and in every part at once, with probability 0.95. That of the last
        looks holds for these looks and in each part alone. The list is empty before the first look.
        """
        settings, looks = self.settings, self.looks[-last:] if last else self.looks
        if settings.correction is None or not looks:
            return []
        sums = np.array([look.counts for look in looks], object).sum(axis=0)
        error = SPAN_ERROR if last else SPAN_ERROR / len(settings.promised)
        alpha, epsilon = settings.correction.alpha, settings.noise_epsilon
        return [
            realised(covered, missed, len(looks), alpha, epsilon, error=error, sequence=not last)
            for covered, missed in zip(sums[::2], sums[1::2], strict=True)
        ]

    @property
    def at_worst(self) -> str:
        """With a correction: what it guarantees for every sequence of records, in words."""
        made = self.settings
        return "" if (c := made.correction) is None else c.at_worst(made.batch, made.noise_epsilon, made.looks)

    def _points(self) -> Iterator[Point]:
        settings, tests = self.settings, self.tests
        if tests is None:
            return
        alarm, alarmed, start = math.log(self.alarm_at), False, int(self.monitors_sizes and settings.reference is None)
        if start:
            yield Point(self.looks[0], 0.0, dict.fromkeys(tests.names, 0.0), alarmed=False)
        size = settings.batch / max(len(settings.promised), 1)
        bet = bets(
            tests.least,
            size,
            settings.noise_epsilon,
            drops=tests.drops,
            noises=tests.noises,
            per_person=settings.records_per_person,
        )
        log_wealth, spans = np.full(bet.price.shape, -np.inf), self._spans()
        for t, look in enumerate(self.looks[start:], start=1):
            x, y = tests.sums(look.counts)
            log_wealth = advance(log_wealth, log_e_values(bet, x, y), entering_wealth(t, settings.looks))
            parts = log_evidence(log_wealth, cash(t, settings.looks))
            together = _mean(parts)
            alarmed |= together >= alarm
            named = dict(zip(tests.names, parts.tolist(), strict=True))
            yield Point(look, together, named, alarmed, *(spans[t - 1] if spans else ()))

    def _spans(self) -> list[tuple[float, float]]:
        if self.monitors_sizes or not self.looks:
            return []
        settings = self.settings
        counts = np.array([look.counts for look in self.looks], np.int64).reshape(len(self.looks), -1, 2).sum(axis=1)
        return confidence_sequence(
            counts[:, 0].tolist(),
            counts[:, 1].tolist(),
            settings.batch,
            settings.noise_epsilon,
            looks=settings.looks,
            error=settings.error,
            noises=len(settings.promised),
            per_person=settings.records_per_person,
        )

    def parts_below(self, point: Point) -> list[str]:
        """Names of the parts that are below by their own evidence, each at an equal share of the error."""
        alone = math.log(self.alarm_at * max(len(point.parts), 1))
        return [name for name, log in point.parts.items() if name and log >= alone]

    def _section(self) -> Section:
        look = f"{self.privacy} in one look; a person in k looks incurs k times the loss"
        settings, noise = self.settings, f"discrete Laplace, scale 1/{decimal_text(self.settings.noise_epsilon)}"
        facts = [
            *([("tolerance", f"{settings.tolerance:g}")] if settings.promised else []),
            ("false alarm", f"with probability at most {settings.error:g} over all looks together"),
            ("privacy", look),
            ("noise in each count", noise),
            ("of the release with SHA-256", settings.release),
        ]
        if (correction := settings.correction) is not None:
            facts += [("correction", correction.words), ("at worst", self.at_worst)]
        return Section("Watch", self._watched(), tuple(facts), notes=tuple(self._standing()))

    def _brief(self) -> str:
        what = "set sizes" if self.monitors_sizes else f"coverage at least {min(self.settings.least):.6g}"
        alarm = "no alarm" if self.alarm is None else f"ALARM since look {self.alarm.look.name!r}"
        return f"{what}, {len(self.looks):,} looks, {alarm}, {self.privacy.brief} a look"

    def _watched(self) -> str:
        settings = self.settings
        planned = f"{settings.looks:,} looks of {settings.batch:,} records planned"
        if self.monitors_sizes:
            return f"watch of set sizes, against those of {settings.compared}; {planned}"
        levels = sorted(settings.least)
        least = " to ".join(dict.fromkeys(f"{level:.6g}" for level in (levels[0], levels[-1])))
        scope = f" in each of {len(levels)} parts" if len(levels) > 1 else ""
        return f"watch of coverage: at least {least}{scope}; {planned}"

    @property
    def standing(self) -> str:
        """State of the watch after its last look, in words."""
        return "\n".join(self._standing())

    def _standing(self) -> Iterator[str]:
        if not self.looks:
            yield "no look yet"
            return
        last = self.points[-1]
        yield f"looks: {len(self.looks):,}, the last {last.look.name!r}"
        if self.monitors_sizes:
            yield f"{self.settings.compared} is the reference; sizes do not show coverage"
        else:
            yield self._coverage(last)
            if self.settings.correction is not None:
                named = zip(self.realised(), self.settings.promised, strict=True)
                so_far, name = min(named, key=lambda one: one[0].low)
                yield f"corrected{f', lowest in {name}' if name else ''}: {so_far.words}"
        yield f"evidence: {evidence_text(last.log_evidence, self.alarm_at)}, alarm at {self.alarm_at:.6g}"
        yield self._verdict()

    def _coverage(self, point: Point) -> str:
        assert point.low is not None
        assert point.high is not None
        if point.low <= point.high:
            return f"coverage of all looks: {point.low:.3f} to {point.high:.3f}, if it has not changed"
        return f"coverage has changed: at most {point.high:.3f} for some records, at least {point.low:.3f} for others"

    def _verdict(self) -> str:
        if (alarm := self.alarm) is None:
            return "no alarm"
        parts = self.parts_below(self.points[-1])
        named = f"; beyond chance in {', '.join(parts[:10])}" if parts else ""
        what = (
            "set sizes differ from the reference" if self.monitors_sizes else "coverage was below the monitored value"
        )
        spite = "" if self.settings.correction is None else " in spite of the correction"
        return f"ALARM since look {alarm.look.name!r}: {what}{spite}{named}"


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def evidence_text(log_evidence: float, alarm_at: float) -> str:
    """Format an e-process for printing; far beyond the alarm line, only a bound.

    Examples
    --------
    >>> evidence_text(0.0, 20), evidence_text(3.0, 20), evidence_text(1000.0, 20)
    ('1', '20.1', 'more than 1,000,000')
    """
    bound = max(1e6, 10 * alarm_at)
    return f"{math.exp(log_evidence):.3g}" if log_evidence <= math.log(bound) else f"more than {bound:,.0f}"


def _mean(logs: NDArray[np.float64]) -> float:
    """Logarithm of the mean."""
    return float(np.logaddexp.reduce(logs) - math.log(len(logs))) if len(logs) else 0.0


# As JSON

KIND = "confide/watch"
_MOST_TIME = 40


def _promised(rows: tuple[dict[str, Any], ...]) -> dict[str, float]:
    promised = {row["name"]: row["coverage"] for row in rows}
    if len(promised) != len(rows):
        raise FormatError("watch.promised", "must name each part once")
    return promised


def _write_promised(promised: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "coverage": coverage} for name, coverage in promised.items()]


def _time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None or len(text) > _MOST_TIME:
        raise ValueError
    return text


_SCALES = shapes.listed(shapes.record(Scale, shapes.shape_of(Scale, threshold=shapes.or_infinite(shapes.number()))))
_PART = shapes.Field("a part", (dict,), shape={"name": shapes.TEXT, "coverage": shapes.number()})
_SETTINGS: shapes.Shape = shapes.shape_of(
    Settings,
    promised=shapes.Field("a list of parts", (list,), _promised, _write_promised, entry=_PART),
    correction=shapes.optional(shapes.record(Correction, shapes.shape_of(Correction, scales=_SCALES))),
)
LOOK_SHAPE: shapes.Shape = {
    "name": shapes.TEXT,
    "made": shapes.Field("an ISO 8601 time with a time zone", (str,), _time),
    "counts": shapes.listed(shapes.INTEGER),
    "versions": VERSIONS,
}
_SHAPE: shapes.Shape = {
    "settings": shapes.record(Settings, _SETTINGS),
    "looks": shapes.listed(shapes.record(Look, LOOK_SHAPE)),
}


def _read(fields: Fields) -> Watch:
    return Watch(**shapes.read_shape(fields, _SHAPE))


documents.register(
    Watch,
    documents.Kind(
        documents.common_form(KIND, "watch", integer_bits=63), lambda watch: shapes.write_shape(watch, _SHAPE), _read
    ),
)
