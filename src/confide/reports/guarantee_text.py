"""The coverage promise in plain sentences, and the distribution of coverage, from public numbers only.

Coverage is a random number: it depends on the calibration records and on the noise. Two laws of it are known without
the data. The random-rank lemma bounds it for every distribution of scores (docs/theory.md; exact for continuous scores
without privacy). And on typical, uniform scores the rank of the selected candidate has a known law.
Its mean is the expected coverage that `confide.plan` reports.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from confide.candidates import Candidates
from confide.core import (
    OVERLAP,
    Plan,
    Release,
    Threshold,
    any_shares,
    candidates_of,
    limit_text,
    typical_answer,
    typical_law,
)
from confide.errors import InputError
from confide.federated import FederatedThreshold
from confide.guarantee import Guarantee, binomial_at_least, coverage_text, law_failure, silos_text
from confide.mechanisms import Mechanism, Slopes
from confide.reports.charts import law as draw_law
from confide.reports.page import percent
from confide.support import MOST_RECORDS, Section, Table


def promise(guarantee: Guarantee, where: str = "in the set") -> str:
    r"""Coverage promise for users of the sets.

    Examples
    --------
    >>> promise(Guarantee("marginal", 0.9, None, None, 1))
    'On average, the true label is in the set for at least 90\xa0% of new records.'
    """
    share = coverage_percent(guarantee.coverage)
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "No coverage is promised."
    alike = ", if all silos have the same distribution" if guarantee.silos == "alike" else ""
    if guarantee.population is not None:
        alike = f", {guarantee.population.replace('for new records', 'that is, of those', 1)}"
    true = "true label" if where.endswith("set") else "true value"
    if guarantee.delta is None:
        return f"On average, the {true} is {where} for at least {share} of new records{alike}."
    sure = percent(1 - guarantee.delta)
    return f"With a probability of {sure}, the {true} is {where} for at least {share} of all future records{alike}."


def promise_of_part(release: Release, name: str, part: Threshold) -> str:
    """Promise of one threshold of a release; a side of an interval promises that side."""
    sides = {"lower side": "not below the interval", "upper side": "not above the interval"}
    where = sides[name] if release.by == "side" else f"in the {noun(release)}"
    return promise(part.guarantee, where)


def explanation(guarantee: Guarantee) -> str:
    """What the promise averages over and what it assumes; for a whole release, that of its first part."""
    assumed = "Nothing is assumed about the model or the scores, only that new records come from where the calibration "
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "The mechanism of this threshold has no certificate. Measure coverage before you rely on it."
    if guarantee.population is not None:
        return (
            "The average is over the calibration records, the noise that protects them, and the new record. Nothing is "
            "assumed about the model or the scores. New records must differ from the calibration records’ population "
            "by the stated weights alone. If the weights are wrong, fewer may be covered."
        )
    if guarantee.delta is None:
        return (
            "The average is over the calibration records, the noise that protects them, and the new record. "
            f"A single calibration can cover somewhat less. {assumed}records came from.{_silos(guarantee)}"
        )
    return (
        f"The remaining {percent(guarantee.delta)} is the risk of unlucky calibration records or unlucky noise. "
        f"{assumed}records came from, independently.{_silos(guarantee)}"
    )


def about_groups(release: Release) -> str:
    """Sentence about the shares of groups or classes, or which threshold a record has; empty for other releases."""
    if release.overlap is not None:
        return f" Groups of {release.overlap}: {OVERLAP}."
    clause = any_shares(release)
    return f" {clause[0].upper()}{clause[1:]}." if clause else ""


def _silos(guarantee: Guarantee) -> str:
    """Assumption of a federation's promise about its silos."""
    if guarantee.silos is None:
        return ""
    if guarantee.silos == "alike":
        return " The records of all silos must follow one distribution. A silo that differs may be covered far less."
    return f" The promise is {silos_text(guarantee.silos)}: one of them may be covered far less than all together."


def headline(release: Release) -> str:
    """Promise of the whole release."""
    if release.loss is not None:
        limit = limit_text(release.loss, release.bound, release.risk)
        return (
            f"On average, {limit}."
            if limit.startswith("at most")
            else f"On average, the loss “{release.loss}” is at most {release.risk:.6g}."
        )
    if release.by == "level":
        return f"Nested sets for several levels contain the true label for at least {_shares(release)} of new records."
    if release.by == "side":
        return f"On average, the true value is in the interval for at least {_shares(release)} of new records."
    one = promise(release.first.guarantee, f"in the {noun(release)}")
    return f"For each {release.by}: {one[0].lower()}{one[1:]}" if release.disjoint else one


def noun(release: Release) -> str:
    """The model's answer: a set, or an interval."""
    return "interval" if release.task == "regression" else "set"


def short(release: Release) -> tuple[str, str]:
    """Promise as a number and its meaning."""
    if release.loss is not None:
        return f"{release.risk:.6g} at most", f"of the loss “{release.loss}”, on average"
    guarantee = release.first.guarantee
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return short_guarantee(guarantee)
    each = f" of each {release.by}" if release.disjoint else ""
    return f"{_shares(release)} at least", f"of new records{each}, {_sense(guarantee)}"


def _shares(release: Release) -> str:
    """Promised shares in per cent; for several levels, one for each."""
    if release.by == "level":
        return ", ".join(coverage_percent(part.coverage) for part in release.parts.values())
    return coverage_percent(release.promised if release.by == "side" else release.first.coverage)


def short_guarantee(guarantee: Guarantee) -> tuple[str, str]:
    r"""Promise of one guarantee, as a number and its meaning.

    Examples
    --------
    >>> short_guarantee(Guarantee("training_conditional", 0.9, 0.05, 1000, None))
    ('90\xa0% at least', 'of new records, with a probability of 95\xa0%')
    """
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return "none", "no coverage is promised"
    return f"{coverage_percent(guarantee.coverage)} at least", f"of new records, {_sense(guarantee)}"


def _sense(guarantee: Guarantee) -> str:
    return "on average" if guarantee.delta is None else f"with a probability of {percent(1 - guarantee.delta)}"


def threshold_text(part: Threshold) -> str:
    """Threshold with all digits that files contain."""
    return "+∞" if math.isinf(part.threshold) else f"{part.threshold:.12g}".replace("-", "−")


def coverage_percent(coverage: float) -> str:
    """Guaranteed coverage in per cent, rounded as in all outputs."""
    return percent(float(coverage_text(coverage)))


POINTS = 121
SURE = (0.99, 0.95, 0.75, 0.5)
SECRET_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)

Failure = Callable[[float], float]
"""Level c -> probability that coverage given the calibration data is below c."""


@dataclass(frozen=True)
class Law:
    """Distribution of coverage over calibrations, for one number of records (None for a federation's own number).

    At each of POINTS increasing levels it contains the probability that coverage is below the level: `bound` is an
    upper bound for every distribution of scores, `expected` is the value for uniform scores, if it is known. By
    `bound`, `reached` contains the coverage that is reached with at least each of the probabilities SURE, and `missed`
    is the probability that coverage is below 1 - alpha.
    """

    n: int | None
    levels: tuple[float, ...]
    bound: tuple[float, ...]
    expected: tuple[float, ...] | None
    reached: tuple[float, ...]
    missed: float


def law(bound: Failure, expected: Failure | None, level: float, n: int | None) -> Law:
    """Make the two laws, at levels where they have their mass.

    Examples
    --------
    >>> law(lambda c: c**2, None, 0.9, 5).reached[3]  # the median of a law with distribution function c^2
    0.7071068
    """
    low, high = _reach(bound, 0.002), _reach(expected or bound, 0.998)
    room = 0.05 * max(high - low, 1e-3)
    levels = np.linspace(max(0.0, low - room), min(1.0, high + room), POINTS).tolist()
    return Law(
        n,
        tuple(levels),
        tuple(bound(c) for c in levels),
        None if expected is None else tuple(expected(c) for c in levels),
        tuple(_reach(bound, 1 - p) for p in SURE),
        bound(level),
    )


def laws(part: Threshold) -> tuple[Law, ...]:
    """One law for a public number of records; for a secret one, laws for a few numbers.

    Empty if the mechanism has no such law, or if the result is +inf without using the data.
    """
    level = float(1 - part.alpha)
    if isinstance(part, FederatedThreshold):
        try:
            failure = part.coverage_failure()
        except InputError:  # a sum of noisy counts has no such law
            return ()
        return () if failure(0.5) == 1.0 or failure(1.0) == 0.0 else (law(failure, None, level, part.n),)
    known = part.size.counted if part.size is not None and part.guarantee.sized else part.n
    sizes = _sizes(None if known is None else max(1, known), part.guarantee.n_min)
    return _laws(part.mechanism, candidates_of(part), level, sizes)


def plan_laws(plan: Plan) -> tuple[Law, ...]:
    """Laws of a plan, also at its own number of records."""
    sizes = _sizes(plan.n if plan.terms.sized else plan.guarantee.n, plan.terms.n_min, plan.n)
    return _laws(plan.mechanism, plan.candidates, float(plan.terms.level), sizes)


def law_sections(
    drawn: Mapping[str, tuple[float, Sequence[Law]]], n: int, *, exact: bool, secret: bool
) -> list[Section]:
    """One section for each level: a chart of the law for about n records, and a table of all laws.

    For a single level, charts for the other numbers of records are added in a folded part.
    """
    one = len(drawn) == 1
    return [
        _law_section(name, level, laws, n, exact=exact, secret=secret, others=one)
        for name, (level, laws) in drawn.items()
        if laws
    ]


def _law_section(
    name: str, level: float, laws: Sequence[Law], n: int, *, exact: bool, secret: bool, others: bool
) -> Section:
    shown = next((law for law in laws if law.n is None or law.n >= n), laws[-1])
    if laws[0].expected is not None:
        about = (
            "Filled: expected on typical scores (uniform scores, or Gaussian residuals). Line: the worst case over all "
            "distributions of scores."
        )
    else:
        about = (
            "The law of coverage, exact for continuous scores."
            if exact
            else ("The worst case over all distributions of scores.")
        )
    caption = f"{about} Dashed: the requested level, {percent(level)}."
    if not exact and laws[0].n is not None:
        caption += (
            " The line may lie to the left of the dashed level. That is no contradiction: it is a simple bound for "
            "each single calibration, and the promise about their average has a sharper proof."
        )
    if laws[0].n is not None and secret:
        caption += " The true number of records is secret, so the table uses public numbers."
    heads = ("Records", *(f"reached with {percent(p)}" for p in SURE), f"risk of less than {percent(level)}")
    rows = tuple(
        ("all silos" if law.n is None else f"{law.n:,}", *(f"{q:.4f}" for q in law.reached), f"{law.missed:.4f}")
        for law in laws
    )
    of = f": {name}" if name else ""
    table = Table(heads, rows, f"Coverage that a calibration reaches, {'exactly' if exact else 'at least'}{of}")
    folded = [_drawn(law, level) for law in laws if law is not shown] if others else []
    more = (Section("Other numbers of records", parts=tuple(folded)),) if folded else ()
    return Section(name, chart=_drawn(shown, level).chart, tables=(table,), parts=more, notes=(caption,))


def _drawn(law: Law, level: float) -> Section:
    return Section("", chart=draw_law(law.levels, law.bound, law.expected, level, law.reached[1], law.n))


def _laws(mechanism: Mechanism | None, candidates: Candidates, level: float, sizes: tuple[int, ...]) -> tuple[Law, ...]:
    if mechanism is None:
        return ()
    found = []
    for n in sizes:
        ranks = mechanism.rank_law(n, candidates.size)
        if ranks is None:
            return ()
        expected = _typical(mechanism, n, candidates) if isinstance(mechanism, Slopes) else None
        found.append(law(lambda c, ranks=ranks, n=n: law_failure(ranks, n, c), expected, level, n))  # type: ignore[misc]
    return tuple(found)


def _typical(mechanism: Slopes, n: int, candidates: Candidates) -> Failure:
    """Law of coverage on typical scores: a candidate of rank r covers Beta(r, n + 1 - r), and r has a known law."""
    law, ranks = typical_answer(mechanism, candidates, n), (n + 1) * typical_law(candidates)
    finite = (ranks > 0) & (ranks < n + 1) & (law > 1e-9)
    ranks, weights, never = ranks[finite], law[finite], float(law[ranks <= 0].sum())
    return lambda c: never + float(weights @ binomial_at_least(ranks, n, c))


def _sizes(n: int | None, n_min: int | None, *more: int) -> tuple[int, ...]:
    if n is not None:
        return (n,)
    least = n_min or 1
    sizes = {size for size in SECRET_SIZES if size >= least} | set(more)
    if least > SECRET_SIZES[0]:
        sizes |= {min(least * step, MOST_RECORDS) for step in (1, 2, 5, 10)}
    return tuple(sorted(sizes))


def _reach(failure: Failure, p: float) -> float:
    """Largest level, to seven digits, at which the probability of less is at most p."""
    from scipy.optimize import brentq

    if failure(0.0) > p or failure(1.0) <= p:
        return float(failure(0.0) <= p)
    return round(float(brentq(lambda level: failure(level) - p, 0.0, 1.0, xtol=1e-8)), 7)
