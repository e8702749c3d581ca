"""The plans of the thresholds of a federation: the terms of each, and all that follows from them."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from itertools import groupby
from statistics import median
from typing import Any

from confide.candidates import Candidates, Spread
from confide.core import Budget, Key, Request, exact_shares, histogram_size
from confide.errors import InputError
from confide.federated.protocols import PROTOCOLS, Channel, Method, Promise
from confide.federated.terms import Federation, Terms
from confide.guarantee import Guarantee, silos_text
from confide.mechanisms import PrivacyStatement


@dataclass(frozen=True, kw_only=True)
class ThresholdPlan(Terms):
    """The part of a plan for one threshold: its terms, and the mechanisms and the channel that follow from them.

    `method` is one of `confide.federated.protocols.PROTOCOLS`.
    """

    method: str
    protocol: Method
    channel: Channel

    @classmethod
    def of(cls, terms: Terms, method: str) -> "ThresholdPlan":
        """Derive everything from the terms; an error if the method does not support them."""
        row = PROTOCOLS[method]
        row.check(terms)
        channel = row.channel.planned(terms)
        protocol = row.method.planned(terms, channel)
        return cls(**vars(terms), method=method, protocol=protocol, channel=channel.with_bits(protocol.bits(terms)))

    @property
    def derived(self) -> list[Any]:
        """What participants compare: all that follows from the terms."""
        privacy = self.privacy()
        losses = [privacy.epsilon, privacy.replace_one, privacy.rho]
        return [self.candidates.size, self.candidates.digest, vars(self.protocol), vars(self.channel), losses]

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.protocol.loss(self, i)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record: silos hold different records, so it is the largest loss of a silo."""
        return self.protocol.privacy(self, self._positions_of(answered))

    def certify(self, answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
        """The rank k of the answer that becomes the threshold, and the guarantee, for the silos that answered.

        The threshold is the k-th smallest of all answers, those of Byzantine silos included; if k exceeds their number
        it is +inf. k = 0 for sums of counts.
        """
        positions = self._positions_of(answered)
        self.channel.check_answers(self, positions)
        return self.protocol.certify(self, positions)

    def promises(self) -> dict[int, Promise]:
        """The guarantee by number of answers, from all silos down to the least number that gives a threshold."""
        return self.protocol.promises(self, range(len(self.silos), self.channel.least_answers(self) - 1, -1))

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees for all numbers of answers: one line for a range of numbers with the same guarantee."""
        promises = self.promises()
        lines = []
        for words, numbers in groupby(promises, key=lambda answers: _promise_text(promises[answers])):
            most, *fewer = numbers
            number = f"{fewer[-1]} to {most}" if fewer else f"{most}"
            lines.append(f"{number} answer{'' if number == '1' else 's'}: {words}")
        return lines

    @property
    def assumed(self) -> str:
        """The guarantee's assumption about the silos or the new record."""
        return silos_text(self.protocol.about_silos(self))

    @property
    def trust_rows(self) -> list[tuple[str, str]]:
        """The conditions of the guarantee and of privacy, as (name, value) rows."""
        rows = [
            ("silos that may be missing", f"{self.dropouts}; " + _MISSING[self.missing]),
            ("Byzantine silos", f"at most {self.liars}"),
            ("guarantee", self.assumed),
        ]
        if (collude := collusion_text(self.channel, len(self.silos))) is not None:
            rows.append((self.protocol.reliance_label, f"the other silos: {collude}"))
        return rows

    def _positions_of(self, answered: Collection[int] | None) -> list[int]:
        return sorted(range(len(self.silos)) if answered is None else set(answered))


_MISSING = {
    "independent": "whether a silo answers must not depend on its scores",
    "arbitrary": "whether a silo answers may depend on its scores",
}


def collusion_text(channel: Channel, silos: int) -> str | None:
    """How many colluding silos the privacy of an answer withstands, in words; None if it relies on no other silo."""
    count = channel.colluders
    if count is None:
        return None
    colluders = f"at most {count} of the {silos} silos" if count else "no silo"
    return f"{colluders} may collude with the coordinator"


def _promise_text(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")


# From the request to the plan of each threshold


def threshold_plans(federation: Federation, request: Request, method: str) -> dict[Key, ThresholdPlan]:
    """The plan of each threshold that a request asks of a federation, by its key."""
    # All thresholds have the candidates of the one of least loss
    losses = _losses(request, method)
    least = min(losses, key=lambda key: losses[key])
    requested = request.terms[least]
    candidates = _candidates(federation, method, requested.spread, losses[least], requested.level)

    # Equal terms, such as those of groups, have one plan
    shared = {item.name: getattr(federation, item.name) for item in fields(Federation)}

    @cache
    def plan_of(alpha: Fraction, delta: float | None, score: str | None, epsilon: float) -> ThresholdPlan:
        terms = Terms(alpha=alpha, delta=delta, score=score, epsilon=epsilon, candidates=candidates, **shared)
        return ThresholdPlan.of(terms, method)

    return {key: plan_of(part.alpha, part.delta, part.score, losses[key]) for key, part in request.terms.items()}


def _losses(request: Request, method: str) -> dict[Key, float]:
    """The privacy loss of each threshold."""
    keys = list(request.terms)
    whole = Budget(request.epsilon)
    # Groups have the whole, unless a replaced record may change two of them
    if request.disjoint:
        budgets = whole.divided(exact_shares(None, 1), replaced=request.neighbors == "replace_one") * len(keys)
    # All levels follow from one sum
    elif request.by is None or (request.by == "level" and PROTOCOLS[method].method.one_draw):
        if request.shares is not None:
            raise InputError("shares", f"must be left out for {method!r}: one sum serves all levels")
        budgets = [whole] * len(keys)
    else:
        budgets = whole.divided(exact_shares(request.shares, len(keys)))
    return {key: float(budget.epsilon or 0.0) for key, budget in zip(keys, budgets, strict=True)}


# Bounds on the number of candidates of a spread: the most for private-qq, and for secure-sum
_FEWEST_CANDIDATES = 30
_MOST_CANDIDATES = 3840
_MOST_SUMMED_CANDIDATES = 400

# The number of candidates of a spread for the published methods
_PUBLISHED_CANDIDATES = 1000


def _candidates(federation: Federation, method: str, spread: Any, epsilon: float, level: Fraction) -> Candidates:
    """The given candidates; of a spread as many as cost about as much as they resolve."""
    if not isinstance(spread, Spread):
        candidates: Candidates = spread
        return candidates
    sizes = [silo.size or federation.n_typical for silo in federation.silos]
    # As many as a noisy histogram of all records has
    if method == "secure-sum":
        bins = histogram_size(spread, sum(sizes), (level,), 2 / epsilon)
        number = min(max(bins, _FEWEST_CANDIDATES), _MOST_SUMMED_CANDIDATES)
    # Half as many as a silo of median size has records, times epsilon
    elif method == "private-qq":
        factor = 1 if spread.unit or spread.around else spread.shape.federated_factor
        useful = max(factor * median(sizes) * epsilon / 2, factor * _FEWEST_CANDIDATES)
        number = round(min(useful, _MOST_CANDIDATES))
    else:
        number = _PUBLISHED_CANDIDATES
    return Candidates.quantiles(spread, number)
