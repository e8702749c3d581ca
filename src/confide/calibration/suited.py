"""The list of candidates that a release is counted over: one that was given, or as many as suit what is asked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.calibration.shares import different_levels, part_of, part_of_failure, typical_of_groups
from confide.candidates import AnyCandidates, Candidates
from confide.mechanisms import published_candidates
from confide.planning import OPTIONS, SIZES, check_request
from confide.scores import score_kind
from confide.support import Level


def suited_candidates(
    candidates: AnyCandidates,
    score: str | None,
    alpha: Any,
    epsilon: float | None = None,
    n: int | None = None,
    *,
    unit: float | None = None,
    parts: int = 1,
    groups: int | None = None,
    known_later: bool = False,
    **options: Any,
) -> Candidates:
    """The candidates to count over, decided from public numbers before there are any counts.

    Parameters
    ----------
    candidates
        A list, which is taken as it is; how they are spread; their number; or None for what suits the score.
    score
        The name of the score.
    n
        The number of records where it is public; where it is secret `n_typical` stands for it.
    alpha, epsilon, **options
        As in `calibrate`. Options that are no choices of a plan are not looked at.
    unit
        A public typical size of residuals, for default candidates only.
    parts
        Among how many thresholds the budget is divided.
    groups
        How many groups the records are divided into, if each gets a threshold of its own.
    known_later
        The number of records is public, but nobody knows it before they are counted: take every candidate that may be
        chosen then, see `ScoreHistogram.over`.

    Raises
    ------
    InputError, InputTypeError
        If a choice cannot be used.

    Examples
    --------
    >>> suited_candidates(None, "lac", 0.1, 1.0, 200, neighbors="replace_one").size
    61
    >>> suited_candidates(None, "absolute_residual", 0.1, 1.0, unit=25.0).recipe["unit"]
    25.0
    """
    kind = score_kind(score)
    if candidates is None and unit is None and options.get("mechanism") == "pcoqs-published":
        return published_candidates()
    spread = kind.asked(candidates, unit)
    if isinstance(spread, Candidates):
        return spread
    chosen = {name: value for name, value in options.items() if name in OPTIONS}
    if candidates is None and unit is None and chosen.get("mechanism", "slopes") != "slopes":
        return kind.candidates()
    changed = 1
    if groups is not None:
        if chosen.get("n_typical") is None:
            chosen["n_typical"] = typical_of_groups(groups, chosen.get("n_min", 1))
        if chosen.get("neighbors") == "replace_one":  # a replaced record can change two groups, of secret sizes
            chosen["neighbors"], changed = "add_remove", 2
    own = part_of("epsilon", epsilon, parts * changed)
    rho = part_of("rho", chosen.pop("rho", None), parts * changed**2)
    delta = part_of_failure(chosen.pop("delta", None), parts)
    known = n or chosen.get("n_typical") or typical_of_groups(1, chosen.get("n_min", 1))
    request = check_request(alpha=alpha, epsilon=own, rho=rho, delta=delta, n=known, candidates=spread, **chosen)
    if known_later and request.mechanism == "slopes":
        lists = [Candidates.quantiles(spread, size).edges for size in SIZES]
        return Candidates.of(np.unique(np.concatenate(lists)))
    return request.candidates


def suited_for_levels(
    candidates: AnyCandidates,
    score: str | None,
    alphas: Sequence[Level],
    epsilon: float | None = None,
    n: int | None = None,
    **options: Any,
) -> Candidates:
    """The candidates of several levels under one budget: those that suit the least demanding one.

    Examples
    --------
    >>> suited_for_levels(None, "lac", [0.1, "1/5"], 1.0) == suited_candidates(None, "lac", "1/5", 0.5)
    True
    """
    levels = different_levels(alphas)
    return suited_candidates(candidates, score, max(levels), epsilon, n, parts=len(levels), **options)
