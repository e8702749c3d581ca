"""Expectations of a design for typical scores: coverage, and the chances of +inf and of an answer beyond all scores.

Typical scores are the first of the reference laws: uniform, or Gaussian residuals with the right unit. The law of the
answer is that for counts which equal their expectations.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from confide.core.design import Design, design_at
from confide.core.mean_price import answer_among
from confide.core.reference_laws import typical_law
from confide.core.terms import Terms
from confide.mechanisms import Slopes


@dataclass(frozen=True)
class Expectation:
    """What n typical scores lead to: coverage, and the chances of +inf and of a threshold beyond all of them."""

    coverage: float
    chance_of_all: float
    chance_beyond: float


# The noisy numbers of records of an expectation: one in the middle of each of these parts of their law.
_PARTS = (0.0, 0.002, 0.01, 0.03, 0.1, 0.25, 0.42, 0.58, 0.75, 0.9, 0.97, 0.99, 0.998, 1.0)


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def expectation(design: Design, n: int) -> Expectation:
    """What a design leads to, or with a noisy number of records all designs of its terms."""
    terms, effective = design.terms, design.terms.effective(n)
    weighted = designs_for(terms, n) if terms.sized else [(1.0, design)]
    parts = [[share * value for value in _expected_of(each, effective, n)] for share, each in weighted]
    return Expectation(*(min(1.0, math.fsum(column)) for column in zip(*parts, strict=True)))


def designs_for(terms: Terms, n: int) -> list[tuple[float, Design]]:
    """The designs for noisy numbers of n records, and their probabilities; without noise the only one."""
    if terms.size_scale is None:
        return [(1.0, design_at(terms, n))]
    return [(share, design_at(terms, n + z)) for share, z in noise_cases(terms.size_scale)]


def noise_cases(scale: float) -> list[tuple[float, int]]:
    """Noises of a number of records, rounded, with the probabilities of the parts of their law."""
    cases = []
    # The quantile of the Laplace distribution in the middle of each part.
    for low, high in pairwise(_PARTS):
        middle = (low + high) / 2
        far = round(-scale * math.log(2 * min(middle, 1 - middle)))
        cases.append((high - low, far if middle > 0.5 else -far))
    return cases


def _expected_of(design: Design, effective: int, n: int) -> tuple[float, float, float]:
    mechanism = design.mechanism
    if mechanism is None:
        return 1.0, 1.0, 1.0
    assert isinstance(mechanism, Slopes)
    below = typical_law(design.candidates)
    law = answer_among(mechanism, below, effective)
    none_above = np.append(0.0, below[:-1]) ** n
    return min(1.0, float(law @ below)), float(law[-1]), min(1.0, float(law @ none_above))


def chance_text(chance: float) -> str:
    """A probability in percent."""
    return f"{chance:.1%}" if chance >= 0.0005 else "below 0.05%"
