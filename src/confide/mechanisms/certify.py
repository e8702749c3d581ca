"""The coverage guarantee of a mechanism, computed from public numbers alone, so that readers can recompute it."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.guarantee import Guarantee, GuaranteeKind, conditional_failure, line_holds
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.slopes import Slopes
from confide.support import float_below


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def certify(
    mechanism: Mechanism | None,
    alpha: Fraction,
    m: int,
    n: int | None,
    n_min: int | None,
    delta: float | None,
) -> Guarantee:
    """The guarantee of a mechanism over m candidates, for a public n or a secret one (docs/theory.md, Theorems C2, C3).

    Without a mechanism the answer is +inf, which covers all. A training-conditional guarantee that does not hold is
    certified at coverage 0, and so is each one for mechanisms other than `slopes`. A mechanism without a certificate
    has a guarantee of kind `"none"`.
    """
    level = 1 - alpha
    if mechanism is None:
        coverage: Fraction | None = Fraction(1)
    elif delta is None:
        coverage = mechanism.certified(level, m, n, n_min)
    else:
        holds = isinstance(mechanism, Slopes) and _keeps(mechanism, level, m, n, n_min, delta)
        coverage = level if holds else Fraction(0)
    if coverage is None:
        return Guarantee("none", 0.0, None, n, n_min)
    kind: GuaranteeKind = "marginal" if delta is None else "training_conditional"
    return Guarantee(kind, _rounded_down(coverage, level), delta, n, n_min)


def _keeps(mechanism: Slopes, level: Fraction, m: int, n: int | None, n_min: int | None, delta: float) -> bool:
    noise = mechanism.noise(m)
    if n is not None:
        return conditional_failure(n, float(level), float(mechanism.target(n)), noise.left, noise.rivals) <= delta
    assert n_min is not None
    return line_holds(mechanism.rate, mechanism.offset, level, delta, n_min, noise)


def _rounded_down(coverage: Fraction, level: Fraction) -> float:
    return float(level) if coverage == level else float_below(coverage)
