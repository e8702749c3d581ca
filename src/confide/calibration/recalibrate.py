"""The call that renews a release on new records: the same request, from a warm start, charged anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_array, as_positions, as_vector, column_names, refuse_other_rows
from confide.calibration.renewal import Renewal
from confide.calibration.risk import critical_thresholds, false_negative_thresholds
from confide.calibration.shifted import weighted_counts
from confide.calibration.threshold import Seen, seen_by
from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError
from confide.planning import ClassShift
from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    GroupCalibration,
    Release,
    RiskCalibration,
    SidesCalibration,
    names_for,
)
from confide.scores import interval_score, named_by

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger

Renewed = TypeVar("Renewed", bound=Release)


def recalibrate(
    previous: Renewed,
    scores: ArrayLike,
    *,
    targets: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    u: Uniforms = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    n_typical: int | None = None,
    cold: bool = False,
    candidates: AnyCandidates = None,
    about: Mapping[str, str] | None = None,
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
    partition: str | None = None,
    again: bool = False,
    **options: Any,
) -> Renewed:
    """Renew a release: put its request to new records, and name it as the predecessor.

    Level, relation, method, classes, groups and the rest are those of `previous`. Candidates are spread around its
    threshold, which is public, and half of them as if there were none: sharper if little has changed, and hardly worse
    if much has. The loss is a new one, and adds up with the earlier for people who are in both.

    Parameters
    ----------
    previous
        What `calibrate` or one of its kin released, or `recalibrate`.
    scores
        The scores of the new records, shape (n,), of the same score as before. For a release of two sides: the
        quantiles, shape (n, 2), with `targets`. For one of a false-negative rate: the probabilities, shape (n, K), with
        `truth`. For one of another loss: the losses, shape (n, m-1), with `candidates`.
    targets, truth, u
        As in `calibrate_sides`, `calibrate_false_negatives` and `calibrate_losses`.
    groups
        For a release with groups or classes: that of each record, shape (n,).
    labels, weights
        For a release whose promise is for a population that is a known shift away: the class, or the weight, of each
        record, as in `calibrate`.
    epsilon, rho
        Another budget of the whole release, divided among thresholds as before.
    n_typical
        As in `confide.plan`; a release does not keep it.
    cold
        Candidates that do not depend on `previous`. **Needed where a record was in an earlier release of the chain,
        too**: its threshold then depends on these data, and the promise of a warm start is for new records (see
        docs/after-release.md). The privacy is the same either way.
    candidates
        For values of your own, which a release does not keep: the same again.
    about
        As in `calibrate`; the words of `previous` are its own.
    ledger, dataset, partition, again
        As in `calibrate` and `calibrate_groups`. To renew another release is another request, so new records under
        the same name are charged, and the same renewal of the same data is the earlier answer.
    **options
        `slopes`, `rise`, `shift`, as in `confide.plan`; without them they are chosen anew.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        Of the kind of `previous`.

    Raises
    ------
    InputError, InputTypeError, OtherDataError, BudgetError, LedgerError
        As `calibrate`; also if the release does not say what is needed.

    Examples
    --------
    >>> import numpy as np, confide
    >>> rng = np.random.default_rng(0)
    >>> january = confide.calibrate(rng.beta(2, 5, 1000), 0.1, 1.0, score="lac", about={"date": "2026-01"})
    >>> february = recalibrate(january, rng.beta(2, 5, 1000), about={"date": "2026-02"})
    >>> february.alpha == january.alpha, february.epsilon, len(february.predecessors)
    (True, 1.0, 1)
    >>> february.recipe["around"] == january.threshold
    True
    """
    renewal = Renewal.of(
        previous, epsilon=epsilon, rho=rho, n_typical=n_typical, cold=cold, candidates=candidates, **options
    )
    records = {"targets": targets, "groups": groups, "truth": truth, "u": u, "labels": labels, "weights": weights}
    given = {name: value for name, value in records.items() if value is not None}
    refuse_other_rows(scores=scores, **given)
    _check_records(renewal, given)
    found = _scores(renewal, scores, given, candidates)
    n = len(next(iter(found.values())))
    place = None if groups is None else as_positions("groups", groups, tuple(renewal.parts), n)
    lists = renewal.candidates(n)
    account: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "partition": partition, "again": again}

    def seen() -> dict[Any, Seen]:
        if place is not None:  # a score that cannot be counted is refused with its own position among all records
            first = next(iter(renewal.parts))
            seen_by(None, found[None], lists[first], renewal.parts[first].score)
        return {name: own(row, name, part.score) for row, (name, part) in enumerate(renewal.parts.items())}

    def own(row: int, name: Any, score: str | None) -> Seen:
        array = found[score if isinstance(previous, SidesCalibration) else None]
        if renewal.population is not None:
            return weighted_counts(array, lists[name], score, renewal.population, labels, weights)
        some = array if place is None else array[place == row]
        return seen_by(renewal.asked[name]["mechanism"], some, lists[name], score)

    renewed: Renewed = renewal.price(n, about=about, **account).release(seen)
    return renewed


def _check_records(renewal: Renewal, given: Mapping[str, Any]) -> None:
    """Refuse what belongs to other kinds of releases, and say what this kind needs."""
    previous = renewal.previous
    needed: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    if isinstance(previous, SidesCalibration):
        needed = ("targets",)
    elif isinstance(previous, GroupCalibration):
        needed = ("groups",)
    elif isinstance(previous, RiskCalibration):
        needed, more = ("truth",) if previous.loss == FALSE_NEGATIVES else (), ("u",)
    if renewal.population is not None:
        needed = (*needed, "labels" if isinstance(renewal.population, ClassShift) else "weights")
    if missing := [name for name in needed if name not in given]:
        shifted = ", for a population that is a known shift away" if missing[0] in ("labels", "weights") else ""
        raise InputError(f"{missing[0]} must be given: previous is a {type(previous).__name__}{shifted}")
    if wrong := [name for name in given if name not in (*needed, *more)]:
        raise InputError(f"{wrong[0]} must be left out: previous is a {type(previous).__name__}")


def _scores(
    renewal: Renewal, scores: ArrayLike, given: Mapping[str, Any], candidates: AnyCandidates
) -> dict[str | None, NDArray[Any]]:
    """The scores of the records, by the side or None; refused if they know another name than that of the release."""
    previous = renewal.previous
    if isinstance(previous, SidesCalibration):
        return {name: interval_score(scores, given["targets"], name) for name in renewal.parts}
    if isinstance(previous, RiskCalibration):
        if previous.loss == FALSE_NEGATIVES:
            names_for(previous, column_names(scores), as_array("scores", scores).shape[-1])
            return {None: false_negative_thresholds(scores, given["truth"], u=given.get("u"))}
        over = renewal.laws[None] if candidates is None else candidates
        if not isinstance(over, Candidates):
            raise InputError("candidates must be given: those that the losses belong to")
        return {None: critical_thresholds(scores, over, u=given.get("u"), bound=previous.bound)}
    part: Calibration = next(iter(renewal.parts.values()))
    named_by(scores, part.score, part.classes)
    return {None: as_vector("scores", scores, empty=True)}
