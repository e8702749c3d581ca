"""The call that renews a release on new records: the same request, from a warm start, charged anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_array, as_vector, column_names, refuse_other_rows
from confide.calibration.calibrate import Options, split_options
from confide.calibration.release import Scores, release
from confide.calibration.request import SIDES, Key, Request
from confide.calibration.risk import critical_thresholds, false_negative_thresholds
from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError
from confide.planning import ClassShift
from confide.releases import FALSE_NEGATIVES, Release, names_for
from confide.scores import interval_score, named_by

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    candidates: AnyCandidates = None,
    cold: bool = False,
    **options: Unpack[Options],
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
    epsilon
        Another budget of the whole release, or `rho`, divided among thresholds as before.
    cold
        Candidates that do not depend on `previous`. **Needed where a record was in an earlier release of the chain,
        too**: its threshold then depends on these data, and the promise of a warm start is for new records (see
        docs/howto/recalibrate.md). The privacy is the same either way.
    candidates
        For values of your own, which a release does not keep: the same again.
    **options
        `rho`, `n_typical`, `slopes`, `rise`, `shift`, as in `Choices`: a release does not keep what was asked of
        these, and without them they are chosen anew. `about`, as in `calibrate`; the words of `previous` are its own.
        `ledger`, `dataset`, `partition`, `again`, as in `calibrate` and `calibrate_groups`: to renew another release is
        another request, so new records under the same name are charged, and the same renewal of the same data is the
        earlier answer.

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
    payer, asked = split_options("recalibrate", options, "partition")
    request = Request(renews=previous, epsilon=epsilon, candidates=candidates, cold=cold, **asked)
    records = {"targets": targets, "groups": groups, "truth": truth, "u": u, "labels": labels, "weights": weights}
    given = {name: value for name, value in records.items() if value is not None}
    refuse_other_rows(scores=scores, **given)
    _check_records(request, given)
    values = _scores(request, scores, given)
    renewed: Renewed = release(Scores(values, groups, labels, weights), request, payer)
    return renewed


def _check_records(request: Request, given: Mapping[str, Any]) -> None:
    """Refuse what belongs to other kinds of releases, and say what this kind needs."""
    needed: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    if request.by == "side":
        needed = ("targets",)
    elif request.disjoint:
        needed = ("groups",)
    elif request.loss is not None:
        needed, more = ("truth",) if request.loss == FALSE_NEGATIVES else (), ("u",)
    if request.population is not None:
        needed = (*needed, "labels" if isinstance(request.population, ClassShift) else "weights")
    kind = type(request.renews).__name__
    if missing := [name for name in needed if name not in given]:
        shifted = ", for a population that is a known shift away" if missing[0] in ("labels", "weights") else ""
        raise InputError(missing[0], f"must be given: previous is a {kind}{shifted}")
    if wrong := [name for name in given if name not in (*needed, *more)]:
        raise InputError(wrong[0], f"must be left out: previous is a {kind}")


def _scores(request: Request, scores: ArrayLike, given: Mapping[str, Any]) -> dict[Key, NDArray[Any]]:
    """The scores of the records, by the side or None; refused if they know another name than that of the release."""
    part, previous = next(iter(request.parts.values())), request.renews
    if request.by == "side":
        return {side: interval_score(scores, given["targets"], side) for side in SIDES}
    if request.loss == FALSE_NEGATIVES:
        assert previous is not None
        names_for(previous, column_names(scores), as_array("scores", scores).shape[-1])
        return {None: false_negative_thresholds(scores, given["truth"], u=given.get("u"))}
    if request.loss is not None:
        over = part.law if request.candidates is None else request.candidates
        if not isinstance(over, Candidates):
            raise InputError("candidates", "must be given: those that the losses belong to")
        return {None: critical_thresholds(scores, over, u=given.get("u"), bound=request.bound)}
    named_by(scores, part.score, part.words.classes)
    return {None: as_vector("scores", scores, empty=True)}
