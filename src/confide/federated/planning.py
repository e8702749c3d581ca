"""Planning a federated calibration: targets, slopes and noise from what is public."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.federated import secure_sum
from confide.federated.clock import write_time
from confide.federated.keys import Silo
from confide.federated.methods import METHODS, NOT_PRIVATE, Method
from confide.federated.noise_shares import noise_scale
from confide.federated.plan import (
    MISSING,
    MOST_CANDIDATES,
    MOST_SUMMED,
    FederatedPlan,
    Missing,
    Population,
    check_population,
    check_silos,
)
from confide.federated.private_quantiles import best_private_qq
from confide.federated.published_private import best_published
from confide.federated.quantile_of_quantiles import best_qq, best_qq_unequal, published_ranks
from confide.scores.kinds import score_kind
from confide.selection.selector import SELECTORS, Selector
from confide.support.checks import one_of, positive_integer, privacy_loss
from confide.support.limits import MOST_RECORDS
from confide.support.rationals import Level, exact_level


def plan(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float | None = None,
    *,
    method: Method = "private-qq",
    score: str | None = None,
    candidates: Candidates | None = None,
    delta: Level | None = None,
    liars: int = 0,
    dropouts: int = 0,
    missing: Missing = "independent",
    population: Population | None = None,
    colluding: int | None = None,
    n_min: int = 1,
    n_typical: int | None = None,
    selector: Selector = "permute_and_flip",
    closes: datetime | None = None,
) -> FederatedPlan:
    """Plan a federated calibration: one message from each silo, then a threshold with a stated guarantee.

    Parameters
    ----------
    silos
        Who is invited; all of them with a public size, or all without (the sizes stay secret, `private-qq` only).
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per record; left out for `fedcp-qq` and `fedcp-avg`, which are not private.
    method
        `"private-qq"`, `"secure-sum"`, `"fedcp-qq"`, `"fedcp2-qq"` or `"fedcp-avg"`.
    score, candidates
        As in `confide.calibrate`.
    delta
        Ask for a training-conditional promise instead of the marginal one.
    liars
        How many silos may send anything they like.
    dropouts
        Plan for a finite threshold with up to this many silos missing. If more are missing the promise still holds,
        by a threshold of +inf if need be. (`secure-sum` needs all its silos.)
    missing
        `"independent"`: whether a silo answers does not depend on its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum`: how many silos may pool their knowledge with the coordinator; by default fewer than half.
    n_min, n_typical
        For secret sizes: public lower bound on, and guess of, the number of records per silo.
    selector
        As in `confide.plan`.
    closes
        Answers made after this time are refused.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or no finite threshold can be promised with so few records.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> p = plan(silos, alpha=0.1, epsilon=5.0, candidates=Candidates.unit(100))
    >>> p.certify()[1].coverage, p.promises()[5].infinite, p.promises()[4].infinite
    (0.9, 'never', 'always')
    """
    method = one_of("method", method, METHODS)
    silos = check_silos(silos)
    level = 1 - exact_level("alpha", alpha)
    failure = None if delta is None else float(exact_level("delta", delta))
    chosen = score_kind(score).candidates() if candidates is None else candidates
    if not isinstance(chosen, Candidates):
        raise InputTypeError(f"candidates must be a confide.Candidates; found {type(chosen).__name__}")
    if chosen.size > MOST_CANDIDATES:
        raise InputError(f"candidates must number at most {MOST_CANDIDATES}; found {chosen.size}")
    if (epsilon is None) != (method in NOT_PRIVATE):
        raise InputError(
            f"epsilon must be {'left out' if method in NOT_PRIVATE else 'given'} for the method {method!r}"
        )
    secret = silos[0].size is None
    if secret and method != "private-qq":
        raise InputError(f"silos must state their sizes for the method {method!r}; only private-qq keeps them secret")
    if isinstance(liars, bool) or not isinstance(liars, int) or not 0 <= liars < len(silos):
        raise InputError(f"liars must be an integer from 0 to {len(silos) - 1}")
    if liars and method in ("secure-sum", "fedcp-avg"):
        raise InputError(f"liars must be 0 for the method {method!r}: one liar can move its threshold anywhere")
    if isinstance(dropouts, bool) or not isinstance(dropouts, int) or not 0 <= dropouts < len(silos) - liars:
        raise InputError(f"dropouts must be an integer from 0 to {len(silos) - liars - 1}")
    if dropouts and method == "secure-sum":
        raise InputError("dropouts must be 0 for the method 'secure-sum': it opens only with all its silos")
    n_min = positive_integer("n_min", n_min, most=MOST_RECORDS)
    draft = FederatedPlan(
        method=method,
        alpha=1 - level,
        delta=failure,
        epsilon=None if epsilon is None else privacy_loss("epsilon", epsilon),
        score=score,
        candidates=chosen,
        silos=silos,
        targets=(),
        rate=Fraction(0),
        left=1,
        right=1,
        scale=1.0,
        selector=one_of("selector", selector, SELECTORS),
        liars=liars,
        dropouts=dropouts,
        missing=one_of("missing", missing, MISSING),
        population=check_population(population, method),
        colluding=0,
        bits=32,
        n_min=n_min,
        n_typical=positive_integer("n_typical", n_typical or max(n_min, 1000), most=MOST_RECORDS),
        published_k=0,
        session=secrets.token_hex(16),
        closes=None if closes is None else write_time(closes),
    )
    if method == "secure-sum":
        return _secure_sum(draft, colluding)
    if colluding is not None:
        raise InputError("colluding belongs to the method 'secure-sum': replies of the other methods are private alone")
    if method == "private-qq":
        return _private_qq(draft)
    return _published(draft)


def _private_qq(draft: FederatedPlan) -> FederatedPlan:
    m, epsilon = len(draft.silos), draft.epsilon or 0.0
    sure = m - draft.liars - draft.dropouts
    options: dict[str, Any] = {
        "delta": draft.delta,
        "honest": m if draft.missing == "arbitrary" else sure,
        "absent": draft.dropouts,
        "most_k": sure,
        "selector": draft.selector,
    }
    if draft.size is None:
        options |= {"n_min": draft.n_min, "n_typical": draft.n_typical}
    sizes = [silo.size for silo in draft.silos]
    found = best_private_qq(sizes, draft.level, epsilon, draft.candidates.size, **options)
    if found is None:
        raise _too_few()
    one, targets = found.mechanisms[0], tuple(mechanism.offset for mechanism in found.mechanisms)
    return replace(draft, targets=targets, rate=one.rate, left=one.left, right=one.right, scale=one.scale)


def _published(draft: FederatedPlan) -> FederatedPlan:
    sizes, m = [silo.size or 0 for silo in draft.silos], len(draft.silos)
    honest = m - draft.liars - draft.dropouts
    ranks: Sequence[int]
    published_k = 0
    if draft.method == "fedcp2-qq":
        if len(set(sizes)) > 1:
            raise InputError("silos must have equal sizes for the published method 'fedcp2-qq'; use private-qq")
        choice = best_published(m, sizes[0], draft.alpha, draft.epsilon or 0.0, draft.candidates.size)
        if choice is None:
            raise _too_few()
        ranks, published_k = (choice.rank,) * m, choice.k
    elif draft.method == "fedcp-avg":
        ranks = published_ranks(sizes, draft.level)
    else:
        equal, arbitrary = len(set(sizes)) == 1, draft.missing == "arbitrary"
        if equal:
            best = best_qq(m if arbitrary else honest, sizes[0], draft.level, delta=draft.delta, most_k=honest)
        else:
            counted = None if arbitrary or honest == m else honest
            best = best_qq_unequal(sizes, draft.level, delta=draft.delta, honest=counted, most_k=honest)
        if best is None:
            raise _too_few()
        ranks = best.ranks[:1] * m if equal else best.ranks
    return replace(draft, targets=tuple(Fraction(rank) for rank in ranks), published_k=published_k)


def _secure_sum(draft: FederatedPlan, colluding: int | None) -> FederatedPlan:
    m, n = len(draft.silos), draft.size or 0
    if m < 2:
        raise InputError("silos must be at least two for the method 'secure-sum'")
    if draft.candidates.size > MOST_SUMMED:
        raise InputError(
            f"candidates must number at most {MOST_SUMMED} for the method 'secure-sum'; 50 to 100 serve best"
        )
    c = (m - 1) // 2 if colluding is None else colluding
    if isinstance(c, bool) or not isinstance(c, int) or not 0 <= c <= m - 1:
        raise InputError(f"colluding must be an integer from 0 to {m - 1}")
    if draft.delta is not None and draft.population == "mixture":
        raise InputError("delta needs population='common': the training-conditional promise is for i.i.d. records")
    scale = noise_scale(draft.epsilon or 0.0, 2)
    deficit = secure_sum.total_deficit(scale, m, m - c, draft.candidates.size)
    extra = m if draft.population == "mixture" else 1
    target = secure_sum.summed_target(n, draft.level, draft.delta, deficit, extra)
    if target is None:
        raise _too_few()
    bits = secure_sum.modulus_bits(n, scale, m, m - c)
    return replace(draft, targets=(Fraction(target),), scale=scale, colluding=c, bits=bits)


def _too_few() -> InputError:
    return InputError(
        "silos have too few records for a finite threshold with this promise; raise alpha or epsilon, use fewer "
        "candidates, or invite more silos"
    )
