"""Planning a federated calibration: by the method that is asked for, or else by the one that suits the silos best."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from confide.candidates import AnyCandidates
from confide.federated.comparison import recommended
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.planned import planned
from confide.federated.terms import Missing, Population
from confide.selection import Selector
from confide.support import Level


def plan(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float | None = None,
    *,
    method: str | None = None,
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
        `"private-qq"`, `"secure-sum"`, `"fedcp-qq"`, `"fedcp2-qq"`, `"fedcp2-qq-sum"` or `"fedcp-avg"`; by default the
        one of the first two that `compare` recommends for these sizes and terms.
    score, candidates, unit
        As in `confide.calibrate`. For private-qq and secure-sum as many candidates are spread as suit the sizes.
    delta
        Ask for a training-conditional promise instead of the marginal one.
    liars
        How many silos may send anything they like.
    dropouts
        Plan for a finite threshold with up to this many silos missing. If more are missing the promise still holds,
        by a threshold of +inf if need be. With a sum, dropouts take 5 silos or more and a second small message,
        by which silos open the sum of those who answered (`openings`, `open_part`); if more are missing, nothing opens.
    missing
        `"independent"`: whether a silo answers does not depend on its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum` and `fedcp2-qq-sum`: how many silos may pool their knowledge with the coordinator; by default
        fewer than half, and one of two.
    dp_delta
        For `fedcp2-qq-sum`: let the opened sum be (epsilon, dp_delta)-differentially private, by amplification. Replies
        may then cost more than epsilon, which is what silos are charged and what the plan's `epsilon` says, if a silo
        is one record; with more records nothing is gained, and the plan says so.
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
    >>> from confide.candidates import Candidates
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> p = plan(silos, alpha=0.1, epsilon=5.0, candidates=Candidates.unit(100))
    >>> p.method, p.certify()[1].coverage, p.promises()[5].infinite, p.promises()[4].infinite
    ('private-qq', 0.9, 'never', 'always')
    >>> plan(silos, alpha=0.1, epsilon=0.5, candidates=Candidates.unit(100)).method
    'secure-sum'
    """
    options: dict[str, Any] = {
        "score": score,
        "candidates": candidates,
        "unit": unit,
        "delta": delta,
        "liars": liars,
        "dropouts": dropouts,
        "missing": missing,
        "population": population,
        "colluding": colluding,
        "dp_delta": dp_delta,
        "n_min": n_min,
        "n_typical": n_typical,
        "selector": selector,
        "closes": closes,
        "classes": classes,
        "about": about,
    }
    if method is None:
        return recommended(silos, alpha, epsilon, **options)
    return planned(silos, alpha, epsilon, method, **options)
