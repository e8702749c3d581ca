"""Figures for what releases cost together, each with its derivation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """One valid figure for what releases cost together.

    Parameters
    ----------
    epsilon, dp_delta
        The releases together are (epsilon, dp_delta)-differentially private.
    rule
        Short name of the rule that gives it.
    derivation
        How the figure comes about, in words and numbers.
    adaptive
        Whether it also holds if later privacy parameters were chosen after seeing earlier releases.
    """

    epsilon: float
    dp_delta: float
    rule: str
    derivation: str
    adaptive: bool


@dataclass(frozen=True)
class Loss:
    """What releases cost together: the tightest bound, and all others for comparison.

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

    def __str__(self) -> str:
        best = self.best
        loss = f"{best.epsilon:.6g}" if best.dp_delta == 0 else f"({best.epsilon:.6g}, {best.dp_delta:g})"
        return f"{loss}-differential privacy: {best.derivation}"
