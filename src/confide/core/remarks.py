"""Remarks on a release: thresholds that are infinite or uninformative, the reasons, and what to do.

No remark depends on a secret number of records: all reasons are listed that are possible without it.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from confide.candidates import SHAPES, Candidates
from confide.core.expected import records_for, records_if_public, terms_of
from confide.core.release import Release, as_release, reminder_due
from confide.core.rules import unusual
from confide.core.terms import Terms
from confide.core.thresholds import Threshold, meaning_of_infinity
from confide.errors import CoverageWarning
from confide.guarantee import LongRun, coverage_text
from confide.mechanisms import PpsOfSecretSize
from confide.scores import HOTTEST, score_kind
from confide.support import caller_stacklevel, decimal_text

_UNIT = "state a public typical size of the scores (unit=)"
_MORE = "take more, or a larger epsilon or alpha"

# Warn if the next candidate is more than this many times as large.
_COARSE = 4.0

# With fewer than this many times the required records, a threshold beyond all scores is still drawn now and then.
_NEAR_ENOUGH = 5
MOST_NAMED = 10


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
    groups: dict[tuple[str, str], list[str]] = {}
    names = list(map(repr, release.parts)) if as_release(release).disjoint else list(release.by_name)
    known = terms_of(release)
    for name, (key, threshold) in zip(names, release.parts.items(), strict=True):
        for remark in _remarks(threshold, known.get(key), grouped=release.disjoint):
            groups.setdefault(remark, []).append(name)
    return tuple(_remark_text(release, *remark, which) for remark, which in groups.items())


def _remark_text(release: Release, what: str, why: str, names: list[str]) -> str:
    if not what:
        return why
    if len(release.parts) == 1 and not release.disjoint:
        return f"the threshold {what}: {why}"
    which = ", ".join(names[:MOST_NAMED]) + (" ..." if names[MOST_NAMED:] else "")
    if release.disjoint:
        which = f"{len(names)} of {len(release.parts)} {'classes' if release.by == 'class' else 'groups'}: {which}"
    return f"the threshold {what} for {which}; {why}"


def _remarks(threshold: Threshold, terms: Terms | None, *, grouped: bool) -> Iterator[tuple[str, str]]:
    """Notes on a guarantee below the level, and on a threshold that is +inf or nearly so: the statement, its reason."""
    level = 1 - threshold.alpha
    if isinstance(threshold.mechanism, PpsOfSecretSize) and threshold.coverage < float(level):
        enough = threshold.mechanism.certified_from(level, threshold.candidates)
        yield (
            "",
            f"the promise is coverage of at least {coverage_text(threshold.coverage)}, not {float(level):g}: with few "
            f"records pps covers less; state n_min={enough} or more, if so many are certain",
        )
    if remark := _remark(threshold, terms, grouped=grouped):
        yield remark


def _remark(threshold: Threshold, terms: Terms | None, *, grouped: bool) -> tuple[str, str] | None:
    """The statement on a threshold, and the reason; `grouped` if it belongs to one of several groups."""
    # +inf, or the largest value of the score: nothing is excluded.
    if isinstance(threshold.guarantee, LongRun):
        paid = "earlier records were missed more often than alpha, and +inf pays this back"
        what = "is +inf" if threshold.threshold == math.inf else "is the largest value of the score"
        return (what, f"{meaning_of_infinity(threshold.score)}; {paid}") if threshold.excludes_nothing else None
    if math.isinf(threshold.threshold) and threshold.threshold > 0:
        return "is +inf", f"{meaning_of_infinity(threshold.score)}; {_reason(threshold, terms, grouped=grouped)}"
    if threshold.excludes_nothing:
        few = f"with few records: {_enough(threshold, terms, grouped)}"
        return (
            f"is {threshold.threshold:g} (at least the largest value of the score)",
            f"{meaning_of_infinity(threshold.score)}; {too_large(threshold)}; {few}",
        )

    # A size that no score has, or coarse candidates.
    high = score_kind(threshold.score).plausible_size(threshold.recipe)
    around = f" around unit {threshold.recipe['unit']:g}" if "unit" in threshold.recipe else ""
    size, spread = abs(threshold.threshold), f"{threshold.recipe.get('kind')}{around}"
    is_drawn = threshold.mechanism is not None and math.isfinite(threshold.epsilon)
    if size > high:
        few = _enough(threshold, terms, grouped)
        by_chance = f"either few records drew it by chance, far beyond all scores: {few}; or "
        return (
            f"exceeds {decimal_text(high)}, which is not a plausible size ({spread})",
            f"{by_chance if is_drawn else ''}scores have that size: {_UNIT}",
        )
    if (step := _step(threshold)) > _COARSE:
        larger = f"{decimal_text(float(f'{step:.1g}'))} times as large" if math.isfinite(step) else "+inf"
        by_chance = "with few records such a threshold is drawn by chance, and " if is_drawn else ""
        return (
            f"lies where the candidates ({spread}) are coarse",
            f"the next candidate is {larger}: {by_chance}scores of another size need other candidates; {_UNIT}",
        )
    return _few(threshold, terms, grouped) if is_drawn else None


def _few(threshold: Threshold, terms: Terms | None, grouped: bool) -> tuple[str, str] | None:
    """A note on few records where candidates have every size, so that one beyond all scores looks like any other."""
    records = _known_number(threshold)
    if records is None or terms is None or not _is_log_spaced(threshold.recipe):
        return None
    if records >= (needed := records_for(terms)):
        return None
    there = f"there are {'' if threshold.n else 'about '}{records} calibration records"
    fewer = f"with fewer than about {needed} {_at(threshold, terms)} more than 1 threshold in 100 does"
    return "may lie far beyond all scores", f"{there}, and {fewer}: {_MORE}{_if_public(terms, grouped)}"


def _known_number(threshold: Threshold) -> int | None:
    """The public number of records, or the noisy one."""
    return threshold.n or (None if threshold.size is None else threshold.size.counted)


_UNKNOWN_LABELS = (
    "more than a share alpha of the scores is +inf, as those of labels that are no class are: check their names"
)


def _reason(threshold: Threshold, terms: Terms | None, *, grouped: bool) -> str:
    # The number of records, compared with what is needed.
    conditions, needed = _at(threshold, terms), None if terms is None else records_for(terms)
    known, noisy = _known_number(threshold), threshold.n is None
    records = known or threshold.guarantee.n_min or 1
    untouched = threshold.mechanism is None and threshold.epsilon == 0
    if needed is None:
        too_few = f"there are too few calibration records {conditions}: {_MORE}"
    elif records < needed:
        there = f"there are {'about ' if noisy else ''}{records}" if known else "there may be fewer"
        too_few = f"about {needed} calibration records are needed for a useful one {conditions}, and {there}: {_MORE}"
        too_few += _if_public(terms, grouped)
    else:
        bound = "" if threshold.n else "about " if known else "at least "
        there = f"there are {bound}{records} calibration records"
        too_few = f"{there}, where about {needed} are needed {conditions}"
        if records < _NEAR_ENOUGH * needed:
            too_few += f", so that +inf is still drawn by chance now and then: {_MORE}"

    # The candidates, unless few records or a complete list exclude them as the reason.
    surely_few = untouched or (threshold.n is not None and needed is not None and threshold.n < needed)
    if surely_few or _reaches(threshold):
        enough = needed is not None and records >= _NEAR_ENOUGH * needed
        labels = enough and math.isinf(threshold.threshold) and score_kind(threshold.score).task == "classification"
        return f"{too_few}: {_UNKNOWN_LABELS}" if labels else too_few
    if needed is not None and records >= _NEAR_ENOUGH * needed:
        return f"{too_few}, so that {_beyond(threshold)}: {_UNIT}"
    return f"{too_few}; or {_beyond(threshold)}: then {_UNIT}"


def too_large(threshold: Threshold) -> str:
    """The reason why a threshold is the largest value of its score, other than few records, and the remedy."""
    kind, name = score_kind(threshold.score), str(threshold.score).partition("(")[0]
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


def _at(threshold: Threshold, terms: Terms | None) -> str:
    loss = threshold.epsilon if terms is None else terms.epsilon
    return f"at alpha={float(threshold.alpha):g}" + (f" and epsilon={loss:.4g}" if 0 < loss < math.inf else "")


def _enough(threshold: Threshold, terms: Terms | None, grouped: bool) -> str:
    if terms is None:
        return _MORE
    needed = f"about {records_for(terms)} calibration records are needed {_at(threshold, terms)}"
    return f"{needed}: {_MORE}{_if_public(terms, grouped)}"


def _if_public(terms: Terms | None, grouped: bool) -> str:
    fewer = None if grouped or terms is None else records_if_public(terms)  # the sizes of groups stay secret
    if terms is None or fewer is None or fewer >= records_for(terms):
        return ""
    return f"; or make their number public (neighbors='replace_one', --neighbors replace_one), then about {fewer} do"


def _beyond(threshold: Threshold) -> str:
    last = _last(threshold.recipe)
    largest = "the largest candidate" if last is None else f"the largest candidate, {decimal_text(last)}"
    infinite = ", or are +inf" if score_kind(threshold.score).high == math.inf else ""
    return f"more than a share alpha of the scores lie beyond {largest}{infinite}"


def _reaches(threshold: Threshold) -> bool:
    kind, recipe_kind, last = score_kind(threshold.score), threshold.recipe.get("kind"), _last(threshold.recipe)
    of_score = recipe_kind == "spread" and threshold.recipe["of"] == kind.spread_kind
    made_for_it = of_score and SHAPES[kind.spread_kind].is_complete
    return made_for_it or (last is not None and kind.high <= last)


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


_REMARKS = "_remarks"

# A warning follows if a record is in more groups that overlap.
_MOST_COLUMNS = 10


def warn_about(release: Release) -> None:
    """Warn of `remarks` when a release is applied, at every call; and once of a model that was not compared."""
    cache = vars(release)  # like a cached property: a frozen value stores what follows from it
    if _REMARKS not in cache:
        cache[_REMARKS] = remarks(release)
    due = (uncompared(release),) if reminder_due(release) else ()
    for note in (*cache[_REMARKS], *due):
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())


def uncompared(release: Release) -> str:
    """The reminder that the model of a release was not compared."""
    return (
        f"the model was not compared with the release's fingerprint ({release.fingerprint}), and the promise is "
        "for that model: compare once, with released.for_model(fingerprint) or --set fingerprint=FILE"
    )


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
