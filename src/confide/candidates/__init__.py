"""Public candidate thresholds: lists of them, and laws by which as many are spread as a plan decides.

lists.py   `Candidates`: a list of thresholds that ends in +inf; `AnyCandidates`: what `candidates=` takes
spread.py  `Spread`: quantiles of a public heavy-tailed law, in the scale that suits a kind of score; sizes beyond which
           a threshold is worth a word
"""

from confide.candidates.lists import BUILDERS, AnyCandidates, Candidates, spread_words
from confide.candidates.spread import PLAUSIBLE, SPREAD_PLAUSIBLE, SPREADS, Spread, SpreadKind, plausible_sizes
