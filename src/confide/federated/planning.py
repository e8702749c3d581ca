"""Make a plan from a request, by the requested method or the recommended one; compare the plans of all methods.

Expected coverages are not guarantees: they hold for scores of a known distribution (docs/federated.md, "Which method").
With a public pilot sample they are also computed for the scores of the sample.
"""

import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any, TypedDict, Unpack, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from confide.candidates import AnyCandidates
from confide.core import (
    SIDES,
    By,
    OnPilot,
    Pilot,
    Request,
    answered_on_pilot,
    different_levels,
    exact_shares,
    share_of_pilot,
    typical_of_groups,
)
from confide.errors import InputError, SimilarNameWarning
from confide.federated.keys import Silo
from confide.federated.messages import write_time
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import METHODS, PROTOCOLS
from confide.federated.terms import Missing, Population, check_silos
from confide.ledger import name_key, similar
from confide.mechanisms import Neighbors
from confide.scores import score_kind
from confide.support import (
    Described,
    Level,
    Section,
    Table,
    caller_stacklevel,
    chance_text,
    check_unknown_arguments,
    one_of,
    privacy_loss,
    require,
)


class PlanChoices(TypedDict, total=False):
    """Options of a plan by any method; `plan` describes them."""

    by: By | None
    names: Sequence[str | int]
    shares: Sequence[Level] | None
    neighbors: Neighbors
    score: str | None
    candidates: AnyCandidates
    unit: float | None
    delta: Level | None
    liars: int
    dropouts: int
    missing: Missing
    population: Population | None
    colluding: int | None
    n_min: int | None
    n_typical: int | None
    closes: datetime | None
    classes: Iterable[Any] | int | None
    about: Mapping[str, str] | None


# The options that a plan passes on as they are: to its request, and to itself
_OF_REQUEST = ("by", "names", "shares", "score", "classes", "about", "unit", "delta")
_OF_SILOS = ("liars", "dropouts", "missing", "colluding")


def plan(
    silos: Sequence[Silo],
    alpha: Level | Sequence[Level],
    epsilon: float,
    *,
    method: str | None = None,
    **choices: Unpack[PlanChoices],
) -> FederatedPlan:
    """Plan a federated calibration: one message from each silo, then a threshold with a stated guarantee, or several.

    Parameters
    ----------
    silos
        The invited silos, either all with a public size, or all without (sizes stay secret, `private-qq` only).
    alpha
        Miscoverage level in (0, 1), or several different ones: their thresholds are nested. With `by="side"` the level
        of the interval, split in halves, or a pair (lower side, upper side).
    epsilon
        Privacy loss per record, for all thresholds together. Levels and sides are about the same records and divide it;
        but with `secure-sum` one opened histogram serves all levels, so they cost as much as one.
    method
        `"private-qq"`, `"secure-sum"`, `"fedcp2-qq"` or `"fedcp2-qq-sum"`; by default the one of the first two that
        `compare` recommends for these sizes and terms.
    by, names
        `"group"` or `"class"` for a threshold of each, with all their **public** names; `"side"` for one for each end
        of conformalized quantile regression, as in `confide.calibrate_sides`. The numbers of records of groups stay
        secret, so the method is `private-qq` and silos have no public size. If a group has too few records its
        threshold is +inf.
    shares
        Division of epsilon among levels or sides, in their order; equal by default. Not for levels of `secure-sum`.
    neighbors
        For groups and classes: the adjacency of epsilon. Under `add_remove` each may cost the whole epsilon. A replaced
        record can leave one group and enter another, so under `replace_one` each costs half of it.
    score, candidates, unit
        As in `confide.calibrate`. By default, private-qq and secure-sum use as many candidates as suit the sizes. For
        sides the scores are `cqr_low` and `cqr_high`.
    delta
        Failure probability of training-conditional guarantees for all levels or sides at once; by default the guarantee
        is marginal.
    liars
        Number of Byzantine silos, which may send anything; by default none.
    dropouts
        Number of silos that may be missing while the threshold is still planned to be finite; by default none. If more
        are missing the guarantee still holds, if necessary by the threshold +inf. A sum needs the answers of all silos:
        if one does not answer, the others pay again for a new plan.
    missing
        `"independent"` (default): a silo answers independently of its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum` and `fedcp2-qq-sum`: number of silos that may collude with the coordinator; by default fewer
        than half, and one of two.
    n_min, n_typical
        For secret sizes: a public lower bound on the number of records of a silo, and a public guess of it; with
        groups, of one group in one silo. With `n_min` = 0, the default for groups, the guarantee also holds where silos
        have no records, at a small cost.
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
    >>> keys = [SiloKeys.generate(f"hospital {i}") for i in range(5)]
    >>> silos, few = [hospital.public(size=200) for hospital in keys], Candidates.unit(100)
    >>> p = plan(silos, alpha=0.1, epsilon=5.0, candidates=few)
    >>> p.method, p.certify()[1].coverage, p.promises()[5].infinite, p.promises()[4].infinite
    ('private-qq', 0.9, 'never', 'always')
    >>> plan(silos, alpha=0.1, epsilon=0.5, candidates=few).method
    'secure-sum'

    Two levels, and a threshold of each group:

    >>> plan(silos, [0.2, 0.1], 4.0, candidates=few, method="private-qq").privacy().epsilon
    4.0
    >>> secret = [hospital.public() for hospital in keys]
    >>> groups = plan(secret, 0.1, 2.0, by="group", names=["women", "men"], candidates=few, n_typical=300)
    >>> groups.privacy().epsilon, list(groups.parts)
    (2.0, ['women', 'men'])
    """
    # The method
    check_unknown_arguments("plan", choices, get_type_hints(PlanChoices))
    options = PlanChoices(**choices)
    options["by"] = _by(alpha, options)
    if method is None:
        method = _recommended_method(silos, alpha, epsilon, options)
    protocol = PROTOCOLS[one_of("method", method, METHODS)]

    # The request, and the plan with its conditions
    if options["by"] == "level":
        alpha, options["shares"] = _decreasing(cast(Sequence[Level], alpha), options.get("shares"))
    n_min, n_typical = _sizes(options)
    closes = options.get("closes")
    stated: dict[str, Any] = {**options}
    planned = FederatedPlan(
        silos=tuple(silos),
        request=Request(
            alpha=alpha,
            epsilon=privacy_loss("epsilon", epsilon),
            candidates=_candidates(method, options),
            neighbors=_neighbors(silos, options),
            **{name: stated[name] for name in _OF_REQUEST if name in stated},
        ),
        method=method,
        population=options.get("population") or protocol.method.populations[0],
        n_min=n_min,
        n_typical=n_typical,
        session=secrets.token_hex(16),
        closes=None if closes is None else write_time(closes),
        **{name: stated[name] for name in _OF_SILOS if name in stated},
    )
    _check_apart([silo.name for silo in planned.silos])
    return planned


def _by(alpha: Any, options: PlanChoices) -> By | None:
    """What distinguishes the thresholds; several levels need no `by`."""
    by = options.get("by")
    if by is not None:
        one_of("by", by, get_args(By))
    if by == "side" and options.get("score") is not None:
        raise InputError("score", f"must be left out for two sides: their scores are {' and '.join(SIDES)}")
    if by == "class" and options.get("classes") is not None:
        raise InputError("classes", "must be left out with by='class': names are the classes")
    several = by is None and not isinstance(alpha, str) and isinstance(alpha, Iterable)
    return "level" if several else by


def _decreasing(
    alphas: Sequence[Level], shares: Sequence[Level] | None
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...] | None]:
    """Different levels, the highest first, and their shares in the same order."""
    levels = different_levels(alphas)
    decreasing = tuple(sorted(levels, reverse=True))
    if shares is None:
        return decreasing, None
    share_of = dict(zip(levels, exact_shares(shares, len(levels)), strict=True))
    return decreasing, tuple(share_of[level] for level in decreasing)


def _sizes(options: PlanChoices) -> tuple[int, int]:
    """For secret sizes the lower bound on a number of records, and the guess of it, by default for groups or silos."""
    is_grouped = options.get("by") in ("group", "class")
    n_min = options.get("n_min")
    if n_min is None:
        n_min = 0 if is_grouped else 1
    n_typical = options.get("n_typical")
    if n_typical is None and is_grouped:
        n_typical = typical_of_groups(len(options.get("names", ())), max(n_min, 1))
    return n_min, max(n_min, 1000) if n_typical is None else n_typical


def _candidates(method: str, options: PlanChoices) -> AnyCandidates:
    """The given candidates; published methods have others by default, because their noise does not depend on them."""
    candidates = options.get("candidates")
    if method in ("private-qq", "secure-sum") or candidates is not None or options.get("unit") is not None:
        return candidates
    return score_kind(SIDES[0] if options.get("by") == "side" else options.get("score")).candidates()


def _neighbors(silos: Sequence[Silo], options: PlanChoices) -> Neighbors:
    """The adjacency of the privacy loss: given for groups, else by whether sizes are public."""
    if options.get("by") in ("group", "class"):
        return options.get("neighbors", "add_remove")
    return "replace_one" if silos and getattr(silos[0], "size", None) is not None else "add_remove"


# With more silos than these, whose names often differ by a number, names are not compared pairwise
_MOST_COMPARED = 100


def _check_apart(names: Sequence[str]) -> None:
    """Reject names of silos that a ledger would take for one name, and warn of similar names."""
    by_key: dict[str, str] = {}
    for name in names:
        other = by_key.setdefault(name_key(name), name)
        require("silos", other == name, "must differ in their names by more than case", got=f"{other!r} and {name!r}")
    if len(names) > _MOST_COMPARED:
        return
    for i, name in enumerate(names):
        if alike := similar(name, names[:i]):
            text = f"silos {alike[0]!r} and {name!r} have similar names; if they are one silo, invite it once"
            warnings.warn(SimilarNameWarning(text), stacklevel=caller_stacklevel())


# The comparison of methods


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
    expected, expected_gaussian
        Mean coverage for scores that are uniform over the candidates, and for Gaussian scores over the middle of them.
        For several thresholds it is the mean over them. NaN without a plan.
    infinite
        Probability of the threshold +inf, the larger one for the two kinds of scores.
    on_pilot
        Results on the public pilot sample, if one is given.
    recommended
        Whether this alternative is recommended.
    """

    method: str
    plan: FederatedPlan | None
    reason: str | None
    expected: float = float("nan")
    expected_gaussian: float = float("nan")
    infinite: float = float("nan")
    on_pilot: OnPilot | None = None
    recommended: bool = False

    @property
    def missed(self) -> float:
        """The miscoverage level, for several thresholds their mean; 0 without a plan."""
        return 0.0 if self.plan is None else float(np.mean([float(plan.alpha) for plan in self.plan.single_plans]))

    @property
    def worst(self) -> float:
        """The larger of the expected coverages. The further above the level it is, the larger are sets."""
        return max(self.expected, self.expected_gaussian)

    @property
    def cells(self) -> dict[str, str]:
        """Its row in the table of a comparison, by the heads of the columns."""
        method = f"{self.method} (recommended)" if self.recommended else self.method
        if self.plan is None:
            return {"Method": method}
        cells = {
            "Method": method,
            "Uniform scores": f"{self.expected:.4f}",
            "Gaussian scores": f"{self.expected_gaussian:.4f}",
            "Threshold +inf": chance_text(self.infinite),
        }
        if (pilot := self.on_pilot) is not None:
            cells["Threshold on the pilot"] = f"{pilot.threshold:.4g}"
            if pilot.size is not None:
                cells["Classes in a set"] = f"{pilot.size:.3g}"
            if pilot.ratio is not None:
                cells["Size to that without privacy"] = f"{pilot.ratio:.3f}"
        cells["A silo reveals"] = self.plan.channel.reveals
        return cells

    @property
    def notes(self) -> list[str]:
        """Why there is no plan; or what the guarantee is for, and what an absent silo costs."""
        if self.plan is None:
            return [f"{self.method}: no plan: {self.reason}"]
        notes = [f"{self.method}: guaranteed {self.plan.first.assumed}"]
        if not self.plan.channel.single_replies:
            notes.append(f"{self.method}: if a silo does not answer, the others pay again for a new plan")
        return notes


@dataclass(frozen=True, repr=False)
class Comparison(Described):
    """The plans of several methods for the same silos, as one table.

    Parameters
    ----------
    alternatives
        One for each method.
    """

    alternatives: tuple[Alternative, ...]

    @property
    def recommended(self) -> Alternative | None:
        """The recommended alternative; None if no method has a plan."""
        return next((alternative for alternative in self.alternatives if alternative.recommended), None)

    @property
    def plan(self) -> FederatedPlan:
        """The recommended plan.

        Raises
        ------
        InputError
            If no method has a plan, with the reasons.
        """
        if self.recommended is None or self.recommended.plan is None:
            reasons = "; ".join(str(alternative.reason) for alternative in self.alternatives)
            raise InputError("method", f"has no plan for these silos: {reasons}")
        return self.recommended.plan

    def _section(self) -> Section:
        # Notes of each alternative, and why there is only one
        notes = [note for alternative in self.alternatives for note in alternative.notes]
        if len(self.alternatives) == 1:
            notes.append(_ONLY_PRIVATE_QQ)
        if all(alternative.plan is None for alternative in self.alternatives):
            return Section("Methods for these silos", "", notes=tuple(notes))

        # The columns of all rows; an alternative without a plan has the method alone
        rows = [alternative.cells for alternative in self.alternatives]
        longest: dict[str, str] = max(rows, key=len)
        heads = tuple(longest)
        table = Table(heads, tuple(tuple(row.get(head, "") for head in heads) for row in rows))
        return Section("Methods for these silos", _LEAD, tables=(table,), notes=tuple(notes))

    def _brief(self) -> str:
        methods = ", ".join(alternative.method for alternative in self.alternatives)
        recommended = "none" if self.recommended is None else self.recommended.method
        return f"{methods}: {recommended} is recommended"


_LEAD = "expected coverage for scores of two known laws over the candidates; not a guarantee"
_ONLY_PRIVATE_QQ = (
    "sizes are secret, which only private-qq allows; with public sizes (confide federated public --size) you can use "
    "secure-sum, whose guarantee holds for non-IID silos"
)

# Standard deviation of the Gaussian scores, as a share of the range of candidates, in the middle of which they lie
_DEVIATION = 0.1


def expected_alternative(method: str, planned: FederatedPlan) -> Alternative:
    """The plan by a method, with its expected coverage and its probability of +inf for scores of two known laws."""
    expected = []
    infinite = []
    for below in _uniform_and_gaussian(planned.candidates.size):
        laws = [single.answer_law(below) for single in planned.different]
        expected.append(float(np.mean([law @ below for law in laws])))
        infinite += [float(law[-1]) for law in laws]
    uniform, gaussian = expected
    return Alternative(method, planned, None, expected=uniform, expected_gaussian=gaussian, infinite=max(infinite))


def _uniform_and_gaussian(m: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(score <= e_j) for m candidates, +inf included: for uniform scores, and for Gaussian scores over the middle."""
    from scipy.special import ndtr

    uniform = np.arange(1, m) / max(m - 1, 1)
    return np.append(uniform, 1.0), np.append(ndtr((uniform - 0.5) / _DEVIATION), 1.0)


# Share of alpha that may be lost for one message and for silos that need not rely on one another
_WORTH = 0.05
# A method whose expected miscoverage is below this share of alpha includes nearly everything: it does not serve
_USEFUL = 0.3
# The largest probability of the threshold +inf of a method that serves
_RARELY = 0.01


def best_alternative(alternatives: Sequence[Alternative]) -> Alternative | None:
    """The simplest alternative that is nearly as good as the best."""
    with_plan = [each for each in alternatives if each.plan is not None]
    if not with_plan:
        return None
    # Those that exclude something, and are hardly ever +inf; all, if there are none
    missed = max(each.missed for each in with_plan)
    serving = [each for each in with_plan if each.worst <= 1 - _USEFUL * missed and each.infinite <= _RARELY]
    choices = serving or with_plan

    # private-qq, unless another one is clearly better
    best = min(choices, key=lambda each: each.worst)
    simple = next((each for each in choices if each.method == "private-qq"), best)
    return simple if simple.worst <= best.worst + _WORTH * missed else best


def with_pilot(alternative: Alternative, sample: Pilot | None) -> Alternative:
    """The alternative with its results on a public pilot sample; for several thresholds those of the last one."""
    if alternative.plan is None or sample is None:
        return alternative
    last = alternative.plan.single_plans[-1]
    law = last.answer_law(share_of_pilot(sample, last.candidates))
    records = last.size or 1000 * len(alternative.plan.silos)
    return replace(alternative, on_pilot=answered_on_pilot(sample, law, last.candidates, last.level, records))


def compare(
    silos: Sequence[Silo], alpha: Any, epsilon: float, *, pilot: Any = None, **options: Unpack[PlanChoices]
) -> Comparison:
    """Compare the expected coverage of `private-qq` and `secure-sum` for these silos, and recommend one of them.

    The published methods are left out: their expected coverage is not computed.

    Parameters
    ----------
    silos, alpha, epsilon, options
        As in `plan`.
    pilot
        A PUBLIC sample, as in `confide.plan`: a `confide.core.Pilot`, or scores, shape (N,). For several levels
        the sizes of sets are those of the last one. Not for sides, which have two scores.

    Returns
    -------
    Comparison
        The alternatives, of which one is recommended if any has a plan; printed as one table.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used by any method.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"school {i}").public(size=20 + i) for i in range(12)]
    >>> comparison = compare(silos, 0.1, 1.0)
    >>> comparison
    Comparison(private-qq, secure-sum: secure-sum is recommended)
    >>> comparison.plan.method
    'secure-sum'
    """
    check_silos(silos)
    by = _by(alpha, options)
    if pilot is not None and by == "side":
        raise InputError("pilot", "must be left out for two sides, which have two scores")
    named = bool(options.get("names"))
    needs_names = by in ("group", "class")
    require("names", named == needs_names, f"must be {'left out' if named else 'given'} with by={by!r}")
    alternatives = _alternatives(silos, alpha, epsilon, options)
    best = best_alternative(alternatives)
    sample = None if pilot is None else Pilot.of(pilot, options.get("score") or "lac")
    return Comparison(tuple(replace(with_pilot(each, sample), recommended=each is best) for each in alternatives))


def _recommended_method(silos: Sequence[Silo], alpha: Any, epsilon: float, options: PlanChoices) -> str:
    """The method of the best plan; without one the first method, whose plan raises its error."""
    methods = _methods(silos)
    if len(methods) == 1:
        return methods[0]
    best = best_alternative(_alternatives(silos, alpha, epsilon, options))
    return methods[0] if best is None else best.method


def _methods(silos: Sequence[Silo]) -> Sequence[str]:
    """The methods that are compared: only private-qq keeps sizes secret."""
    public = bool(silos) and silos[0].size is not None
    return ("private-qq", "secure-sum") if public else ("private-qq",)


def _alternatives(silos: Sequence[Silo], alpha: Any, epsilon: float, options: PlanChoices) -> list[Alternative]:
    """The plan by each method, or the reason why there is none."""
    alternatives = []
    for method in _methods(silos):
        options_of_method = options.copy()
        # A method without a sum relies on no other silo
        if PROTOCOLS[method].channel.single_replies:
            options_of_method.pop("colluding", None)
        try:
            planned = plan(silos, alpha, epsilon, method=method, **options_of_method)
        except InputError as error:
            alternatives.append(Alternative(method, None, str(error)))
        else:
            alternatives.append(expected_alternative(method, planned))
    return alternatives
