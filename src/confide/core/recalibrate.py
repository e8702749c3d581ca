"""The function that renews a release with new records: the same request, charged again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_array, as_vector, column_names, refuse_other_rows
from confide.candidates import AnyCandidates, Candidates
from confide.core.calibrate import Options, split_options
from confide.core.calibration import FALSE_NEGATIVES, Release
from confide.core.metadata import names_for
from confide.core.population import ClassShift
from confide.core.release import release
from confide.core.request import SIDES, Key, Request
from confide.core.risk import critical_thresholds, false_negative_thresholds
from confide.core.sources import Scores
from confide.errors import InputError
from confide.scores import interval_score, name_of_scores

if TYPE_CHECKING:
    from collections.abc import Mapping

Renewed = TypeVar("Renewed", bound=Release)


def recalibrate(
    previous: Renewed,
    scores: ArrayLike,
    *,
    targets: ArrayLike | None = None,
    groups: Groups | None = None,
    truth: ArrayLike | None = None,
    u: Uniforms = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    epsilon: float | None = None,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> Renewed:
    """Renew a release: repeat its request with new records, and state which release is renewed.

    Level, adjacency, method, classes, groups and all other choices are those of `previous`, without a guess of the
    threshold. The privacy loss is a new one. For people who are in both releases it adds up with the earlier one. The
    coverage guarantee does not depend on earlier releases.

    Parameters
    ----------
    previous
        A release of `calibrate` or a related function, or of `recalibrate`.
    scores
        The scores of the new records, shape (n,), of the same score as before. For a release of two sides: the
        quantiles, shape (n, 2), with `targets`. For a false-negative rate: the probabilities, shape (n, K), with
        `truth`. For another loss: the losses, shape (n, m-1), with `candidates`.
    targets, truth, u
        As in `calibrate_sides`, `calibrate_false_negatives` and `calibrate_losses`.
    groups
        For a release with groups or classes: the group or class of each record, shape (n,).
    labels, weights
        For a release with a guarantee for a shifted population: the class, or the weight, of each record, as in
        `calibrate`.
    epsilon
        Another budget for the whole release, or `rho`, divided among thresholds as before.
    candidates
        Other candidates, such as those around a guess. Required for candidate values of your own, which a release does
        not contain.
    **options
        `rho` and `n_typical`, as in `Choices`. `about`, as in `calibrate`; the metadata of `previous` are not taken
        over. `fingerprint`, for another model than that of `previous`, whose fingerprint is taken over without it.
        `ledger`, `dataset`, `partition`, `again`, as in `calibrate` and `calibrate_groups`. The renewal of another
        release is another request. Therefore new records under the same name are charged, and the same renewal with
        the same data returns the earlier answer.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        The type of `previous`.

    Raises
    ------
    InputError, InputTypeError, OtherDataError, BudgetError, LedgerError
        As `calibrate`; also if the release does not contain the required information.

    Examples
    --------
    >>> import numpy as np, confide
    >>> rng = np.random.default_rng(0)
    >>> january = confide.calibrate(rng.beta(2, 5, 1000), 0.1, 1.0, score="lac", about={"date": "2026-01"})
    >>> february = recalibrate(january, rng.beta(2, 5, 1000), about={"date": "2026-02"})
    >>> february.alpha == january.alpha, february.epsilon, february.renews == january.checksum
    (True, 1.0, True)
    """
    payer, fields = split_options("recalibrate", options, "partition")
    request = Request(renews=previous, epsilon=epsilon, candidates=candidates, **fields)
    records = {"targets": targets, "groups": groups, "truth": truth, "u": u, "labels": labels, "weights": weights}
    given = {name: value for name, value in records.items() if value is not None}
    refuse_other_rows(scores=scores, **given)
    _check_records(request, given)
    values = _scores(request, scores, given)
    renewed: Renewed = release(Scores(values, groups, labels, weights), request, payer)
    return renewed


def _check_records(request: Request, given: Mapping[str, Any]) -> None:
    """Check that exactly the arguments are given that this type of release requires."""
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    if request.by == "side":
        needed = ("targets",)
    elif request.disjoint:
        needed = ("groups",)
    elif request.loss is not None:
        needed, optional = ("truth",) if request.loss == FALSE_NEGATIVES else (), ("u",)
    if request.population is not None:
        needed = (*needed, "labels" if isinstance(request.population, ClassShift) else "weights")
    kind = type(request.renews).__name__
    if missing := [name for name in needed if name not in given]:
        shifted = ", for a population with a known shift" if missing[0] in ("labels", "weights") else ""
        raise InputError(missing[0], f"must be given: previous is a {kind}{shifted}")
    if unexpected := [name for name in given if name not in (*needed, *optional)]:
        raise InputError(unexpected[0], f"must be left out: previous is a {kind}")


def _scores(request: Request, scores: ArrayLike, given: Mapping[str, Any]) -> dict[Key, NDArray[Any]]:
    """The scores of the records by side, or by None; raises an error if they carry another name than the release."""
    first, previous = next(iter(request.terms)), request.renews
    terms, words = request.terms[first], request.words
    if request.by == "side":
        return {side: interval_score(scores, given["targets"], side) for side in SIDES}
    if request.loss == FALSE_NEGATIVES:
        assert previous is not None
        names_for(previous, column_names(scores), as_array("scores", scores).shape[-1])
        return {None: false_negative_thresholds(scores, given["truth"], u=given.get("u"))}
    if request.loss is not None:
        over = terms.spread if request.candidates is None else request.candidates
        if not isinstance(over, Candidates):
            raise InputError("candidates", "must be given: the candidates that the losses belong to")
        return {None: critical_thresholds(scores, over, u=given.get("u"), bound=request.bound)}
    name_of_scores(scores, terms.score, words.classes)
    return {None: as_vector("scores", scores, empty=True)}
