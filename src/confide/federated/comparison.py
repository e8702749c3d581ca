"""A comparison of the methods: their plans for the same silos, expected coverages, and the recommended one.

Expected coverages are not guarantees: they hold for scores of a known distribution (docs/federated.md, "Which method").
With a public pilot sample they are also computed for the scores of the sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from confide.core import OnPilot, Pilot, answered_on_pilot, share_of_pilot
from confide.errors import InputError
from confide.federated.plan import FederatedPlan
from confide.support import Described, Section, Table, chance_text


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
        notes = [f"{self.method}: guaranteed {self.plan.assumed}"]
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
    expected, infinite = [], []
    for below in _uniform_and_gaussian(planned.candidates.size):
        laws = [single.protocol.answer_law(single, below) for single in planned.different]
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
    law = last.protocol.answer_law(last, share_of_pilot(sample, last.candidates))
    records = last.size or 1000 * len(alternative.plan.silos)
    return replace(alternative, on_pilot=answered_on_pilot(sample, law, last.candidates, last.level, records))
