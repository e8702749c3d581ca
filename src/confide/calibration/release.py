"""Records and a request come in, a release leaves: the only way from one to the other.

Records are a `Source`, wherever they live: arrays (`Scores`), counts that were made elsewhere (`Counted`), the rows of
a table. What a source shows of them is counts over public candidates, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.calibration.parts import Key
from confide.calibration.prepared import NOBODY, Payer, Seen, prepare
from confide.calibration.request import Request
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.planning import ClassShift, Population, RecordWeights
from confide.support import canonical


class Source(Protocol):
    """Records, wherever they live."""

    @property
    def n(self) -> int | None:
        """Their number, where it costs little; else None."""

    @property
    def looking_tells(self) -> bool:
        """Whether somebody else learns that they are looked at, so that a ledger is charged before."""

    def see(self, request: Request, candidates: Candidates) -> Mapping[Key, Seen]:
        """What mechanisms see, by row of the request: counts over the candidates; without privacy the scores."""


def release(source: Source, request: Request, payer: Payer = NOBODY) -> Any:
    """Decide, price, refuse, look, compare, charge, draw, keep, state: in this order.

    Parameters
    ----------
    source
        The records.
    request
        What is asked of them.
    payer
        Who pays.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        What follows from the request.

    Raises
    ------
    InputError, InputTypeError
        If the records cannot be used, or the number of them is public, not known, and has to be charged before; then
        nothing was released.
    OtherDataError, BudgetError, LedgerError
        If the ledger refuses; then nothing was released.

    Examples
    --------
    >>> request = Request(alpha=0.1, epsilon=1.0, score="lac")
    >>> print(release(Scores.of(np.linspace(0, 1, 2000)), request).privacy)
    1-differential privacy for adding or removing one record
    """
    n = source.n
    if request.public_n and n is None:
        if source.looking_tells and payer.pays:
            raise InputError("n must be given under neighbors='replace_one' with a ledger, to charge it beforehand")
        if payer.pays:  # an account that keeps n secret refuses whatever n is, before a record is read
            prepare(request, 1, payer)
        source = Counted(source.see(request, request.counted_over(known_later=True)))
        n = source.n
    settled = n if request.public_n else None
    prepared = prepare(request, settled, payer)
    candidates = request.counted_over(settled)
    return prepared.release(lambda: source.see(request, candidates), charge_first=source.looking_tells)


@dataclass(frozen=True)
class Counted:
    """Counts that were made elsewhere, by row; those over more candidates serve, too."""

    counts: Mapping[Key, Seen]
    looking_tells = False

    @property
    def n(self) -> int:
        """The number of records."""
        one = next(iter(self.counts.values()))
        return one.total if isinstance(one, ScoreHistogram) else len(one)

    def see(self, request: Request, candidates: Candidates) -> Mapping[Key, Seen]:
        """The same counts."""
        return self.counts


@dataclass(frozen=True)
class Scores:
    """Scores in memory, by row: those of both sides, or of every record, with its group, its class or its weight.

    Parameters
    ----------
    values
        Arrays of shape (n,), by row; by None where groups divide them.
    groups, labels, weights
        What a request needs of each record, shape (n,).
    places
        Instead of `groups`: the position of each record's among the rows of the request, -1 for none of them.
    beyond
        Whether scores of +inf are taken, which no score's range holds: they count above every finite candidate.
    """

    values: Mapping[Key, NDArray[Any]]
    groups: ArrayLike | None = None
    labels: ArrayLike | None = None
    weights: ArrayLike | None = None
    places: NDArray[np.int64] | None = None
    beyond: bool = False
    looking_tells = False

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> "Scores":
        """One score for each record, shape (n,), and what else is known of it."""
        refuse_other_rows(scores=scores, groups=groups, labels=labels, weights=weights)
        return cls({None: as_vector("scores", scores, empty=True)}, groups, labels, weights)

    @property
    def n(self) -> int:
        """The number of records."""
        return len(next(iter(self.values.values())))

    def see(self, request: Request, candidates: Candidates) -> Mapping[Key, Seen]:
        """The counts of each row; a score that cannot be counted is refused with its position among all records."""
        parts = {part.row: part for part in request.parts.values()}
        if request.disjoint:
            array, score = self.values[None], next(iter(parts.values())).score
            place = self.places
            if place is None:
                place = as_positions("groups", self.groups, tuple(parts), len(array))  # type: ignore[arg-type]
            self._counts(array, candidates, score)
            return {row: self._counts(array[place == i], candidates, score) for i, row in enumerate(parts)}
        seen: dict[Key, Seen] = {}
        for row, part in parts.items():
            array = self.values[row]
            counts = self._counts(array, candidates, part.score)
            if part.terms.population is not None:
                counts = ScoreHistogram.from_weights(array, self._steps(part.terms.population), candidates)
            seen[row] = array if part.terms.mechanism == "none" else counts
        return seen

    def _counts(self, array: NDArray[Any], candidates: Candidates, score: str | None) -> ScoreHistogram:
        if not self.beyond:
            return ScoreHistogram.from_scores(array, candidates, score)
        beyond = np.isposinf(array)
        last = np.zeros(candidates.size, dtype=np.int64)
        last[-1] = np.count_nonzero(beyond)
        return ScoreHistogram.from_scores(array[~beyond], candidates, score) + ScoreHistogram(candidates, last)

    def _steps(self, population: Population) -> NDArray[Any]:
        """The whole weight of each record."""
        if isinstance(population, RecordWeights):
            given = as_vector("weights", self.weights, empty=True)  # type: ignore[arg-type]
            if len(given) != self.n:
                raise InputError(f"weights must have shape ({self.n},), one per record; found shape {given.shape}")
            return population.whole(given)
        places = as_positions("labels", self.labels, population.classes, self.n)  # type: ignore[arg-type]
        return np.array(population.steps)[places]


def weighted_sum(counts: Mapping[Any, ScoreHistogram], population: ClassShift) -> ScoreHistogram:
    """The weighted counts of records, from the counts of each class, by its name.

    Examples
    --------
    >>> counts = {name: ScoreHistogram.from_scores([0.1], Candidates.of([0.5])) for name in ("a", "b")}
    >>> weighted_sum(counts, ClassShift.of_weights({"a": 1, "b": 3})).counts
    array([4, 0])
    """
    named = {canonical(name): one for name, one in counts.items()}
    steps = dict(zip(map(canonical, population.classes), population.steps, strict=True))
    total = sum(one.counts * steps[name] for name, one in named.items())
    return ScoreHistogram(next(iter(named.values())).candidates, np.asarray(total))
