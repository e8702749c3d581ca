"""`Watch`: what was fixed before the first look, and the noisy counts of every look, as a value and as a file.

All else follows from them: it is computed, not stored.
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

from confide.errors import FormatError, InputError
from confide.evaluation import PrivateEvaluation
from confide.mechanisms import NEIGHBORS, Neighbors, PrivacyStatement
from confide.noisy_counts import draw_counts
from confide.releases import Document, Release, documents
from confide.support import VERSIONS, Fields, Level, Section, exact_level, library_versions, shapes
from confide.watching.e_process import advance, bets, cash, log_e_values, log_evidence, stake
from confide.watching.sequence import Tests, confidence_sequence, coverage_tests, size_tests
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
            raise InputError("counts", f"must be {self.settings.cells} counts of records, as integers")
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
        remedy = "Give another batch its own name"
        return InputError("look", "must be new to the watch: a batch counts once", got=repr(name), remedy=remedy)

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

    def _section(self) -> Section:
        look = f"{self.privacy} in one look; whoever is in k looks loses k times as much"
        facts = (("false alarm", f"with probability at most {self.settings.error:g}, ever"), ("privacy", look))
        return Section("Watch", self._watched(), facts, notes=tuple(self._standing()))

    def _brief(self) -> str:
        what = "set sizes" if self.of_sizes else f"coverage at least {min(self.settings.least):.6g}"
        alarm = "no alarm" if self.alarm is None else f"ALARM since look {self.alarm.look.name!r}"
        return f"{what}, {len(self.looks):,} looks, {alarm}, {self.privacy.brief} a look"

    def _watched(self) -> str:
        made = self.settings
        planned = f"{made.looks:,} looks of {made.batch:,} records planned"
        if self.of_sizes:
            return f"watch of set sizes, against those of {made.compared}; {planned}"
        levels = sorted(made.least)
        least = " to ".join(dict.fromkeys(f"{level:.6g}" for level in (levels[0], levels[-1])))
        of = f" in each of {len(levels)} parts" if len(levels) > 1 else ""
        return f"watch of coverage: at least {least}{of}; {planned}"

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


# As JSON

KIND = "confide.watch"
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


_SETTINGS: shapes.Shape = {
    "release": shapes.TEXT,
    "epsilon": shapes.number(),
    "neighbors": shapes.choice(*NEIGHBORS),
    "records_per_person": shapes.INTEGER,
    "batch": shapes.INTEGER,
    "planned_looks": replace(shapes.INTEGER, attribute="looks"),
    "error": shapes.number(),
    "tolerance": shapes.number(),
    "promised": shapes.Field(
        "a list of parts",
        (list,),
        _promised,
        _write_promised,
        entry=shapes.Field("a part", (dict,), shape={"name": shapes.TEXT, "coverage": shapes.number()}),
    ),
    "bins": shapes.listed(shapes.INTEGER),
    "reference": shapes.nullable(
        shapes.record(
            Reference,
            {
                "counts": shapes.listed(shapes.integer(MOST_COUNT, -MOST_COUNT)),
                "epsilon": shapes.number(),
                "noises": shapes.INTEGER,
            },
        )
    ),
}
_LOOKS = shapes.listed(
    shapes.record(
        lambda versions, **drawn: Look(**drawn, versions=versions or {}),
        {
            "name": shapes.TEXT,
            "made": shapes.Field("a time with its zone", (str,), _time),
            "counts": shapes.listed(shapes.INTEGER),
            "versions": shapes.optional(VERSIONS),
        },
    )
)


def _fields(watch: Watch) -> dict[str, Any]:
    return {**shapes.write_shape(watch.settings, _SETTINGS), "looks": _LOOKS.json(watch.looks)}


def _read(fields: Fields) -> Watch:
    values = shapes.read_shape(fields, {**_SETTINGS, "looks": _LOOKS})
    looks = values.pop("looks")
    return Watch(Settings(looks=values.pop("planned_looks"), **values), looks)


documents.register(
    Watch,
    documents.Kind(
        documents.common_form(KIND, "watch", integer_bits=63, since_2=frozenset({"looks.versions"})), _fields, _read
    ),
)
