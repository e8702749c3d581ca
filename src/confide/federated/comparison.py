"""What the methods would give for the silos at hand, said before anybody pays; and which of them to take.

Everything here is computed from public numbers, and from a public pilot sample if there is one. What is expected is no
promise: it is what would happen if scores were spread in a known way (docs/federated.md, section 1, "Which method").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.planned import planned
from confide.planning import OnPilot, Pilot, answered_on_pilot, share_of_pilot
from confide.support import Level, one_of

_SHARES = (0.6, 0.4, 0.25, 0.15)
"""What share of the silos, the largest ones, are tried alone."""
_FEWEST_SILOS, _FEWEST_RECORDS = 5, 0.5
_WORTH = 0.05
"""So much of alpha is it worth that silos need not rely on one another, and that one message is all."""
_USEFUL = 0.3
"""A method that is expected to miss less than so much of alpha includes nearly everything: it does not serve."""
_RARELY = 0.01
_BELL = 0.1
"""The standard deviation of the bell, as a share of the list of candidates, in whose middle it lies."""


COMPARABLE = ("fedcp2-qq-sum",)
"""Published methods that can be compared, if they are asked for."""


@dataclass(frozen=True)
class Alternative:
    """What one method would give.

    Parameters
    ----------
    method
        Its name.
    plan
        The plan, ready to be signed; None if there is none.
    refused
        Why there is no plan.
    left_out
        What share of all records belongs to silos that the plan leaves out: the smallest ones.
    silos
        How many silos are invited.
    expected, expected_bell
        Mean coverage if scores lie evenly over the candidates, and if they lie in a bell over the middle of them. NaN
        without a plan.
    infinite
        The chance of the threshold +inf, the larger one of the two.
    on_pilot
        What comes out on the public pilot sample, if one is given.
    recommended
        Whether this is the one to take.
    """

    method: str
    plan: FederatedPlan | None
    refused: str | None
    silos: int
    left_out: float = 0.0
    expected: float = float("nan")
    expected_bell: float = float("nan")
    infinite: float = float("nan")
    on_pilot: OnPilot | None = None
    recommended: bool = False

    @property
    def worst(self) -> float:
        """The larger one of the expected coverages: the more is covered than promised, the larger are sets."""
        return max(self.expected, self.expected_bell)


def compare(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float,
    *,
    pilot: Any = None,
    also: Sequence[str] = (),
    **options: Any,
) -> tuple[Alternative, ...]:
    """What the private methods would give for these silos: `private-qq`, `secure-sum`, and leaving out small silos.

    Parameters
    ----------
    silos, alpha, epsilon
        As of `plan`.
    pilot
        A PUBLIC sample, as for `confide.plan`: a `confide.planning.Pilot`, or scores, shape (N,).
    also
        Published methods to show beside them, of `COMPARABLE`; they are not recommended.
    options
        What else `plan` takes, but for `method`.

    Returns
    -------
    tuple of Alternative
        One of them is recommended, if any has a plan. Silos are left out only if nothing with all of them serves.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used by any method.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"school {i}").public(size=20 + i) for i in range(12)]
    >>> [(one.method, one.silos) for one in compare(silos, 0.1, 1.0) if one.recommended]
    [('secure-sum', 12)]
    """
    published = [_alternative(silos, alpha, epsilon, one_of("also", name, COMPARABLE), options) for name in also]
    options = {name: value for name, value in options.items() if name != "dp_delta"}
    found = _with_all(silos, alpha, epsilon, options)
    found += _with_the_largest(silos, alpha, epsilon, options)
    best = _best(found, alpha)
    found = [replace(one, recommended=one is best) for one in found] + published
    sample = None if pilot is None else Pilot.of(pilot, options.get("score") or "lac")
    return tuple(_with_pilot(one, sample) for one in found)


def alternative(
    silos: Sequence[Silo], alpha: Level, epsilon: float, method: str, sample: Pilot | None, options: dict[str, Any]
) -> Alternative:
    """What one method would give for these silos, beside no other."""
    return _with_pilot(_alternative(silos, alpha, epsilon, method, options), sample)


def recommended(silos: Sequence[Silo], alpha: Level, epsilon: float | None, **options: Any) -> FederatedPlan:
    """The plan with all silos that `compare` recommends.

    Raises
    ------
    InputError, InputTypeError
        What the methods say if none has a plan.
    """
    if epsilon is None:
        raise InputError("epsilon must be given; the methods 'fedcp-qq' and 'fedcp-avg' are not private and go without")
    found = _with_all(silos, alpha, epsilon, options)
    best = _best(found, alpha)
    if best is None or best.plan is None:
        raise InputError(next(one.refused for one in found if one.refused))
    return best.plan


def _with_all(silos: Sequence[Silo], alpha: Level, epsilon: float, options: dict[str, Any]) -> list[Alternative]:
    asked = {name: value for name, value in options.items() if name != "colluding"}
    found = [_alternative(silos, alpha, epsilon, "private-qq", asked)]
    if silos and silos[0].size is not None:  # a secret size leaves private-qq alone
        found.append(_alternative(silos, alpha, epsilon, "secure-sum", options))
    return found


def _with_the_largest(
    silos: Sequence[Silo], alpha: Level, epsilon: float, options: dict[str, Any]
) -> list[Alternative]:
    """private-qq without the smallest silos: that of those left, and what share of the records they do not have."""
    sizes = [silo.size or 0 for silo in silos]
    total, found = sum(sizes), []
    by_size = sorted(range(len(silos)), key=lambda i: -sizes[i])
    asked = {name: value for name, value in options.items() if name != "colluding"}
    for count in dict.fromkeys(max(round(share * len(silos)), _FEWEST_SILOS) for share in _SHARES):
        largest = sorted(by_size[:count])
        kept = sum(sizes[i] for i in largest)
        if count < len(silos) and sizes[by_size[0]] > sizes[by_size[-1]] and kept >= _FEWEST_RECORDS * total:
            one = _alternative([silos[i] for i in largest], alpha, epsilon, "private-qq", asked)
            found.append(replace(one, left_out=1 - kept / total))
    return found


def _alternative(
    silos: Sequence[Silo], alpha: Level, epsilon: float, method: str, options: dict[str, Any]
) -> Alternative:
    try:
        made = planned(silos, alpha, epsilon, method, **options)
    except InputError as error:
        return Alternative(method, None, str(error), len(silos))
    laws = known_laws(made.candidates.size)
    answers = {name: _answer(made, below) for name, below in laws.items()}
    expected = {name: float(answers[name] @ laws[name]) for name in laws}
    infinite = max(float(law[-1]) for law in answers.values())
    return Alternative(method, made, None, len(silos), 0.0, expected["even"], expected["bell"], infinite)


def known_laws(m: int) -> dict[str, NDArray[np.float64]]:
    """P(score <= e_j) for m candidates, +inf included: evenly over them, and in a bell over the middle of them.

    Examples
    --------
    >>> known_laws(5)["even"]
    array([0.25, 0.5 , 0.75, 1.  , 1.  ])
    """
    from scipy.special import ndtr

    at = np.arange(1, m) / max(m - 1, 1)
    return {"even": np.append(at, 1.0), "bell": np.append(ndtr((at - 0.5) / _BELL), 1.0)}


def _answer(made: FederatedPlan, below: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the threshold over the candidates; it is drawn with a seed, for nothing private is in it."""
    return made.protocol.answer_law(made, below, np.random.default_rng(0))


def _with_pilot(one: Alternative, sample: Pilot | None) -> Alternative:
    if one.plan is None or sample is None:
        return one
    made, n = one.plan, one.plan.size or one.silos * 1000
    law = _answer(made, share_of_pilot(sample, made.candidates))
    return replace(one, on_pilot=answered_on_pilot(sample, law, made.candidates, made.level, n))


def _best(found: list[Alternative], alpha: Level) -> Alternative | None:
    """The simplest one that is nearly as good as the best; with silos left out only if nothing else serves."""
    with_plan = [one for one in found if one.plan is not None]
    if not with_plan:
        return None
    missed = float(with_plan[0].plan.alpha) if with_plan[0].plan else float(alpha)
    serving = [one for one in with_plan if one.worst <= 1 - _USEFUL * missed and one.infinite <= _RARELY]
    whole = [one for one in serving if not one.left_out]
    choices = whole or serving or [one for one in with_plan if not one.left_out] or with_plan
    best = min(choices, key=lambda one: one.worst)
    simple = [one for one in choices if one.method == "private-qq" and one.worst <= best.worst + _WORTH * missed]
    return min(simple, key=lambda one: one.worst) if simple else best
