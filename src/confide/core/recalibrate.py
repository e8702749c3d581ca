"""The function that renews a release with new records: the same request, charged again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, Uniforms, as_array, as_vector, column_names, refuse_other_rows
from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core.losses import FALSE_NEGATIVES
from confide.core.options import GroupOptions, split_options
from confide.core.population import ClassShift
from confide.core.release import Release, names_among
from confide.core.request import Request
from confide.core.risk import critical_thresholds, false_negative_thresholds
from confide.core.sources import source_of
from confide.core.steps import release
from confide.core.thresholds import SIDES, Key
from confide.errors import InputError, InputTypeError
from confide.scores import interval_score, name_of_scores


def recalibrate(
    previous: Release,
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
    **options: Unpack[GroupOptions],
) -> Release:
    """Renew a release: repeat its request with new records, and state which release is renewed.

    Level, adjacency, method, classes, groups and all other choices are those of `previous`; the threshold that it
    released is not used. The privacy loss is a new one. For people who are in both releases it adds up with the
    earlier one. The coverage guarantee does not depend on earlier releases.

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
        `rho`, as in `Choices`. `about`, as in `calibrate`; the metadata of `previous` are not taken over.
        `fingerprint`, for another model than that of `previous`, whose fingerprint is taken over without it. `ledger`,
        `dataset`, `partition`, `again`, as in `calibrate`. In the ledger, each renewal is a request of its own, because
        it names the release that it renews: new records under the same name are charged without `again`, and repeating
        the renewal with the same data returns the earlier release.

    Returns
    -------
    Release
        With the keys of `previous`.

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
    request = renewed(previous, epsilon=epsilon, candidates=candidates, **fields)
    records = {"targets": targets, "groups": groups, "truth": truth, "u": u, "labels": labels, "weights": weights}
    given = {name: value for name, value in records.items() if value is not None}
    refuse_other_rows(scores=scores, **given)
    _check_records(request, given)
    values = _scores(request, scores, given)
    return release(source_of(values, groups=groups, labels=labels, weights=weights), request, payer)


# The fields of a request that a renewal may change.
RENEWED = ("epsilon", "rho", "candidates", "about", "fingerprint")


def renewed(previous: Release, **changes: Any) -> Request:
    """The request of an earlier release again, with its checksum, and with other values of some fields of `RENEWED`.

    None keeps what `previous` states. A private choice of the score is not repeated, and its metadata are not taken
    over.
    """
    # Releases that cannot be repeated: of other types, of silos, of published counts.
    if not isinstance(previous, Release):
        must = "must be a release of calibrate or a related function, as confide.load returns it"
        raise InputTypeError("previous", must, got=type(previous).__name__)
    request = previous.request
    if not isinstance(request, Request) or type(previous) is not Release:
        remedy = "Silos must renew theirs together: send them a new plan, or calibrate your own records alone"
        raise InputTypeError("previous", "must be a release of one owner's records", remedy=remedy)
    if request.noise is not None:
        remedy = "Calibrate on new counts (calibrate_counts, --noisy-counts)"
        raise InputTypeError("previous", "must be a release of records that were counted here", remedy=remedy)

    # The fields that change; epsilon and rho replace each other.
    given = {name: value for name, value in changes.items() if value is not None}
    if unknown := [name for name in given if name not in RENEWED]:
        raise InputError(unknown[0], "must be left out with an earlier release, which states it")
    if "epsilon" in given or "rho" in given:
        given = {"epsilon": None, "rho": None} | given
    if isinstance(given.get("candidates"), int) and isinstance(request.candidates, Spread):
        given["unit"] = request.candidates.unit
    return replace(request, **{"about": None, "chosen": None, **given, "renews": previous.checksum})


def _check_records(request: Request, given: Mapping[str, Any]) -> None:
    """Raise an error unless exactly those arguments are given that this type of release requires of each record."""
    # What belongs to each score, and the weight of each record.
    needed: list[str] = []
    optional: list[str] = []
    kind = "release"
    if request.by == "side":
        needed = ["targets"]
    elif request.disjoint:
        needed = ["groups"]
    elif request.loss is not None:
        needed = ["truth"] if request.loss == FALSE_NEGATIVES else []
        optional = ["u"]
        kind += f" for the loss {request.loss!r}"
    if request.by is not None:
        kind += f" by {request.by}"
    weighted_by = "labels" if isinstance(request.population, ClassShift) else "weights"
    if request.population is not None:
        needed.append(weighted_by)

    # What is missing, and what is given without need.
    if missing := [name for name in needed if name not in given]:
        shifted = ", for a population with a known shift" if missing[0] == weighted_by else ""
        raise InputError(missing[0], f"must be given: previous is a {kind}{shifted}")
    if unexpected := [name for name in given if name not in (*needed, *optional)]:
        raise InputError(unexpected[0], f"must be left out: previous is a {kind}")


def _scores(request: Request, scores: ArrayLike, given: Mapping[str, Any]) -> dict[Key, NDArray[Any]]:
    """The scores of the records by side, or by None; raises an error if they carry another name than the release."""
    terms, *_ = request.terms.values()
    if request.by == "side":
        return {side: interval_score(scores, given["targets"], side) for side in SIDES}
    if request.loss == FALSE_NEGATIVES:
        k = as_array("scores", scores).shape[-1]
        if request.classes is not None:
            names_among(request.classes, column_names(scores), k)
        return {None: false_negative_thresholds(scores, given["truth"], u=given.get("u"))}
    if request.loss is not None:
        candidates = terms.known_spread
        if not isinstance(candidates, Candidates):
            raise InputError("candidates", "must be given: the candidates that the losses belong to")
        return {None: critical_thresholds(scores, candidates, u=given.get("u"), bound=request.bound)}
    name_of_scores(scores, terms.score, request.classes)
    return {None: as_vector("scores", scores, empty=True)}
