"""Calls that release several thresholds under one budget; each builds on `calibrate`."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from confide.arrays.checked import as_positions, as_vector
from confide.calibration.calibrate import calibrate, calibrate_histogram
from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.mechanisms.composition import shares_of
from confide.mechanisms.privacy import NEIGHBORS, Neighbors
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration
from confide.scores.kinds import score_kind
from confide.scores.regression import interval_score
from confide.support.checks import one_of, privacy_loss, several
from confide.support.names import check_names
from confide.support.rationals import Level, exact_level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


def calibrate_levels(
    scores: ArrayLike,
    alphas: Sequence[Level],
    epsilon: float | None = None,
    *,
    score: str | None = None,
    rho: float | None = None,
    shares: Sequence[Level] | None = None,
    delta: Level | None = None,
    **options: Any,
) -> LevelCalibration:
    """Nested thresholds for several levels under one budget.

    The budget is divided among the levels, and each keeps the promise of `calibrate` at its share. Afterwards every
    threshold is raised to the largest one of a less demanding level, so that sets are nested; raising one never lowers
    its coverage, and looks at the released numbers alone.

    Parameters
    ----------
    scores
        Shape (n,), as in `calibrate`.
    alphas
        Different miscoverage levels in (0, 1).
    epsilon, rho
        The budget of all levels together. Give one of the two.
    shares
        How the budget is divided, in the order of `alphas`; positive, summing to one; by default evenly.
    delta
        Training-conditional promises that hold for all levels at once with probability 1 - delta: each gets an equal
        part of delta.
    score, **options
        As in `calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).random(5000)
    >>> released = calibrate_levels(scores, [0.05, 0.1, 0.2], epsilon=1.0, score="lac")
    >>> [round(released[alpha].threshold, 1) for alpha in (0.2, 0.1)], released.privacy.epsilon <= 1
    ([0.8, 0.9], True)
    """
    levels = [exact_level("alphas", alpha) for alpha in several("alphas", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            f"alphas must be one or more different levels; found {len(levels)}, {len(set(levels))} different"
        )
    parts = _divide(epsilon, rho, _shares(shares, len(levels)))
    array = as_vector("scores", scores)
    found = {
        level: calibrate(array, level, score=score, delta=_part_of(delta, len(levels)), **part, **options)
        for level, part in zip(levels, parts, strict=True)
    }
    reached = -math.inf
    nested: dict[Fraction, Calibration] = {}
    for level in sorted(found, reverse=True):
        reached = max(reached, found[level].threshold)
        nested[level] = replace(found[level], threshold=reached)
    return LevelCalibration(nested)


def calibrate_groups(
    scores: ArrayLike,
    groups: ArrayLike,
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None = None,
    *,
    by: Literal["group", "class"] = "group",
    score: str | None = None,
    candidates: Candidates | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    partition: str | None = None,
    **options: Any,
) -> GroupCalibration:
    """One threshold per group (Mondrian conformal prediction), so that every group is covered on its own.

    Vovk, Lindsay, Nouretdinov and Gammerman, "Mondrian confidence machine", 2003. With `by="class"` the groups are
    the records' own labels, and every class is covered on its own.

    Groups are disjoint, so under `add_remove` each may spend the whole budget. A replaced record can leave one group
    and enter another: under `replace_one` each spends half of it (docs/theory-groups.md). Group sizes stay secret
    under both. A group with too few records gets the threshold +inf.

    Parameters
    ----------
    scores, alpha, epsilon, rho, score, candidates, **options
        As in `calibrate`; the promise holds for each group.
    groups
        The group of each record, shape (n,); for `by="class"` its label.
    names
        All groups there are, **public**: taken from a code book, not from the records.
    by
        What the threshold depends on: `"group"` or `"class"`.
    neighbors
        The relation under which the budget is meant.
    ledger, dataset
        As in `calibrate`; groups are charged as cells of one partition, so under `add_remove` they cost their maximum.
    partition
        Public name of what divides the records, such as `"hospital"`; required with a ledger. One name must always
        stand for one way of dividing them.

    Warns
    -----
    CoverageWarning
        If thresholds are +inf; it names the groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores, labels = rng.random(5000), rng.integers(0, 2, 5000)
    >>> released = calibrate_groups(scores, labels, [0, 1], 0.1, 1.0, by="class", score="lac", neighbors="replace_one")
    >>> released.privacy.epsilon <= 1, released.privacy.add_remove
    (True, 0.5)
    """
    one_of("by", by, ("group", "class"))
    terms = group_terms(names, epsilon, rho, neighbors, ledger, dataset, partition)
    known = tuple(terms)
    array = as_vector("scores", scores)
    place = as_positions("groups", groups, known, len(array))
    kind = score_kind(score)
    # A score that cannot be counted is refused with its own position, before anything is released.
    chosen = kind.candidates() if candidates is None else candidates
    whole = ScoreHistogram.from_scores(array, chosen, score)
    settings = {**options, "score": score}
    parts: dict[str | int, Calibration] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        for i, name in enumerate(known):
            members, paid = array[place == i], terms[name]
            if members.size:
                parts[name] = calibrate(members, alpha, candidates=whole.candidates, **settings, **paid)
            else:
                parts[name] = calibrate_histogram(ScoreHistogram.empty(whole.candidates), alpha, **settings, **paid)
    return warned(GroupCalibration(by, neighbors, parts))


def group_terms(
    names: Sequence[str | int],
    epsilon: float | None,
    rho: float | None,
    neighbors: Neighbors,
    ledger: "Ledger | None",
    dataset: "str | Dataset | None",
    partition: str | None,
) -> dict[str | int, dict[str, Any]]:
    """What every group of a partition may spend, and who pays: arguments for `calibrate`, by the groups' names."""
    one_of("neighbors", neighbors, NEIGHBORS)
    known = check_names("names", names)
    budget = _divide(epsilon, rho, [Fraction(1)], replaced=neighbors == "replace_one")[0]
    accounts = _accounts(ledger, dataset, partition, known)
    return {name: {**budget, **accounts[name]} for name in known}


def warned(released: GroupCalibration) -> GroupCalibration:
    """The same, after a warning that names the groups whose threshold is +inf."""
    if released.infinite:
        shown = ", ".join(map(repr, released.infinite[:10])) + (" ..." if len(released.infinite) > 10 else "")
        warnings.warn(
            f"the threshold is +inf for {len(released.infinite)} of {len(released.parts)} groups: {shown}; every label "
            "is in their sets; they need more records, or a larger epsilon or alpha",
            CoverageWarning,
            stacklevel=3,
        )
    return released


def calibrate_sides(
    quantiles: ArrayLike,
    targets: ArrayLike,
    alpha: Level | tuple[Level, Level],
    epsilon: float | None = None,
    *,
    rho: float | None = None,
    share_low: Level = "0.5",
    delta: Level | None = None,
    **options: Any,
) -> SidesCalibration:
    """One-sided thresholds for both ends of conformalized quantile regression, under one budget.

    Romano, Patterson and Candes, NeurIPS 2019, Theorem 2: the two sides are calibrated separately, and the interval
    covers with probability at least 1 - alpha by the union bound.

    Parameters
    ----------
    quantiles
        Shape (n, 2): lower and upper quantiles predicted for the calibration records.
    targets
        Shape (n,).
    alpha
        Miscoverage of the interval, split in halves, or a pair (lower side, upper side).
    epsilon, rho
        The budget of both together; the lower side gets `share_low` of it.
    delta
        A training-conditional promise for the interval; each side gets half of delta.
    **options
        As in `calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = calibrate_sides(np.tile([-1.0, 1.0], (5000, 1)), rng.normal(size=5000), 0.1, 1.0)
    >>> 0.4 < released.low.threshold < 1 and 0.4 < released.high.threshold < 1
    True
    """
    if isinstance(alpha, tuple):
        low, high = (exact_level("alpha", side) for side in alpha)
    else:
        low = high = exact_level("alpha", alpha) / 2
    if low + high >= 1:
        raise InputError("alpha of both sides must sum to less than one")
    share = exact_level("share_low", share_low)
    parts = _divide(epsilon, rho, [share, 1 - share])
    below, above = (interval_score(quantiles, targets, name) for name in ("cqr_low", "cqr_high"))
    each = _part_of(delta, 2)
    return SidesCalibration(
        calibrate(below, low, score="cqr_low", delta=each, **parts[0], **options),
        calibrate(above, high, score="cqr_high", delta=each, **parts[1], **options),
    )


def _divide(
    epsilon: float | None, rho: float | None, shares: Sequence[Fraction], *, replaced: bool = False
) -> list[dict[str, Any]]:
    """Keyword arguments for `calibrate` per share; half of epsilon, or a quarter of rho, if two groups may change."""
    if epsilon is None and rho is None:
        return [{} for _ in shares]
    if epsilon is not None and rho is not None:
        raise InputError("epsilon or rho must be given, and not both")
    name, total = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    part = Fraction(1, {"epsilon": 2, "rho": 4}[name]) if replaced else Fraction(1)
    return [{name: value} for value in shares_of(privacy_loss(name, total), [share * part for share in shares])]


def _accounts(
    ledger: "Ledger | None", dataset: "str | Dataset | None", partition: str | None, names: Sequence[str | int]
) -> dict[str | int, dict[str, Any]]:
    """Keyword arguments for `calibrate` per group: which cell of the data set's partition pays."""
    if ledger is None and dataset is None:
        return {name: {} for name in names}
    from confide.ledger import Dataset, Group

    if partition is None or dataset is None or ledger is None:
        raise InputError("ledger, dataset and partition must be given together: whose budget, where, divided by what")
    whole = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    if whole.group is not None:
        raise InputError("dataset must be the whole one, without a group; its groups are charged by their names")
    cells = {name: Dataset(whole.name, Group(partition, str(name)), whole.fingerprint) for name in names}
    return {name: {"ledger": ledger, "dataset": cell} for name, cell in cells.items()}


def _shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        raise InputError(
            f"shares must be {count} positive numbers that sum to one; found {len(exact)}, sum {sum(exact)}"
        )
    return exact


def _part_of(delta: Level | None, count: int) -> Fraction | None:
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)
