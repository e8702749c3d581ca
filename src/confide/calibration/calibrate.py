"""The call that joins the parts: candidates, histogram, plan, selection, statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from confide.arrays import as_vector, refuse_other_rows
from confide.calibration.priced import PricedRelease
from confide.calibration.shifted import population_of, weighted_counts
from confide.calibration.suited import suited_candidates
from confide.calibration.threshold import Seen, price_threshold, seen_by
from confide.candidates import AnyCandidates
from confide.mechanisms import MechanismName, Neighbors
from confide.planning import ClassShift
from confide.releases import Calibration
from confide.scores import named_by
from confide.selection import Selector
from confide.support import Level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


def calibrate(
    scores: ArrayLike,
    alpha: Level,
    epsilon: float | None = None,
    *,
    score: str | None = None,
    classes: Sequence[object] | int | None = None,
    about: Mapping[str, str] | None = None,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    n_min: int = 1,
    n_typical: int | None = None,
    delta: Level | None = None,
    records_per_person: int = 1,
    selector: Selector | None = None,
    slopes: tuple[int, int] | None = None,
    rise: float | None = None,
    shift: float | None = None,
    mechanism: MechanismName = "slopes",
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
    again: bool = False,
    class_weights: Mapping[Any, Any] | ClassShift | None = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_bound: float | None = None,
) -> Calibration:
    """Release a threshold with a coverage guarantee and a differential-privacy guarantee.

    Every call is a release of its own: two calls on the same data cost the sum of their epsilons.

    Parameters
    ----------
    scores
        Conformity scores of the calibration records, shape (n,), larger means stranger; any array that numpy can
        read. Each must be a function of one record (and of public information) alone. Under `add_remove` there may be
        none: that there are any is secret, too. Those that the score functions return (`lac_score`,
        `absolute_residual_score`, ...) know their name and their classes, which are recorded.
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per person. Give this or `rho`.
    score
        Name of the score, recorded in the release, for scores that do not know it: those of this library set good
        default candidates and have their range checked; any other name is recorded as it is. A release without a name
        is for your own comparison with its threshold: `predict_set` and `predict_interval` refuse it.
    classes
        The public class names, in the order of the probabilities' columns, or their number, if the scores do not know
        them: new records with other classes are then refused.
    about
        Public words to keep in the release: any of `model`, `version` (of the model), `data`, `purpose`, `responsible`
        and `date`, each of up to 500 printable characters.
    candidates
        Public candidate thresholds, or how they are spread, or their number: by default as suits the score, and as many
        as suit what is asked. `Candidates.around` spreads them around a guess.
    unit
        For residuals: a public number in their units, such as a typical size of the target or of an error. Candidates
        are spread around it; within a factor of 100 it makes thresholds sharper, and rarely beyond the data.
    rho, neighbors, n_min, n_typical, delta, records_per_person, selector, slopes, rise, shift
        As in `confide.plan`.
    mechanism
        `"slopes"` (default), or a published method by its name, to compare: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage promised), `"pcoqs"` and `"pcoqs-published"` (no coverage
        promised, asked for by `rho`: zero-concentrated privacy and no pure epsilon) or `"none"` (**not private**: split
        conformal prediction on the scores themselves; leave out epsilon). See docs/methods.md.
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) under which it keeps these data's budget. The cost is
        charged durably before the mechanism runs. An identical request about the same data returns the kept release,
        says so and costs nothing; about other data it is refused.
    again
        These are the same people with new records or a new model: draw anew, and charge it, although the ledger has
        answered an identical request.
    class_weights, labels
        A promise for a population with other class shares, and nothing else changed: for each class its new share
        divided by its share where these records come from, up to a common factor, or a `confide.ClassShift` of both;
        and the class of each record, shape (n,). Both shares are **public**, from a code book or a register: shares
        that are counted among these very records break the privacy promise, and wrong ones the coverage promise.
    weights, weight_bound
        The same for any public density ratio: the weight of each record, shape (n,), from 0 to the public bound, a
        function of its covariates that is known without these records, and never of its score.

    Returns
    -------
    Calibration
        The threshold (possibly +inf or nearly so, with a `CoverageWarning` that says why), the promise and the
        privacy statement.

    Warns
    -----
    EarlierReleaseWarning
        If it is the ledger's earlier release; nothing was charged.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; then nothing was released.
    OtherDataError
        If the ledger answered this request before, about other data; then nothing was released nor charged.
    BudgetError, LedgerError
        If the ledger's limit does not allow it, or the ledger cannot be used; then nothing was released.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.candidates import Candidates
    >>> scores = np.random.default_rng(0).random(2000)
    >>> released = calibrate(scores, alpha=0.1, epsilon=1.0, candidates=Candidates.unit(1000))
    >>> print(released.privacy)
    1-differential privacy for adding or removing one record
    """
    refuse_other_rows(scores=scores, labels=labels, weights=weights)
    score, classes = named_by(scores, score, classes)
    options = {name: value for name, value in locals().items() if name not in _NO_CHOICES}
    options["population"] = population = population_of(class_weights, labels, weights, weight_bound)
    array = as_vector("scores", scores, empty=True)
    chosen = suited_candidates(candidates, unit=unit, n=len(array), **options)
    priced = price_threshold(**options, n=len(array), candidates=chosen)

    def seen() -> Seen:
        if population is None:
            return seen_by(mechanism, array, chosen, score)
        return weighted_counts(array, chosen, score, population, labels, weights)

    released: Calibration = PricedRelease.single(priced).release(lambda: {None: seen()})
    return released


_NO_CHOICES = ("scores", "candidates", "unit", "class_weights", "labels", "weights", "weight_bound")
