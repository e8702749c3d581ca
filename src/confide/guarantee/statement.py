"""The promise that goes with a release, computed from public numbers alone, so that anybody can compute it again."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from confide.guarantee.conditional import line_holds
from confide.guarantee.random_rank import conditional_failure
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.slopes import Slopes
from confide.support.rationals import float_below

GuaranteeKind: TypeAlias = Literal["marginal", "training_conditional", "none"]

GUARANTEE_KINDS: tuple[GuaranteeKind, ...] = ("marginal", "training_conditional", "none")


@dataclass(frozen=True)
class Guarantee:
    """What is promised about coverage.

    Parameters
    ----------
    kind
        `"marginal"`: a new record's true label is in its set with probability at least `coverage`, over calibration
        data, noise and new record. `"training_conditional"`: with probability 1 - delta over calibration data and
        noise, that holds for all new records to come. `"none"`: nothing is promised, and `coverage` is 0.
    coverage
        The guaranteed coverage.
    delta
        Failure probability of a training-conditional promise, else None.
    n
        The public number of calibration records, or None if it is secret.
    n_min
        If n is secret, the promise holds for every number of records from n_min on; else None.

    Examples
    --------
    >>> print(Guarantee("marginal", 0.9, None, None, 1))
    coverage at least 0.9 on average over calibration data and new records, for every number of records
    """

    kind: GuaranteeKind
    coverage: float
    delta: float | None
    n: int | None
    n_min: int | None

    def __str__(self) -> str:
        if self.kind == "none":
            return "NO COVERAGE IS PROMISED by this mechanism"
        if self.n is not None:
            scope = f"from {self.n} calibration records"
        elif self.n_min == 1:
            scope = "for every number of records"
        else:
            scope = f"for every number of records from {self.n_min} on"
        value = f"coverage at least {math.floor(self.coverage * 1e6) / 1e6:.6g}"
        if self.kind == "marginal":
            return f"{value} on average over calibration data and new records, {scope}"
        sure = 1 - Fraction(str(self.delta))
        return f"with probability {float(sure):.6g} over the calibration data, {value} for new records, {scope}"


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def certify(
    mechanism: Mechanism | None, alpha: Fraction, m: int, n: int | None, n_min: int | None, delta: float | None
) -> Guarantee:
    """The guarantee of a mechanism over m candidates (docs/theory.md, Theorems 3 and 4).

    Exactly one of n (public) and n_min (n secret) is given. Without a mechanism the answer is +inf, which covers all.
    A training-conditional promise that the mechanism does not keep is certified at coverage 0, and so is any for
    mechanisms other than `slopes`. A mechanism without a certificate gets no promise, of kind `"none"`.
    """
    level = 1 - alpha
    if mechanism is None:
        coverage: Fraction | None = Fraction(1)
    elif delta is None:
        coverage = mechanism.certified(level, m, n, n_min)
    else:
        kept = isinstance(mechanism, Slopes) and _keeps(mechanism, level, m, n, n_min, delta)
        coverage = level if kept else Fraction(0)
    if coverage is None:
        return Guarantee("none", 0.0, None, n, n_min)
    kind: GuaranteeKind = "marginal" if delta is None else "training_conditional"
    return Guarantee(kind, _rounded_down(coverage, level), delta, n, n_min)


def _keeps(mechanism: Slopes, level: Fraction, m: int, n: int | None, n_min: int | None, delta: float) -> bool:
    slope, selector = mechanism.slope_left, mechanism.selector
    if n is not None:
        target = float(mechanism.target(n))
        return conditional_failure(n, float(level), target, slope, m, selector) <= delta
    assert n_min is not None
    return line_holds(mechanism.rate, mechanism.offset, level, delta, n_min, slope, m, selector)


def _rounded_down(coverage: Fraction, level: Fraction) -> float:
    """The coverage as a float: the level's own float if it is met exactly, else never above the exact value."""
    return float(level) if coverage == level else float_below(coverage)
