"""OpenDP's own scores of candidates, to compare ours with them."""

import numpy as np
from numpy.typing import NDArray
from opendp.transformations import make_quantile_score_candidates

from confide.mechanisms.opendp_quantile import _records, _space
from confide.selection import with_contrib


def quantile_scores(counts: NDArray[np.int64], level: float, size: int | None = None) -> NDArray[np.float64]:
    """OpenDP's scores of all candidates (`make_quantile_score_candidates`), as fractions; larger is better."""
    domain, metric = _space(size)
    candidates = list(range(len(counts)))
    scorer = with_contrib(lambda: make_quantile_score_candidates(domain, metric, candidates, level))
    losses = np.array(scorer(_records(counts)), dtype=np.float64)
    # OpenDP multiplies by a denominator; the map of two additions determines it.
    unit = scorer.map(2) / (2 * max(level, 1 - level)) if size is None else scorer.map(2)
    scores: NDArray[np.float64] = -losses / unit
    return scores
