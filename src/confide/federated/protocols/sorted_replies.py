"""What a plan promises: for the silos that answered, and beforehand for every number of answers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from confide.federated.certified_k import certified_k
from confide.federated.order_statistics import ReplyLaw, order_statistic_coverage
from confide.federated.protocols.secure_sum import summed_coverage, summed_failure, total_deficit
from confide.guarantee.statement import Guarantee

if TYPE_CHECKING:
    from confide.federated.plan import FederatedPlan


@dataclass(frozen=True)
class Promise:
    """What is promised beforehand for one number of answers, whichever silos they come from.

    Parameters
    ----------
    coverage
        Guaranteed coverage (with probability 1 - delta, if the plan has a delta); 0 if nothing is promised.
    k
        The largest k that may be needed: the k-th smallest of the answers is the threshold. 0 if answers are not
        sorted.
    infinite
        Whether the threshold will be +inf: `never` for want of answers, `perhaps` (it depends on which silos answer),
        or `always`.
    """

    coverage: float
    k: int
    infinite: Literal["never", "perhaps", "always"]


def certify(plan: "FederatedPlan", answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
    """Which of the answers becomes the threshold, and what is promised, for the silos that answered.

    Parameters
    ----------
    plan
        The plan.
    answered
        Positions of the silos that answered; by default all.

    Returns
    -------
    k, guarantee
        The k-th smallest of all answers, liars' answers included; if k exceeds their number the threshold is
        +inf. k = 0 for methods that do not sort replies.
    """
    who = sorted(range(len(plan.silos)) if answered is None else set(answered))
    if plan.method == "secure-sum":
        return 0, _guarantee(plan, _summed(plan), who)
    if plan.method == "fedcp-avg":
        return 0, _guarantee(plan, 0.0, who)
    if len(who) == len(plan.silos) and _as_published(plan):
        return plan.published_k, _guarantee(plan, float(plan.level), who)
    if plan.missing == "arbitrary":  # the k-th of any subset is at least the k-th of all
        replies, honest = _replies(plan), len(plan.silos)
    else:
        replies, honest = _replies(plan, who), len(who) - plan.liars
    found = certified_k(replies, plan.level, plan.delta, honest)
    if found is None or found[0] + plan.liars > len(who):
        return len(who) + 1, _guarantee(plan, 1.0, who)
    return found[0] + plan.liars, _guarantee(plan, float(plan.level), who)


def promises(plan: "FederatedPlan") -> dict[int, Promise]:
    """What is promised for every number of answers, from all silos down to one.

    Returns
    -------
    dict
        number of answers -> `Promise`. Methods that need all silos have that one number only.
    """
    m = len(plan.silos)
    if plan.method in ("secure-sum", "fedcp-avg"):
        return {m: Promise(certify(plan)[1].coverage, 0, "never")}
    replies = _replies(plan)
    alike = len(set(replies)) == 1
    table = {}
    for count in range(m, 0, -1):
        if count == m and _as_published(plan):
            table[count] = Promise(float(plan.level), plan.published_k, "never")
            continue
        honest = m if plan.missing == "arbitrary" else count - plan.liars
        found = certified_k(replies, plan.level, plan.delta, honest)  # for those of them that reply lowest
        k = count + 1 if found is None else min(found[0] + plan.liars, count + 1)
        if k <= count:
            table[count] = Promise(float(plan.level), k, "never")
        elif alike or honest < 1:
            table[count] = Promise(1.0, k, "always")
        else:
            table[count] = Promise(float(plan.level), k, "perhaps")
    return table


def _as_published(plan: "FederatedPlan") -> bool:
    """Whether the published choice of k stands: all silos answer, nobody lies, and our certificate confirms it."""
    if not plan.published_k or plan.liars or plan.delta is not None:
        return False
    return order_statistic_coverage(_replies(plan), plan.published_k) >= plan.level


def _replies(plan: "FederatedPlan", who: Sequence[int] | None = None) -> list[ReplyLaw]:
    return [plan.reply(i) for i in (range(len(plan.silos)) if who is None else who)]


def _guarantee(plan: "FederatedPlan", coverage: float, who: Sequence[int]) -> Guarantee:
    n = None if plan.size is None else sum(plan.silos[i].size or 0 for i in who)
    kind: Literal["marginal", "training_conditional"] = "marginal" if plan.delta is None else "training_conditional"
    n_min = plan.n_min if n is None else None
    return Guarantee(kind, min(coverage, float(plan.level)) if coverage < 1 else 1.0, plan.delta, n, n_min)


def _summed(plan: "FederatedPlan") -> float:
    m, n, target = len(plan.silos), plan.size or 0, int(plan.targets[0])
    deficit = total_deficit(plan.scale, m, m - plan.colluding, plan.candidates.size)
    if plan.delta is None:
        extra = m if plan.population == "mixture" else 1
        return float(min(summed_coverage(n, target, deficit, extra), Fraction(1)))
    failure = summed_failure(n, target, deficit, float(plan.level))
    return float(plan.level) if failure <= plan.delta else 0.0
