"""Planning a federated calibration: targets, slopes and noise from what is public."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.federated.envelope import write_time
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import METHODS, Options, protocol_of
from confide.federated.terms import Missing, Population, Terms, check_count
from confide.releases import check_about
from confide.scores import score_kind
from confide.selection import SELECTORS, Selector
from confide.support import MOST_RECORDS, Level, exact_level, one_of, positive_integer, privacy_loss, public_classes


def plan(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float | None = None,
    *,
    method: str = "private-qq",
    score: str | None = None,
    candidates: Candidates | Spread | None = None,
    unit: float | None = None,
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
    classes: Iterable[Any] | int | None = None,
    about: Mapping[str, str] | None = None,
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
    score, candidates, unit
        As in `confide.calibrate`. For private-qq as many candidates are spread as suit the silos' sizes.
    delta
        Ask for a training-conditional promise instead of the marginal one.
    liars
        How many silos may send anything they like.
    dropouts
        Plan for a finite threshold with up to this many silos missing. If more are missing the promise still holds,
        by a threshold of +inf if need be. With `secure-sum`, dropouts take 5 silos or more and a second small message,
        by which silos open the sum of those who answered (`openings`, `open_part`); if more are missing, nothing opens.
    missing
        `"independent"`: whether a silo answers does not depend on its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum`: how many silos may pool their knowledge with the coordinator; by default fewer than half, and
        one of two.
    n_min, n_typical
        For secret sizes: public lower bound on, and guess of, the number of records per silo. With `n_min` = 0 the
        promise also holds where silos have no records at all, which costs a little.
    selector
        As in `confide.plan`.
    closes
        Answers made after this time are refused.
    classes, about
        As in `confide.calibrate`: public, part of what silos agree to, and kept in the calibration, which then refuses
        other classes. A silo whose scores are of other classes does not answer.

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
    protocol = protocol_of(one_of("method", method, METHODS), dropouts)
    options = Options(
        selector=one_of("selector", selector, SELECTORS),
        colluding=colluding,
        n_min=check_count("n_min", n_min, MOST_RECORDS),
        n_typical=positive_integer("n_typical", n_typical or max(n_min, 1000), most=MOST_RECORDS),
    )
    terms = Terms(
        alpha=exact_level("alpha", alpha),
        delta=None if delta is None else float(exact_level("delta", delta)),
        epsilon=None if epsilon is None else privacy_loss("epsilon", epsilon),
        score=score,
        candidates=_listed(
            candidates, unit, score, method, [silo.size or options.n_typical for silo in silos], epsilon
        ),
        silos=tuple(silos),
        liars=liars,
        dropouts=dropouts,
        missing=missing,
        population=protocol.populations[0] if population is None else population,
        session=secrets.token_hex(16),
        closes=None if closes is None else write_time(closes),
        classes=None if classes is None else public_classes("classes", classes),
        about=check_about(about),
    )
    protocol.check(terms)
    if colluding is not None and not protocol.relies_on_silos:
        raise InputError("colluding belongs to the method 'secure-sum': replies of the other methods are private alone")
    return FederatedPlan(**vars(terms), protocol=protocol.planned(terms, options))


_FEWEST, _OTHERS, _MOST = 30, 1000, 3840
_MORE: Mapping[str | None, int] = {"residual": 2, "signed": 2, "any": 4, "mass": 2, "penalised": 2}
"""How many times as many candidates suit these kinds of scores; of residuals only those without a unit."""


def _listed(
    candidates: Candidates | Spread | None,
    unit: float | None,
    score: str | None,
    method: str,
    sizes: Sequence[int],
    epsilon: float | None,
) -> Candidates:
    """A given list as it is; else for private-qq half as many as a silo of middling size has records, times epsilon."""
    if isinstance(candidates, Candidates):
        if unit is not None:
            raise InputError("unit must be left out with candidates of your own; a Spread has a unit")
        return candidates
    if candidates is not None and not isinstance(candidates, Spread):
        raise InputTypeError(f"candidates must be a confide.Candidates or Spread; found {type(candidates).__name__}")
    kind = score_kind(score)
    if candidates is None and unit is None and method != "private-qq":
        return kind.candidates()
    spread = kind.spread(unit, candidates)
    if method != "private-qq":
        return Candidates.quantiles(spread, _OTHERS)
    more = 1 if spread.unit or spread.around else _MORE.get(spread.kind, 1)
    many = more * median(sizes or [1]) * privacy_loss("epsilon", epsilon) / 2
    return Candidates.quantiles(spread, round(min(max(many, more * _FEWEST), _MOST)))
