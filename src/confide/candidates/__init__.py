"""Public candidate thresholds: lists of them, and laws whose quantiles give a list of the planned size.

lists.py   `Candidates`: a list of thresholds that ends in +inf; `AnyCandidates`: the type of `candidates=`
spread.py  `Spread`: quantiles of a public heavy-tailed law; `SHAPES`: all that follows from each kind of spread
"""

from confide.candidates.lists import BUILDERS, AnyCandidates, Candidates, OwnCandidates, listed, spread_of, spread_words
from confide.candidates.spread import FINEST, LENGTHS, SHAPES, Shape, Spread, SpreadKind
