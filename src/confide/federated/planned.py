"""The plan by one method: targets, slopes and noise from what is public."""

import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any

from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError, SimilarNameWarning
from confide.federated.envelope import write_time
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import METHODS, Options, RepliedSum, protocol_of
from confide.federated.shuffling import check_dp_delta
from confide.federated.terms import Missing, Population, Terms, check_count
from confide.ledger import name_key, similar
from confide.releases import check_about
from confide.scores import score_kind
from confide.selection import SELECTORS, Selector
from confide.support import (
    MOST_RECORDS,
    Level,
    exact_level,
    one_of,
    outside,
    positive_integer,
    privacy_loss,
    public_classes,
)


def planned(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float | None,
    method: str,
    *,
    score: str | None = None,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    delta: Level | None = None,
    liars: int = 0,
    dropouts: int = 0,
    missing: Missing = "independent",
    population: Population | None = None,
    colluding: int | None = None,
    dp_delta: Level | None = None,
    n_min: int = 1,
    n_typical: int | None = None,
    selector: Selector = "permute_and_flip",
    closes: datetime | None = None,
    classes: Iterable[Any] | int | None = None,
    about: Mapping[str, str] | None = None,
) -> FederatedPlan:
    """The plan by one method; arguments and errors are those of `confide.federated.plan`."""
    protocol = protocol_of(one_of("method", method, METHODS), dropouts)
    options = Options(
        selector=one_of("selector", selector, SELECTORS),
        colluding=colluding,
        n_min=check_count("n_min", n_min, MOST_RECORDS),
        n_typical=positive_integer("n_typical", n_typical or max(n_min, 1000), most=MOST_RECORDS),
        opened_epsilon=None if dp_delta is None or epsilon is None else privacy_loss("epsilon", epsilon),
        dp_delta=None if dp_delta is None else check_dp_delta(dp_delta),
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
    _check_apart([silo.name for silo in terms.silos])
    protocol.check(terms)
    if colluding is not None and not protocol.relies_on_silos:
        raise InputError(
            "colluding belongs to the methods 'secure-sum' and 'fedcp2-qq-sum': nothing of the others relies on silos"
        )
    if dp_delta is not None and not issubclass(protocol, RepliedSum):
        raise InputError("dp_delta belongs to the method 'fedcp2-qq-sum': the losses of all others are without a delta")
    terms = protocol.local_terms(terms, options)
    return FederatedPlan(**vars(terms), protocol=protocol.planned(terms, options))


_COMPARED = 100
"""Among more silos than these, whose names often differ by a number, names are not compared two by two."""


def _check_apart(names: Sequence[str]) -> None:
    """Refuse names of silos that a ledger would take for one name; warn of names that look alike."""
    by_key: dict[str, str] = {}
    for name in names:
        other = by_key.setdefault(name_key(name), name)
        if other != name:
            raise InputError(f"silos must differ in their names by more than case; found {other!r} and {name!r}")
    for place, name in enumerate(names if len(names) <= _COMPARED else ()):
        if alike := similar(name, names[:place]):
            text = f"silos {alike[0]!r} and {name!r} have names that look alike; if they are one silo, invite it once"
            warnings.warn(SimilarNameWarning(text), stacklevel=outside())


_FEWEST, _OTHERS, _MOST, _MOST_SUMMED = 30, 1000, 3840, 400
_MORE: Mapping[str | None, int] = {"residual": 2, "signed": 2, "any": 4, "mass": 2, "penalised": 2}
"""How many times as many candidates suit these kinds of scores; of residuals only those without a unit."""


def _listed(
    candidates: AnyCandidates,
    unit: float | None,
    score: str | None,
    method: str,
    sizes: Sequence[int],
    epsilon: float | None,
) -> Candidates:
    """A given list as it is; else as many as suit the sizes and epsilon, for methods whose noise depends on it."""
    kind = score_kind(score)
    spread = kind.asked(candidates, unit)
    if isinstance(spread, Candidates):
        return spread
    by_noise = epsilon is not None and method in ("private-qq", "secure-sum")
    if candidates is None and unit is None and not by_noise:
        return kind.candidates()
    if epsilon is None or not by_noise:
        return Candidates.quantiles(spread, _OTHERS)
    more = 1 if spread.unit or spread.around else _MORE.get(spread.kind, 1)
    return Candidates.quantiles(spread, _suitable(method, sizes, privacy_loss("epsilon", epsilon), more))


def _suitable(method: str, sizes: Sequence[int], epsilon: float, more: int) -> int:
    """How many candidates cost about as much as they resolve.

    private-qq: half as many as a silo of middling size has records, times epsilon. secure-sum: d of them cost some
    3 sqrt(d)/epsilon ranks of all n and leave half a candidate, n/(2d) ranks, unresolved.

    Examples
    --------
    >>> _suitable("private-qq", [88] * 96, 1.0, 1), _suitable("secure-sum", [126] * 96, 1.0, 1)
    (44, 253)
    """
    if method == "secure-sum":
        many = (sum(sizes) * epsilon / 3) ** (2 / 3)
        return int(min(max(many, _FEWEST), _MOST_SUMMED)) * min(more, 2)
    return round(min(max(more * median(sizes or [1]) * epsilon / 2, more * _FEWEST), _MOST))
