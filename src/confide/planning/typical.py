"""What a mechanism answers on typical scores: the law of its choice if the counts are those to be expected.

Typical scores are the first of the reference laws: evenly spread, or the residuals of a bell whose unit is right.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.mechanisms import Slopes
from confide.planning.choice import answer_law
from confide.planning.reference_laws import law_of, suggested_laws


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def typical_law(candidates: Candidates) -> NDArray[np.float64]:
    """P(score <= e_j) on typical scores, float64 of shape (m,).

    Examples
    --------
    >>> typical_law(Candidates.unit(5))
    array([0.25, 0.5 , 0.75, 1.  , 1.  ])
    """
    below = np.append(suggested_laws(candidates.edges, law_of(candidates))[0][0], 1.0)
    below.flags.writeable = False
    return below


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def typical_answer(mechanism: Slopes, candidates: Candidates, n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate among n typical scores, float64 of shape (m,).

    Examples
    --------
    >>> from fractions import Fraction
    >>> mechanism = Slopes(Fraction(0), Fraction(90), 1, 1, 1.0, "permute_and_flip")
    >>> int(typical_answer(mechanism, Candidates.unit(101), 100).argmax())
    89
    """
    law = answer_among(mechanism, typical_law(candidates), n)
    law.flags.writeable = False
    return law


def answer_among(mechanism: Slopes, below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate among n scores of which the shares `below` are at most each; shape (m,)."""
    slopes, heights = (mechanism.slope_left, mechanism.slope_right), mechanism.log_weights(len(below), n)
    return answer_law(n * below, float(mechanism.target(n)), *slopes, heights, mechanism.selector)
