"""One threshold per group or class, with group sizes kept secret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.calibration.options import check_options
from confide.calibration.priced import PricedRelease
from confide.calibration.shares import divide_budget, typical_of_groups
from confide.calibration.shifted import refuse_weights
from confide.calibration.suited import suited_candidates
from confide.calibration.threshold import price_threshold
from confide.candidates import AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.releases import GroupCalibration, warn_of
from confide.scores import named_by
from confide.support import Level, check_names, one_of

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


def calibrate_groups(
    scores: ArrayLike,
    groups: ArrayLike,
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None = None,
    *,
    by: Literal["group", "class"] = "group",
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
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
    scores, alpha, epsilon, rho, score, classes, candidates, unit, **options
        As in `calibrate`; the promise holds for each group, and `n_typical` is a guess of the size of one: by default
        an even part of a thousand records, and at least 150.
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
        If thresholds are +inf or nearly so; it names the groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores, labels = rng.random(5000), rng.integers(0, 2, 5000)
    >>> released = calibrate_groups(scores, labels, [0, 1], 0.1, 1.0, by="class", score="lac", neighbors="replace_one")
    >>> released.privacy.epsilon <= 1, released.privacy.add_remove
    (True, 0.5)
    """
    check_options("calibrate_groups", options)
    score, of_classes = named_by(scores, score, classes)
    payer: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "partition": partition}
    options |= {"rho": rho, "by": by, "neighbors": neighbors, "classes": of_classes, **payer}
    parts = len(check_names("names", names))
    chosen = suited_candidates(candidates, score, alpha, epsilon, unit=unit, groups=parts, **options)
    priced = price_groups(names, alpha, epsilon, chosen, score, **options)
    known = tuple(priced.parts)
    refuse_other_rows(scores=scores, groups=groups)
    array = as_vector("scores", scores, empty=True)
    place = as_positions("groups", groups, known, len(array))

    def seen() -> dict[str | int, ScoreHistogram]:
        # A score that cannot be counted is refused with its own position among all records.
        ScoreHistogram.from_scores(array, chosen, score)
        return {name: ScoreHistogram.from_scores(array[place == i], chosen, score) for i, name in enumerate(known)}

    released: GroupCalibration = priced.release(seen)
    return released


def price_groups(
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None,
    candidates: Candidates,
    score: str | None,
    *,
    by: Literal["group", "class"] = "group",
    neighbors: Neighbors = "add_remove",
    **options: Any,
) -> PricedRelease:
    """The same for scores that are counted elsewhere: one histogram per group, by its name.

    Examples
    --------
    >>> candidates = Candidates.unit(100)
    >>> counts = {name: ScoreHistogram.from_scores([0.5] * 1000, candidates) for name in ("a", "b")}
    >>> price_groups(["a", "b"], 0.1, 1.0, candidates, "lac").release(lambda: counts).privacy.epsilon
    1.0
    """
    one_of("by", by, ("group", "class"))
    refuse_weights(options, "with groups or classes of their own, which keep their promise under every shift of shares")
    options["classes"] = options.get("classes") if by == "group" else None  # else they are the names
    if options.get("mechanism") == "none":
        raise InputError("mechanism must be a private one: sizes of groups, which 'none' reveals, stay secret")
    parts = {
        name: (name, price_threshold(alpha, candidates=candidates, score=score, **own))
        for name, own in _group_terms(names, epsilon, neighbors=neighbors, **options).items()
    }
    return PricedRelease(parts, lambda drawn: warned(GroupCalibration(by, neighbors, drawn)), warns_together=True)


def _group_terms(
    names: Sequence[str | int],
    epsilon: float | None,
    *,
    neighbors: Neighbors,
    rho: float | None = None,
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
    partition: str | None = None,
    **options: Any,
) -> dict[str | int, dict[str, Any]]:
    """Arguments for `calibrate` by the groups' names: what each may spend, who pays, and all other options."""
    one_of("neighbors", neighbors, NEIGHBORS)
    known = check_names("names", names)
    if options.get("n_typical") is None:
        options["n_typical"] = typical_of_groups(len(known), options.get("n_min", 1))
    budget = divide_budget(epsilon, rho, [Fraction(1)], replaced=neighbors == "replace_one")[0]
    paid = {**budget, **options}
    payers = payers_of(known, ledger, dataset, partition)
    return {name: {**paid, **payers[name]} for name in known}


def payers_of(
    names: Iterable[str | int], ledger: Ledger | None, dataset: str | Dataset | None, partition: str | None
) -> dict[str | int, dict[str, Any]]:
    """Who pays for each group: a cell of one partition of the data set; nobody without a ledger."""
    if ledger is None and dataset is None and partition is None:
        return {name: {} for name in names}
    from confide.ledger import Dataset, Group, Ledger

    if partition is None or dataset is None or ledger is None:
        raise InputError("ledger, dataset and partition must be given together: whose budget, where, divided by what")
    whole = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    if whole.group is not None:
        raise InputError("dataset must be the whole one, without a group; its groups are charged by their names")
    paid = {"ledger": ledger, "accounts": ledger.accounts() if isinstance(ledger, Ledger) else None}
    cells = {name: replace(whole, group=Group(partition, str(name))) for name in names}
    return {name: {**paid, "dataset": cell} for name, cell in cells.items()}


def warned(released: GroupCalibration) -> GroupCalibration:
    """The same, after warnings that name the groups whose threshold is +inf, or nearly so."""
    warn_of(released)
    return released
