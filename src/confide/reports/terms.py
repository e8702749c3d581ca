"""Terms of the theory, each explained in a sentence or two where a page uses it."""

from collections.abc import Mapping
from types import MappingProxyType

TERMS: Mapping[str, str] = MappingProxyType(
    {
        "Target rank": "Of the records’ scores, put in order, the one that the threshold aims at, chosen "
        "so that the promise holds in spite of the noise.",
        "Slopes per rank, below and above it": "How fast the weight of a candidate threshold in the draw falls with "
        "every rank that it lies away from the target: by the factor e to the power of this number.",
        "Rise of the candidates": "A public head start for larger candidates, the same whatever the records are.",
        "Head start of +∞": "By how many ranks the candidate that excludes nothing is favoured, so that too few "
        "records lead to it and not to a threshold that covers too little.",
        "Drawn by": "The rule of the draw, and the size of its noise: one candidate is drawn, likelier the nearer it "
        "is to the target.",
        "Largest weight": "Records count in whole steps, at most so many each.",
        "Conformity score": "The number that says how strange a label or a value is for a record; larger is stranger.",
        "Miscoverage level α": "The share of truths that may be missed.",
        "Candidate thresholds": "The public list that the threshold is drawn from, fixed before any record was seen.",
        "Certified coverage": "What coverage cannot fall below, whatever the distribution of scores, computed for this "
        "very mechanism.",
        "Failure probability δ": "How likely an unlucky draw of records or noise is, which covers less.",
        "Certified by": "Where the proof is written, in the library’s documentation.",
        "Expected coverage": "With scores as described below, in the mean over records and noise.",
        "Chance of +∞": "A threshold of +∞ excludes nothing: the honest answer where records are too few.",
        "Coverage at most, on average": "No distribution without ties leads to more, but for the mass between two "
        "neighbouring candidates.",
        "Rank without privacy": "The rank that conformal prediction takes without noise: ⌈(n + 1)(1 − α)⌉.",
        "Gaps that are jumped": "Where scores leave a gap, candidates inside it are as good as those at its end, and a "
        "draw may land beyond.",
        "Records needed": "From here on a useful answer is nearly certain.",
    }
)
