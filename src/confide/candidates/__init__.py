"""Public candidate thresholds: lists of them, and laws by which as many are spread as a plan decides.

lists.py   `Candidates`: a list of thresholds that ends in +inf
spread.py  `Spread`: quantiles of a public heavy-tailed law, in the scale that suits a kind of score
"""

from confide.candidates.lists import BUILDERS, Candidates, spread_words
from confide.candidates.spread import SPREADS, Spread, SpreadKind

__all__ = ["BUILDERS", "SPREADS", "Candidates", "Spread", "SpreadKind", "spread_words"]
