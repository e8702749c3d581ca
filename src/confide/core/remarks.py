"""Remarks on a release: thresholds that are infinite or uninformative, the reasons, and what to do.

No remark depends on a secret number of records: all reasons are listed that are possible without it.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from confide.candidates import SHAPES, Candidates
from confide.core.expected import records_for, records_if_public, terms_of
from confide.core.release import Release, as_release, reminder_due
from confide.core.rules import unusual
from confide.core.terms import Terms
from confide.core.threshold import Threshold, meaning_of_infinity
from confide.errors import CoverageWarning
from confide.guarantee import LongRun, coverage_text
from confide.mechanisms import PpsOfSecretSize
from confide.scores import HOTTEST, ScoreKind, score_kind
from confide.support import caller_stacklevel, decimal_text

_UNIT = "state a public typical size of the scores (unit=)"
_MORE = "take more, or a larger epsilon or alpha"
_UNKNOWN_LABELS = (
    "more than a share alpha of the scores is +inf, as it is for labels that are none of the classes: check their names"
)

# Warn if the next candidate is more than this many times as large.
_COARSE = 4.0

# With fewer than this many times the required records, a threshold beyond all scores is still drawn now and then.
_NEAR_ENOUGH = 5

# The thresholds that a remark names; it has "..." for the others.
_MOST_NAMED = 10

# A warning follows if a record is in more groups that overlap.
_MOST_COLUMNS = 10


class Remark(NamedTuple):
    """A remark on a threshold: what it is, such as "is +inf", and the reason. It is empty about the guarantee alone."""

    statement: str
    reason: str


@dataclass(frozen=True)
class _Case:
    """A threshold, the terms of its required records, and whether it belongs to one of several groups."""

    threshold: Threshold
    terms: Terms | None
    grouped: bool

    @property
    def kind(self) -> ScoreKind:
        return score_kind(self.threshold.score)

    @property
    def meaning(self) -> str:
        """The meaning of a threshold that excludes nothing."""
        return meaning_of_infinity(self.threshold.score)

    @property
    def is_drawn(self) -> bool:
        """Whether noise decided the threshold."""
        return self.threshold.mechanism is not None and math.isfinite(self.threshold.epsilon)

    @property
    def records(self) -> int | None:
        """The public number of records, or the noisy one."""
        size = self.threshold.size
        return self.threshold.n or (None if size is None else size.counted)

    @property
    def about(self) -> str:
        """The word before a number of records, unless it is exact."""
        return "" if self.threshold.n else "about "

    @cached_property
    def needed(self) -> int | None:
        return None if self.terms is None else records_for(self.terms)

    @property
    def number_of_few(self) -> str:
        """The number of records behind the name of a group that has too few, so that groups share one remark."""
        if not self.grouped or not self.records or not self.needed or self.records >= self.needed:
            return ""
        return f" ({self.about}{self.records} records)"

    @property
    def there_are_fewer(self) -> str:
        """The statement that there are fewer records than needed."""
        if not self.records:
            return "there may be fewer"
        return "there are fewer" if self.grouped else f"there are {self.about}{self.records}"

    @property
    def conditions(self) -> str:
        """The level and the privacy loss for which a number of records is needed."""
        loss = self.threshold.epsilon if self.terms is None else self.terms.epsilon
        return f"at alpha={float(self.threshold.alpha):g}" + (f" and epsilon={loss:.4g}" if 0 < loss < math.inf else "")

    @property
    def more(self) -> str:
        """The remedy for few records."""
        if self.terms is None or self.needed is None or self.grouped:  # the sizes of groups stay secret
            return _MORE
        fewer = records_if_public(self.terms)
        if fewer is None or fewer >= self.needed:
            return _MORE
        public = "make their number public (neighbors='replace_one', --neighbors replace_one)"
        return f"{_MORE}; or {public}, then about {fewer} do"

    @property
    def enough(self) -> str:
        """The number of records that suffices, and the remedy."""
        if self.needed is None:
            return _MORE
        return f"about {self.needed} calibration records are needed {self.conditions}: {self.more}"


def _remarks(case: _Case) -> Iterator[Remark]:
    """Remarks on a guarantee below the level, and on a threshold that is +inf or nearly so."""
    threshold = case.threshold
    level = 1 - threshold.alpha
    if isinstance(threshold.mechanism, PpsOfSecretSize) and threshold.coverage < float(level):
        enough = threshold.mechanism.certified_from(level, threshold.candidates)
        yield Remark(
            "",
            f"the promise is coverage of at least {coverage_text(threshold.coverage)}, not {float(level):g}: with few "
            f"records pps covers less; state n_min={enough} or more, if so many are certain",
        )
    if threshold.excludes_nothing:
        yield _remark_on_nothing_excluded(case)
    elif not isinstance(threshold.guarantee, LongRun):
        remark = _remark_on_size(case) or _remark_on_few_records(case)
        if remark is not None:
            yield remark


def _remark_on_nothing_excluded(case: _Case) -> Remark:
    threshold = case.threshold
    infinite = threshold.threshold == math.inf
    if isinstance(threshold.guarantee, LongRun):
        paid = "earlier records were missed more often than alpha, and +inf pays this back"
        return Remark("is +inf" if infinite else "is the largest value of the score", f"{case.meaning}; {paid}")
    if infinite:
        return Remark("is +inf", f"{case.meaning}; {_reason_of_infinity(case)}")
    return Remark(
        f"is {threshold.threshold:g} (at least the largest value of the score)",
        f"{case.meaning}; {too_large(threshold)}; with few records: {case.enough}",
    )


def _reason_of_infinity(case: _Case) -> str:
    """Few records, or candidates that end too early, or both unless one of them is excluded."""
    # The number of records, compared with what is needed.
    threshold = case.threshold
    needed = case.needed
    records = case.records or threshold.guarantee.n_min or 1
    plenty = needed is not None and records >= _NEAR_ENOUGH * needed
    if needed is None:
        reason = f"there are too few calibration records {case.conditions}: {_MORE}"
    elif records < needed:
        useful = f"about {needed} calibration records are needed for a useful one {case.conditions}"
        reason = f"{useful}, and {case.there_are_fewer}: {case.more}"
    else:
        bound = case.about if case.records else "at least "
        reason = f"there are {bound}{records} calibration records, where about {needed} are needed {case.conditions}"
        if not plenty:
            reason += f", so that +inf is still drawn by chance now and then: {_MORE}"

    # The candidates, unless few records or a complete list exclude them as the reason.
    without_data = threshold.mechanism is None and threshold.epsilon == 0
    surely_few = without_data or (threshold.n is not None and needed is not None and threshold.n < needed)
    if surely_few or _reaches_all(threshold):
        return f"{reason}: {_UNKNOWN_LABELS}" if plenty and case.kind.task == "classification" else reason
    last = _last(threshold.recipe)
    largest = "the largest candidate" if last is None else f"the largest candidate, {decimal_text(last)}"
    infinite = ", or are +inf" if case.kind.high == math.inf else ""
    beyond = f"more than a share alpha of the scores lie beyond {largest}{infinite}"
    return f"{reason}, so that {beyond}: {_UNIT}" if plenty else f"{reason}; or {beyond}: then {_UNIT}"


def too_large(threshold: Threshold) -> str:
    """The reason why a threshold is the largest value of its score, other than few records, and the remedy."""
    kind = score_kind(threshold.score)
    name = str(threshold.score).partition("(")[0]
    reason = "perhaps more than a share alpha of the scores are that large"
    temperature = max(4.0, 2 * (kind.temperature or 1.0))
    if kind.task == "classification" and kind.spread_kind == "mass" and not kind.randomised:
        reason += f", as those of labels that are ranked last are: compare the score {name.partition('_')[0]!r}"
    elif kind.task == "classification" and kind.spread_kind != "rank" and temperature <= HOTTEST:
        reason += (
            ", as those of an over-confident model are: state a temperature, such as score "
            f"{name!r} with temperature={temperature:g}"
        )
    if threshold.recipe.get("kind") != "spread":
        reason += "; or the candidates below are too far apart: leave out candidates, or take spacing='logit'"
    return reason


def _remark_on_size(case: _Case) -> Remark | None:
    """A remark on a size that no score has, or on candidates that are far apart."""
    threshold = case.threshold
    recipe = threshold.recipe
    around = f" around unit {recipe['unit']:g}" if "unit" in recipe else ""
    spread = f"{recipe.get('kind')}{around}"
    high = case.kind.plausible_size(recipe)
    if abs(threshold.threshold) > high:
        by_chance = f"either few records drew it by chance, far beyond all scores: {case.enough}; or "
        return Remark(
            f"exceeds {decimal_text(high)}, which is not a plausible size ({spread})",
            f"{by_chance if case.is_drawn else ''}scores have that size: {_UNIT}",
        )
    if (step := _step(threshold)) > _COARSE:
        larger = f"{decimal_text(float(f'{step:.1g}'))} times as large" if math.isfinite(step) else "+inf"
        by_chance = "with few records such a threshold is drawn by chance, and " if case.is_drawn else ""
        return Remark(
            f"lies where the candidates ({spread}) are coarse",
            f"the next candidate is {larger}: {by_chance}scores of another size need other candidates; {_UNIT}",
        )
    return None


def _remark_on_few_records(case: _Case) -> Remark | None:
    """A remark on few records where candidates have every size, so that one beyond all scores looks like any other."""
    records = case.records
    if not case.is_drawn or not _is_log_spaced(case.threshold.recipe):
        return None
    if records is None or case.needed is None or records >= case.needed:
        return None
    there = f"there are {case.about}{records} calibration records"
    fewer = f"with fewer than about {case.needed} {case.conditions} more than 1 threshold in 100 does"
    return Remark("may lie far beyond all scores", f"{there}, and {fewer}: {case.more}")


# What the recipe of the candidates shows.


def _reaches_all(threshold: Threshold) -> bool:
    """Whether the candidates reach the largest score, so that they are no reason for +inf."""
    kind = score_kind(threshold.score)
    recipe = threshold.recipe
    last = _last(threshold.recipe)
    of_score = recipe.get("kind") == "spread" and recipe["of"] == kind.spread_kind
    return (of_score and SHAPES[kind.spread_kind].is_complete) or (last is not None and kind.high <= last)


def _last(recipe: Mapping[str, Any]) -> float | None:
    """The largest finite candidate, approximately; None if it does not follow from the recipe."""
    match recipe.get("kind"):
        case "spread":
            return float(Candidates.from_recipe(recipe).edges[-1])
        case "unit":
            return 1.0 if recipe.get("size", 0) > 1 else None
        case "published":
            return 1.0  # represented by +inf
    return None


def _is_log_spaced(recipe: Mapping[str, Any]) -> bool:
    return recipe.get("kind") == "spread" and SHAPES[recipe["of"]].is_log_spaced


def _step(threshold: Threshold) -> float:
    """The ratio of the next candidate to the threshold, for log-spaced candidates; else 1."""
    if not _is_log_spaced(threshold.recipe) or not threshold.threshold:
        return 1.0
    sizes = np.abs(Candidates.from_recipe(threshold.recipe).values)
    return float(sizes[sizes > abs(threshold.threshold)].min() / abs(threshold.threshold))


# The remarks on a release, and its warnings.


def remarks(release: Release) -> tuple[str, ...]:
    """The thresholds of a release that are +inf or nearly so, and the reasons; empty if there are none.

    Examples
    --------
    >>> import confide, numpy as np, warnings
    >>> residuals = np.random.default_rng(0).random(4000) * 1e9
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     candidates = confide.Candidates.of([1.0, 1e6])
    ...     released = confide.calibrate(residuals, 0.1, 1.0, score="absolute_residual", candidates=candidates)
    >>> remarks(released)
    ('the threshold is +inf: every interval is the whole line; there are about ... calibration records, where ...',)
    >>> remarks(confide.calibrate(residuals / 1e9, 0.1, 1.0, score="absolute_residual"))
    ()
    """
    names_by_remark: dict[Remark, list[str]] = {}
    names = list(map(repr, release.parts)) if as_release(release).disjoint else list(release.by_name)
    known = terms_of(release)
    for name, (key, threshold) in zip(names, release.parts.items(), strict=True):
        case = _Case(threshold, known.get(key), release.disjoint)
        for remark in _remarks(case):
            names_by_remark.setdefault(remark, []).append(name + case.number_of_few)
    return tuple(_remark_text(release, remark, named) for remark, named in names_by_remark.items())


def _remark_text(release: Release, remark: Remark, names: list[str]) -> str:
    """A remark in words, with the thresholds that it belongs to, if there are several."""
    if not remark.statement:
        return remark.reason
    if len(release.parts) == 1 and not release.disjoint:
        return f"the threshold {remark.statement}: {remark.reason}"
    which = ", ".join(names[:_MOST_NAMED]) + (" ..." if names[_MOST_NAMED:] else "")
    if release.disjoint:
        which = f"{len(names)} of {len(release.parts)} {'classes' if release.by == 'class' else 'groups'}: {which}"
    return f"the threshold {remark.statement} for {which}; {remark.reason}"


def uncompared(release: Release) -> str:
    """The reminder that the model of a release was not compared."""
    return (
        f"the model was not compared with the release's fingerprint ({release.fingerprint}), and the promise is "
        "for that model: compare once, with released.for_model(fingerprint) or --set fingerprint=FILE"
    )


# The attribute of a release that stores its remarks.
_REMARKS = "_remarks"


def warn_about(release: Release) -> None:
    """Warn of `remarks` when a release is applied, at every call; and once of a model that was not compared."""
    cache = vars(release)  # like a cached property: a frozen value stores what follows from it
    if _REMARKS not in cache:
        cache[_REMARKS] = remarks(release)
    due = (uncompared(release),) if reminder_due(release) else ()
    for note in (*cache[_REMARKS], *due):
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())


def warn_of_choices(release: Release) -> None:
    """Warn of an unusual level or failure probability, or of many columns of groups, once, when a release is made."""
    failures = [threshold.guarantee.delta or 0.0 for threshold in release.parts.values()]
    delta = sum(failures) if release.by in ("level", "side") else max(failures)
    notes = [*unusual(None if release.loss else min(release.levels), delta or None)]
    if release.overlap is not None and (columns := len(release.overlap)) > _MOST_COLUMNS:
        notes.append(
            f"{columns} columns of groups divide the privacy budget into {columns} parts, so each group needs about "
            f"{columns} times as many records; name fewer columns"
        )
    for note in notes:
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
