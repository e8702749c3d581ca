"""`SlopeNoise`: the noise of a slope mechanism, as far as coverage depends on it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SlopeNoise:
    """The noise of a slope mechanism (docs/theory.md, section 2), made by `Slopes.noise(m)`.

    Parameters
    ----------
    left, right
        Log-odds lost per rank below and above the target.
    rivals
        The competitor ratio G, see `competitor_ratio`.
    step
        The smallest ratio of a candidate's prior weight to the next one's: 1 for equal weights, 0 if unknown.
    scale
        Steps of the mechanism's integers per unit of log-odds; None if bonus and fade are not rounded to such steps.
        It is no part of the identity: mechanisms that differ only in rounding share cached results.
    """

    left: float
    right: float
    rivals: float
    step: float = 0.0
    scale: float | None = field(default=None, compare=False)

    @property
    def mass(self) -> float:
        """G as a divisor: raised from 0, for a list of one candidate, to 1e-9."""
        return max(self.rivals, 1e-9)
