"""The privacy loss of several releases together: valid bounds, with their derivations."""

import math
from dataclasses import dataclass

from confide.ledger.decimals import decimal_form
from confide.mechanisms import weak_privacy_text
from confide.support import Described

# The rule of an infinite epsilon because a release has zero-concentrated privacy alone
NO_EPSILON = "no epsilon"


@dataclass(frozen=True)
class Bound:
    """One valid bound on the privacy loss of releases together, also if later parameters depended on earlier releases.

    Parameters
    ----------
    epsilon, dp_delta
        The releases together are (epsilon, dp_delta)-differentially private.
    rule
        Short name of its rule.
    derivation
        Its derivation, in words and numbers.
    """

    epsilon: float
    dp_delta: float
    rule: str
    derivation: str


@dataclass(frozen=True, repr=False)
class Loss(Described):
    """The privacy loss of releases together: the tightest bound, and all others for comparison.

    Parameters
    ----------
    bounds
        All valid bounds, tightest first.

    Examples
    --------
    >>> from confide.ledger import Cost, compose
    >>> print(compose([Cost(0.5, "add_remove", "slopes"), Cost(0.25, "add_remove", "slopes")]))
    0.75-differential privacy: 2 releases, the epsilons add up
    """

    bounds: tuple[Bound, ...]

    @property
    def best(self) -> Bound:
        """The tightest valid bound."""
        return self.bounds[0]

    @property
    def epsilon(self) -> float:
        """Epsilon of the tightest bound."""
        return self.best.epsilon

    def _brief(self) -> str:
        best = self.best
        if best.rule == NO_EPSILON:
            return f"NO PURE EPSILON: {best.derivation}"
        if best.epsilon == math.inf:
            return f"NOT PRIVATE: {best.derivation}"
        loss = decimal_form(best.epsilon) if best.dp_delta == 0 else f"({best.epsilon:.6g}, {best.dp_delta:g})"
        weak = weak_privacy_text(best.epsilon)
        return f"{loss}-differential privacy: {best.derivation}{f'; {weak}' if weak else ''}"
