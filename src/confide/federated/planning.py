"""Make a plan from a request: by the requested method, or by the recommended one.

Targets, slopes and noise follow from public numbers. Expected coverages are not guarantees: they hold for scores of a
known distribution (docs/federated.md, "Which method").
"""

import math
import secrets
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from confide.candidates import AnyCandidates, Candidates
from confide.core import OnPilot, check_about
from confide.errors import InputError, SimilarNameWarning
from confide.federated.envelope import write_time
from confide.federated.keys import Silo
from confide.federated.plan import AnyPlan, FederatedPlan
from confide.federated.protocols import METHODS, PROTOCOLS, Options
from confide.federated.terms import PlanChoices, Terms, check_count
from confide.ledger import name_key, similar
from confide.scores import score_kind
from confide.support import (
    MOST_RECORDS,
    Level,
    caller_stacklevel,
    check_unknown_arguments,
    exact_level,
    one_of,
    positive_integer,
    privacy_loss,
    public_classes,
)

_DEFAULTS: PlanChoices = {
    "score": None,
    "candidates": None,
    "unit": None,
    "delta": None,
    "liars": 0,
    "dropouts": 0,
    "missing": "independent",
    "population": None,
    "colluding": None,
    "n_min": 1,
    "n_typical": None,
    "closes": None,
    "classes": None,
    "about": None,
}


def plan_by_method(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float,
    method: str,
    **choices: Unpack[PlanChoices],
) -> FederatedPlan:
    """The plan by one method, with the arguments and errors of `confide.federated.plan`."""
    check_unknown_arguments("plan", choices, _DEFAULTS)
    asked = _DEFAULTS | choices
    delta, n_min, score = asked["delta"], asked["n_min"], asked["score"]
    row = PROTOCOLS[one_of("method", method, METHODS)]
    options = Options(
        colluding=asked["colluding"],
        n_min=check_count("n_min", n_min, MOST_RECORDS),
        n_typical=positive_integer("n_typical", asked["n_typical"] or max(n_min, 1000), most=MOST_RECORDS),
    )
    sizes = [silo.size or options.n_typical for silo in silos]
    terms = Terms(
        alpha=exact_level("alpha", alpha),
        delta=None if delta is None else float(exact_level("delta", delta)),
        epsilon=privacy_loss("epsilon", epsilon),
        score=score,
        candidates=_listed(asked["candidates"], asked["unit"], score, method, sizes, epsilon),
        silos=tuple(silos),
        liars=asked["liars"],
        dropouts=asked["dropouts"],
        missing=asked["missing"],
        population=row.draws.populations[0] if asked["population"] is None else asked["population"],
        session=secrets.token_hex(16),
        closes=None if asked["closes"] is None else write_time(asked["closes"]),
        classes=None if asked["classes"] is None else public_classes("classes", asked["classes"]),
        about=check_about(asked["about"]),
    )
    _check_apart([silo.name for silo in terms.silos])
    row.check(terms)
    if asked["colluding"] is not None and row.channel(terms).single_replies:
        raise InputError(
            "colluding",
            ("belongs to the methods 'secure-sum' and 'fedcp2-qq-sum': the others do not rely on other silos"),
        )
    channel = row.channel(terms).planned(terms, options)
    protocol = row.draws.planned(terms, options, channel)
    channel.check_length(terms, row.name, protocol.candidate_advice)
    carrying = channel.carrying(protocol.bits(terms))
    return FederatedPlan(**vars(terms), method=row.name, protocol=protocol, channel=carrying)


_COMPARED = 100
"""With more silos than these, whose names often differ by a number, names are not compared pairwise."""


def _check_apart(names: Sequence[str]) -> None:
    """Reject names of silos that a ledger would take for one name, and warn of similar names."""
    by_key: dict[str, str] = {}
    for name in names:
        other = by_key.setdefault(name_key(name), name)
        if other != name:
            raise InputError("silos", "must differ in their names by more than case", got=f"{other!r} and {name!r}")
    for place, name in enumerate(names if len(names) <= _COMPARED else ()):
        if others := similar(name, names[:place]):
            text = f"silos {others[0]!r} and {name!r} have similar names; if they are one silo, invite it once"
            warnings.warn(SimilarNameWarning(text), stacklevel=caller_stacklevel())


_FEWEST, _OTHERS, _MOST, _MOST_SUMMED = 30, 1000, 3840, 400


def _listed(
    candidates: AnyCandidates,
    unit: float | None,
    score: str | None,
    method: str,
    sizes: Sequence[int],
    epsilon: float,
) -> Candidates:
    """The given candidates; else as many as suit the sizes and epsilon, for methods whose noise depends on them."""
    kind = score_kind(score)
    spread = kind.choose_candidates(candidates, unit)
    if isinstance(spread, Candidates):
        return spread
    by_noise = method in ("private-qq", "secure-sum")
    if candidates is None and unit is None and not by_noise:
        return kind.candidates()
    if not by_noise:
        return Candidates.quantiles(spread, _OTHERS)
    more = 1 if spread.unit or spread.around else spread.shape.federated_factor
    return Candidates.quantiles(spread, _suitable(method, sizes, privacy_loss("epsilon", epsilon), more))


def _suitable(method: str, sizes: Sequence[int], epsilon: float, more: int) -> int:
    """The number of candidates that cost about as much as they resolve.

    private-qq: half as many as a silo of median size has records, times epsilon. secure-sum: as many as a noisy
    histogram of all records, whose spread grows with them.

    Examples
    --------
    >>> _suitable("private-qq", [88] * 96, 1.0, 1), _suitable("secure-sum", [60] * 96, 1.0, 1)
    (44, 400)
    """
    if method == "secure-sum":
        many = _bins_for(max(1, sum(sizes)), 0.1, epsilon / 2)
        return int(min(max(many, _FEWEST), _MOST_SUMMED)) * min(more, 2)
    return round(min(max(more * median(sizes or [1]) * epsilon / 2, more * _FEWEST), _MOST))


def _bins_for(n: int, alpha: float, epsilon: float) -> int:
    """About the best number of bins of a noisy histogram of even scores.

    More bins cost less distance between candidates, n/(2m) ranks, and more spread: the noise of alpha m bins lies
    beyond the threshold.

    Examples
    --------
    >>> _bins_for(1000, 0.1, 1.0), _bins_for(100_000, 0.1, 1.0)
    (315, 6786)
    """
    return max(2, round(math.pow(n * epsilon / (0.4 * math.sqrt(2 * alpha)), 2 / 3)))


_SHARES = (0.6, 0.4, 0.25, 0.15)
"""Shares of the silos, the largest ones, that are tried alone."""
_FEWEST_SILOS, _FEWEST_RECORDS = 5, 0.5
_WORTH = 0.05
"""Share of alpha that may be lost for one message and for silos that need not rely on one another."""
_USEFUL = 0.3
"""A method whose expected miscoverage is below this share of alpha includes nearly everything: it does not serve."""
_RARELY = 0.01
_BELL = 0.1
"""Standard deviation of the Gaussian scores, as a share of the range of candidates, in the middle of which they lie."""


COMPARABLE = ("fedcp2-qq-sum",)
"""Published methods that can be compared on request."""


@dataclass(frozen=True)
class Alternative:
    """The plan by one method, and its expected coverage.

    Parameters
    ----------
    method
        Name of the method.
    plan
        The plan, ready to be signed; None if there is none.
    reason
        The reason why there is no plan.
    left_out
        Share of all records in the smallest silos that the plan leaves out.
    silos
        Number of invited silos.
    expected, expected_gaussian
        Mean coverage for scores that are uniform over the candidates, and for Gaussian scores over the middle of them.
        For several thresholds it is the mean over them. NaN without a plan.
    infinite
        Probability of the threshold +inf, the larger one of the two.
    on_pilot
        Results on the public pilot sample, if one is given.
    recommended
        Whether this alternative is recommended.
    """

    method: str
    plan: AnyPlan | None
    reason: str | None
    silos: int
    left_out: float = 0.0
    expected: float = float("nan")
    expected_gaussian: float = float("nan")
    infinite: float = float("nan")
    on_pilot: OnPilot | None = None
    recommended: bool = False

    @property
    def missed(self) -> float:
        """The miscoverage level, for several thresholds their mean; 0 without a plan."""
        return 0.0 if self.plan is None else float(np.mean([float(ask.alpha) for ask in self.plan.single_plans]))

    @property
    def worst(self) -> float:
        """The larger of the expected coverages. The further above the level it is, the larger are sets."""
        return max(self.expected, self.expected_gaussian)


PlanMaker: TypeAlias = Callable[[Sequence[Silo], str, PlanChoices], AnyPlan]
"""Makes a plan of one threshold or of several from silos, a method and options."""


def alternatives(silos: Sequence[Silo], make: PlanMaker, options: PlanChoices) -> list[Alternative]:
    """Both methods of confide with all silos, and private-qq without the smallest; one is recommended if possible."""
    found = _with_all(silos, make, options) + _with_the_largest(silos, make, options)
    best = _best(found)
    return [replace(one, recommended=one is best) for one in found]


def alternative_plan(silos: Sequence[Silo], make: PlanMaker, method: str, options: PlanChoices) -> Alternative:
    """The plan by one method for these silos."""
    try:
        made = make(silos, method, options)
    except InputError as error:
        return Alternative(method, None, str(error), len(silos))
    asks = list({id(ask): ask for ask in made.single_plans}.values())  # the one plan of all groups once
    laws = reference_laws(asks[0].candidates.size)
    answers = {name: [answer_law(ask, below) for ask in asks] for name, below in laws.items()}
    expected = {name: float(np.mean([law @ laws[name] for law in answers[name]])) for name in laws}
    infinite = max(float(law[-1]) for found in answers.values() for law in found)
    return Alternative(method, made, None, len(silos), 0.0, expected["even"], expected["bell"], infinite)


def recommended(silos: Sequence[Silo], alpha: Level, epsilon: float, **options: Unpack[PlanChoices]) -> FederatedPlan:
    """The plan with all silos that `compare` recommends.

    Raises
    ------
    InputError, InputTypeError
        The error of the first method, if none has a plan.
    """
    make = one_threshold(alpha, epsilon)
    found = _with_all(silos, make, options)
    best = _best(found)
    if best is None or best.plan is None:
        return make(silos, found[0].method, options).single_plans[0]  # raises the error of the first method
    return best.plan.single_plans[0]


def one_threshold(alpha: Level, epsilon: float) -> PlanMaker:
    """A maker of plans of one threshold."""
    return lambda silos, method, options: plan_by_method(silos, alpha, epsilon, method, **options)


def _with_all(silos: Sequence[Silo], make: PlanMaker, options: PlanChoices) -> list[Alternative]:
    found = [alternative_plan(silos, make, "private-qq", _alone(options))]
    if silos and silos[0].size is not None:  # only private-qq keeps sizes secret
        found.append(alternative_plan(silos, make, "secure-sum", options))
    return found


def _alone(options: PlanChoices) -> PlanChoices:
    """The options of a method that relies on no other silo."""
    alone = options.copy()
    alone.pop("colluding", None)
    return alone


def _with_the_largest(silos: Sequence[Silo], make: PlanMaker, options: PlanChoices) -> list[Alternative]:
    """private-qq without the smallest silos, and the share of records that is left out."""
    sizes = [silo.size or 0 for silo in silos]
    total, found = sum(sizes), []
    by_size = sorted(range(len(silos)), key=lambda i: -sizes[i])
    for count in dict.fromkeys(max(round(share * len(silos)), _FEWEST_SILOS) for share in _SHARES):
        largest = sorted(by_size[:count])
        kept = sum(sizes[i] for i in largest)
        if count < len(silos) and sizes[by_size[0]] > sizes[by_size[-1]] and kept >= _FEWEST_RECORDS * total:
            one = alternative_plan([silos[i] for i in largest], make, "private-qq", _alone(options))
            found.append(replace(one, left_out=1 - kept / total))
    return found


def reference_laws(m: int) -> dict[str, NDArray[np.float64]]:
    """P(score <= e_j) for m candidates, +inf included: for uniform scores, and for Gaussian scores over the middle.

    Examples
    --------
    >>> reference_laws(5)["even"]
    array([0.25, 0.5 , 0.75, 1.  , 1.  ])
    """
    from scipy.special import ndtr

    at = np.arange(1, m) / max(m - 1, 1)
    return {"even": np.append(at, 1.0), "bell": np.append(ndtr((at - 0.5) / _BELL), 1.0)}


def answer_law(ask: FederatedPlan, below: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the threshold over the candidates. It is drawn with a seed, because it uses no private data."""
    return ask.protocol.answer_law(ask, below, np.random.default_rng(0))


def _best(found: list[Alternative]) -> Alternative | None:
    """The simplest alternative that is nearly as good as the best; without some silos only if nothing else serves."""
    with_plan = [one for one in found if one.plan is not None]
    if not with_plan:
        return None
    missed = max(one.missed for one in with_plan)
    serving = [one for one in with_plan if one.worst <= 1 - _USEFUL * missed and one.infinite <= _RARELY]
    whole = [one for one in serving if not one.left_out]
    choices = whole or serving or [one for one in with_plan if not one.left_out] or with_plan
    best = min(choices, key=lambda one: one.worst)
    simple = [one for one in choices if one.method == "private-qq" and one.worst <= best.worst + _WORTH * missed]
    return min(simple, key=lambda one: one.worst) if simple else best


def plan(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float,
    *,
    method: str | None = None,
    **choices: Unpack[PlanChoices],
) -> FederatedPlan:
    """Plan a federated calibration: one message from each silo, then a threshold with a stated guarantee.

    Parameters
    ----------
    silos
        The invited silos, either all with a public size, or all without (sizes stay secret, `private-qq` only).
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per record.
    method
        `"private-qq"`, `"secure-sum"`, `"fedcp2-qq"` or `"fedcp2-qq-sum"`; by default the one of the first two that
        `compare` recommends for these sizes and terms.
    score, candidates, unit
        As in `confide.calibrate`. By default, private-qq and secure-sum use as many candidates as suit the sizes.
    delta
        Failure probability of a training-conditional guarantee; by default the guarantee is marginal.
    liars
        Number of Byzantine silos, which may send anything; by default none.
    dropouts
        Number of silos that may be missing while the threshold is still planned to be finite; by default none. If more
        are missing the guarantee still holds, if necessary by the threshold +inf. A sum with dropouts needs at least 5
        silos and a second small message, by which share holders open the sum of the silos that answered (`openings`,
        `open_part`). If more are missing, nothing opens.
    missing
        `"independent"` (default): a silo answers independently of its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum` and `fedcp2-qq-sum`: number of silos that may collude with the coordinator; by default fewer
        than half, and one of two.
    n_min, n_typical
        For secret sizes: public lower bound on, and guess of, the number of records per silo. With `n_min` = 0 the
        guarantee also holds where silos have no records, at a small cost.
    closes
        Time after which answers are late.
    classes, about
        As in `confide.calibrate`: public, part of what silos agree to, and kept in the calibration, which then rejects
        other classes. A silo whose scores are of other classes does not answer.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or no finite threshold can be guaranteed with so few records.

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
    if method is None:
        return recommended(silos, alpha, epsilon, **choices)
    return plan_by_method(silos, alpha, epsilon, method, **choices)
