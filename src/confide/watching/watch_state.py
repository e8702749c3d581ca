"""`Watch`: the settings of a monitor and the noisy counts of every look, as a value and as a file.

Test results are computed from the settings and the counts, and are not stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.core import Document, Release, documents
from confide.evaluation import Evaluation
from confide.mechanisms import Neighbors, PrivacyStatement, decoded
from confide.noisy_counts import draw_counts
from confide.support import Level, Section, check_unknown_arguments, decimal_text, library_versions, require
from confide.watching.correction import SPAN_ERROR, Correct, Correction, Realised, realised_coverage
from confide.watching.e_process import ShareTests, confidence_sequence, coverage_tests, size_tests
from confide.watching.looks import Look, Point, evidence_text, now, plain_fields
from confide.watching.settings import (
    MOST_COUNT,
    MOST_LOOKS,
    Reference,
    Settings,
    deserved_batch,
    promised_of,
    reference_of,
)


class Choices(TypedDict, total=False):
    """Choices before the first look, with None for the default; `Watch.start` describes them."""

    batch: int | None
    tolerance: float | None
    looks: int | None
    error: Level | None
    neighbors: Neighbors | None
    records_per_person: int | None
    reference: Evaluation | None
    correct: Correct | None
    delay: int | None


_MOST_NAMED = 10
"""Number of parts that are named with an alarm."""


@dataclass(frozen=True, repr=False)
class Watch(Document):
    """Monitor that tests look by look whether a release keeps its coverage, with a bounded false-alarm probability.

    A look is a batch of new records with known labels. Of each look a watch contains only two noisy counts, covered and
    missed records, for the release as a whole or for each group or class. If in every look every record is covered with
    probability at least `promised - tolerance`, whatever else changes, then the alarm is raised with probability at
    most `error`, for any number of looks and any stopping rule. An alarm stays raised, because it is a finding about
    all looks so far. Start a new watch after you renew the release.

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
        names = set[str]()
        cells = self.settings.cells
        require("looks", len(self.looks) <= MOST_LOOKS, f"must be at most {MOST_LOOKS}")
        for look in self.looks:
            usable = len(look.counts) == cells and all(abs(count) <= MOST_COUNT for count in look.counts)
            require("looks", usable, f"must have {cells} counts each, each of at most 2**50")
            must = "must be a new name, because a batch counts once"
            require("look", look.name not in names, must, repr(look.name), "Give another batch its own name")
            names.add(look.name)

    @classmethod
    def start(cls, release: Release, *, epsilon: float, bins: Sequence[int] = (), **choices: Unpack[Choices]) -> Watch:
        """Start a watch of a release. Choose every argument before any record is used.

        Parameters
        ----------
        release
            The release to monitor, with one level. Groups or classes are tested one by one and all together.
        epsilon
            Privacy loss of one look for each person in it. A person in k looks incurs k times the loss.
        bins
            For a watch of set sizes, which needs no labels: the smallest size of each bin, as `size_bins` returns them.
        batch
            Planned number of records in a look; by default as many as let the sampling error exceed the noise, in each
            part: about 22/epsilon^2 at a level of 0.9.
        tolerance
            By how much coverage may be lower than guaranteed (default: 0.02).
        looks
            Planned number of looks; more may follow (default: 52).
        error
            Probability of a false alarm over all looks together (default: 0.05).
        neighbors, records_per_person
            Adjacency and contribution bound that epsilon refers to, as in `calibrate`.
        reference
            For set sizes: a private evaluation of the release that counted them. The default is the first look.
        correct
            Also correct the thresholds by the noisy counts, at no further privacy cost: how far a look can move them,
            as a share of the scale of scores in (0, 0.2], or `"auto"`. Each look must then count a record as covered or
            missed by the threshold with which its set was predicted, that of `CorrectedRelease`.
        delay
            With `correct`: the number of looks by which labels are late (default: 0).

        Raises
        ------
        InputError, InputTypeError
            If the release has no coverage guarantee, or an argument is out of range or unknown.
        """
        check_unknown_arguments("Watch.start", choices, Choices.__annotations__, named=("epsilon", "bins"))
        given: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
        require("delay", "correct" in given or "delay" not in given, "must be left out without correct")
        correct = given.pop("correct", None)
        delay = given.pop("delay", 0)

        # Either coverage is monitored, or set sizes
        bins = tuple(bins)
        promised = {} if bins else promised_of(release)
        if bins:
            must = "must be left out with unlabelled, because set sizes have no guarantee"
            require("tolerance", "tolerance" not in given, must)
            given["tolerance"] = 0.0
        if "reference" in given:
            require("reference", bins, "must be left out without unlabelled, which alone compares with a reference")
            given["reference"] = reference_of(given["reference"], release.checksum, bins)

        # The size of a look that its noise deserves, and the correction, follow from the other settings
        settings = Settings(release.checksum, epsilon, promised=promised, bins=bins, **{"batch": 1, **given})
        if "batch" not in given:
            settings = replace(settings, batch=deserved_batch(promised, settings.noise_epsilon))
        if correct is not None:
            correction = Correction.of(release, correct, delay, settings.part_batch, settings.noise_epsilon)
            settings = replace(settings, correction=correction)
        return cls(settings)

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of one look for each person in it."""
        return self.settings.cost.statement

    def draw(self, counts: ArrayLike) -> tuple[int, ...]:
        """Add fresh noise to the counts of a batch. The result is public and costs its epsilon.

        Parameters
        ----------
        counts
            Nonnegative integers: covered and missed records of each part in turn, or records in each size bin.
        """
        exact = np.asarray(counts)
        usable = exact.shape == (self.settings.cells,) and exact.dtype.kind in "iu" and (exact >= 0).all()
        require("counts", usable, f"must be {self.settings.cells} counts of records, as integers")
        return tuple(int(count) for count in draw_counts(exact, self.settings.noise_epsilon))

    def with_look(
        self, name: str, counts: Sequence[int], made: str | None = None, versions: Mapping[str, str] | None = None
    ) -> Watch:
        """Return the watch with one more look, whose noisy counts are given; `versions` are those that drew them."""
        return replace(self, looks=(*self.looks, Look(name, made or now(), tuple(counts), versions or {})))

    def look(self, name: str, counts: ArrayLike) -> Watch:
        """Draw noisy counts of a batch and return the watch with this look."""
        # A name that cannot be used raises before the draw
        self.with_look(name, [0] * self.settings.cells)
        return self.with_look(name, self.draw(counts), versions=library_versions())

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
    def positions(self) -> list[tuple[int, ...]]:
        """With a correction: the position of each part on its scale before the first look and after each look."""
        correction = self.settings.correction
        counts = [look.counts for look in self.looks]
        return [] if correction is None else correction.positions(counts, self.settings.batch)

    def realised(self, last: int | None = None) -> list[Realised]:
        """Estimate the coverage that corrected thresholds had, in all looks or in the `last` ones.

        The list has one interval for each threshold. It is empty without a correction, and before the first look.
        Intervals for all looks hold simultaneously, after every look and for all thresholds, with probability 0.95.
        For the last looks, each interval alone holds with probability 0.95.
        """
        settings = self.settings
        looks = self.looks[-last:] if last else self.looks
        if settings.correction is None or not looks:
            return []
        alpha = settings.correction.alpha
        epsilon = settings.noise_epsilon
        # All parts at once share the error
        error = SPAN_ERROR if last else SPAN_ERROR / len(settings.promised)
        sums = np.array([look.counts for look in looks], object).sum(axis=0)
        return [
            realised_coverage(covered, missed, len(looks), alpha, epsilon, error=error, sequence=not last)
            for covered, missed in zip(sums[::2], sums[1::2], strict=True)
        ]

    @property
    def at_worst(self) -> str:
        """With a correction: what it guarantees for every sequence of records, in words."""
        settings = self.settings
        if settings.correction is None:
            return ""
        return settings.correction.at_worst(settings.part_batch, settings.noise_epsilon, settings.looks)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """State of the watch after each look."""
        if not self.looks:
            return ()

        # The evidence of each test, and of all together, after each look; a look that is the reference has none
        tests = self._tests
        first_tested = int(self.monitors_sizes and self.settings.reference is None)
        counts = np.array([look.counts for look in self.looks], np.int64)
        evidence = np.zeros((len(counts), len(tests.names)))
        evidence[first_tested:] = tests.evidence(counts[first_tested:], self.settings)
        together = _mean(evidence)
        together[:first_tested] = 0.0
        alarmed = np.logical_or.accumulate(together >= math.log(self.alarm_at))

        # One point for each look
        rows = zip(self.looks, together.tolist(), evidence.tolist(), alarmed.tolist(), self._ends(counts), strict=True)
        return tuple(
            Point(look, of_all, dict(zip(tests.names, of_tests, strict=True)), is_alarmed, low, high)
            for look, of_all, of_tests, is_alarmed, (low, high) in rows
        )

    @property
    def _tests(self) -> ShareTests:
        """Tests by the settings, and for set sizes by a reference, which by default is the first look."""
        settings = self.settings
        if not self.monitors_sizes:
            return coverage_tests(settings.least, tuple(settings.promised))
        reference = settings.reference or Reference(self.looks[0].counts, settings.noise_epsilon)
        return size_tests(reference, settings.bins, settings.error)

    def _ends(self, counts: NDArray[np.int64]) -> Sequence[tuple[float | None, float | None]]:
        """The confidence sequence of coverage; set sizes have none."""
        settings = self.settings
        if self.monitors_sizes:
            return [(None, None)] * len(counts)
        return confidence_sequence(
            counts[:, ::2].sum(axis=1),
            counts[:, 1::2].sum(axis=1),
            settings.batch,
            settings.noise_epsilon,
            looks=settings.looks,
            error=settings.error,
            noises=len(settings.promised),
            per_person=settings.records_per_person,
        )

    def parts_below(self, point: Point) -> list[str]:
        """Names of the parts that are below by their own evidence, each at an equal share of the error."""
        alarm_of_part = math.log(self.alarm_at * max(len(point.parts), 1))
        return [name for name, log_evidence in point.parts.items() if name and log_evidence >= alarm_of_part]

    def _section(self) -> Section:
        settings = self.settings
        facts = [
            ("false alarm", f"with probability at most {settings.error:g} over all looks together"),
            ("privacy", f"{self.privacy} in one look; a person in k looks incurs k times the loss"),
            ("noise in each count", f"discrete Laplace, scale 1/{decimal_text(settings.noise_epsilon)}"),
            ("of the release with SHA-256", settings.release),
        ]
        if settings.promised:
            facts.insert(0, ("tolerance", f"{settings.tolerance:g}"))
        if settings.correction is not None:
            facts += [("correction", settings.correction.words), ("at worst", self.at_worst)]
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
        lowest = f"{min(settings.least):.6g}"
        highest = f"{max(settings.least):.6g}"
        least = lowest if lowest == highest else f"{lowest} to {highest}"
        scope = f" in each of {len(settings.least)} parts" if len(settings.least) > 1 else ""
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
                so_far, name = min(named, key=lambda pair: pair[0].low)
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
        alarm = self.alarm
        if alarm is None:
            return "no alarm"
        parts = self.parts_below(self.points[-1])
        named = f"; beyond chance in {', '.join(parts[:_MOST_NAMED])}" if parts else ""
        sizes = self.monitors_sizes
        finding = "set sizes differ from the reference" if sizes else "coverage was below the monitored value"
        spite = "" if self.settings.correction is None else " in spite of the correction"
        return f"ALARM since look {alarm.look.name!r}: {finding}{spite}{named}"


def _mean(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of the mean evidence of all tests after each look; 0 if a small reference leaves no test."""
    mean: NDArray[np.float64] = np.logaddexp.reduce(logs, axis=1) - math.log(logs.shape[1] or 1)
    return mean if logs.shape[1] else np.zeros(len(logs))


# Files.


def _content(watch: Watch) -> dict[str, Any]:
    content: dict[str, Any] = plain_fields(watch)
    settings = content["settings"]
    settings["promised"] = [{"name": name, "coverage": coverage} for name, coverage in settings["promised"].items()]
    if settings["correction"] is None:
        del settings["correction"]
    return content


def _read(content: Mapping[str, Any]) -> Watch:
    settings = dict(content["settings"])
    settings["promised"] = {group["name"]: group["coverage"] for group in settings["promised"]}
    # A threshold of +inf is a text in JSON
    if "correction" in settings:
        scales = [scale | {"threshold": float(scale["threshold"])} for scale in settings["correction"]["scales"]]
        settings["correction"] = settings["correction"] | {"scales": scales}
    return msgspec.convert({**content, "settings": settings}, Watch, strict=True, dec_hook=decoded)


_FORM = documents.common_form("confide/watch", "watch", integer_bits=63)
documents.register(Watch, documents.Kind(_FORM, _content, _read))
