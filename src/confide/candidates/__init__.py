"""Public candidate thresholds: lists of them, and laws whose quantiles give a list of the planned size.

lists.py   `Candidates`: a list of thresholds that ends in +inf; `AnyCandidates`: the type of `candidates=`
spread.py  `Spread`: quantiles of a public heavy-tailed law, in a scale for each kind of score; sizes beyond which a
           threshold gets a warning
"""

from confide.candidates.lists import BUILDERS, AnyCandidates, Candidates, spread_of, spread_words
from confide.candidates.spread import (
    PLAUSIBLE,
    SPREAD_PLAUSIBLE,
    SPREADS,
    Spread,
    SpreadKind,
    plausible_thresholds,
)
